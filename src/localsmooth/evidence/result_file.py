"""The result file of a run, against the same certification made again from what the run keeps."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.collective import Exact, Milp
from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.pipeline import recertify
from localsmooth.tasks import RunRecord

__all__ = ["compare_counts", "compare_facts", "made_again"]

_STEP = "result"
_ROUNDING = 1e-9
_COUNTED = {"certified", "lower", "upper", "attack", "falls"}
_DESCRIPTIONS = {"checksum", "limit", "reach"}
"""Attributes that promise nothing: `limit` and `reach` are forecasts, the checksum was compared before."""


def made_again(folder: Path, settings: Any, record: RunRecord, ledger: Ledger) -> xr.Dataset:
    """Certify the run again, without searches.

    Parameters
    ----------
    folder
        The run directory.
    settings
        What it was certified with.
    record
        Its record.
    ledger
        Takes down what cannot be made again.

    Raises
    ------
    DoesNotHoldError
        If the run cannot be certified.
    """
    swift = {
        name: replace(bound, time_limit=0.0) if isinstance(bound, Exact | Milp) else bound
        for name, bound in settings.bounds.items()
    }
    with ledger.step(_STEP), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recertify(folder, replace(settings, bounds=swift), name=record.method)


def compare_facts(result: xr.Dataset, again: xr.Dataset, ledger: Ledger) -> None:
    """Compare everything in a result but its counts.

    Parameters
    ----------
    result, again
        As stored, and as made again.
    ledger
        Takes down what was checked.

    Raises
    ------
    DoesNotHoldError
        Naming the first variable or attribute that differs.
    """
    with ledger.step(_STEP):
        demand(set(result.variables) == set(again.variables), _STEP, "it does not hold the variables of this run")
        compared = [name for name in map(str, again.variables) if name not in _COUNTED]
        for name in compared:
            same = result[name].dims == again[name].dims and _same(result[name].values, again[name].values)
            demand(same, _STEP, f"{name} is not what follows from the run")
        for name in map(str, again.variables):
            demand(result[name].attrs == again[name].attrs, _STEP, f"attributes of {name} are not those of the run")
        names = (set(map(str, result.attrs)) | set(map(str, again.attrs))) - _DESCRIPTIONS
        older = not _same_package(result)
        for name in sorted(names):
            if older and name == "assumptions":
                ledger.leave("not checked: the wording of the assumptions, which another version of localsmooth wrote")
                continue
            same = name in result.attrs and _plain(result.attrs[name], name) == _plain(again.attrs.get(name), name)
            demand(same, _STEP, f"{name} is not that of the run")
    ledger.holds("predictions, thresholds and facts in the result are those of the run", len(compared), "variables")


def compare_counts(result: xr.Dataset, again: xr.Dataset, settings: Any, ledger: Ledger) -> None:
    """Compare counts that no independent code checks with those that the same code makes again.

    Parameters
    ----------
    result, again
        As stored, and as made again.
    settings
        What the run was certified with.
    ledger
        Takes down what was checked.

    Raises
    ------
    DoesNotHoldError
        If a count is larger than the one that is made again.
    """
    searches = {name for name, bound in settings.bounds.items() if bound.searches}
    names = [str(name) for name in result["bound"].values]
    swift = [name for name in names if name not in searches]
    with ledger.step(_STEP):
        mine, other = (each["certified"].sel(bound=swift).values for each in (result, again))
        demand(bool(np.all(mine <= other)), _STEP, "a count is larger than the one that follows from the run")
        # What was proven before it was rounded to the count is a sum, which another machine may round otherwise.
        before, least = (each["lower"].sel(bound=swift).values for each in (result, again))
        fits = before <= np.maximum(least, other) * (1 + _ROUNDING)
        demand(bool(np.all(fits)), _STEP, "lower is larger than what follows from the run")
    ledger.holds("counts are not larger than those that the same code makes again", mine.size, "counts")
    if len(swift) < len(names):
        ledger.leave(f"not checked: counts by {', '.join(sorted(searches))}, whose searches were not run again")
    weaker = int(np.count_nonzero(mine < other))
    if weaker:
        ledger.note(f"{weaker} counts in the result are smaller than those that follow from the run: true, and weaker")


def _same(mine: np.ndarray, other: np.ndarray) -> bool:
    return mine.shape == other.shape and bool(np.array_equal(mine, other, equal_nan=mine.dtype.kind == "f"))


def _same_package(result: xr.Dataset) -> bool:
    return f"localsmooth {metadata.version('localsmooth')}" in str(result.attrs.get("smoothing"))


def _plain(value: object, name: str) -> object:
    """An attribute without the package's version, which is that of whoever certified."""
    plain = value.item() if isinstance(value, np.generic) else value
    if name == "smoothing" and isinstance(plain, str):
        content = json.loads(plain)
        return content and {key: each for key, each in content.items() if key != "package"}
    return plain
