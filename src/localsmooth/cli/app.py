"""The program, and how its errors are shown."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Annotated

import typer

import localsmooth
from localsmooth.cli.commands import COMMANDS
from localsmooth.errors import LocalsmoothError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Prove how many predictions of a model one adversarial input can change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # square brackets in help are square brackets
)
"""The program with all commands."""


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"localsmooth {localsmooth.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    """Prove how many predictions of a model one adversarial input can change."""


for command in COMMANDS:
    app.command(short_help=str(command.__doc__).splitlines()[0])(command)


def _in_one_line(message: Warning | str, category: type[Warning], *where: object, **_: object) -> str:
    """What a user is told by this program needs no line of its source."""
    return f"Warning: {message}\n" if category is UserWarning else f"{where[0]}: {category.__name__}: {message}\n"


def main() -> None:
    """Run the command line; an error that a user can mend is one message and exit status 2."""
    # Figures are drawn into files. What a notebook sets for its children may name a package that is not there.
    os.environ["MPLBACKEND"] = "agg"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal or a file that does not know ε shows something else
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _in_one_line
    try:
        app()
    except LocalsmoothError as error:
        from localsmooth.terminal import terminal

        console = terminal()
        console.print("Error:", style="bold red", end=" ")
        console.print(str(error))
        sys.exit(2)
