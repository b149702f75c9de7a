"""A share of a run, for several machines without a disk in common."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.errors import InvalidInputError, LocalsmoothError

__all__ = ["OtherPartsMissingError", "Part"]


class OtherPartsMissingError(LocalsmoothError):
    """The part of a run that was asked for is drawn; the others are still missing."""


@dataclass(frozen=True)
class Part:
    """One of several shares of a run's output groups; together they are the whole run, and none is in two.

    Parameters
    ----------
    number
        Which one, from 1.
    count
        How many there are.

    Raises
    ------
    InvalidInputError
        If there is no such part.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise InvalidInputError("part", f"there is no part {self.number} of {self.count}", "Pass 1/2 or 2/2, say")

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read ``number/count``, such as ``1/2``.

        Raises
        ------
        InvalidInputError
            If the text does not read so, or names no part.
        """
        number, _, count = text.partition("/")
        if not (number.isdecimal() and count.isdecimal()):
            raise InvalidInputError("part", f'"{text}" cannot be read', "Write 1/2 for the first of two parts")
        return cls(int(number), int(count))

    def holds(self, place: int) -> bool:
        """Whether this part holds the output group at a place in the order of the run (from 0)."""
        return place % self.count == self.number - 1
