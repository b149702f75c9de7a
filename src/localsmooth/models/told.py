"""How a model is told the noise: one further channel with the level of every element."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from localsmooth.errors import InvalidInputError

__all__ = ["encoded_levels", "level_channel", "level_map"]

_FARTHEST = 5.0


def encoded_levels(
    levels: Float[np.ndarray, "..."] | float, bounds: tuple[float, float] | None
) -> Float[np.ndarray, "..."]:
    """Logarithm of every noise level in units of the input's range, within [−5, 5].

    Levels below e⁻⁵ = .7 % of the range are told as none: no noise at all (level 0) is −5. What is hidden (level inf)
    is 5.

    Parameters
    ----------
    levels
        Noise levels, of one parameter.
    bounds
        Smallest and largest value of a clean input, whose difference is the unit; None for a unit of 1.

    Returns
    -------
    np.ndarray
        In single precision, of the same shape.
    """
    unit = 1.0 if bounds is None else bounds[1] - bounds[0]
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.asarray(levels, dtype=np.float64) / unit)
    return np.asarray(np.clip(logarithms, -_FARTHEST, _FARTHEST), dtype=np.float32)


def level_channel(
    levels: Float[np.ndarray, "..."] | float, spatial: tuple[int, ...], bounds: tuple[float, float] | None
) -> Float[np.ndarray, "1 *spatial"]:
    """Make the channel that stands behind the input's own.

    Parameters
    ----------
    levels
        Level of each element of the trailing axes; one number for all of them.
    spatial
        Shape of the input behind its channels.
    bounds
        As for `encoded_levels`.

    Raises
    ------
    InvalidInputError
        If the levels have another shape, as those of noise with several parameters or with a level for each channel.
    """
    return encoded_levels(level_map(levels, spatial), bounds)[None]


def level_map(levels: Float[np.ndarray, "..."] | float, spatial: tuple[int, ...]) -> Float[np.ndarray, "*spatial"]:
    """Lay noise levels out over the places of an input.

    Parameters
    ----------
    levels
        Level of each element of the trailing axes; one number for all of them.
    spatial
        Shape of the input behind its channels.

    Raises
    ------
    InvalidInputError
        If the levels have another shape, as those of noise with several parameters or with a level for each channel.
    """
    given = np.shape(levels)
    if given != spatial[len(spatial) - len(given) :]:
        raise InvalidInputError(
            "levels",
            f"shape {given} for inputs of shape {spatial} behind their channels",
            "A model that is told the noise takes one level for each place, the same for all of its channels",
        )
    return np.broadcast_to(np.asarray(levels), spatial)
