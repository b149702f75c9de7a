"""The law of the likelihood ratio of a product distribution, kept pessimistic through every rounding.

Λ is the ratio of the perturbed to the clean probability of a sample. By the Neyman–Pearson lemma the worst classifier
that gives a label the probability q on the clean input gives it, on the perturbed one, the largest over λ of
λq − E[(λ − Λ)₊], the expectation being over the clean law. (λ − Λ)₊ is convex and falls in Λ. Hence every law that is
lower, or more spread out about the same mean, only weakens the certificate, and so does excess mass. This is what the
accounting of differential privacy calls a privacy loss distribution (Sommer et al. 2019), rounded by splitting atoms
between neighbouring grid points as in Doroshenko et al. 2022; for one noise level it is the certificate of Bojchevski
et al. 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError

__all__ = [
    "LikelihoodRatioLaw",
    "flip_law",
    "largest_robust_count",
    "no_flip_law",
    "product_law",
    "smallest_robust_probability",
]

_EPSILON = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 1e-15


@dataclass(frozen=True, eq=False)
class LikelihoodRatioLaw:
    """Atoms of the law of ln Λ under the clean distribution, sorted.

    Parameters
    ----------
    log_ratio
        ln Λ of each atom, ascending; the true value is at least this minus `drop`.
    mass
        Clean probability of each atom, right up to a factor 1 ± `slack`.
    zero_mass
        Clean probability of Λ = 0.
    slack, drop
        Bounds on the accumulated rounding errors.
    """

    log_ratio: Float[np.ndarray, "atoms"]
    mass: Float[np.ndarray, "atoms"]
    zero_mass: float
    slack: float
    drop: float

    def times(self, other: LikelihoodRatioLaw, atoms: int) -> LikelihoodRatioLaw:
        """Law of the product of two independent ratios, with at most `atoms` atoms."""
        log_ratio = (self.log_ratio[:, None] + other.log_ratio[None, :]).ravel()
        mass = (self.mass[:, None] * other.mass[None, :]).ravel()
        largest = float(np.abs(log_ratio).max(initial=0.0))
        order = np.argsort(log_ratio, kind="stable")
        product = LikelihoodRatioLaw(
            log_ratio[order],
            mass[order],
            self.zero_mass + other.zero_mass - self.zero_mass * other.zero_mass,
            self.slack + other.slack + 8 * _EPSILON,
            self.drop + other.drop + 2 * _EPSILON * largest,
        )
        return product.trimmed().coarsened(atoms)

    def trimmed(self) -> LikelihoodRatioLaw:
        """Move atoms of negligible clean probability to Λ = 0, and cut ratios of negligible perturbed probability."""
        if self.mass.size <= 1:
            return self
        below = int(np.searchsorted(np.cumsum(self.mass), _NEGLIGIBLE, side="right"))
        above = int(np.searchsorted(np.cumsum(self._perturbed_mass()[::-1]), _NEGLIGIBLE, side="right"))
        below = min(below, self.mass.size - 1)
        end = max(self.mass.size - above, below + 1)
        mass = self.mass[below:end].copy()
        mass[-1] += self.mass[end:].sum()
        zero = self.zero_mass + float(self.mass[:below].sum())
        return LikelihoodRatioLaw(
            self.log_ratio[below:end], mass, zero, self.slack + self.mass.size * _EPSILON, self.drop
        )

    def coarsened(self, atoms: int) -> LikelihoodRatioLaw:
        """Split every atom between two neighbours on an even grid, mass and mean of Λ kept."""
        if self.mass.size <= atoms:
            return self
        knots = np.linspace(self.log_ratio[0], self.log_ratio[-1], atoms)
        left = np.clip(np.searchsorted(knots, self.log_ratio, side="right") - 1, 0, atoms - 2)
        step = np.expm1(knots[left + 1] - knots[left])
        # Λ at most what it was: the mean may only fall when the share is rounded.
        share = np.expm1(self.log_ratio - knots[left]) / step * (1 - 8 * _EPSILON)
        share = np.where(self.log_ratio >= knots[left + 1], 1.0, np.clip(share, 0.0, 1.0))
        mass = np.bincount(left, self.mass * (1 - share), atoms) + np.bincount(left + 1, self.mass * share, atoms)
        terms = 2 * int(np.bincount(left).max()) + 4
        kept = mass > 0
        return LikelihoodRatioLaw(knots[kept], mass[kept], self.zero_mass, self.slack + terms * _EPSILON, self.drop)

    def smallest_robust_probability(self) -> float:
        """Lower bounds q above this value are robust: the label keeps more than half of the perturbed probability.

        Rounded up. 1 or more where no classifier is robust.
        """
        if not self.mass.any():
            return 1.0
        # At λ = Λ_j: λq − E[(λ − Λ)₊] > 1/2 for all q above this.
        clean = self.zero_mass + np.cumsum(self.mass)
        perturbed = np.cumsum(self._perturbed_mass())
        with np.errstate(over="ignore", invalid="ignore"):
            inverse = np.exp(-self.log_ratio)
            excess = np.maximum(clean - perturbed * inverse, 0.0)
            exponents = np.abs(np.log(self.mass[self.mass > 0])).max() + np.abs(self.log_ratio).max()
            error = 4 * (self.mass.size + exponents + 8) * _EPSILON * (clean + perturbed * inverse)
            bound = (excess + error) * (1 + 2 * self.slack) + 0.5 * inverse * (1 + 2 * self.drop + 4 * _EPSILON)
        return max(0.5, float(np.min(np.where(np.isfinite(bound), bound, np.inf), initial=np.inf)))

    def _perturbed_mass(self) -> Float[np.ndarray, "atoms"]:
        with np.errstate(divide="ignore"):
            return np.exp(np.log(self.mass) + self.log_ratio)


def no_flip_law() -> LikelihoodRatioLaw:
    """Law of a ratio that is 1 throughout."""
    return LikelihoodRatioLaw(np.zeros(1), np.ones(1), 0.0, 0.0, 0.0)


def flip_law(clean: float, perturbed: float, count: int) -> LikelihoodRatioLaw:
    """Law of the likelihood ratio of `count` flipped bits of one kind.

    Parameters
    ----------
    clean, perturbed
        Probability of a one without and with the flip.
    count
        Number of flips.

    Raises
    ------
    InvalidInputError
        If a probability is outside [0, 1] or the count is negative.
    """
    if not (0 <= clean <= 1 and 0 <= perturbed <= 1):
        raise InvalidInputError("bit_laws", f"got {clean} and {perturbed}", "Pass probabilities")
    if count < 0:
        raise InvalidInputError("flips", f"got {count}", "Pass counts of 0 or more")
    if clean == perturbed or count == 0:
        return no_flip_law()
    mass = np.ones(1)
    for _ in range(count):
        mass = np.convolve(mass, [1 - clean, clean])
    ones = np.arange(count + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, zero = np.log(perturbed) - np.log(clean), np.log1p(-perturbed) - np.log1p(-clean)
        log_ratio = np.where(ones > 0, ones * one, 0.0) + np.where(ones < count, (count - ones) * zero, 0.0)
        size = count * sum(abs(t) for t in np.log([perturbed, clean, 1 - perturbed, 1 - clean]) if np.isfinite(t))
    slack = 8 * count * _EPSILON
    # Outcomes that the clean law excludes have no mass (their ratio is infinite, or undefined).
    possible = mass > 0
    vanishing = possible & (log_ratio == -np.inf)
    kept = possible & np.isfinite(log_ratio)
    order = np.argsort(log_ratio[kept], kind="stable")
    zero_mass = float(mass[vanishing].sum()) * (1 + 2 * slack)
    return LikelihoodRatioLaw(
        log_ratio[kept][order], mass[kept][order], zero_mass, slack, 16 * _EPSILON * size
    ).trimmed()


def product_law(
    clean: Float[np.ndarray, "columns"],
    perturbed: Float[np.ndarray, "columns"],
    flips: Int[np.ndarray, "columns"],
    atoms: int = 4096,
) -> LikelihoodRatioLaw:
    """Law of the likelihood ratio after so many flips in each column; polynomial in the number of columns.

    Parameters
    ----------
    clean, perturbed
        Laws of a bit in each column (`BinaryNoise.bit_laws`, one output group's row).
    flips
        Number of flips in each column.
    atoms
        Largest number of atoms kept. The law is exact up to rounding while there are fewer, pessimistic otherwise.
    """
    law = no_flip_law()
    for c, p, count in zip(clean.tolist(), perturbed.tolist(), flips.tolist(), strict=True):
        if count != 0 and c != p:
            law = law.times(flip_law(c, p, count), atoms)
    return law


def smallest_robust_probability(
    clean: Float[np.ndarray, "columns"],
    perturbed: Float[np.ndarray, "columns"],
    flips: Int[np.ndarray, "columns"],
    atoms: int = 4096,
) -> float:
    """The exact certificate for one vector of flips: outputs with q above this value keep their label.

    Parameters
    ----------
    clean, perturbed, flips, atoms
        As in `product_law`.
    """
    return product_law(clean, perturbed, flips, atoms).smallest_robust_probability()


def largest_robust_count(clean: float, perturbed: float, q: float, horizon: int, atoms: int = 4096) -> int:
    """Most flips of one kind that an output with lower bound q tolerates, up to `horizon`.

    Parameters
    ----------
    clean, perturbed
        Laws of a bit without and with the flip.
    q
        Lower bound on the probability of the label.
    horizon
        Largest count of interest.
    atoms
        As in `product_law`.
    """

    def robust(count: int) -> bool:
        return q > flip_law(clean, perturbed, count).coarsened(atoms).smallest_robust_probability()

    if clean == perturbed or robust(horizon):
        return horizon if q > 0.5 else 0
    low, high = 0, 1  # robust (or zero) and not robust: double, then bisect
    while high < horizon and robust(high):
        low, high = high, min(2 * high, horizon)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if robust(middle) else (low, middle)
    return low
