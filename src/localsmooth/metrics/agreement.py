"""How much of what the model predicts without noise is left under it: overall and per class, with labels or without.

A smoothed model that noise has blinded predicts the background everywhere, certifiably. What it lost shows here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int

from localsmooth.results import run_info

__all__ = ["CleanAgreement", "Kept", "clean_agreement"]

_NAMED = 3  # classes that are lost, each in a sentence of its own
_ELSEWHERE = (
    "Certified shares of other classes, such as a background, say nothing about that; try smaller noise levels."
)


@dataclass(frozen=True)
class Kept:
    """Outputs that the model predicts as one class without noise, or all of them.

    Parameters
    ----------
    name
        Name of the class; empty for all.
    clean
        Number of outputs, ignored ones left out.
    candidate
        How many of them have the same class as the candidate under noise.
    certified
        How many of these do not abstain.
    """

    name: str
    clean: int
    candidate: int
    certified: int

    @property
    def candidate_share(self) -> float:
        """Share that the smoothed model's candidates keep."""
        return self.candidate / self.clean

    @property
    def certified_share(self) -> float:
        """Share that predictions which do not abstain keep."""
        return self.certified / self.clean


@dataclass(frozen=True)
class CleanAgreement:
    """Agreement of one result with the model's predictions without noise, over all items for which these are known.

    Parameters
    ----------
    overall
        All outputs.
    classes
        The classes that the model predicts somewhere without noise, in their order.
    """

    overall: Kept
    classes: tuple[Kept, ...]

    @property
    def differs(self) -> bool:
        """Whether classes lose different shares."""
        return len({(one.candidate_share, one.certified_share) for one in self.classes}) > 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on classes of which less than half is left under noise; one on all of them where they are many."""
        lost = [one for one in self.classes if 2 * one.candidate < one.clean]
        if len(lost) > _NAMED:
            worst = sorted(lost, key=lambda one: one.candidate_share)[:_NAMED]
            named = ", ".join(f"{one.name!r} ({int(100 * one.candidate_share)} % of {one.clean})" for one in worst)
            return (
                f"Smoothing loses {len(lost)} of {len(self.classes)} classes: less than half of the outputs that the "
                f"model predicts as them without noise keep them; worst {named}. {_ELSEWHERE}",
            )
        return tuple(
            f"Smoothing loses the class {one.name!r}: of {one.clean} outputs that the model predicts as it without "
            f"noise, {int(100 * one.candidate_share)} % keep it. {_ELSEWHERE}"
            for one in lost
        )


def clean_agreement(dataset: xr.Dataset) -> CleanAgreement | None:
    """Compare the predictions of a result with those of the model without noise.

    Parameters
    ----------
    dataset
        A result.

    Returns
    -------
    CleanAgreement | None
        None where no clean prediction is known, as in results of before.
    """
    if "clean" not in dataset:
        return None
    clean: Int[np.ndarray, "..."] = dataset["clean"].values
    known: Bool[np.ndarray, "..."] = ~dataset["ignored"].values & (clean >= 0)
    if not known.any():
        return None
    clean = clean[known]
    kept = [clean == dataset[name].values[known] for name in ("candidate", "prediction")]
    names = run_info(dataset).class_names
    sizes, *left = (np.bincount(clean[some], minlength=len(names)).tolist() for some in (slice(None), *kept))
    rows = zip(names, sizes, *left, strict=True)
    return CleanAgreement(
        Kept("", clean.size, *(int(np.count_nonzero(some)) for some in kept)),
        tuple(Kept(*row) for row in rows if row[1]),
    )
