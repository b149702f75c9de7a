"""The flips of both kinds that each node tolerates under one noise level (SparseSmooth), as a baseline for graphs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.baselines.isotropic import require_isotropic
from localsmooth.baselines.regions import flip_frontier
from localsmooth.baselines.sparse_smooth import SparseSmooth, flip_probabilities
from localsmooth.layout import Layout
from localsmooth.noise import FlipCaps, SparseFlips

__all__ = ["tolerated_flips", "worst_spending"]


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
    probabilities = flip_probabilities(SparseFlips(), layout)
    most = [min(int(b.max()), int(cap.sum())) for b, cap in ((additions, caps.additions), (deletions, caps.deletions))]
    frontier = flip_frontier(*probabilities, float(lower.max(initial=0.0)), most[0], most[1], baseline.horizon)
    # A majority is needed even where nothing is flipped.
    needed = np.maximum(frontier.smallest, 0.5)
    # Beyond the bits that there are nothing changes; beyond the horizon nothing is promised.
    at = [np.minimum(b, size - 1) for b, size in zip((additions, deletions), needed.shape, strict=True)]
    return lower > needed[np.ix_(*at)][..., None]


def worst_spending(cap: Int[np.ndarray, "input_groups"], budget: int) -> Float[np.ndarray, "input_groups"]:
    """Spend a budget wherever there is room: under one noise level all places are alike."""
    before = np.cumsum(cap) - cap
    return np.clip(budget - before, 0, cap).astype(np.float64)
