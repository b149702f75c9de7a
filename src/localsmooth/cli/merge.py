"""`localsmooth merge`: join the parts of a run that were drawn in different places."""

from __future__ import annotations

from contextlib import ExitStack

from localsmooth.disk import expanded
from localsmooth.pipeline import remembered_store
from localsmooth.runs import is_address, join, open_store
from localsmooth.terminal import terminal

__all__ = ["merge"]


def merge(into: str, others: list[str]) -> None:
    """Add to run A the chunks that it lacks and B has: same configuration, same seed, disjoint or equal chunks."""
    with ExitStack() as stack:
        receiving = stack.enter_context(open_store(_chunks_of(into)))
        giving = [stack.enter_context(open_store(_chunks_of(other), read_only=True)) for other in others]
        joined = join(receiving, giving)
    known = f"; {joined.known} were there already, with the same counts" if joined.known else ""
    terminal().print(
        f"{into}: {joined.added} chunks added{known}. Certify into it with the same configuration to go on."
    )


def _chunks_of(place: str) -> str:
    """Where the chunks of a run are kept: a directory may remember another place."""
    return place if is_address(place) else remembered_store(expanded(place)) or place
