"""A result in a notebook: a small table."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined

from localsmooth.metrics import clean_agreement
from localsmooth.report.nothing import why_nothing
from localsmooth.report.summary import best_curve, curves_by_kind, shown_targets, table_budgets, value_at
from localsmooth.report.tables import Table, percent
from localsmooth.results import counts_outputs, run_info, target_title, validate

__all__ = ["result_html"]

_BUDGETS = 5


def result_html(dataset: xr.Dataset) -> str:
    """Return a fragment of HTML: what is certified at a few budgets, by the strongest bound of each item, and warnings.

    Parameters
    ----------
    dataset
        A result.

    Raises
    ------
    InvalidInputError
        If the data set is not a valid result.
    """
    run = run_info(validate(dataset))
    by_kind = curves_by_kind({run.method: dataset})
    several = len(run.budgets) > 1
    tables = [
        (f"{kind.capitalize()} only" if several else "", _table(alone[run.method])) for kind, alone in by_kind.items()
    ]
    agreement = clean_agreement(dataset)
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=PackageLoader("localsmooth.report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("notebook.html.j2").render(
        method=run.method,
        run=run,
        items=dataset.sizes["item"],
        tables=tables,
        warnings=[*why_nothing(dataset), *(agreement.warnings if agreement is not None else ())],
    )


def _table(dataset: xr.Dataset) -> Table:
    budgets = table_budgets({"": dataset}, count=_BUDGETS)
    rows = [
        [target_title(target), *(_certified(dataset, target, budget) for budget in budgets)]
        for target in shown_targets({"": dataset})
    ]
    return Table(["Target", *(f"ε = {budget:.4g}" for budget in budgets)], rows)


def _certified(dataset: xr.Dataset, target: str, budget: float) -> str:
    """The certified outputs of all items together; of targets that are no numbers of outputs, the mean share."""
    if not counts_outputs(target):
        return percent(value_at(dataset["budget"].values, best_curve(dataset, target), budget))
    one = dataset.sel(target=target)
    place = int(np.searchsorted(dataset["budget"].values, budget * (1 - 1e-12)))
    certified = one["certified"].max("bound").isel(budget=place).sum().item()
    return f"{certified:,.0f} of {one['total'].sum().item():,.0f}"
