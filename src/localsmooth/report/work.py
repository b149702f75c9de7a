"""What each method cost, in words: numbers of unlike cost are easily held against each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import xarray as xr

from localsmooth.results import RunInfo, run_info

__all__ = ["alike", "uneven_work", "work_text"]

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
