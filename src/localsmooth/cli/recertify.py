"""`localsmooth recertify`: another α or other budgets from stored tallies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from localsmooth.cli.summary import print_summary
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline import COLLECTIVE_BOUNDS
from localsmooth.pipeline import recertify as run_pipeline
from localsmooth.results import save

__all__ = ["parse_budgets", "recertify"]


def parse_budgets(text: str) -> list[float]:
    """Read `0,0.5,1` or `start:stop:count`.

    Raises
    ------
    InvalidInputError
        If the text has neither form.
    """
    try:
        if ":" in text:
            start, stop, count = text.split(":")
            return [float(value) for value in np.linspace(float(start), float(stop), int(count))]
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            "--budgets", f'"{text}" cannot be read', "Write 0,0.5,1 or start:stop:count, such as 0:4:81"
        ) from None


def recertify(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.", show_default=False)],
    alpha: Annotated[float | None, typer.Option("--alpha", help="Failure probability per item.")] = None,
    budgets: Annotated[str | None, typer.Option("--budgets", help="0,0.5,1 or start:stop:count.")] = None,
    bound: Annotated[list[str] | None, typer.Option("--bound", help="Collective bound; may be repeated.")] = None,
    to: Annotated[Path | None, typer.Option("--to", help="File to write. [default: RUN/recertified.nc]")] = None,
) -> None:
    """Certify again from the tallies of a finished run, without sampling."""
    for name in bound or ():
        if name not in COLLECTIVE_BOUNDS:
            raise InvalidInputError("--bound", f'"{name}" is no bound', f"Pass one of {', '.join(COLLECTIVE_BOUNDS)}")
    result = run_pipeline(
        run,
        alpha=alpha,
        budgets=None if budgets is None else parse_budgets(budgets),
        bounds=None if bound is None else {name: COLLECTIVE_BOUNDS[name] for name in bound},
    )
    target = run / "recertified.nc" if to is None else to
    save(result, target)
    print_summary({str(result.attrs["method"]): result}, Console())
    Console(stderr=True).print(f"Result: {target}. Picture: localsmooth report {target}", highlight=False)
