"""Commands, and how their errors are shown."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

import localsmooth
from localsmooth.cli.certify import certify
from localsmooth.cli.demo import demo
from localsmooth.cli.locality import locality
from localsmooth.cli.merge import merge
from localsmooth.cli.recertify import recertify
from localsmooth.cli.report import report
from localsmooth.cli.runs import runs
from localsmooth.cli.solve import solve
from localsmooth.cli.sweep import sweep
from localsmooth.errors import LocalsmoothError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Prove how many predictions of a model one adversarial input can change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (certify, recertify, report, runs, merge, sweep, locality, solve, demo):
    app.command()(command)


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"localsmooth {localsmooth.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    """Options of the program itself; the one there is acts in its callback."""


def main() -> None:
    """Run the command line; an error that a user can mend is one message and exit status 2."""
    console = Console(stderr=True)
    try:
        app()
    except LocalsmoothError as error:
        console.print("Error:", style="bold red", end=" ")
        console.print(str(error), markup=False, highlight=False)
        sys.exit(2)
