"""SparseSmooth: exact certificates for isotropic flips of bits, one output at a time (Bojchevski et al. 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.baselines.isotropic import counted_curve, item_result, require_isotropic, require_one_ball
from localsmooth.baselines.regions import FlipFrontier, flip_frontier
from localsmooth.certificates import ABSTAIN
from localsmooth.collective import Constraints
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import Bernoulli, BinaryNoise, FlipCaps, Noise, SparseFlips
from localsmooth.results import ItemResult
from localsmooth.tasks.arrays import ItemMethod, SampledItem, Settings, counted_outputs, target_kinds

__all__ = ["SparseSmooth", "frontier_in_ball", "needed_by_size", "tolerated_flips", "worst_spending"]


def _flip_probabilities(noise: Noise, layout: Layout) -> tuple[float, float]:
    """θ⁺ and θ⁻ as they were drawn, of isotropic noise on bits.

    Raises
    ------
    InvalidInputError
        If the noise does not flip bits.
    """
    if not isinstance(noise, BinaryNoise):
        raise InvalidInputError("noise", f"{type(noise).__name__} flips no bits", "Use SparseFlips or Bernoulli")
    law = noise.bit_laws(layout.levels[:1, :1]).clean[0]
    return float(law[0]), float(1 - law[-1]) if len(noise.kinds) == 2 else float(law[0])


def needed_by_size(frontier: FlipFrontier, constraints: Constraints) -> Float[np.ndarray, "sizes"]:
    """What an output's lower bound must exceed for it to tolerate every mix of at most s flips, for each s from 0.

    The sizes end with the largest budget, or with the number of bits that the threat leaves to be flipped: of larger
    sizes the frontier holds some mixes only. How many of them an output exceeds is the first size that it is not shown
    to tolerate, its radius.

    Parameters
    ----------
    frontier, constraints
        From `frontier_in_ball`, and what went into it.
    """
    return frontier.by_size()[: math.floor(min(float(constraints.budgets.max()), float(constraints.caps.sum()))) + 1]


def _frontier_under(
    noise: Noise,
    layout: Layout,
    lower: Float[np.ndarray, "outputs"],
    most: Sequence[float],
    horizon: int,
) -> FlipFrontier:
    """Explore the flips that matter to outputs with these lower bounds.

    Parameters
    ----------
    noise, layout
        Isotropic noise on bits.
    lower
        Lower bounds on the candidates' probabilities, which hold together.
    most
        Largest number of flips of each kind that the noise tells apart. Where it tells none apart, flips count as
        additions.
    horizon
        Largest number of flips per kind that is looked at; no more are certified.

    Raises
    ------
    InvalidInputError
        If the noise does not flip bits.
    """
    additions, deletions = (*map(math.floor, most), 0)[:2]
    highest = float(lower.max(initial=0.0))
    return flip_frontier(*_flip_probabilities(noise, layout), highest, additions, deletions, horizon)


def frontier_in_ball(
    noise: Noise, layout: Layout, lower: Float[np.ndarray, "outputs"], constraints: Constraints, horizon: int
) -> FlipFrontier:
    """Explore the flips that one budget for all kinds allows; see `_frontier_under`."""
    most = np.minimum(constraints.caps.reshape(len(noise.kinds), -1).sum(axis=1), constraints.budgets.max())
    return _frontier_under(noise, layout, lower, most.tolist(), horizon)


def tolerated_flips(
    baseline: SparseSmooth,
    lower: Float[np.ndarray, "nodes"],
    layout: Layout,
    caps: FlipCaps,
    additions: Int[np.ndarray, "additions"],
    deletions: Int[np.ndarray, "deletions"],
) -> Bool[np.ndarray, "additions deletions nodes"]:
    """Whether each node keeps its prediction against every mix within a pair of budgets.

    The worst mix is the same for all nodes, so that counting them is the collective optimum as well (Bojchevski et
    al. 2020).

    Parameters
    ----------
    baseline
        How far to look.
    lower
        Lower bounds on the candidates' probabilities, which hold together.
    layout
        With the same levels everywhere.
    caps
        Zeros and ones of each input group: no more can be flipped.
    additions, deletions
        Budgets ε⁺ and ε⁻.

    Raises
    ------
    InvalidInputError
        If the levels differ.
    """
    require_isotropic(baseline.name, layout, SparseFlips(), SparseFlips)
    most = [float(min(b.max(), cap.sum())) for b, cap in ((additions, caps.additions), (deletions, caps.deletions))]
    return _frontier_under(SparseFlips(), layout, lower, most, baseline.horizon).tolerated(lower, additions, deletions)


def worst_spending(cap: Int[np.ndarray, "input_groups"], budget: int) -> Float[np.ndarray, "input_groups"]:
    """Spend a budget wherever there is room: under one noise level all places are alike."""
    before = np.cumsum(cap) - cap
    return np.clip(budget - before, 0, cap).astype(np.float64)


@dataclass(frozen=True)
class SparseSmooth(ItemMethod):
    """Count the outputs that tolerate every mix of additions and deletions within the budget, each on its own.

    Under isotropic noise an output tolerates (a, d) if its lower bound exceeds a threshold that is the same for all
    outputs, so that the worst mix is the same for all of them and the count is also the collective optimum.

    Parameters
    ----------
    horizon
        Largest number of flips per kind that is looked at; no more are certified.

    Raises
    ------
    InvalidInputError
        If the horizon is not positive.
    """

    horizon: int = 512
    counts = True
    name = "sparse-smooth"

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise InvalidInputError("horizon", f"got {self.horizon}", "Pass at least 1")

    def require(self, layout: Layout, noise: Noise) -> None:
        """Refuse anything but isotropic noise on bits."""
        require_isotropic(self.name, layout, noise, (SparseFlips, Bernoulli))

    def bound_names(self, settings: Settings) -> tuple[str, ...]:
        """One bound, the naive one: each output on its own."""
        del settings
        return ("naive",)

    def certify(self, item: SampledItem, noise: Noise, settings: Settings) -> ItemResult:
        """Certify one item; see `ItemMethod.certify`."""
        threat = settings.threat.threat(settings.budgets, item.image, item.layout, noise)
        constraints = require_one_ball(self.name, threat, len(noise.kinds) * item.layout.inputs.count)
        bounds = item.votes.bounds(settings.sharing, settings.alpha, target_kinds(item, settings.targets))
        lower, shown = bounds.lower, bounds.shown
        frontier = frontier_in_ball(noise, item.layout, np.maximum(lower, shown), constraints, self.horizon)
        needed = needed_by_size(frontier, constraints)
        radius = (shown[:, None] > needed[None]).sum(axis=1).astype(np.float64)
        prediction = np.where(radius > 0, item.votes.candidate, ABSTAIN).astype(np.int64)
        sizes = np.minimum(np.floor(constraints.budgets[:, 0]), needed.size - 1).astype(np.int64)
        counted = counted_outputs(item, np.where(lower > 0.5, item.votes.candidate, ABSTAIN), settings.targets)
        curves = {
            (target, "naive"): counted_curve(
                np.maximum(
                    (lower[stakes.qualify][None] > needed[sizes][:, None]).sum(axis=1) - bounds.discount,
                    0,
                ).astype(np.int64),
                np.minimum(np.floor(constraints.budgets[:, 0]), constraints.caps.sum()),
                item.layout.inputs.count,
            )
            for target, stakes in counted.items()
        }
        return item_result(
            item, prediction=prediction, lower=shown, eta=radius, radius=radius, curves=curves, counted=counted
        )

    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Say what was counted."""
        return (
            "Baseline SparseSmooth (Bojchevski et al. 2020): isotropic flips, exact certificates from regions of "
            f"constant likelihood ratio; bounds joined over all outputs by {settings.simultaneous.name}. Counted are "
            "the outputs that tolerate every mix of flips within the budget. η and radius are the first number of "
            "flips that is not shown to be tolerated; more than the largest budget are not looked at.",
        )
