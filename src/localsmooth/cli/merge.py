"""`localsmooth merge`: join the parts of a run that were drawn in different places."""

from __future__ import annotations

from contextlib import ExitStack

from localsmooth.sampling import join, open_store
from localsmooth.terminal import terminal

__all__ = ["merge"]


def merge(into: str, others: list[str]) -> None:
    """Add to run A the chunks that it lacks and B has: same configuration, same seed, disjoint or equal chunks."""
    with ExitStack() as stack:
        receiving = stack.enter_context(open_store(into))
        giving = [stack.enter_context(open_store(other, read_only=True)) for other in others]
        joined = join(receiving, giving)
    known = f"; {joined.known} were there already, with the same counts" if joined.known else ""
    terminal().print(
        f"{into}: {joined.added} chunks added{known}. Certify into it with the same configuration to go on."
    )
