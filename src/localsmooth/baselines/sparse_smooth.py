"""SparseSmooth: exact certificates for isotropic flips of bits, one output at a time (Bojchevski et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from localsmooth.baselines.isotropic import counted_curve, item_result, require_isotropic, require_one_ball
from localsmooth.baselines.regions import FlipFrontier, flip_frontier
from localsmooth.certificates import ABSTAIN
from localsmooth.collective.kernel.threat import Constraints
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import Bernoulli, Noise, SparseFlips
from localsmooth.noise.binary import BinaryNoise
from localsmooth.results import ItemResult
from localsmooth.tasks.arrays.item import SampledItem, target_masks
from localsmooth.tasks.arrays.settings import ItemMethod, Settings

__all__ = ["SparseSmooth", "flip_probabilities", "frontier_under", "needed_by_size"]


def flip_probabilities(noise: Noise, layout: Layout) -> tuple[float, float]:
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


def frontier_under(
    addition: float, deletion: float, highest: float, constraints: Constraints, kinds: int, horizon: int
) -> FlipFrontier:
    """Explore the flips that a threat allows; where kinds are not told apart, they count as additions.

    Parameters
    ----------
    addition, deletion, highest, horizon
        As in `flip_frontier`.
    constraints
        The threat.
    kinds
        Number of kinds of flips that its columns tell apart.
    """
    largest = float(constraints.budgets.max())
    caps = constraints.caps.reshape(kinds, -1).sum(axis=1)
    most = [math.floor(min(cap, largest)) for cap in caps.tolist()]
    return flip_frontier(addition, deletion, highest, most[0], most[1] if kinds == 2 else 0, horizon)


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
        kinds = len(noise.kinds)
        threat = settings.threat.threat(settings.budgets, item.image, item.layout, noise)
        constraints = require_one_ball(self.name, threat, kinds * item.layout.inputs.count)
        lower = item.votes.lower_bounds(item.votes.rule(settings.simultaneous, settings.alpha), settings.alpha)
        addition, deletion = flip_probabilities(noise, item.layout)
        frontier = frontier_under(addition, deletion, float(lower.max()), constraints, kinds, self.horizon)
        needed = needed_by_size(frontier, constraints)
        radius = (lower[:, None] > needed[None]).sum(axis=1).astype(np.float64)
        prediction = np.where(radius > 0, item.votes.candidate, ABSTAIN).astype(np.int64)
        sizes = np.minimum(np.floor(constraints.budgets[:, 0]), needed.size - 1).astype(np.int64)
        curves = {
            (target, "naive"): counted_curve(
                np.maximum(
                    (lower[mask][None] > needed[sizes][:, None]).sum(axis=1) - settings.simultaneous.discount, 0
                ).astype(np.int64),
                np.minimum(np.floor(constraints.budgets[:, 0]), constraints.caps.sum()),
                item.layout.inputs.count,
            )
            for target, mask in target_masks(item, prediction).items()
        }
        return item_result(item, prediction=prediction, lower=lower, eta=radius, radius=radius, curves=curves)

    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Say what was counted."""
        return (
            "Baseline SparseSmooth (Bojchevski et al. 2020): isotropic flips, exact certificates from regions of "
            f"constant likelihood ratio; bounds joined over all outputs by {settings.simultaneous.name}. Counted are "
            "the outputs that tolerate every mix of flips within the budget. η and radius are the first number of "
            "flips that is not shown to be tolerated; more than the largest budget are not looked at.",
        )


def needed_by_size(frontier: FlipFrontier, constraints: Constraints) -> Float[np.ndarray, "sizes"]:
    """What an output's lower bound must exceed for it to tolerate every mix of at most s flips, for each s from 0.

    The sizes end with the largest budget, or with the number of bits that the threat leaves to be flipped: of larger
    sizes the frontier holds some mixes only. How many of them an output exceeds is the first size that it is not shown
    to tolerate, its radius.

    Parameters
    ----------
    frontier, constraints
        From `frontier_under`, and what went into it.
    """
    most = math.floor(min(float(constraints.budgets.max()), float(constraints.caps.sum())))
    # A majority is needed even where nothing is flipped.
    return np.maximum(worst_of_size(frontier.smallest)[: most + 1], 0.5)


def worst_of_size(smallest: Float[np.ndarray, "additions deletions"]) -> Float[np.ndarray, "sizes"]:
    """Return the largest threshold over the mixes of at most s flips that the array holds, for each s from 0."""
    size = np.add.outer(np.arange(smallest.shape[0]), np.arange(smallest.shape[1]))
    worst = np.zeros(int(size[-1, -1]) + 1)
    np.maximum.at(worst, size.ravel(), smallest.ravel())
    return np.maximum.accumulate(worst)
