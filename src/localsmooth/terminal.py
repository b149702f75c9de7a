"""What is said to a user, on a terminal or into a file."""

from __future__ import annotations

from rich.console import Console

__all__ = ["terminal"]

_ENDLESS = 1 << 16


def terminal(*, stderr: bool = True) -> Console:
    """Make a console that prints texts as they are.

    Brackets, colons and asterisks in paths and names are no markup, and lines are not broken: a path can be copied
    from a terminal, and found by grep in a log. In a notebook it prints below the cell, as wide as rich takes that for.

    Parameters
    ----------
    stderr
        Standard error, or standard output.
    """
    console = Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)
    if not console.is_terminal and not console.is_jupyter:
        console.width = _ENDLESS
    return console
