"""Rényi divergences between the laws of one bit, rounded up.

Both functions give 0 where the laws are equal, and inf where the perturbed bit can take a value that the clean one
cannot.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from localsmooth.errors import InvalidInputError

__all__ = ["renyi_divergence", "second_order_divergence"]

_EPSILON = float(np.finfo(np.float64).eps)


def second_order_divergence(
    clean: Float[np.ndarray, "*shape"], perturbed: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """ln(p²/c + (1−p)²/(1−c)) = ln(1 + (p−c)²/(c(1−c))), for multiples c, p of 2⁻²⁴.

    Parameters
    ----------
    clean, perturbed
        Probability of a one under either law, c and p.
    """
    difference = perturbed - clean
    with np.errstate(divide="ignore", invalid="ignore"):
        # Exact up to the division and the logarithm.
        divergence = np.log1p(difference**2 / (clean * (1 - clean)))
    for _ in range(4):
        divergence = np.nextafter(divergence, np.inf)
    return np.where(difference == 0, 0.0, divergence)


def renyi_divergence(
    clean: Float[np.ndarray, "*shape"], perturbed: Float[np.ndarray, "*shape"], order: float
) -> Float[np.ndarray, "*shape"]:
    """D_α(perturbed ‖ clean) = ln(p^α c^(1−α) + (1−p)^α (1−c)^(1−α)) / (α−1).

    Parameters
    ----------
    clean, perturbed
        Probability of a one under either law.
    order
        α > 1.

    Raises
    ------
    InvalidInputError
        If the order is not a finite number above 1.
    """
    if not (np.isfinite(order) and order > 1):
        raise InvalidInputError("order", f"got {order}", "Rényi orders are finite and above 1")
    size = np.zeros(np.broadcast_shapes(clean.shape, perturbed.shape))
    terms: list[np.ndarray] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for p, c in ((perturbed, clean), (1 - perturbed, 1 - clean)):
            left, right = order * np.log(p), (1 - order) * np.log(c)
            terms.append(np.where(p == 0, -np.inf, left + right))
            size += np.where(np.isfinite(left), np.abs(left), 0) + np.where(np.isfinite(right), np.abs(right), 0)
        total = np.logaddexp(*terms)
    # A few units in the last place of every intermediate result.
    divergence = (total + 8 * _EPSILON * (1 + size)) / (order - 1)
    divergence = np.nextafter(divergence * (1 + 2 * _EPSILON), np.inf)
    return np.where(perturbed == clean, 0.0, np.maximum(divergence, 0.0))
