"""What one prediction tolerates on its own, as a radius."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from localsmooth.blocks import blocks
from localsmooth.errors import InvalidInputError

__all__ = ["certified_radius"]


def certified_radius(
    weights: Float[np.ndarray, "*certificates output_groups columns"],
    eta: Float[np.ndarray, "*certificates outputs"],
    group: Int[np.ndarray, "outputs"],
    norm: int,
) -> Float[np.ndarray, "outputs"]:
    """Radius of the ball in which each output keeps its label, wherever the adversary spends the budget.

    Parameters
    ----------
    weights, eta, group
        As in `BaseCertificates`. Of several certificates an output uses the one that reaches farthest.
    norm
        The p of the budget Σ|x'_d − x_d|^p.

    Returns
    -------
    Float[np.ndarray, "outputs"]
        (η / max_l W[i,l])^(1/p), rounded down, in input units: every perturbation of strictly smaller norm is
        tolerated. For norm 0 it is a number of flips (of any kind). 0 abstains; inf where no input can matter.

    Raises
    ------
    InvalidInputError
        If the norm is not 0, 1 or 2.
    """
    if norm not in (0, 1, 2):
        raise InvalidInputError("norm", f"got {norm}", "Pass 0, 1 or 2")
    highest = weights.max(axis=-1)
    radius = np.empty(group.size)
    for block in blocks(group.size):
        radius[block] = _radius(highest[..., group[block]], eta[..., block], norm)
    return radius


def _radius(
    worst: Float[np.ndarray, "*certificates outputs"], eta: Float[np.ndarray, "*certificates outputs"], norm: int
) -> Float[np.ndarray, "outputs"]:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        radius = eta / worst
        if norm == 2:
            radius = np.sqrt(np.nextafter(radius, 0.0))
    radius = np.nextafter(radius, 0.0)
    radius = np.where(worst > 0, radius, np.inf)
    radius = np.where(eta > 0, radius, 0.0)
    return radius.reshape(-1, radius.shape[-1]).max(axis=0)
