"""What falls first: the class, or the place, of which the smallest share keeps its prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int

from localsmooth.certificates import ABSTAIN
from localsmooth.results import BUDGET

__all__ = ["Weakest", "keeps_alone", "weakest_part"]


@dataclass(frozen=True)
class Weakest:
    """The part of the outputs with the smallest share.

    Parameters
    ----------
    part
        Its number.
    kept
        How many of its outputs keep their prediction.
    size
        How many outputs it has.
    """

    part: int
    kept: int
    size: int

    @property
    def share(self) -> float:
        """Share of its outputs that keep their prediction."""
        return self.kept / self.size


def weakest_part(
    parts: Int[np.ndarray, "*out"], counted: Bool[np.ndarray, "*out"], keeps: Bool[np.ndarray, "*out"]
) -> Weakest | None:
    """Find the part of which the smallest share keeps its prediction; of several, the largest.

    Parameters
    ----------
    parts
        Number of the part that each output belongs to; outputs with a negative one belong to none.
    counted
        Outputs that count.
    keeps
        Outputs that keep their prediction.

    Returns
    -------
    Weakest | None
        None where fewer than two parts have outputs that count, or all of them keep the same share.
    """
    inside = counted & (parts >= 0)
    sizes = np.bincount(parts[inside])
    kept = np.bincount(parts[inside & keeps], minlength=sizes.size)
    present = np.flatnonzero(sizes)
    if present.size < 2 or np.unique(kept[present] / sizes[present]).size < 2:
        return None
    worst = min(present.tolist(), key=lambda part: (kept[part] / sizes[part], -sizes[part]))
    return Weakest(int(worst), int(kept[worst]), int(sizes[worst]))


def keeps_alone(dataset: xr.Dataset, budget: float) -> Bool[np.ndarray, "items *out"]:
    """Say which outputs keep their prediction at a budget by their own certificate, against an attack on them alone.

    Parameters
    ----------
    dataset
        A result with the single dimension `budget` (see `localsmooth.results.kind_curve`).
    budget
        ε; of results that say it for each budget, the next larger one of the list counts.
    """
    answers = dataset["prediction"].values > ABSTAIN
    if "alone" not in dataset:
        return answers & (dataset["radius"].values > budget)
    place = int(np.searchsorted(dataset[BUDGET].values, budget * (1 - 1e-12), side="left"))
    if place >= dataset.sizes[BUDGET]:
        return np.zeros_like(answers)
    return answers & dataset["alone"].isel({BUDGET: place}).values
