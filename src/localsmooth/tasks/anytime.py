"""What may be proven of a run that went on after one could look at it."""

from __future__ import annotations

from typing import Any

from localsmooth.errors import InvalidInputError

__all__ = ["holds_anytime", "require_anytime"]

_EXTENDED = "{place} gets or got more samples than it began with, perhaps after looking"
_ENDED = "sampling of {place} ends or ended before its plan, perhaps after looking"


def _problem(settings: Any, sequence: bool) -> tuple[str, str] | None:
    """Field of what needs a number of samples that is fixed beforehand, and what to call it; None if nothing does."""
    method = getattr(settings, "method", None) or getattr(settings, "baseline", None)
    if settings.needs_scores:
        return "certificates", "bounds on scores need"
    if method is not None and not getattr(method, "anytime", False):
        return "method", f"{method.name} needs"
    if not sequence and not getattr(settings.simultaneous, "anytime", False):
        return "simultaneous", f"{settings.simultaneous.name} needs"
    return None


def holds_anytime(settings: Any, *, sequence: bool) -> bool:
    """Whether what is proven holds at every number of samples at once.

    Parameters
    ----------
    settings
        What is to be proven.
    sequence
        Whether votes are bounded with a confidence sequence (the run stops early).
    """
    return _problem(settings, sequence) is None


def require_anytime(settings: Any, *, sequence: bool, place: object, ended: bool = False) -> None:
    """Refuse what does not hold at every number of samples at once, for a run that was or will be extended, or ended.

    Whoever looks at a certificate before asking for more samples, or no more, makes their number depend on the votes.

    Parameters
    ----------
    settings, sequence
        As in `holds_anytime`.
    place
        The run directory.
    ended
        Whether sampling ends before its plan does, in place of going on behind it.

    Raises
    ------
    InvalidInputError
        Naming what does not hold, and the remedy.
    """
    problem = _problem(settings, sequence)
    if problem is None:
        return
    # The same seed would draw the same samples again: an extended run that does not say so.
    otherwise = "let sampling go on to its end" if ended else "draw from another seed in another run directory"
    raise InvalidInputError(
        problem[0],
        f"{(_ENDED if ended else _EXTENDED).format(place=place)}, and {problem[1]} a number of samples that is fixed "
        "beforehand",
        "Certify votes by JointCount, which holds at every number of samples at once (in a file: many_outputs = "
        f'{{ rule = "joint_count" }}; the samples that are there are kept), or {otherwise}',
    )
