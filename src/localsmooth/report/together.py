"""Which results may be shown together."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.results import budget_kinds, by_method, run_info, validate

__all__ = ["shown_together"]


def shown_together(results: Mapping[str, xr.Dataset] | xr.Dataset, max_items: int) -> Mapping[str, xr.Dataset]:
    """Return results by the name of their method, which can be compared with each other.

    Parameters
    ----------
    results
        Results by the name of their method, or one alone.
    max_items
        How many items are to be shown with pictures.

    Raises
    ------
    InvalidInputError
        If there is no result, a data set is not a valid result, the number is negative, or the results differ in norm,
        units, classes or kinds of budget.
    """
    results = by_method(results)
    if max_items < 0:
        raise InvalidInputError("max_items", f"is {max_items}", "Pass a number >= 0")
    runs = [run_info(validate(dataset)) for dataset in results.values()]
    for field in ("task", "norm", "units", "class_names"):
        if len({getattr(run, field) for run in runs}) > 1:
            raise InvalidInputError(field, "differs between the results", "Report results of one task together")
    if len({budget_kinds(dataset) for dataset in results.values()}) > 1:
        raise InvalidInputError("results", "they differ in their kinds of budget", "Report them on pages of their own")
    return results
