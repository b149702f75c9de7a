"""Last steps that all score bounds share: round against the certificate, clip to what is possible."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from localsmooth.bounds.scores import ScoreBounds
from localsmooth.bounds.votes import NumericalError
from localsmooth.errors import InvalidInputError

__all__ = ["finish", "require_level"]

# Far above the rounding errors of a few sums of positive terms, far below any effect on a certificate.
_MARGIN = 1e-11
# What subtracting from 1 may cost a bound that is close to 0.
_SMALLEST = 1e-14


def finish(
    mean_lower: Float[np.ndarray, " outputs"],
    deviation_upper: Float[np.ndarray, " outputs"],
    reference: Float[np.ndarray, " outputs"],
    resolution: float,
) -> ScoreBounds:
    """Round outward, clip to the possible range and refuse what is not a number.

    Parameters
    ----------
    mean_lower, deviation_upper, reference
        As in :class:`ScoreBounds`, before rounding.
    resolution
        Smallest value that a bound on ζ may take, so that nothing is ever divided by 0.

    Returns
    -------
    ScoreBounds
        The finished bounds.

    Raises
    ------
    NumericalError
        If a bound is not a number.
    """
    largest = np.maximum(reference, 1 - reference) ** 2 * (1 + _MARGIN)
    lower = np.clip(mean_lower - _MARGIN, 0.0, 1.0)
    upper = deviation_upper * (1 + _MARGIN) + _SMALLEST
    upper = np.clip(upper, resolution, np.maximum(largest, resolution))
    if not bool(np.all(np.isfinite(lower) & np.isfinite(upper))):
        raise NumericalError("a bound on scores is not a number; no certificate can be built on it")
    return ScoreBounds(lower, upper, reference)


def require_level(level: float | Float[np.ndarray, " outputs"], n_outputs: int) -> Float[np.ndarray, " outputs"]:
    """Return one level per output, or name what is wrong with them.

    Parameters
    ----------
    level
        One level, or one per output.
    n_outputs
        Number of outputs.

    Returns
    -------
    Float[np.ndarray, "outputs"]
        The levels.

    Raises
    ------
    InvalidInputError
        If a level is outside (0, 1).
    """
    levels = np.array(np.broadcast_to(np.asarray(level, dtype=np.float64), n_outputs))
    if not bool(np.all((levels > 0) & (levels < 1))):
        raise InvalidInputError("level", "confidence levels must lie strictly between 0 and 1", "Pass, say, 0.001")
    return levels
