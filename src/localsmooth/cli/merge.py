"""`localsmooth merge`: join the parts of a run that were drawn in different places."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console

from localsmooth.sampling import join, open_store

__all__ = ["merge"]


def merge(
    into: Annotated[str, typer.Argument(metavar="A", help="Run that receives the chunks.", show_default=False)],
    others: Annotated[list[str], typer.Argument(metavar="B...", help="Runs to take from.", show_default=False)],
) -> None:
    """Add to run A the chunks that it lacks and B has: same configuration, same seed, disjoint or equal chunks."""
    with ExitStack() as stack:
        receiving = stack.enter_context(open_store(into))
        giving = [stack.enter_context(open_store(other, read_only=True)) for other in others]
        joined = join(receiving, giving)
    known = f"; {joined.known} were there already, with the same counts" if joined.known else ""
    Console(stderr=True).print(
        f"{into}: {joined.added} chunks added{known}. Certify into it with the same configuration to go on.",
        highlight=False,
        markup=False,
    )
