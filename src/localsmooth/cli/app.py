"""Commands, and how their errors are shown."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

import localsmooth
from localsmooth.errors import LocalsmoothError

__all__ = ["COMMANDS", "app", "main", "program"]

COMMANDS = ("certify", "recertify", "report", "runs", "merge", "sweep", "locality", "solve", "demo")
"""In the order in which help lists them; each is the function of that name in the module of that name."""

app: typer.Typer
"""The program with all commands, made where somebody asks for it."""


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return program()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def program(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the program with some of its commands. Only their modules are imported, which may take seconds."""
    made = typer.Typer(
        help="Prove how many predictions of a model one adversarial input can change.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name in commands:
        made.command()(getattr(importlib.import_module(f"localsmooth.cli.{name}"), name))
    made.callback()(_options)
    return made


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"localsmooth {localsmooth.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    """Prove how many predictions of a model one adversarial input can change."""


def main() -> None:
    """Run the command line; an error that a user can mend is one message and exit status 2."""
    console = Console(stderr=True)
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        program([first] if first in COMMANDS else () if first == "--version" else COMMANDS)()
    except LocalsmoothError as error:
        console.print("Error:", style="bold red", end=" ")
        console.print(str(error), markup=False, highlight=False)
        sys.exit(2)
