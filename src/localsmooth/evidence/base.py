"""Weights, thresholds and radii of one item's base certificates, against levels and confidence bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates import (
    BaseCertificates,
    CertifiedOutputs,
    ExactVotes,
    GaussianVotes,
    RenyiVotes,
    ScoreCertificate,
    UniformVotes,
    VoteCertificate,
)
from localsmooth.evidence.exact import (
    drawn_probability,
    gaussian_threshold_holds,
    radius_holds,
    renyi_threshold_holds,
    renyi_weight_covers,
    uniform_threshold_holds,
    weight_covers,
)
from localsmooth.evidence.item import Outputs
from localsmooth.evidence.ledger import demand
from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform

__all__ = ["BaseClaims", "unchecked_certificates", "unchecked_thresholds"]

_BASE = "base certificates"
_Certificates = Sequence[VoteCertificate | ScoreCertificate]
_Threshold = Callable[[float, float], bool]
_Law = tuple[Fraction, Fraction]
_ADDITIVE: Mapping[type[Any], tuple[type[Noise], int, _Threshold]] = {
    GaussianVotes: (Gaussian, 2, gaussian_threshold_holds),
    UniformVotes: (Uniform, 1, uniform_threshold_holds),
}
"""Base certificates: their noise, the power of the level that is the weight, and the check of a threshold."""
_OF_FLIPS = (RenyiVotes, ExactVotes)


def unchecked_certificates(certificates: _Certificates, noise: Noise) -> str:
    """Say which base certificates no check knows anything of; empty if there are none."""
    made = [type(certificate) for certificate in certificates]
    flips = type(noise) in (Bernoulli, SparseFlips) and all(each in _OF_FLIPS for each in made)
    additive = len(made) == 1 and made[0] in _ADDITIVE and type(noise) is _ADDITIVE[made[0]][0]
    return "" if flips or additive else f"certificates by {', '.join(each.name for each in certificates)}"


def unchecked_thresholds(certificates: _Certificates) -> str:
    """Say of which base certificates weights and thresholds are taken as they are made; empty for none."""
    known = len(certificates) == 1 and not isinstance(certificates[0], ExactVotes)
    return "" if known else f"thresholds of {' and '.join(each.name for each in certificates)}"


@dataclass(eq=False)
class BaseClaims:
    """Checks base certificates as they are made.

    Parameters
    ----------
    item
        The outputs.
    certificates
        What made them.
    """

    item: Outputs
    certificates: _Certificates
    thresholds: int = 0
    _known: dict[tuple[object, ...], bool] = field(default_factory=dict[tuple[object, ...], bool])

    def check(self, made: CertifiedOutputs) -> None:
        """Check weights and thresholds.

        Raises
        ------
        DoesNotHoldError
            At the first one that does not follow.
        """
        for each in (made, made.alone):
            if each is not None:
                fits = np.array_equal(each.base.group, self.item.group)
                fits = fits and each.base.eta.shape[-1:] == each.lower.shape
                demand(fits, _BASE, f"{self.item.name}: thresholds do not fit the layout")
                if not unchecked_thresholds(self.certificates):
                    self._check_one(each)
                    self.thresholds += each.lower.size

    def check_radii(self, alone: BaseCertificates, radius: Float[np.ndarray, "outputs"]) -> None:
        """Check radii of single outputs, each by the certificate that reaches farthest.

        Raises
        ------
        DoesNotHoldError
            At the first one that is too large.
        """
        power = 2 if isinstance(self.item.noise, Gaussian) else 1
        weights, eta = _stacked(alone)
        shown = np.zeros(radius.shape, np.bool_)
        for heaviest, thresholds in zip(weights.max(axis=-1), eta, strict=True):
            cases, case = np.unique(np.stack([radius, heaviest[alone.group], thresholds]), axis=1, return_inverse=True)
            holds = [radius_holds(size, weight, each, power) for size, weight, each in cases.T.tolist()]
            shown |= np.array(holds)[case.reshape(-1)]
        one = int(np.argmin(shown))
        problem = f"{self.item.name}: a radius of {radius[one]!r} does not follow from thresholds of {eta[:, one]!r}"
        demand(bool(shown.all()), _BASE, problem)

    def _check_one(self, made: CertifiedOutputs) -> None:
        certificate = self.certificates[0]
        if isinstance(certificate, RenyiVotes):
            return self._check_flips(certificate.orders, made)
        _, power, holds = _ADDITIVE[type(certificate)]
        levels, weights = self.item.levels, made.base.weights
        demand(weights.shape == levels.shape, _BASE, f"{self.item.name}: weights do not fit the layout")
        with np.errstate(over="ignore"):
            single = levels.astype(np.float32).astype(np.float64)  # what the sampler may make of a level
        if isinstance(self.item.noise, Gaussian | Uniform) and self.item.noise.step is not None:
            single = levels  # tables on a grid are made for the level as it is
        pairs = np.stack([np.tile(weights.ravel(), 2), np.concatenate([levels.ravel(), single.ravel()])])
        for weight, level in np.unique(pairs, axis=1).T.tolist():
            problem = f"{self.item.name}: the weight {weight!r} is too small for the noise level {level!r}"
            demand(weight_covers(weight, level, power), _BASE, problem)
        return self._check_thresholds(made.lower, made.base.eta, holds, ())

    def _check_thresholds(
        self,
        lower: Float[np.ndarray, "outputs"],
        eta: Float[np.ndarray, "outputs"],
        holds: Callable[..., bool],
        more: tuple[float, ...],
    ) -> None:
        for case in np.unique(np.stack([lower, eta]), axis=1).T.tolist():
            problem = f"{self.item.name}: the threshold {case[1]!r} does not follow from the probability {case[0]!r}"
            demand(self._once(holds, *case, *more), _BASE, problem)

    def _check_flips(self, orders: Sequence[float], made: CertifiedOutputs) -> None:
        laws, law = self._laws()
        weights, eta = _stacked(made.base)
        fits = weights.shape == (len(orders), *law.shape) and len(eta) == len(orders)
        demand(fits, _BASE, f"{self.item.name}: weights do not fit the layout")
        for order, own, thresholds in zip(orders, weights, eta, strict=True):
            self._check_thresholds(made.lower, thresholds, renyi_threshold_holds, (order,))
            # Bits flip whole: a weight that breaks every output of its group with one flip need not be larger.
            enough = np.zeros(len(own))
            np.maximum.at(enough, made.base.group, thresholds)
            smaller = own < enough[:, None]
            for weight, number in np.unique(np.stack([own[smaller], law[smaller]]), axis=1).T.tolist():
                clean, perturbed = laws[int(number)]
                problem = (
                    f"{self.item.name}: the weight {weight!r} is too small for a bit that is one with probability "
                    f"{float(clean)} and, flipped, {float(perturbed)} (order {order:g})"
                )
                demand(self._once(renyi_weight_covers, weight, clean, perturbed, order), _BASE, problem)

    def _laws(self) -> tuple[list[_Law], Int[np.ndarray, "output_groups columns"]]:
        """Probability of a one without and with a flip in each column, by number."""
        levels, half = self.item.levels, Fraction(1, 2)
        hidden = np.isinf(levels)
        numbers: dict[float, Fraction] = {
            level: drawn_probability(level) for level in np.unique(levels[~hidden]).tolist()
        }
        drawn = np.array([half if level == np.inf else numbers[level] for level in levels.ravel().tolist()], object)
        chance = drawn.reshape(levels.shape)
        if isinstance(self.item.noise, SparseFlips):
            zero, one = chance[..., 0], 1 - chance[..., 1]
            clean, perturbed = np.concatenate([zero, one], axis=1), np.concatenate([one, zero], axis=1)
        else:
            clean, perturbed = chance, 1 - chance
        pairs = cast("list[_Law]", list(zip(clean.ravel().tolist(), perturbed.ravel().tolist(), strict=True)))
        known = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        return list(known), np.array([known[pair] for pair in pairs], np.int64).reshape(clean.shape)

    def _once(self, holds: Callable[..., bool], *case: object) -> bool:
        """Check each distinct case once."""
        key = (holds, *case)
        if key not in self._known:
            self._known[key] = holds(*case)
        return self._known[key]


def _stacked(
    base: BaseCertificates,
) -> tuple[Float[np.ndarray, "certificates output_groups columns"], Float[np.ndarray, "certificates outputs"]]:
    return base.weights.reshape(-1, *base.weights.shape[-2:]), base.eta.reshape(-1, base.eta.shape[-1])
