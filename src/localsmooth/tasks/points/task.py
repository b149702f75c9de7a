"""Point clouds under a model that predicts a class for every point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from localsmooth.datasets import Item, ItemSet
from localsmooth.errors import InvalidInputError, require_several
from localsmooth.models import Model
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import ArrayTask, SampledItem, Settings, require_one_each
from localsmooth.tasks.base import Assignment
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.smoothing import Smoothing

__all__ = ["PointTask"]

_SHAPE = "Pass a list with one array of shape (points, coordinates) for each cloud"
_COORDINATES = 4  # as many rows, and more columns than twice that, are coordinates first


class PointTask(ArrayTask):
    """A model, and the point clouds that it is certified on.

    Certified are perturbations of coordinates: the number and the order of the points, and their cells, stay as they
    are. Settings are those of arrays; the default threat is a ball over the whole cloud, `PerPoint` bounds each point.

    Parameters
    ----------
    model
        The base classifier, in evaluation mode: from coordinates (batch, coordinates, points) to one prediction for
        each point, such as scores (batch, classes, points).
    clouds
        Coordinates of each cloud, of shape (points, coordinates); numbers of points may differ.
    labels
        Known class of every point of each cloud, for certified accuracy.
    names
        What reports call the clouds.
    class_names, ignore_label
        As in `ItemSet`.
    units
        Units of coordinates and budgets, for the record.

    Raises
    ------
    InvalidInputError
        Naming what is no model, no cloud or no label.
    """

    name: ClassVar[str] = "points"

    def __init__(
        self,
        model: Model,
        clouds: Sequence[np.ndarray] | np.ndarray,
        labels: Sequence[np.ndarray] | np.ndarray | None = None,
        *,
        names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        ignore_label: int | None = None,
        units: str = "coordinates",
    ) -> None:
        for field, given in (("clouds", clouds), ("labels", labels), ("names", names)):
            if field == "clouds" or given is not None:
                require_several(field, given, "one for each cloud")
        if len(clouds) == 0:
            raise InvalidInputError("clouds", "there is none", _SHAPE)
        if np.ndim(clouds[0]) == 1:
            raise InvalidInputError("clouds", f"got one array of shape {np.shape(clouds)}", f"{_SHAPE}: [cloud]")
        for field, given in (("labels", labels), ("names", names)):
            if given is not None and len(given) != len(clouds):
                raise InvalidInputError(field, f"{len(given)} for {len(clouds)} clouds", "Give one per cloud")
        called = [f"cloud {index}" for index in range(len(clouds))] if names is None else list(map(str, names))
        items = [
            _item(index, called[index], np.asarray(cloud), None if labels is None else np.asarray(labels[index]))
            for index, cloud in enumerate(clouds)
        ]
        if len({item.image.shape[0] for item in items}) > 1:
            raise InvalidInputError(
                "clouds", "they differ in the number of coordinates", "Certify them in separate runs"
            )
        super().__init__(
            model, ItemSet(items, class_names, None if ignore_label is None else int(ignore_label)), units=units
        )

    def assign(
        self, smoothing: Smoothing, settings: Settings, options: SamplingOptions, scores: ScoreCounting | None
    ) -> Assignment[Sequence[SampledItem]]:
        """Check what arrays are checked for, and that there is one prediction for each point.

        Raises
        ------
        InvalidInputError
            Naming what does not fit.
        """
        try:
            made = super().assign(smoothing, settings, options, scores)
        except InvalidInputError as error:
            if error.field != "images":
                raise
            remedy = "The model gets coordinates of shape (batch, coordinates, points)"
            raise InvalidInputError("clouds", error.problem, remedy) from error
        remedy = "Predict one class for each point: scores of shape (batch, classes, points)"
        require_one_each(self.items, made.subject.layouts, "points", remedy)
        return made


def _item(index: int, name: str, cloud: np.ndarray, label: np.ndarray | None) -> Item:
    called = f'"{name}"'
    if cloud.ndim != 2 or cloud.size == 0 or cloud.dtype.kind not in "fiu":
        raise InvalidInputError("clouds", f"{called} has shape {cloud.shape} and type {cloud.dtype}", _SHAPE)
    points, coordinates = cloud.shape
    wide = points <= _COORDINATES and coordinates > 2 * _COORDINATES
    if points != coordinates and (wide if label is None else label.shape == (coordinates,)):
        raise InvalidInputError(
            "clouds", f"{called} has shape {cloud.shape}, coordinates first", "Pass its transpose: cloud.T"
        )
    finite = np.isfinite(cloud).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            "clouds",
            f"point {int(np.argmin(finite))} of {called} has a coordinate that is NaN or infinite",
            "Repair it, or leave the point out of the cloud and of its labels and cells",
        )
    if label is not None and (label.shape != (points,) or label.dtype.kind not in "iub"):
        raise InvalidInputError(
            "labels",
            f"{called} has {points} points, and labels of shape {label.shape} and type {label.dtype}",
            "Give a whole number for each point",
        )
    return Item(
        index,
        name,
        np.ascontiguousarray(cloud.T, dtype=np.float32),
        None if label is None else np.ascontiguousarray(label, dtype=np.int64),
    )


TASK = PointTask
