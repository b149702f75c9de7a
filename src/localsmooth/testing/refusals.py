"""Whether something is refused by an error that names what is wrong."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from localsmooth.errors import InvalidInputError

__all__ = ["refused"]


@contextmanager
def refused(
    what: str, *, field: str | None = None, kinds: tuple[type[Exception], ...] = (InvalidInputError,)
) -> Generator[None]:
    """Expect that the block raises.

    Parameters
    ----------
    what
        What must be refused, to complain with.
    field
        What the message must name.
    kinds
        Errors that count.

    Raises
    ------
    AssertionError
        If the block raises nothing, or the message does not name the field.
    """
    said = None
    try:
        yield
    except kinds as error:
        said = str(error)
    assert said is not None, f"{what} must be refused"
    assert field is None or field in said, f"the refusal of {what} does not name {field}: {said}"
