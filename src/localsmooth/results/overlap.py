"""Certified IoU and Dice as a labelled data set, in memory and on disk."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from localsmooth.collective import Overlap
from localsmooth.disk import expanded, write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.results.curves import budget_kinds
from localsmooth.results.files import read, require_whole, write
from localsmooth.results.names import CLASS, symbol
from localsmooth.results.run import RunInfo, attributes, run_info

__all__ = ["ItemOverlap", "build_overlaps", "load_overlaps", "save_overlaps"]

_FORMAT, _VERSION = "localsmooth-overlaps", 1
_BY_CLASS = ("iou", "iou_upper", "dice", "dice_upper")
_MEANS = tuple(f"mean_{name}" for name in _BY_CLASS)
_MEASURED = ("candidate_iou", "clean_iou")
_REMEDY = "The file is damaged or foreign: run localsmooth overlap again"


@dataclass(frozen=True, eq=False)
class ItemOverlap:
    """What is certified of one item.

    Parameters
    ----------
    name
        Name of the item.
    overlap
        Bounds for the classes among its labels, at all budgets, or all combinations of kinds of them.
    measured
        IoU of each class, by whose it is: of the candidates and, where these were kept, of the clean predictions.
    """

    name: str
    overlap: Overlap
    measured: Mapping[str, Float[np.ndarray, "classes"]] = field(default_factory=dict[str, np.ndarray])


def build_overlaps(items: Sequence[ItemOverlap], run: RunInfo) -> xr.Dataset:
    """Join the overlaps of all items into one labelled data set.

    Parameters
    ----------
    items
        At least one.
    run
        What they were certified with, by a single bound.

    Returns
    -------
    dataset
        `iou`, `dice`: proven, rounded down, over item, class and budgets; NaN for classes that the item's labels do not
        have. `mean_iou`, `mean_dice`: over the classes that they do. `…_upper`: what the best attack leaves.
        `candidate_iou`, `clean_iou`: measured, without a perturbation. Attributes as those of a result.
    """
    classes, grid = len(run.class_names), tuple(len(budgets) for budgets in run.budgets.values())
    by_class = {name: np.full((len(items), classes, *grid), np.nan) for name in _BY_CLASS}
    means = {name: np.full((len(items), *grid), np.nan) for name in _MEANS}
    for place, item in enumerate(items):
        for name, values in by_class.items():
            values[place, item.overlap.classes] = getattr(item.overlap, name).reshape(-1, *grid)
        for name, values in means.items():
            values[place] = getattr(item.overlap, name).reshape(grid)
    variables: dict[str, Any] = {name: (("item", CLASS, *run.budgets), values) for name, values in by_class.items()}
    variables |= {name: (("item", *run.budgets), values) for name, values in means.items()}
    for name in items[0].measured:
        measured = [item.measured.get(name, np.full(classes, np.nan)) for item in items]
        variables[f"{name}_iou"] = (("item", CLASS), np.stack(measured))
    coordinates: dict[str, Any] = {
        "item": [item.name for item in items],
        CLASS: list(run.class_names),
        "bound": list(run.bound_names),
    }
    for kind, budgets in run.budgets.items():
        units = {"units": run.units, "long_name": f"budget {symbol(kind)}"}
        coordinates[kind] = (kind, np.array(budgets, dtype=np.float64), units)
    return xr.Dataset(variables, coordinates, {"format": _FORMAT, "format_version": _VERSION} | attributes(run))


def save_overlaps(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write overlaps to a NetCDF file with a checksum, or to a table where the name ends in .csv.

    Parameters
    ----------
    dataset
        From `build_overlaps`.
    path
        File to write; its folder exists.

    Raises
    ------
    InvalidInputError
        If the data set holds no overlaps.
    OutputError
        If the file cannot be written.
    """
    checked = _validated(dataset)
    if expanded(path).suffix.lower() == ".csv":
        write_atomically(path, _table(checked).encode())
    else:
        write(checked, path)


def load_overlaps(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read overlaps back into memory; nothing in the file is executed.

    Raises
    ------
    InvalidInputError
        If the file is missing, foreign, damaged, or of another version.
    """
    return read(path, lambda opened: require_whole(_validated(opened)))


def _validated(dataset: xr.Dataset) -> xr.Dataset:
    attrs: dict[str, Any] = dict(dataset.attrs)
    if attrs.get("format") != _FORMAT or attrs.get("format_version") != _VERSION:
        raise InvalidInputError("format", f"is not {_FORMAT} of version {_VERSION}", _REMEDY)
    names = set(map(str, dataset.data_vars))
    needed = {*_BY_CLASS, *_MEANS}
    if not needed <= names <= needed | set(_MEASURED):
        raise InvalidInputError("variables", f"got {', '.join(sorted(names))}", _REMEDY)
    run = run_info(dataset)
    if dataset[CLASS].values.tolist() != list(run.class_names):
        raise InvalidInputError(CLASS, "other classes than the attributes say", _REMEDY)
    for name in names:
        held, measured = dataset[name], name in _MEASURED
        wanted = ("item", *(() if name in _MEANS else (CLASS,)), *(() if measured else run.budgets))
        if held.dims != wanted or held.dtype.kind != "f":
            raise InvalidInputError(name, f"has the dimensions {held.dims} and type {held.dtype}", _REMEDY)
        if bool(((held < 0) | (held > 1)).any()):
            raise InvalidInputError(name, "lies outside 0 … 1", _REMEDY)
        upper = None if measured or name.endswith("_upper") else dataset[f"{name}_upper"]
        if upper is not None and bool(((held > upper) | (held.isnull() != upper.isnull())).any()):
            raise InvalidInputError(name, "lies above what an attack leaves", _REMEDY)
    return dataset


def _table(dataset: xr.Dataset) -> str:
    """One row for each item, class and budget, and each mean."""
    kinds = budget_kinds(dataset)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", CLASS, *kinds, *_BY_CLASS])
    sizes = [range(dataset.sizes[kind]) for kind in kinds]
    for item, name in enumerate(dataset["item"].values.tolist()):
        for place, called in [*enumerate(dataset[CLASS].values.tolist()), (None, "mean")]:
            for at in np.ndindex(*(len(size) for size in sizes)):
                key = (item, *at) if place is None else (item, place, *at)
                values = [dataset[one].values[key] for one in (_MEANS if place is None else _BY_CLASS)]
                if not np.isnan(values[0]):
                    budgets = (dataset[kind].values[where] for kind, where in zip(kinds, at, strict=True))
                    writer.writerow(
                        [name, called, *(f"{budget:g}" for budget in budgets), *map(repr, map(float, values))]
                    )
    return text.getvalue()
