"""What a verification has checked, what it has not, and what nobody can check from a run alone."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from localsmooth.errors import LocalsmoothError

__all__ = ["Checked", "DoesNotHoldError", "Ledger", "Verification", "demand"]

# A file of a stranger's may hold anything where a number or a list is expected.
_UNREADABLE = (
    LocalsmoothError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    LookupError,
    OSError,
    RecursionError,
)


class DoesNotHoldError(LocalsmoothError):
    """Something that a run or a certificate says does not follow from its tallies.

    Parameters
    ----------
    step
        What was being checked.
    problem
        What does not hold.
    """

    def __init__(self, step: str, problem: str) -> None:
        self.step = step
        self.problem = problem
        super().__init__(f"{step}: does not hold: {problem}")


@dataclass(frozen=True)
class Checked:
    """One line of what was checked.

    Parameters
    ----------
    what
        What holds.
    number
        How many of it were looked at.
    of
        What is counted.
    """

    what: str
    number: int
    of: str


@dataclass(frozen=True)
class Verification:
    """What a verification found; everything in `checked` holds.

    Parameters
    ----------
    checked
        What was checked.
    unchecked
        What the run or the result says and was not checked, and why.
    notes
        What is true, and weaker than what the tallies give; and files beside the result that are not looked at.
    trusted
        What no verification from a run alone can show.
    """

    checked: tuple[Checked, ...]
    unchecked: tuple[str, ...]
    notes: tuple[str, ...]
    trusted: tuple[str, ...]

    def extended(self, ledger: Ledger) -> Verification:
        """The same with what another ledger has."""
        checked, unchecked = (*self.checked, *ledger.checked), (*self.unchecked, *ledger.unchecked)
        return Verification(checked, unchecked, (*self.notes, *ledger.notes), self.trusted)

    @property
    def complete(self) -> bool:
        """Whether everything that can be checked from the run was checked."""
        return not self.unchecked


@dataclass(eq=False)
class Ledger:
    """Takes down what is checked.

    Parameters
    ----------
    tell
        Told each line as it comes.
    """

    tell: Callable[[Checked], None] | None = None
    checked: list[Checked] = field(default_factory=list[Checked])
    unchecked: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    trusted: list[str] = field(default_factory=list[str])

    @contextmanager
    def step(self, what: str) -> Generator[None]:
        """Whatever cannot be read or made sense of within the block does not hold.

        Raises
        ------
        DoesNotHoldError
            Naming the step.
        """
        try:
            yield
        except DoesNotHoldError:
            raise
        except _UNREADABLE as error:
            raise DoesNotHoldError(what, str(error) or type(error).__name__) from error

    def holds(self, what: str, number: int, of: str) -> None:
        """Take down what was checked."""
        line = Checked(what, number, of)
        self.checked.append(line)
        if self.tell is not None:
            self.tell(line)

    def leave(self, what: str) -> None:
        """Take down what was not checked, and why."""
        if what not in self.unchecked:
            self.unchecked.append(what)

    def note(self, text: str) -> None:
        """Take down what is weaker than it could be."""
        self.notes.append(text)

    def trust(self, what: str) -> None:
        """Take down what this run says of itself, and no verification from a run alone can show."""
        self.trusted.append(what)

    def close(self, trusted: tuple[str, ...]) -> Verification:
        """What was found, with what is taken on trust of every run."""
        return Verification(tuple(self.checked), tuple(self.unchecked), tuple(self.notes), (*trusted, *self.trusted))


def demand(holds: bool, step: str, problem: str) -> None:
    """Stop where something does not hold.

    Raises
    ------
    DoesNotHoldError
        Naming the step.
    """
    if not holds:
        raise DoesNotHoldError(step, problem)
