"""Rényi votes: one linear certificate per order, for flips of binary data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates.capping import cap_weights
from localsmooth.certificates.contract import Thresholds, VoteCertificate, checked_lower_probability, require_noise
from localsmooth.errors import InvalidInputError
from localsmooth.noise import BinaryNoise, Noise

__all__ = ["RenyiVotes", "renyi_eta"]

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RenyiVotes(VoteCertificate):
    """W_α = D_α(flipped ‖ clean) per flip, η_α = ln(2^(−α)(q^(1−α) + (1−q)^(1−α)))/(α−1), for every order α.

    A Rényi divergence adds up over independent bits, and no classifier can bring its vote from q down to 1/2 across
    a smaller one than η (data processing). Order 2 is the variance-constrained certificate at its worst-case
    variance. All orders hold at once.

    Parameters
    ----------
    orders
        Orders α > 1, chosen before looking at the samples.

    Raises
    ------
    InvalidInputError
        If there is no order, one is not a finite number above 1, or one is given twice.
    """

    orders: tuple[float, ...] = (1.5, 2.0, 4.0, 8.0, 16.0)
    name = "renyi-votes"

    def __post_init__(self) -> None:
        good = self.orders and all(np.isfinite(a) and a > 1 for a in self.orders)
        if not good or len(set(self.orders)) != len(self.orders):
            raise InvalidInputError("orders", f"got {self.orders}", "Pass one or more different numbers above 1")

    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_probability: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds with a leading axis of orders; see `VoteCertificate.certificates`."""
        flips = require_noise(self.name, noise, BinaryNoise)
        etas = [renyi_eta(lower_probability, order) for order in self.orders]
        weights = [
            cap_weights(flips.renyi_weights(levels, order), eta, group)
            for order, eta in zip(self.orders, etas, strict=True)
        ]
        return Thresholds(np.stack(weights), np.stack(etas))


def renyi_eta(lower_probability: Float[np.ndarray, "outputs"], order: float) -> Float[np.ndarray, "outputs"]:
    """Rényi divergence from a vote of q to one of 1/2, rounded down, and 0 where q ≤ 1/2 or NaN.

    Raises
    ------
    InvalidInputError
        If a bound is outside [0, 1).
    """
    q = checked_lower_probability(lower_probability)
    inside = np.where(q > 0.5, q, 0.5)
    terms = (1 - order) * np.log(inside), (1 - order) * np.log(1 - inside)  # 1 − q is exact here
    total = np.logaddexp(*terms) - order * np.log(2.0)
    # A few units in the last place of every intermediate result.
    rounding = 8 * _EPSILON * (1 + order + np.abs(terms[0]) + np.abs(terms[1]))
    eta = np.nextafter((total - rounding) / (order - 1) * (1 - 2 * _EPSILON), -np.inf)
    return np.where(q > 0.5, np.maximum(eta, 0.0), 0.0)
