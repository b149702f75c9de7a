"""What a point of a sweep came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import (
    OperatingPoint,
    accuracy,
    average_certifiable_radius,
    confusion_matrix,
    mean_curve,
    mean_iou,
)
from localsmooth.results import NO_LABEL, load, run_info
from localsmooth.sweep.expand import Sweep, SweepPoint

__all__ = ["Outcome", "SweepFolder", "operating_point", "read_outcomes"]


@dataclass(frozen=True)
class SweepFolder:
    """Where a sweep keeps what: run directories, results, and what went wrong.

    Parameters
    ----------
    path
        The sweep's own directory.
    """

    path: Path

    def run(self, point: SweepPoint) -> Path:
        """Run directory of a point, shared by points that only differ in their certificates."""
        return self.path / "runs" / point.run_key

    def result(self, point: SweepPoint) -> Path:
        """Result of a point."""
        return self.path / "results" / f"{point.key}.nc"

    def error(self, point: SweepPoint) -> Path:
        """What went wrong at a point, as text."""
        return self.path / "results" / f"{point.key}.error.txt"

    def finished(self, point: SweepPoint) -> bool:
        """Whether a point's result is there and can be read."""
        path = self.result(point)
        if not path.is_file():
            return False
        try:
            load(path)
        except (InvalidInputError, OSError, ValueError):
            return False
        return True


@dataclass(frozen=True)
class Outcome:
    """A point and its numbers, or what went wrong.

    Parameters
    ----------
    point
        The point.
    numbers
        What it came to; None if it failed or is not done.
    tail
        The part of the radii that lies beyond the largest budget, at the strongest bound.
    problem
        What went wrong.
    """

    point: SweepPoint
    numbers: OperatingPoint | None
    tail: float = 0.0
    problem: str = ""


def read_outcomes(sweep: Sweep, folder: SweepFolder) -> list[Outcome]:
    """What is known of every point of a sweep."""
    outcomes: list[Outcome] = []
    for point in sweep.points:
        if folder.finished(point):
            try:
                dataset = load(folder.result(point))
                numbers, tail = operating_point(point, dataset, sweep.section.quality, sweep.section.target)
                outcomes.append(Outcome(point, numbers, tail))
            except InvalidInputError as error:
                outcomes.append(Outcome(point, None, problem=str(error)))
        elif folder.error(point).is_file():
            problem = folder.error(point).read_text(encoding="utf-8", errors="replace")
            outcomes.append(Outcome(point, None, problem=problem.strip().splitlines()[0]))
        else:
            outcomes.append(Outcome(point, None, problem="not run yet"))
    return outcomes


def operating_point(point: SweepPoint, dataset: xr.Dataset, quality: str, target: str) -> tuple[OperatingPoint, float]:
    """Quality, radii and costs of a result, and the tail of its strongest bound's radius.

    A radius is the lower Riemann sum of the ACR and its tail ε_N ξ(ε_N): both are proven, and without the tail a
    method that certifies beyond the largest budget would look worse than one that does not.

    Parameters
    ----------
    point
        The point.
    dataset
        Its result.
    quality
        "miou" or "accuracy".
    target
        "ratio" or "accuracy".

    Raises
    ------
    InvalidInputError
        If the data have no labels, or the result lacks the target.
    """
    label, prediction = dataset["label"].values, dataset["prediction"].values
    counted = ~dataset["ignored"].values & (label != NO_LABEL)
    if not counted.any():
        raise InvalidInputError("data", "no item has labels, so that quality is unknown", "Give labels to the items")
    if target not in dataset["target"].values.tolist():
        raise InvalidInputError("target", f"the result has none for {target}", 'Ask for "ratio"')
    run = run_info(dataset)
    if quality == "miou":
        value = mean_iou(confusion_matrix(prediction, label, counted, len(run.class_names)))
    else:
        value = accuracy(prediction, label, counted)
    radii: dict[str, float] = {}
    tail = 0.0
    total = dataset["total"].sel(target=target).values
    for bound in run.bound_names:
        curve = mean_curve(dataset["certified"].sel(target=target, bound=bound).values, total)
        radius = average_certifiable_radius(dataset["budget"].values.astype(np.float64), curve)
        radii[bound], tail = radius.value + radius.tail, radius.tail
    return (
        OperatingPoint(point.method, point.label, value, radii, point.samples_per_output, point.total_samples),
        tail,
    )
