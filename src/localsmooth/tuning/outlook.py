"""What choosing noise takes: counted beforehand, timed by the pilots so far, and told while one is drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np

from localsmooth.execution import NoProgress, Pace, SamplingSummary
from localsmooth.tuning.halving import planned
from localsmooth.tuning.pilot import Entry

__all__ = ["Outlook", "PilotProgress"]

_EVERY = 10.0  # seconds between two lines about one pilot


class PilotProgress(NoProgress):
    """Says now and then how far a pilot is, and keeps what drawing it took.

    Parameters
    ----------
    name
        Of the pilot.
    say
        Told.
    clock
        Seconds, monotonic.
    """

    summary: SamplingSummary | None = None

    def __init__(self, name: str, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._say, self._clock = name, say, clock
        self._pace = Pace(_EVERY, clock)
        self.drawn = clock()

    def within(self, done: float, total: float) -> None:
        """Say how many passes are done, if it is time to."""
        if self._pace.advance(0) and done < total:
            self._say(f"{self._name}: {done:,.0f} of {total:,.0f} passes")

    def start(self, total: int, done: int) -> None:
        """Note when drawing begins: what comes before, the model's trial, is not timed."""
        self._pace.start(total, done)

    def finish(self, summary: SamplingSummary) -> None:
        """Keep it, and when that was."""
        self.summary, self.drawn = summary, self._clock()


class Outlook:
    """Says how many pilots there will be, and, after the first of every round, how long the others will take.

    Parameters
    ----------
    entries
        All candidates.
    share
        Of a whole run, that the last pilots are.
    say
        Told.
    clock
        Seconds, monotonic.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        share: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rounds = [(count, _passes(entries, part)) for count, part in planned(len(entries), share)]
        self._say, self._clock = say, clock
        self._number = self._pilots = 0
        self._passes = self._drawing = self._after = 0.0
        pilots, passes = sum(count for count, _ in self._rounds), sum(count * each for count, each in self._rounds)
        whole = float(np.mean([entry.work for entry in entries]))
        say(
            f"{len(entries)} candidates: about {pilots} pilots in {len(self._rounds)} rounds, together about "
            f"{passes:,.0f} passes an item (a whole run takes {whole:,.0f})"
        )

    def watch(self, entry: Entry, number: int) -> PilotProgress:
        """What a pilot is to be drawn with.

        Parameters
        ----------
        entry
            The candidate.
        number
            Of the round.
        """
        return PilotProgress(f"Round {number}: {entry.candidate.name}", self._say, self._clock)

    def done(self, watched: PilotProgress, entry: Entry, samples: int, number: int) -> None:
        """Count a pilot that was drawn and foretold from.

        Parameters
        ----------
        watched
            What it was drawn with.
        entry, samples, number
            The candidate, the samples of each group, and the number of the round.
        """
        if watched.summary is None:
            return
        self._pilots += 1
        self._passes += _pass_share(entry, samples) * entry.work
        self._drawing += watched.summary.seconds
        self._after += self._clock() - watched.drawn
        if number != self._number:
            self._number = number
            (count, each), later = self._rounds[min(number, len(self._rounds)) - 1], self._rounds[number:]
            left = [(count - 1, each), *later]
            pilots = sum(several for several, _ in left)
            if pilots > 1:
                seconds = self._after / self._pilots * pilots + self._drawing / self._passes * sum(
                    several * passes for several, passes in left
                )
                self._say(f"About {timedelta(seconds=round(seconds))} for the {pilots} pilots or so that are left")


def _passes(entries: Sequence[Entry], part: float) -> float:
    """Passes an item that a pilot of a share of a run takes, in the mean over candidates."""
    return float(np.mean([_pass_share(entry, entry.pilot(part)) * entry.work for entry in entries]))


def _pass_share(entry: Entry, samples: int) -> float:
    return samples / (entry.plan.n_candidate + entry.plan.n_bound)
