"""What may be proven of a run that went on after one could look at it."""

from __future__ import annotations

from typing import Any

from localsmooth.errors import InvalidInputError

__all__ = ["require_anytime"]


def require_anytime(settings: Any, *, sequence: bool, place: object) -> None:
    """Refuse what does not hold at every number of samples at once, for a run that was or will be extended.

    Whoever looks at a certificate before asking for more samples makes their number depend on the votes.

    Parameters
    ----------
    settings
        What is to be proven.
    sequence
        Whether votes are bounded with a confidence sequence (the run stops early).
    place
        The run directory.

    Raises
    ------
    InvalidInputError
        Naming what does not hold, and the remedy.
    """
    rule = settings.simultaneous
    method = getattr(settings, "method", None) or getattr(settings, "baseline", None)
    field = "simultaneous"
    if settings.needs_scores:
        field, problem = "certificates", "bounds on scores need a number of samples that is fixed beforehand"
    elif method is not None and not getattr(method, "anytime", False):
        field, problem = "method", f"{method.name} needs a number of samples that is fixed beforehand"
    elif not sequence and not getattr(rule, "anytime", False):
        problem = f"{rule.name} needs a number of samples that is fixed beforehand"
    else:
        return
    raise InvalidInputError(
        field,
        f"{place} gets or got more samples than it began with, perhaps after looking, and {problem}",
        "Certify votes by JointCount (joint_count), which holds at every number of samples at once, or draw the larger "
        "number in another run directory",
    )
