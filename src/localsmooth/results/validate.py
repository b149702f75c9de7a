"""Check that a data set is a result of this package, whole and consistent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import xarray as xr

from localsmooth.certificates import ABSTAIN, Basis
from localsmooth.errors import InvalidInputError
from localsmooth.results.curves import budget_kinds
from localsmooth.results.names import (
    ACCURACY,
    COUNT_DIMENSIONS,
    COUNT_VARIABLES,
    DRAWN_VARIABLES,
    FORMAT,
    FORMAT_VERSION,
    INPUT,
    KIND,
    NO_GROUP,
    NO_LABEL,
    OUTPUT,
    OUTPUT_VARIABLES,
    OUTSIDE,
    RATIO,
    axis_names,
)
from localsmooth.results.output_names import NAMES
from localsmooth.results.run import RunInfo, run_info

__all__ = ["by_method", "validate"]

_REMEDY = "The result is damaged or foreign; certify again"
_NO_RESULT = "Pass what `certify` returned, or a file read by `load_result`"


def by_method(results: object) -> Mapping[str, xr.Dataset]:
    """Return results by the name of their method, also where there is one alone.

    Raises
    ------
    InvalidInputError
        If there is none, or something else, such as the path of a run directory.
    """
    if isinstance(results, xr.Dataset):
        return {str(results.attrs.get("method", "result")): results}
    _require("results", results, Mapping, f"{_NO_RESULT}; several by the names of their methods, in a dictionary")
    named = cast("Mapping[str, xr.Dataset]", results)
    for method, dataset in named.items():
        _require(f"results[{method!r}]", dataset, xr.Dataset, _NO_RESULT)
    if not named:
        raise InvalidInputError("results", "is empty", "Pass at least one result, by the name of its method")
    return named


def validate(dataset: xr.Dataset) -> xr.Dataset:
    """Return the data set if it is a whole and consistent result; otherwise say what is wrong with it.

    Raises
    ------
    InvalidInputError
        For a foreign data set, another format version, missing or additional variables, wrong dimensions or types,
        values out of range, or counts that certify more than there is to certify; or for no data set at all.
    """
    _require("result", dataset, xr.Dataset, _NO_RESULT)
    attrs: dict[str, Any] = dict(dataset.attrs)
    _demand(attrs.get("format") == FORMAT, "format", f"is not {FORMAT!r}")
    version = attrs.get("format_version")
    _demand(
        version == FORMAT_VERSION, "format_version", f"is {version!r}, and this release reads version {FORMAT_VERSION}"
    )
    _check_structure(dataset)
    run = run_info(dataset)
    saved = run.saving is None or len(run.saving.counted) == dataset.sizes["item"]
    _demand(saved, "saving", "does not have a number for each item")
    _check_predictions(dataset, len(run.class_names), run.n_bound)
    _check_basis(dataset, run)
    _check_counts(dataset)
    if DRAWN_VARIABLES.keys() <= set(dataset):
        _check_drawn(dataset)
    return dataset


def _require(field: str, value: object, kind: type, remedy: str) -> None:
    if not isinstance(value, kind):
        raise InvalidInputError(field, f"got a {type(value).__name__}", remedy)


def _demand(holds: bool | np.bool_, field: str, problem: str) -> None:
    if not holds:
        raise InvalidInputError(field, problem, _REMEDY)


def _check_structure(dataset: xr.Dataset) -> None:
    variables = OUTPUT_VARIABLES | COUNT_VARIABLES | {"attack": "f", "total": "if", "input_partition": "i"}
    names = set(map(str, dataset.data_vars))
    if names & DRAWN_VARIABLES.keys():
        variables |= DRAWN_VARIABLES
    for name in variables:
        _demand(name in names, name, "is missing")
    unknown = sorted(names - set(variables) - {"image", "relies_on", "clean", "stake", NAMES})
    _demand(not unknown, "variables", f"{unknown} are not part of a result")
    counts = tuple(map(str, dataset["certified"].dims))
    budgets = budget_kinds(dataset)
    several = (KIND,) if len(budgets) > 1 else ()
    coordinates = {*COUNT_DIMENSIONS, *budgets, *several}
    _demand(counts[:3] == COUNT_DIMENSIONS and bool(budgets), "certified", f"has the dimensions {counts}")
    _demand(set(dataset.coords) == coordinates, "coordinates", f"are {sorted(map(str, dataset.coords))}")
    outputs = ("item", *axis_names(OUTPUT, dataset["prediction"].ndim - 1))
    space = axis_names(INPUT, dataset["input_partition"].ndim - 1)
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(OUTPUT_VARIABLES, outputs)
    dims |= dict.fromkeys(COUNT_VARIABLES, counts) | {name: (name,) for name in coordinates}
    dims |= {
        "attack": (*counts, *several, "input_group"),
        "total": ("item", "target"),
        "input_partition": ("item", *space),
        "image": ("item", "channel", *space),
        "relies_on": outputs,
        "clean": outputs,
        "stake": ("item", "target"),
        NAMES: outputs,
        "falls": (*counts, *outputs[1:]),
        "alone": ("item", *budgets, *outputs[1:]),
        "edge_ends": ("item", "edge", "end"),
        "node_place": (*outputs, "plane"),
    }
    kinds = (
        {"image": "f", "relies_on": "i", "clean": "i", "stake": "if", NAMES: "U"}
        | dict.fromkeys(coordinates, "U")
        | dict.fromkeys(budgets, "f")
    )
    kinds |= variables
    for name in sorted(names | coordinates):
        array, expected = dataset[name], dims[name]
        _demand(array.dims == expected, name, f"has the dimensions {array.dims} instead of {expected}")
        _demand(array.dtype.kind in kinds[name], name, f"has the type {array.dtype}")
    sizes = [size for name, size in dataset.sizes.items() if name != "edge"]  # a graph may have none
    _demand(min(sizes) > 0, "dimensions", "one of them has length 0")
    for name in ("item", "target", "bound"):
        values = dataset[name].values.tolist()
        _demand(len(set(values)) == len(values), name, "repeats a name")
    weighed = set(dataset["target"].values.tolist()) - {RATIO, ACCURACY}
    _demand(not weighed or "stake" in names, "stake", f"is missing, beside {sorted(weighed)}")
    if several:
        _demand(tuple(dataset[KIND].values.tolist()) == budgets, KIND, f"does not name {budgets}")


def _check_predictions(dataset: xr.Dataset, classes: int, n_bound: int) -> None:
    array = {name: dataset[name].values for name in OUTPUT_VARIABLES}
    outside = array["output_partition"] == NO_GROUP
    inside = ~outside
    prediction, candidate = array["prediction"], array["candidate"]
    label, ignored = array["label"], array["ignored"]
    _demand(((prediction == OUTSIDE) == outside).all(), "prediction", "does not mark the padding")
    _demand(((candidate == OUTSIDE) == outside).all(), "candidate", "does not mark the padding")
    _demand(ignored[outside].all(), "ignored", "leaves out some padding")
    _demand(((candidate >= 0) & (candidate < classes))[inside].all(), "candidate", "is not a class")
    abstains = (prediction == ABSTAIN)[inside]
    _demand((abstains | (prediction == candidate)[inside]).all(), "prediction", "is neither the candidate nor abstains")
    _demand(((label >= NO_LABEL) & (label < classes)).all(), "label", "is not a class")
    if "clean" in dataset:
        clean = dataset["clean"].values
        _demand(((clean >= NO_LABEL) & (clean < classes)).all(), "clean", "is not a class")
    _demand((label[ignored] == NO_LABEL).all(), "label", "labels an ignored output")
    _demand(((array["votes"] >= 0) & (array["votes"] <= n_bound)).all(), "votes", "are outside 0 … n_bound")
    q, eta, radius = (array[name][inside] for name in ("lower_probability", "eta", "radius"))
    _demand(((q >= 0) & (q <= 1)).all(), "lower_probability", "is outside [0, 1] or NaN")
    _demand(((eta > 0) == ~abstains).all(), "eta", "is not 0 exactly where the prediction abstains")
    _demand((eta >= 0).all(), "eta", "is negative or NaN")
    _demand((radius >= 0).all() and not radius[abstains].any(), "radius", "is negative, NaN or positive at abstention")
    _demand((array["output_partition"] >= NO_GROUP).all(), "output_partition", "has a negative group")
    groups = dataset["input_partition"].values
    _demand(
        ((groups >= NO_GROUP) & (groups < dataset.sizes["input_group"])).all(), "input_partition", "is out of range"
    )
    if "image" in dataset:
        image = np.moveaxis(dataset["image"].values, 1, 0)
        _demand(np.isfinite(image[:, groups != NO_GROUP]).all(), "image", "holds NaN or infinity")


def _check_basis(dataset: xr.Dataset, run: RunInfo) -> None:
    if "relies_on" in dataset:
        basis, prediction = dataset["relies_on"].values, dataset["prediction"].values
        _demand(np.isin(basis, list(Basis)).all(), "relies_on", "holds an unknown value")
        _demand(((basis == Basis.NOTHING) == (prediction < 0)).all(), "relies_on", "does not fit the predictions")
        return
    # Results from before this was recorded are as good as ever, save where flips were certified from both.
    both = all(any(kind in sentence for sentence in run.assumptions[:1]) for kind in ("-votes", "-scores"))
    _demand(run.norm != "l0" or not both, "relies_on", "is missing, and votes and scores were once stacked unsoundly")


def _check_counts(dataset: xr.Dataset) -> None:
    total, certified = dataset["total"].values, dataset["certified"].values
    axes = tuple(range(1, dataset["prediction"].ndim))
    counted = ~dataset["ignored"].values
    prediction, label = dataset["prediction"].values, dataset["label"].values
    alive = counted & (prediction != ABSTAIN)
    at_stake = {RATIO: alive, ACCURACY: alive & (prediction == label)}
    outputs = counted.sum(axis=axes)
    labelled = ((label != NO_LABEL) | ~counted).all(axis=axes)
    stake = dataset["stake"].values if "stake" in dataset else None
    for t, target in enumerate(dataset["target"].values.tolist()):
        if target not in at_stake:
            assert stake is not None
            most = stake[:, t]
            _demand(
                ((most >= 0) & (most <= total[:, t]) & np.isfinite(total[:, t])).all(),
                "stake",
                f"of {target!r} is out of range",
            )
            fits = (certified[:, t] >= 0).all() and (most >= certified[:, t].T).all()
            _demand(fits, "certified", f"of target {target!r} is negative or more than could be certified")
            continue
        known = total[:, t] == outputs
        if target == ACCURACY:
            known = np.where(labelled, known, total[:, t] == 0)
        _demand(known.all(), "total", f"of target {target!r} is not the number of outputs that count")
        limit = np.where(total[:, t] > 0, at_stake[target].sum(axis=axes), 0)
        fits = (certified[:, t] >= 0).all() and (limit >= certified[:, t].T).all()
        _demand(fits, "certified", f"of target {target!r} is negative or more than could be certified")
    lower, upper, attack = (dataset[name].values for name in ("lower", "upper", "attack"))
    if certified.dtype.kind == "i":
        _demand((certified <= np.ceil(lower)).all(), "lower", "proves less than is certified")
    _demand((np.isnan(upper) | (certified <= upper)).all(), "upper", "is less than what is certified")
    _demand((np.isnan(attack) | ((attack >= 0) & np.isfinite(attack))).all(), "attack", "is negative or infinite")
    groups = dataset["input_partition"].values.reshape(len(total), -1).max(axis=1) + 1
    spent = (total > 0)[:, :, None] & (np.arange(attack.shape[-1]) < groups[:, None])[:, None]
    _demand(not np.isnan(np.moveaxis(attack, -1, 2)[spent]).any(), "attack", "is NaN where outputs count")
    budgets = budget_kinds(dataset)
    for axis in range(3, certified.ndim) if len(budgets) > 1 else ():
        _demand((np.diff(certified, axis=axis) <= 0).all(), "certified", f"grows with {budgets[axis - 3]}")


def _check_drawn(dataset: xr.Dataset) -> None:
    """Edges, places, and what becomes of outputs one by one, where outputs are drawn with their edges."""
    edges, places = dataset["edge_ends"].values, dataset["node_place"].values
    _demand(edges.shape[-1] == places.shape[-1] == 2, "edge_ends", "or node_place is no pair")
    _demand(((edges >= NO_GROUP) & (edges < places[0, ..., 0].size)).all(), "edge_ends", "names no output")
    _demand(((places >= 0) & (places <= 1)).all(), "node_place", "is outside the unit square")
    prediction, ignored = dataset["prediction"], dataset["ignored"]
    _demand(not (dataset["alone"] & (ignored | (prediction < 0))).any(), "alone", "certifies what is not predicted")
