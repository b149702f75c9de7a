"""Isotropic Gaussian smoothing, one output at a time: Cohen et al. 2019, and SegCertify (Fischer et al. 2021)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from localsmooth.baselines.isotropic import counted_curve, item_result, require_isotropic, require_norm_ball
from localsmooth.bounds import Automatic, Bonferroni, FixedThresholdHolm
from localsmooth.certificates import ABSTAIN, GaussianVotes, certified_radius, gaussian_vote_eta
from localsmooth.collective import power_up
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import Gaussian, Noise
from localsmooth.results import ItemResult
from localsmooth.tasks.arrays import ItemMethod, SampledItem, Settings, counted_outputs, target_kinds

__all__ = ["Cohen", "SegCertify", "robust_outputs"]


def robust_outputs(
    eta: Float[np.ndarray, "outputs"], weight: float, budgets: tuple[float, ...]
) -> Int[np.ndarray, "budgets"]:
    """Count the outputs whose own l2 radius exceeds each budget: ε²/σ² < η.

    Parameters
    ----------
    eta
        Φ⁻¹(q)² of each output, rounded down; 0 abstains.
    weight
        1/σ², rounded up.
    budgets
        ε.
    """
    reach = [math.nextafter(weight * power_up(budget, 2.0), math.inf) if budget else 0.0 for budget in budgets]
    return np.array([int(np.count_nonzero(eta > one)) for one in reach], dtype=np.int64)


class _PerOutput(ItemMethod):
    """Counts outputs that are robust on their own."""

    def require(self, layout: Layout, noise: Noise) -> None:
        """Refuse anything but isotropic Gaussian noise."""
        require_isotropic(self.name, layout, noise, Gaussian)

    @abstractmethod
    def adjust(self, settings: Settings) -> Settings:
        """Return the settings with the method's own base certificate and rule for many outputs."""

    def bound_names(self, settings: Settings) -> tuple[str, ...]:
        """One bound, the naive one: each output on its own."""
        del settings
        return ("naive",)

    def certify(self, item: SampledItem, noise: Noise, settings: Settings) -> ItemResult:
        """Certify one item; see `ItemMethod.certify`."""
        bounds = item.votes.bounds(settings.sharing, settings.alpha, target_kinds(item, settings.targets))
        joint = gaussian_vote_eta(bounds.lower)
        eta = joint if bounds.alone is None else gaussian_vote_eta(bounds.alone)
        prediction = np.where(eta > 0, item.votes.candidate, ABSTAIN).astype(np.int64)
        weights = noise.weights(item.layout.levels)[:1, :1]
        nowhere = np.zeros(eta.size, dtype=np.int64)
        spent = np.array([power_up(budget, 2.0) for budget in settings.budgets])
        counted = counted_outputs(item, np.where(joint > 0, item.votes.candidate, ABSTAIN), settings.targets)
        curves = {
            (target, "naive"): counted_curve(
                np.maximum(
                    robust_outputs(joint[stakes.qualify], float(weights[0, 0]), settings.budgets) - bounds.discount,
                    0,
                ),
                spent,
                item.layout.inputs.count,
            )
            for target, stakes in counted.items()
        }
        radius = certified_radius(weights, eta, nowhere, 2)
        return item_result(
            item, prediction=prediction, lower=bounds.shown, eta=eta, radius=radius, curves=curves, counted=counted
        )


@dataclass(frozen=True)
class Cohen(_PerOutput):
    """Radius σ·Φ⁻¹(q) for every output on its own, q from Clopper–Pearson, all outputs at once; then counted.

    Cohen et al. 2019 certify one output at level α. For the count to be a promise the outputs share α, by the rule of
    the settings. This is also the counted form of SegCertify.
    """

    name = "cohen"
    counts = True

    def adjust(self, settings: Settings) -> Settings:
        """Use Gaussian votes, and refuse other threats than the l2 ball."""
        require_norm_ball(self.name, settings.threat)
        return replace(settings, certificates=(GaussianVotes(),))

    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Say what was counted."""
        return (
            "Baseline of Cohen et al. 2019: isotropic noise, one radius per output from a Clopper–Pearson bound; "
            f"bounds joined over all outputs by {settings.simultaneous.name}. Counted are the outputs whose own radius "
            "exceeds the budget.",
        )


@dataclass(frozen=True)
class SegCertify(_PerOutput):
    """Test "probability > τ" for all outputs by Holm's procedure; all that pass are robust to σ·Φ⁻¹(τ), together.

    Parameters
    ----------
    tau
        Threshold in (1/2, 1), chosen before looking; outputs that fail the test abstain.

    Raises
    ------
    InvalidInputError
        If the threshold is out of range.
    """

    tau: float = 0.75
    name = "segcertify"

    def __post_init__(self) -> None:
        FixedThresholdHolm(self.tau)  # the same range

    def adjust(self, settings: Settings) -> Settings:
        """Use Gaussian votes and Holm's procedure at τ.

        Raises
        ------
        InvalidInputError
            If the settings ask for another rule for many outputs, or another threat than the l2 ball.
        """
        require_norm_ball(self.name, settings.threat)
        holm = FixedThresholdHolm(self.tau)
        if settings.simultaneous not in (Automatic(), Bonferroni(), holm):
            raise InvalidInputError(
                "many_outputs",
                f"{self.name} joins outputs by Holm's procedure, not by {settings.simultaneous.name}",
                "Leave the rule out, or use the counted form, cohen",
            )
        return replace(settings, certificates=(GaussianVotes(),), simultaneous=holm)

    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Say what was tested."""
        del settings
        return (
            f"Baseline SegCertify (Fischer et al. 2021): isotropic noise, Holm's step-down test of probability > τ = "
            f"{self.tau:g} over all outputs. Outputs that fail the test abstain; all others keep their prediction "
            "together up to one common radius, σ·Φ⁻¹(τ), and beyond it nothing is claimed.",
        )
