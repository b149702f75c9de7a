"""Successive halving: many candidates get small pilots, those that are left larger ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localsmooth.errors import InvalidInputError
from localsmooth.tuning.forecast import Aim, Forecast
from localsmooth.tuning.pilot import Entry

__all__ = ["Tried", "halved", "planned", "ranked"]

_FINALISTS = 2
_GRANTED = 0.02  # of quality in the first round, half as much in each further one: small pilots see it as too low


@dataclass(frozen=True, eq=False)
class Tried:
    """What is foretold of a candidate, by its last pilot.

    Parameters
    ----------
    entry
        The candidate with its whole run.
    forecast
        What is expected.
    round
        Number of that pilot's round, from 1 on; later ones are larger.
    samples
        Its samples of each output group.
    """

    entry: Entry
    forecast: Forecast
    round: int
    samples: int


Try = Callable[[Entry, float, int], Tried]
"""Draws a pilot of a share of the entry's run, in a round, and foretells the run from it."""


def ranked(tried: Sequence[Tried], aim: Aim, granted: float = 0.0) -> list[Tried]:
    """Sort candidates, best first: those that reach the floor by what is wanted, the others by what they lack.

    Parameters
    ----------
    tried
        The candidates.
    aim
        What is wanted.
    granted
        Quality that they may lack.
    """

    def key(one: Tried) -> tuple[float, float]:
        return (-max(one.forecast.short(aim.floor) - granted, 0.0), one.forecast.score(aim.at))

    return sorted(tried, key=key, reverse=True)


def planned(candidates: int, share: float) -> list[tuple[int, float]]:
    """Number of pilots in each round, and their share of a whole run.

    There is one more where the best isotropic candidate is not among the better half.

    Parameters
    ----------
    candidates
        Number of candidates.
    share
        Of the last pilots.
    """
    made, left = list[tuple[int, float]](), candidates
    while left > _FINALISTS:
        made.append((left, _part(share, candidates, len(made) + 1)))
        left = max(_better(left), _FINALISTS)
    return [*made, (left, share)]


def _part(share: float, candidates: int, number: int) -> float:
    """Size of the pilots of a round."""
    return share / 2 ** max(1, (candidates - 1).bit_length() - number)


def _better(left: int) -> int:
    """How many stay; of three, one goes: the winner stays, and the best isotropic one."""
    return (left + 1) // 2 if left > _FINALISTS + 1 else 1


def halved(entries: Sequence[Entry], attempt: Try, aim: Aim, share: float, say: Callable[[str], None]) -> list[Tried]:
    """Find the best candidate, and the best isotropic one.

    In every round each candidate that is left gets a fresh pilot, twice as large as the last, and the better half
    stays, and the best isotropic one. The last pilots are of the winner and the best isotropic one alone (and, where
    neither reaches the floor after all, of the next that seemed to): what is foretold of them comes from votes that
    did not choose them.

    Parameters
    ----------
    entries
        All candidates.
    attempt
        Makes a pilot.
    aim
        What is wanted.
    share
        Of a whole run, that the last pilots are.
    say
        Told after a round in which no candidate reached the floor.

    Returns
    -------
    list of Tried
        All, the best first; the isotropic one where it is better than any other.

    Raises
    ------
    InvalidInputError
        If none reaches the floor.
    """
    left, out, number = list(entries), list[Tried](), 1
    while len(left) > _FINALISTS:
        part = _part(share, len(entries), number)
        order = ranked([attempt(entry, part, number) for entry in left], aim, _GRANTED / 2 ** (number - 1))
        if order[0].forecast.short(aim.floor) > 0:
            say(f"None reaches the floor so far: {_nearest(order)}. Later pilots are larger, and may see more of it")
        kept = order[: _better(len(order))]
        isotropic = next((one for one in order if one.entry.candidate.isotropic), None)
        if isotropic is not None and isotropic not in kept:
            kept.append(isotropic)
        out = [one for one in order if one not in kept] + out
        left, number = [one.entry for one in kept], number + 1
    last = ranked([attempt(entry, share, number) for entry in left], aim)
    for other in ranked(out, aim):
        if last[0].forecast.short(aim.floor) <= 0 or other.forecast.short(aim.floor) > 0:
            break
        last = ranked([*last, attempt(other.entry, share, number)], aim)
        out.remove(other)
    if last[0].forecast.short(aim.floor) > 0:
        problem = f"no candidate reaches it; {_nearest(last)}"
        raise InvalidInputError("floor", problem, "Ask for less, or offer smaller levels")
    return last + out


def _nearest(order: Sequence[Tried]) -> str:
    reached = ", ".join(f"{name} {value:.3f}" for name, value in order[0].forecast.quality.items())
    return f"the nearest, {order[0].entry.candidate.name}, has {reached}"
