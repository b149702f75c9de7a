"""What each method cost, and what its budgets amount to: unlike numbers are easily held against each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import xarray as xr

from localsmooth.metrics import scale_words
from localsmooth.results import RunInfo, item_view, run_info

__all__ = ["alike", "budget_scale", "uneven_work", "work_text"]

_ALIKE = 1.1


def alike(works: Collection[float]) -> bool:
    """Whether numbers of passes are the same within a tenth.

    Parameters
    ----------
    works
        At least one.
    """
    return max(works) <= _ALIKE * min(works)


def work_text(run: RunInfo) -> str | None:
    """Passes of the model that an item took; None where that was not recorded."""
    if run.work is None:
        return None
    number = f"{run.work:,.0f}" if run.work >= 10 else f"{run.work:.3g}"
    return number.replace(",", "\u202f")


def uneven_work(results: Mapping[str, xr.Dataset]) -> str | None:
    """A sentence where methods took different numbers of passes; None where they did about the same work.

    Parameters
    ----------
    results
        Results by the name of their method.
    """
    runs = {method: run_info(dataset) for method, dataset in results.items()}
    known = {method: run.work for method, run in runs.items() if run.work is not None}
    if not known or alike(known.values()):
        return None
    listed = ", ".join(f"{work_text(runs[method])} ({method})" for method in known)
    return f"The methods did unequal work, in passes of the model over an item: {listed}. More samples certify more."


def budget_scale(dataset: xr.Dataset, budget: float = 1.0) -> str | None:
    """What a budget amounts to in units that people have a feeling for; None where there are none, or no items kept.

    Parameters
    ----------
    dataset
        A result.
    budget
        ε.
    """
    run = run_info(dataset)
    if "image" not in dataset or not run.threat.startswith(f"perturbation of {run.norm} norm at most ε"):
        return None
    images = [item_view(dataset, index).image for index in range(dataset.sizes["item"])]
    return scale_words(int(run.norm[1:]), [image for image in images if image is not None], run.input_bounds, budget)
