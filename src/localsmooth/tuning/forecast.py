"""What a candidate would certify with all its samples, foretold from a pilot."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import average_certifiable_radius, class_iou, confusion_matrix
from localsmooth.runs import SamplingPlan
from localsmooth.tasks import Predicted, Target, Trial, as_targets, stakes_of
from localsmooth.tuning.predictive import foretold

__all__ = ["MEAN_IOU", "Aim", "Forecast", "foretell"]

MEAN_IOU = "mean_iou"
"""Quality by the mean IoU over the classes among the labels, from the confusion of all items."""
_OUTSIDE = 0.1  # share of items and draws that lie below the lower curve, and above the upper one


@dataclass(frozen=True)
class Aim:
    """What is wanted.

    Parameters
    ----------
    target
        What is counted; names as in `Settings`.
    at
        Budget at which the certified share counts; None for the average certifiable radius.
    floor
        Least quality of the smoothed classifier's predictions, abstentions wrong: by "mean_iou" or the name of a
        target, such as "balanced", "accuracy" and "agreement".
    kind
        Kind of budget, where there are several: "deletions" or "additions" of graphs, the others being 0. By default
        the only one, or the last with budgets above 0.

    Raises
    ------
    InvalidInputError
        For unknown names, shares outside [0, 1] and a negative budget.
    """

    target: Target | str = "ratio"
    at: float | int | None = None
    floor: Mapping[str, float | int] = field(default_factory=dict[str, float | int])
    kind: str | None = None

    def __post_init__(self) -> None:
        as_targets([self.target], "target")
        for name, least in self.floor.items():
            if name != MEAN_IOU:
                try:
                    as_targets([name], "floor")
                except InvalidInputError as error:
                    remedy = f"{error.remedy}; {MEAN_IOU} is known, too"
                    raise InvalidInputError("floor", error.problem, remedy) from error
            if not 0 <= least <= 1:
                raise InvalidInputError("floor", f"{name} of {least}", "Pass a share between 0 and 1")
        if self.at is not None and not 0 <= self.at < math.inf:
            raise InvalidInputError("at", f"got {self.at}", "Pass a budget of at least 0")

    @property
    def words(self) -> str:
        """What is to be large, in words."""
        target = self.target if isinstance(self.target, str) else self.target.name
        kind = "" if self.kind is None else f", {self.kind}"
        return (f"ACR of {target}" if self.at is None else f"{target} at ε = {self.at:g}") + kind


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is expected of an item like those of the pilot; a description, and no certificate.

    Parameters
    ----------
    budgets
        Budgets of the curves.
    curve, low, high
        Certified share of the target: mean over items and draws, and what 10 % of them stay below or exceed.
    radius, radius_error
        Average certifiable radius with its tail, and the standard error of this mean: from items, and from the votes
        that the pilot leaves open.
    radii
        Average certifiable radius of each item, mean over draws.
    quality, quality_error
        Of the predictions, by what the floor names, and the standard errors.
    """

    budgets: Float[np.ndarray, "budgets"]
    curve: Float[np.ndarray, "budgets"]
    low: Float[np.ndarray, "budgets"]
    high: Float[np.ndarray, "budgets"]
    radius: float
    radius_error: float
    radii: Float[np.ndarray, "items"]
    quality: Mapping[str, float]
    quality_error: Mapping[str, float]

    def score(self, at: float | int | None) -> float:
        """What is to be large: the radius, or the share at a budget of the curve."""
        return self.radius if at is None else float(self.curve[np.searchsorted(self.budgets, at)])

    def expected(self, at: float | int | None) -> str:
        """What is to be large, and how far it may be off: the radius, or the share at a budget of the curve."""
        if at is None:
            return f"{self.radius:.3f} ± {self.radius_error:.3f}"
        place = int(np.searchsorted(self.budgets, at))
        return f"{self.curve[place]:.3f} ({self.low[place]:.3f}–{self.high[place]:.3f})"

    def short(self, floor: Mapping[str, float | int]) -> float:
        """By how much the worst quality misses its floor; at most 0 if none does."""
        return max((least - self.quality[name] for name, least in floor.items()), default=0.0)


def foretell(
    trials: Sequence[Trial],
    budgets: Float[np.ndarray, "budgets"],
    plan: SamplingPlan,
    aim: Aim,
    draws: int,
    seed: int,
) -> Forecast:
    """Draw the votes of a whole run several times from what a pilot leaves open, and certify them by the envelope.

    Parameters
    ----------
    trials
        Items with the votes of a pilot.
    budgets
        Those that they are certified at.
    plan
        The run that is foretold.
    aim
        What is wanted.
    draws
        Whole runs that are drawn for each item.
    seed
        Of these draws.
    """
    generator = np.random.default_rng(seed)
    curves = np.empty((len(trials), draws, budgets.size))
    qualities = {name: np.empty((len(trials), draws)) for name in aim.floor}
    confusion: int | Int[np.ndarray, "classes more"] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what rules have to say of votes, they say when there are any
        for index, trial in enumerate(trials):
            for draw in range(draws):
                seen = trial.certified(foretold(trial.votes, plan.n_candidate, plan.n_bound, generator))
                curves[index, draw] = seen.share
                for name, made in qualities.items():
                    if name == MEAN_IOU:
                        here = _confusion(seen.predicted)
                        confusion, made[index, draw] = confusion + here, _labelled_iou(here)
                    else:
                        (stakes,) = stakes_of(as_targets([name]), seen.predicted).values()
                        made[index, draw] = stakes.values.sum() / max(stakes.total, 1e-300)
    radii = np.array([[sum(average_certifiable_radius(budgets, curve)) for curve in each] for each in curves])
    quality = {name: float(made.mean()) for name, made in qualities.items()}
    if not isinstance(confusion, int):
        quality[MEAN_IOU] = _labelled_iou(confusion)
    low, high = np.quantile(curves, [_OUTSIDE, 1 - _OUTSIDE], axis=(0, 1))
    return Forecast(
        budgets,
        curves.mean(axis=(0, 1)),
        low,
        high,
        float(radii.mean()),
        _error(radii),
        radii.mean(axis=1),
        quality,
        {name: _error(made) for name, made in qualities.items()},
    )


def _error(values: Float[np.ndarray, "items draws"]) -> float:
    """Standard error of the mean: items differ, and the pilot leaves each of them open."""
    items, draws = values.shape
    between = values.mean(axis=1).var(ddof=1) if items > 1 else 0.0
    within = values.var(axis=1, ddof=1).mean() if draws > 1 else 0.0
    return float(np.sqrt((between + within) / items))


def _confusion(predicted: Predicted) -> Int[np.ndarray, "classes more"]:
    assert predicted.label is not None
    return confusion_matrix(predicted.prediction, predicted.label, predicted.counted, len(predicted.class_names))


def _labelled_iou(confusion: Int[np.ndarray, "classes more"]) -> float:
    """Mean IoU of the classes that occur: of few items, one stray prediction of another class would weigh as much."""
    occur = confusion.sum(axis=1) > 0
    return float(class_iou(confusion)[occur].mean()) if occur.any() else 0.0
