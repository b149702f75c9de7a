"""What the sampler's floating point arithmetic makes of a noise level."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.errors import InvalidInputError

__all__ = ["attained_levels", "drawable_probabilities", "require_binary", "require_floating"]

_GRID = 2.0**24


def attained_levels(levels: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The smaller of each level and its single-precision rounding: what every sampler attains.

    Raises
    ------
    InvalidInputError
        If a level underflows in single precision.
    """
    with np.errstate(over="ignore"):
        attained = np.minimum(levels, levels.astype(np.float32).astype(np.float64))
    if not (attained > 0).all():
        raise InvalidInputError("levels", "a noise level underflows", "Use noise levels above 1e-38")
    return attained


def drawable_probabilities(probabilities: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The nearest multiple of 2⁻²⁴: probabilities that `Randomness.uniform_` hits exactly.

    Sampler and certificate both work with these, so that the certificate speaks of the distribution that was drawn
    from. Complementary probabilities stay complementary. `inf` is left as it is.

    Raises
    ------
    InvalidInputError
        If a probability is outside [0, 1], or so close to 0 or 1 (but not equal) that it cannot be told apart.
    """
    finite = np.where(np.isinf(probabilities) & (probabilities > 0), 0.5, probabilities)
    if not ((finite >= 0) & (finite <= 1)).all():
        bad = finite[~((finite >= 0) & (finite <= 1))][0]
        raise InvalidInputError("levels", f"a flip probability is {bad}", "Flip probabilities lie in [0, 1]")
    drawn = np.rint(finite * _GRID) / _GRID
    if ((drawn == 0) & (finite > 0)).any() or ((drawn == 1) & (finite < 1)).any():
        raise InvalidInputError(
            "levels", "a flip probability is within 2^-25 of 0 or 1", "Use exactly 0 or 1, or move it away by 1e-7"
        )
    return np.where(np.isinf(probabilities), np.inf, drawn)


def require_floating(item: torch.Tensor) -> None:
    """Refuse items whose precision the weights do not account for.

    Raises
    ------
    InvalidInputError
        Unless the item is float32 or float64.
    """
    if item.dtype not in (torch.float32, torch.float64):
        raise InvalidInputError(
            "item", f"it has type {item.dtype}", "Pass float32; lower precision belongs in the model"
        )


def require_binary(item: torch.Tensor) -> None:
    """Refuse items that are not made of zeros and ones.

    Raises
    ------
    InvalidInputError
        Unless every element is 0 or 1.
    """
    require_floating(item)
    if not bool(((item == 0) | (item == 1)).all()):
        raise InvalidInputError("item", "it holds values other than 0 and 1", "Flip noise is for binary data")
