"""What a model still sees under noise of a few levels, shown inputs that are not certified."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from localsmooth.execution import sample_subject
from localsmooth.layout import Layout
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import Counters, SamplingOptions, Subject

__all__ = ["LOOKS_SEED", "Sight", "few_levels", "looked"]

LOOKS_SEED = 1 << 129 | 0x51647  # longer than a seed of a run may be, so that none can be equal
_LOOKS = 24  # samples of a calibration item at each level
_LEVELS = 3


@dataclass(frozen=True)
class Sight:
    """What noise of one level, the same everywhere, leaves of a model's predictions.

    Parameters
    ----------
    level
        Level of the noise, or its parameters.
    agreement
        Share of the outputs of which most samples have the class that the model predicts without noise.
    balanced
        Mean of that share over the classes that the model predicts without noise.
    worst
        Name of the class with the smallest share, and that share.
    """

    level: tuple[float, ...]
    agreement: float
    balanced: float
    worst: tuple[str, float]

    def __str__(self) -> str:
        level = ", ".join(f"{each:g}" for each in self.level)
        name, least = self.worst
        return (
            f"noise of level {level}: {_percent(self.agreement)} of the outputs keep the model's own prediction "
            f"({_percent(self.balanced)} in the mean over classes; least of {name!r}: {_percent(least)})"
        )


def looked(
    level: Float[np.ndarray, " parameters"], shown: Subject, names: Sequence[str], options: SamplingOptions
) -> Sight:
    """Draw a few samples, and compare what most of them say with the predictions without noise.

    Parameters
    ----------
    level
        Level of the noise.
    shown
        Calibration inputs under noise of that level everywhere.
    names
        Name of every class.
    options
        How sampling is executed; votes are counted, and nothing else.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the model was said
        plan = SamplingPlan(_LOOKS, 1, LOOKS_SEED)
        tallies = sample_subject(shown, plan, options=replace(options, counters=Counters()))
    clean = np.concatenate([shown.clean_labels(item).ravel() for item in range(len(shown.layouts))])
    kept = clean == np.concatenate([tally.candidate.ravel() for tally in tallies])
    shares = {int(label): float(kept[clean == label].mean()) for label in np.unique(clean)}
    worst = min(shares, key=lambda label: shares[label])
    return Sight(
        tuple(level.tolist()), float(kept.mean()), float(np.mean([*shares.values()])), (names[worst], shares[worst])
    )


def few_levels(layouts: Sequence[Layout]) -> list[Float[np.ndarray, " parameters"]]:
    """Choose the smallest of the levels of some layouts, the largest, and one in the middle of them."""
    distinct = np.unique(np.concatenate([_rows(made) for made in layouts]), axis=0)
    places = np.unique(np.linspace(0, len(distinct) - 1, _LEVELS).round().astype(int))
    return [distinct[place] for place in places]


def _rows(layout: Layout) -> Float[np.ndarray, "pairs parameters"]:
    """The levels of all pairs of groups, hidden inputs left out."""
    rows = layout.levels.reshape(layout.levels.shape[0] * layout.levels.shape[1], -1)
    return rows[np.isfinite(rows).all(axis=1)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
