"""Centre smoothing of label maps: a bound on how many outputs change at all (Kumar and Goldstein 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from localsmooth.baselines.centre import BETA, CentreOptions, change_bounds, hoeffding_slack
from localsmooth.baselines.centre_sampling import BALL, HISTOGRAM, Ball, draw_label_maps
from localsmooth.baselines.isotropic import item_result, require_isotropic, require_norm_ball
from localsmooth.bounds import Bonferroni
from localsmooth.certificates import ABSTAIN, Basis, GaussianVotes
from localsmooth.collective import power_up
from localsmooth.errors import InvalidInputError
from localsmooth.execution import SamplingProgress
from localsmooth.layout import Layout
from localsmooth.noise import Gaussian, Noise
from localsmooth.results import CertifiedCurve, ItemResult
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import SamplingOptions, Subject
from localsmooth.tasks.arrays import Drawn, ItemMethod, SampledItem, Settings, counted_outputs

__all__ = ["CentreSmoothing"]


@dataclass(frozen=True)
class CentreSmoothing(ItemMethod):
    """Return the centre of a small ball around half of the label maps; bound its l0 distance to the one at x'.

    The steps and their proof are in `localsmooth.baselines.centre`. N₁ of the plan is the number n of label maps that
    choose the centre (and of those that check it), N₂ the number m of distances. The whole item abstains where the
    check fails: N₁ must make Δ₁ = sqrt(ln(2/α₁)/(2 N₁)) at most Δ.

    Parameters
    ----------
    delta, candidates, share
        As in `CentreOptions`.

    Raises
    ------
    InvalidInputError
        If a number is out of range.
    """

    delta: float = 0.05
    candidates: int = 32
    share: float = 0.5
    name = "centre-smoothing"
    draws = True
    rounds = False
    further = (BALL, HISTOGRAM)

    def __post_init__(self) -> None:
        _ = self.options

    @property
    def options(self) -> CentreOptions:
        """The parameters of the smoothed model."""
        return CentreOptions(self.delta, self.candidates, self.share)

    def adjust(self, settings: Settings) -> Settings:
        """Refuse other threats than the l2 ball; base certificates and rules for many outputs play no role."""
        require_norm_ball(self.name, settings.threat)
        return replace(settings, certificates=(GaussianVotes(),), simultaneous=Bonferroni())

    def require(self, layout: Layout, noise: Noise) -> None:
        """Refuse anything but isotropic Gaussian noise that all outputs share.

        Raises
        ------
        InvalidInputError
            Naming the noise or the layout.
        """
        require_isotropic(self.name, layout, noise, Gaussian)
        if isinstance(noise, Gaussian) and noise.step is not None:
            raise InvalidInputError(
                "grid",
                f"{self.name} compares label maps of two inputs, and the perturbed one is not on the grid",
                "Use grid=None",
            )
        if layout.outputs.count != 1:
            raise InvalidInputError(
                "layout",
                f"{self.name} draws all outputs together, and there are {layout.outputs.count} output groups",
                "Use cells [1, 1]",
            )

    def bound_names(self, settings: Settings) -> tuple[str, ...]:
        """One bound, on the distance of whole label maps."""
        del settings
        return ("centre",)

    def draw(
        self,
        subject: Subject,
        plan: SamplingPlan,
        store: Store,
        settings: Settings,
        options: SamplingOptions,
        progress: SamplingProgress,
    ) -> list[Drawn]:
        """Draw label maps instead of votes; see `draw_label_maps`.

        Raises
        ------
        InvalidInputError
            If the smoothed model would always abstain, or no quantile could be bounded.
        """
        slack = hoeffding_slack(self.options, settings.alpha, plan.n_candidate)
        if not slack <= self.delta:
            risk = self.options.risks(settings.alpha)[0]
            enough = math.ceil(math.log(2 / risk) / (2 * self.delta**2)) + 1
            raise InvalidInputError(
                "n_candidate",
                f"with {plan.n_candidate} label maps and {self.candidates} candidates a share is known up to "
                f"{slack:.3g} only, and centre smoothing abstains beyond {self.delta:g}",
                f"Draw at least {enough}, with candidates enough for 2^-candidates to be far below {risk:.2g}",
            )
        lowest = change_bounds(np.zeros(plan.n_bound, dtype=np.int64), self.delta, self._risk(settings), np.zeros(1))
        if not lowest[0] == 0:
            raise InvalidInputError(
                "n_bound", f"{plan.n_bound} distances bound no share of 1/2 + {self.delta:g}", "Draw more"
            )
        return draw_label_maps(subject, plan, store, centre=self.options, options=options, progress=progress)

    def certify(self, item: SampledItem, noise: Noise, settings: Settings) -> ItemResult:
        """Certify one item; see `ItemMethod.certify`.

        Raises
        ------
        InvalidInputError
            If the run was not drawn for this method, or with other candidates.
        """
        if BALL not in item.further or HISTOGRAM not in item.further:
            raise InvalidInputError(
                "method", f"the run was not drawn for {self.name}: it has no label maps", "Certify with this method"
            )
        ball, histogram = Ball.read(item.further[BALL]), item.further[HISTOGRAM]
        if ball.candidates != self.candidates:
            raise InvalidInputError(
                "candidates",
                f"the run drew {ball.candidates}, not {self.candidates}",
                "They belong to the smoothed model",
            )
        abstains = self.abstains(ball, settings.alpha)
        bounds = self.bounds(histogram, noise, item.layout, settings.alpha, settings.budgets)
        outputs = item.votes.candidate.size
        prediction = np.where(abstains, ABSTAIN, item.votes.candidate).astype(np.int64)
        spent = np.zeros((bounds.size, item.layout.inputs.count))
        spent[:, 0] = [power_up(budget, 2.0) for budget in settings.budgets]
        counted = counted_outputs(item, prediction, settings.targets)
        curves: dict[tuple[str, str], CertifiedCurve] = {}
        for target, stakes in counted.items():
            # Every one of the outputs that change may be a target.
            left = np.maximum(int(stakes.qualify.sum()) - np.minimum(bounds, outputs), 0.0)
            curves[target, "centre"] = CertifiedCurve(left.astype(np.int64), left, np.full(bounds.size, np.nan), spent)
        radius = 0.0 if abstains else self._unchanged_radius(histogram, noise, item.layout, settings.alpha)
        return item_result(
            item,
            prediction=prediction,
            lower=np.zeros(outputs),
            eta=np.full(outputs, 0.0 if abstains else 1.0),
            radius=np.full(outputs, radius),
            curves=curves,
            counted=counted,
            basis=Basis.LABEL_MAPS,
        )

    def abstains(self, ball: Ball, alpha: float) -> bool:
        """Whether the smoothed model abstains: shares are not known well enough, or the ball holds too few maps."""
        slack = hoeffding_slack(self.options, alpha, ball.n)
        return not max(slack, 0.5 - ball.inside / ball.n + slack) <= self.delta

    def bounds(
        self,
        histogram: Int[np.ndarray, "distances"],
        noise: Noise,
        layout: Layout,
        alpha: float,
        budgets: Sequence[float],
    ) -> Float[np.ndarray, "budgets"]:
        """Largest number of outputs that change at each budget, (1 + β)R; inf where nothing can be certified."""
        weight = float(noise.weights(layout.levels)[0, 0])
        reaches = np.array([budget * math.sqrt(weight) * (1 + 1e-12) for budget in budgets])
        distances = np.repeat(np.arange(histogram.size), histogram)
        _, risk = self.options.risks(alpha)
        return change_bounds(distances, self.delta, risk, reaches)

    def _risk(self, settings: Settings) -> float:
        return self.options.risks(settings.alpha)[1]

    def _unchanged_radius(
        self, histogram: Int[np.ndarray, "distances"], noise: Noise, layout: Layout, alpha: float
    ) -> float:
        """Budget up to which no output changes at all, rounded down; 0 where there is none."""
        m = int(histogram.sum())
        covered = histogram[0] / m - math.sqrt(math.log(1 / self.options.risks(alpha)[1]) / (2 * m))
        if not 0.5 + self.delta < covered < 1:
            return 0.0
        reach = float(special.ndtri(covered) - special.ndtri(0.5 + self.delta)) * (1 - 1e-9) - 1e-9
        radius = reach / math.sqrt(float(noise.weights(layout.levels)[0, 0]))
        if not radius > 0 or self.bounds(histogram, noise, layout, alpha, [radius])[0] != 0:
            return 0.0
        return radius

    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Say what the distance is measured to, and how abstentions count."""
        first, second = self.options.risks(settings.alpha)
        return (
            f"Baseline centre smoothing (Kumar and Goldstein 2021): l0 distance between label maps, β = {BETA}, Δ = "
            f"{self.delta:g}, {self.candidates} candidates; α₁ = {first:.3g} for the samples at the perturbed input, "
            f"α₂ = {second:.3g} for those at the item. N₁ label maps choose a centre, N₁ further ones check its ball.",
            "The smoothed model returns the centre of a ball around half of the sampled label maps, not the majority "
            "vote of each output, and does so at random: it may return another label map at the same input. Where it "
            "abstains at the item nothing is certified, and every output counts as wrong; where it abstains at the "
            "perturbed input nothing is said.",
            "All that is known is how many outputs change, not which: each of them may be a correct one. η is a mark "
            "(1) and carries no threshold; the radius is the budget up to which no output changes.",
        )

    def promise(self, settings: Settings) -> str:
        """What holds with probability 1 − α."""
        del settings
        return (
            "for any fixed {threat}, the label map that centre smoothing returns there, from samples of its own, has "
            "at least the certified number of outputs in common with the one returned for the item, unless it abstains "
            "there. The probability covers the samples at the item and those at the perturbed input."
        )
