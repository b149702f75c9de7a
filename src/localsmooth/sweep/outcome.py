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
from localsmooth.results import NO_LABEL, RunInfo, kind_curve, load, run_info
from localsmooth.sweep.expansion import Sweep
from localsmooth.sweep.point import SweepPoint

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

    def read(self, point: SweepPoint) -> xr.Dataset | None:
        """Result of a point; None where it is not there, or cannot be read."""
        path = self.result(point)
        try:
            return load(path) if path.is_file() else None
        except (InvalidInputError, OSError, ValueError):
            return None

    def finished(self, point: SweepPoint) -> bool:
        """Whether a point's result is there and can be read."""
        return self.read(point) is not None


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
    run
        What its result says about the run.
    items
        Number of its items.
    """

    point: SweepPoint
    numbers: OperatingPoint | None
    tail: float = 0.0
    problem: str = ""
    run: RunInfo | None = None
    items: int = 0


def read_outcomes(sweep: Sweep, folder: SweepFolder) -> list[Outcome]:
    """What is known of every point of a sweep."""
    return [_outcome(point, folder, sweep) for point in sweep.points]


def _outcome(point: SweepPoint, folder: SweepFolder, sweep: Sweep) -> Outcome:
    dataset = folder.read(point)
    if dataset is None:
        problem = "not run yet"
        if folder.error(point).is_file():
            text = folder.error(point).read_text(encoding="utf-8", errors="replace").strip()
            problem = text.splitlines()[0] if text else "failed without a message"
        return Outcome(point, None, problem=problem)
    run = run_info(dataset)
    try:
        dataset = kind_curve(dataset, sweep.flips if sweep.on_graph else None)
        numbers, tail = operating_point(point, dataset, sweep.quality, sweep.section.target)
    except InvalidInputError as error:
        return Outcome(point, None, run=run, problem=str(error))
    return Outcome(point, numbers, tail, run=run, items=dataset.sizes["item"])


def operating_point(point: SweepPoint, dataset: xr.Dataset, quality: str, target: str) -> tuple[OperatingPoint, float]:
    """Quality, radii and costs of a result, and the tail of its strongest bound's radius.

    A radius is the lower Riemann sum of the ACR and its tail ε_N ξ(ε_N): both are proven, and without the tail a
    method that certifies beyond the largest budget would look worse than one that does not.

    Parameters
    ----------
    point
        The point.
    dataset
        Its result; of a graph, the curve for one kind of flip.
    quality
        "miou" or "accuracy".
    target
        Name of a target of the result.

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
        raise InvalidInputError(
            "target",
            f"the result has none for {target!r}",
            f"Name one of {', '.join(map(str, dataset['target'].values))}",
        )
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
