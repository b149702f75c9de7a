"""From the results of the items to one labelled data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.certificates import Basis
from localsmooth.errors import InvalidInputError
from localsmooth.results.item import ItemResult, Stake, check_item
from localsmooth.results.names import (
    COUNT_DIMENSIONS,
    FORMAT,
    FORMAT_VERSION,
    INPUT,
    KIND,
    NO_GROUP,
    NO_LABEL,
    OUTPUT,
    OUTSIDE,
    axis_names,
    symbol,
)
from localsmooth.results.run import RunInfo, attributes

__all__ = ["build_dataset"]


_BASES = (
    f"which smoothed classifier the promise about an output is about; {Basis.NOTHING:d}: none, it abstains; "
    f"{Basis.VOTES:d}: votes, the class that the base classifier predicts most often under noise; "
    f"{Basis.SCORES:d}: scores, the class whose score has the largest mean under noise; "
    f"{Basis.LABEL_MAPS:d}: label maps, see the promise"
)


def build_dataset(items: Sequence[ItemResult], run: RunInfo) -> xr.Dataset:
    """Join the results of all items into one labelled data set.

    Items of different sizes are padded at the end of each axis: padding has prediction and candidate `OUTSIDE`, label
    `NO_LABEL`, groups `NO_GROUP`, no votes, NaN for every real number, and is ignored. The denominator `total` is the
    number of outputs that are not ignored (0 for the accuracy of an unlabelled item).

    Parameters
    ----------
    items
        Results of the items, of one rank and with the same targets, or without accuracy where unlabelled.
    run
        What they were certified with.

    Returns
    -------
    dataset
        Dimensions item, target, bound, budget (or one for each of several kinds of budget), input_group, channel and
        the spatial axes of inputs and outputs (see `axis_names`); units in the attributes of each variable, the facts
        about the run in those of the data set.

    Raises
    ------
    InvalidInputError
        If there is no item, two share a name, ranks differ, or the arrays of an item contradict one another.
    """
    if not items:
        raise InvalidInputError("items", "is empty", "Pass at least one item")
    if any(item.prediction.ndim == 0 or item.input_group.ndim == 0 for item in items):
        raise InvalidInputError(
            "items", "an item has no axis of outputs or inputs", "Give a single output the shape (1,)"
        )
    if len({item.name for item in items}) != len(items):
        raise InvalidInputError("items", "two items share a name", "Give each item its own name")
    for field, ranks in (
        ("prediction", {item.prediction.ndim for item in items}),
        ("input_group", {item.input_group.ndim for item in items}),
        ("image", {None if item.image is None else item.image.shape[0] for item in items}),
    ):
        if len(ranks) > 1:
            raise InvalidInputError(field, f"items differ in rank or channels: {ranks}", "Certify them in two runs")
    for item in items:
        check_item(item, run)
    coordinates: dict[str, Any] = {
        "item": [item.name for item in items],
        "target": list(dict.fromkeys(target for item in items for target in item.targets)),
        "bound": list(run.bound_names),
    }
    for kind, budgets in run.budgets.items():
        units = {"units": run.units, "long_name": f"budget {symbol(kind)}"}
        coordinates[kind] = (kind, np.array(budgets, dtype=np.float64), units)
    if len(run.budgets) > 1:
        coordinates[KIND] = list(run.budgets)
    variables = _output_variables(items, run) | _input_variables(items, run)
    variables |= _count_variables(items, coordinates["target"], run)
    attrs = {"format": FORMAT, "format_version": FORMAT_VERSION} | attributes(run)
    return xr.Dataset(variables, coordinates, attrs)


def _output_variables(items: Sequence[ItemResult], run: RunInfo) -> dict[str, Any]:
    dims = ("item", *axis_names(OUTPUT, items[0].prediction.ndim))

    def classes(array: np.ndarray | None, item: ItemResult) -> np.ndarray:
        label = np.full(item.prediction.shape, NO_LABEL) if array is None else array
        return np.where(item.counted, label, NO_LABEL)

    ignored = _padded([~item.counted for item in items], True, np.bool_)
    clean = {}
    if any(item.clean is not None for item in items):
        unknown = [np.full(i.prediction.shape, NO_LABEL) if i.clean is None else i.clean for i in items]
        clean = {"clean": (dims, _padded(unknown, NO_LABEL, np.int32))}
    return clean | {
        "label": (dims, _padded([classes(i.label, i) for i in items], NO_LABEL, np.int32)),
        "ignored": (dims, ignored),
        "candidate": (dims, _padded([i.candidate for i in items], OUTSIDE, np.int32)),
        "prediction": (dims, _padded([i.prediction for i in items], OUTSIDE, np.int32)),
        "votes": (dims, _padded([i.votes for i in items], 0, np.int64)),
        "lower_probability": (dims, _padded([i.lower_probability for i in items], np.nan, np.float64)),
        "eta": (dims, _padded([i.eta for i in items], np.nan, np.float64)),
        "radius": (dims, _padded([i.radius for i in items], np.nan, np.float64), {"units": run.units}),
        "relies_on": (dims, _padded([i.basis for i in items], Basis.NOTHING, np.int8), {"meaning": _BASES}),
        "output_partition": (dims, _padded([i.output_group for i in items], NO_GROUP, np.int32)),
    }


def _input_variables(items: Sequence[ItemResult], run: RunInfo) -> dict[str, Any]:
    dims = axis_names(INPUT, items[0].input_group.ndim)
    groups = _padded([item.input_group for item in items], NO_GROUP, np.int32)
    variables: dict[str, Any] = {"input_partition": (("item", *dims), groups)}
    images = [item.image for item in items if item.image is not None]
    if images:
        stacked = _padded(images, np.nan, np.float32)
        variables["image"] = (("item", "channel", *dims), stacked, {"units": run.units})
    return variables


def _count_variables(items: Sequence[ItemResult], targets: Sequence[str], run: RunInfo) -> dict[str, Any]:
    grid = tuple(len(budgets) for budgets in run.budgets.values())
    keys = [(target, bound) for target in targets for bound in run.bound_names]
    dims = (*COUNT_DIMENSIONS, *run.budgets)
    outputs = axis_names(OUTPUT, items[0].prediction.ndim)
    some = next(iter(items[0].curves.values()))

    def table(name: str, fill: float | int, dtype: Any) -> np.ndarray:
        """One field of all curves over items, targets, bounds and kinds of budget; padding where there is none."""
        nothing = np.full((1,) * getattr(some, name).ndim, fill)
        rows = _padded(
            [getattr(i.curves[k], name) if k in i.curves else nothing for i in items for k in keys], fill, dtype
        )
        return rows.reshape(len(items), len(targets), len(run.bound_names), *grid, *rows.shape[2:])

    spending = {"units": f"({run.units}), sum of |δ|^p in {run.norm}"}
    kinds = (KIND,) if len(grid) > 1 else ()
    stakes = [
        [(i.stake(target) if target in i.targets else None) or Stake(0.0, 0.0) for target in targets] for i in items
    ]
    # Where everything is a number of outputs, it is one in the file too.
    kind = np.int64 if all(stake.counts for row in stakes for stake in row) else np.float64
    weighing = [target for at, target in enumerate(targets) if not all(row[at].counts for row in stakes)]
    counted = {"units": "outputs" if not weighing else f"outputs; for {', '.join(weighing)} what outputs are worth"}
    total, most = (np.array([[getattr(s, name) for s in row] for row in stakes], kind) for name in ("total", "most"))
    variables: dict[str, Any] = {
        "certified": (dims, table("certified", 0, kind), counted),
        "lower": (dims, table("lower", 0.0, np.float64), counted),
        "upper": (dims, table("upper", np.nan, np.float64), counted),
        "attack": ((*dims, *kinds, "input_group"), table("attack", np.nan, np.float64), spending),
        "total": (("item", "target"), total, counted),
        "stake": (("item", "target"), most, counted),
    }
    drawn = [
        (i.alone, i.edges, i.places)
        for i in items
        if i.alone is not None and i.edges is not None and i.places is not None
    ]
    if len(drawn) == len(items):
        alone, edges, places = zip(*drawn, strict=True)
        rows = _padded(alone, False, np.bool_)
        variables["falls"] = ((*dims, *outputs), table("falls", False, np.bool_))
        variables["alone"] = (("item", *run.budgets, *outputs), rows.reshape(len(items), *grid, *rows.shape[2:]))
        variables["edge_ends"] = (("item", "edge", "end"), _padded(edges, NO_GROUP, np.int32))
        variables["node_place"] = (("item", *outputs, "plane"), _padded(places, 0.0, np.float64))
    return variables


def _padded(arrays: Sequence[np.ndarray], fill: float | int, dtype: Any) -> np.ndarray:
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
    stacked = np.full((len(arrays), *shape), fill, dtype=dtype)
    for index, array in enumerate(arrays):
        stacked[(index, *(slice(size) for size in array.shape))] = array
    return stacked
