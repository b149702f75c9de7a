"""The curve of a result over one kind of budget."""

from __future__ import annotations

import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.results.names import BUDGET, COUNT_DIMENSIONS, KIND, symbol

__all__ = ["budget_kinds", "kind_curve"]


def budget_kinds(dataset: xr.Dataset) -> tuple[str, ...]:
    """The kinds of budget of a result, each a dimension of its numbers: ("budget",), or ("additions", "deletions")."""
    name, others = ("certified", len(COUNT_DIMENSIONS)) if "certified" in dataset else ("iou", 2)
    return tuple(str(kind) for kind in dataset[name].dims[others:])


def kind_curve(dataset: xr.Dataset, kind: str | None = None) -> xr.Dataset:
    """Counts over one kind of budget while the others are 0, as a result with the single dimension `budget`.

    Parameters
    ----------
    dataset
        A result.
    kind
        One of its kinds of budget, such as "deletions"; by default the last one that has budgets above 0.

    Raises
    ------
    InvalidInputError
        If the result has no such kind of budget.
    """
    kinds = budget_kinds(dataset)
    if kind is None:
        kind = next((name for name in reversed(kinds) if dataset.sizes[name] > 1), kinds[-1])
    if kind not in kinds:
        raise InvalidInputError("kind", f"the result has no budgets of {kind}", f"Pass one of {', '.join(kinds)}")
    if len(kinds) == 1:
        return dataset
    made = dataset.isel({name: 0 for name in kinds if name != kind}, drop=True).sel({KIND: kind}, drop=True)
    threat = str(made.attrs["threat"])
    for name in kinds:
        threat = threat.replace(symbol(name), symbol(BUDGET) if name == kind else "0")
    return made.rename({kind: BUDGET}).assign_attrs(threat=threat)
