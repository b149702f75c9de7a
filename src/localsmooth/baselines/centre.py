"""The mathematics of centre smoothing for label maps (Kumar and Goldstein 2021), the distance being l0.

The smoothed model at x draws n label maps, takes as its *centre* one of k candidates among them, the one whose ball
around at least half of the maps is smallest (radius r), draws n further maps and abstains unless the ball provably
holds a share of 1/2 − Δ. Suppose that the ball of radius R around the centre ẑ at x holds more than 1/2 + Δ of the
label maps *at x'*. Then at x', with probability 1 − α₁ over its own samples:

1. at least half of the n maps lie in that ball (Hoeffding, Δ₁ ≤ Δ), so that a ball with half of them has a radius of R
   or less;
2. one of the k candidates lies in the smallest such ball (but for a probability of 2⁻ᵏ: half of the maps do, and the
   candidates are maps drawn like the others), and its own ball with half of the maps has at most twice that radius,
   by the triangle inequality: β = 2, so that r' ≤ βR;
3. where it does not abstain the ball of radius r' around ẑ' holds at least 1/2 − Δ (Hoeffding on the further maps).

Together with 1/2 + Δ that is more than 1, so both balls share a label map: d(ẑ, ẑ') ≤ R + r' ≤ (1 + β)R. The two uses
of Hoeffding and the candidates share α₁.

That R comes from x alone: m label maps at x, whose distances to ẑ have the empirical distribution F_m, and the band
of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, λ = sqrt(ln(1/α₂)/(2m)), give a share of at least F_m(R) − λ
with probability 1 − α₂, for all R at once. A share of p = Φ(Φ⁻¹(1/2 + Δ) + ε/σ) at x is one of more than 1/2 + Δ at
every x' within ε (Neyman and Pearson), so R is the quantile of F_m at p + λ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from localsmooth.errors import InvalidInputError

__all__ = [
    "BETA",
    "CentreOptions",
    "ball_radius",
    "change_bounds",
    "choose_centre",
    "hoeffding_slack",
    "quantile_share",
]

BETA = 2
"""Approximation factor of a smallest ball that is centred on one of its points."""

_ROUNDING = 1e-12


@dataclass(frozen=True)
class CentreOptions:
    """Parameters of centre smoothing; all belong to the smoothed model.

    Parameters
    ----------
    delta
        Δ, by which the share of a ball must exceed, or may fall short of, one half.
    candidates
        k, number of sampled label maps among which the centre is chosen; with all of them the pairwise distances
        are complete.
    share
        Share of α that goes to α₁, the smoothed model at the other input; the rest is α₂.

    Raises
    ------
    InvalidInputError
        If a number is out of range.
    """

    delta: float = 0.05
    candidates: int = 32
    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.delta < 0.5:
            raise InvalidInputError("delta", f"got {self.delta}", "Pass a number between 0 and 1/2, such as 0.05")
        if self.candidates < 1:
            raise InvalidInputError("candidates", f"got {self.candidates}", "Pass at least 1")
        if not 0 < self.share < 1:
            raise InvalidInputError("share", f"got {self.share}", "Pass a number between 0 and 1")

    def risks(self, alpha: float) -> tuple[float, float]:
        """α₁ and α₂, which sum to at most α."""
        first = math.nextafter(alpha * self.share, 0.0)
        return first, math.nextafter(alpha - first, 0.0)


def hoeffding_slack(options: CentreOptions, alpha: float, n: int) -> float:
    """Δ₁, by which a share among n label maps may differ from its probability; inf where k is too small for α₁.

    Parameters
    ----------
    options
        Of the smoothed model.
    alpha
        α, of which α₁ is a part.
    n
        Number of label maps.
    """
    risk, _ = options.risks(alpha)
    if options.candidates < n:
        risk -= 2.0**-options.candidates
    if not risk > 0:
        return math.inf
    return math.sqrt(math.log(2 / risk) / (2 * n)) * (1 + _ROUNDING)


def choose_centre(distances: Int[np.ndarray, "maps candidates"]) -> tuple[int, int]:
    """Choose the candidate with the smallest ball around at least half of the maps; the first on ties.

    Parameters
    ----------
    distances
        Distance of each label map to each candidate.

    Returns
    -------
    candidate
        Its number.
    radius
        r.
    """
    radii = ball_radius(distances)
    best = int(np.argmin(radii))
    return best, int(radii[best])


def ball_radius(distances: Int[np.ndarray, "maps candidates"]) -> Int[np.ndarray, "candidates"]:
    """Radius of each candidate's smallest ball around at least half of the maps."""
    half = -(-len(distances) // 2)
    return np.partition(distances, half - 1, axis=0)[half - 1].astype(np.int64)


def quantile_share(delta: float, alpha2: float, m: int, reach: float) -> float:
    """Share of the m distances that R must cover, p + λ, rounded up; above 1 nothing can be certified.

    Parameters
    ----------
    delta
        Δ.
    alpha2
        α₂, at most 1/2.
    m
        Number of distances.
    reach
        ε/σ, rounded up.

    Raises
    ------
    InvalidInputError
        If α₂ exceeds 1/2, for which the one-sided band does not hold.
    """
    if not 0 < alpha2 <= 0.5:
        raise InvalidInputError("alpha", f"α₂ is {alpha2}", "Pass a smaller alpha, or a larger share")
    start = float(special.ndtri(0.5 + delta)) + _ROUNDING
    # Never exactly p: the share at x' has to exceed 1/2 + Δ.
    p = float(special.ndtr(start + reach * (1 + _ROUNDING))) + _ROUNDING
    return (p + math.sqrt(math.log(1 / alpha2) / (2 * m))) * (1 + _ROUNDING)


def change_bounds(
    distances: Int[np.ndarray, "maps"], delta: float, alpha2: float, reaches: Float[np.ndarray, "budgets"]
) -> Float[np.ndarray, "budgets"]:
    """Bound the number of outputs that change, (1 + β)R, at each budget; inf where nothing can be certified.

    Parameters
    ----------
    distances
        Distances of m label maps at x to the centre, drawn after it was chosen.
    delta, alpha2
        Δ and α₂.
    reaches
        ε/σ of each budget, rounded up.
    """
    ordered = np.sort(distances)
    bounds = np.full(reaches.size, np.inf)
    for place, reach in enumerate(reaches.tolist()):
        needed = math.ceil(quantile_share(delta, alpha2, ordered.size, reach) * ordered.size)
        if needed <= ordered.size:
            bounds[place] = (1 + BETA) * int(ordered[needed - 1])
    return bounds
