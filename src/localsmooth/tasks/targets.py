"""What a certificate counts: outputs that keep their prediction, each worth what it is worth to the user."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.results import ACCURACY, AGREEMENT, RATIO
from localsmooth.tasks.stakes import Predicted, Stakes, rounded_up

__all__ = [
    "TARGETS",
    "Accuracy",
    "Agreement",
    "Balanced",
    "Foreground",
    "OfClass",
    "Ratio",
    "Target",
    "Weighted",
]


@dataclass(frozen=True)
class Target(ABC):
    """One way of counting.

    Attributes
    ----------
    name
        Name in results and configurations.
    """

    name: str = field(init=False)

    def reference(self, outputs: Predicted) -> Int[np.ndarray, "outputs"] | None:
        """What a prediction must be equal to in order to count; labels, or else clean predictions."""
        return outputs.reference

    def require_classes(self, names: Sequence[str]) -> None:
        """Refuse classes of the target that there are not, before anything is predicted.

        Parameters
        ----------
        names
            Name of each class.

        Raises
        ------
        InvalidInputError
            Naming the class.
        """
        del names

    @abstractmethod
    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """What each output would be worth; called where there is a reference, if one is needed."""

    def stakes(self, outputs: Predicted) -> Stakes | None:
        """Value every output of an item; None where the target needs labels or clean predictions that are missing.

        Parameters
        ----------
        outputs
            The outputs of one item.

        Raises
        ------
        InvalidInputError
            If weights do not fit the item.
        """
        reference = self.reference(outputs)
        if reference is None:
            return None
        worth = np.where(outputs.counted, self.worth(outputs), 0.0)
        right = (outputs.prediction != ABSTAIN) & (outputs.prediction == reference)
        values = np.where(right, worth, 0.0)
        return Stakes(values, rounded_up(math.fsum(worth)), bool(np.isin(worth, (0.0, 1.0)).all()))


@dataclass(frozen=True)
class Ratio(Target):
    """Every output that keeps its prediction, right or wrong."""

    name: str = field(init=False, default=RATIO)

    def reference(self, outputs: Predicted) -> Int[np.ndarray, "outputs"]:
        """The predictions themselves."""
        return outputs.prediction

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 each."""
        return np.ones(outputs.prediction.size)


@dataclass(frozen=True)
class Accuracy(Target):
    """Every output that is right and stays so."""

    name: str = field(init=False, default=ACCURACY)

    def reference(self, outputs: Predicted) -> Int[np.ndarray, "outputs"] | None:
        """The labels."""
        return outputs.label

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 each."""
        return np.ones(outputs.prediction.size)


@dataclass(frozen=True)
class Agreement(Target):
    """Every output whose prediction is that of the clean model, and stays so."""

    name: str = field(init=False, default=AGREEMENT)

    def reference(self, outputs: Predicted) -> Int[np.ndarray, "outputs"] | None:
        """Clean predictions."""
        return outputs.clean

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 each."""
        return np.ones(outputs.prediction.size)


@dataclass(frozen=True)
class Balanced(Target):
    """Recall averaged over the classes that occur: rare classes weigh as much as the background."""

    name: str = field(init=False, default="balanced")

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 / (classes · size of the class)."""
        reference = outputs.reference
        assert reference is not None
        sizes = np.bincount(reference[outputs.counted], minlength=1)
        here = np.clip(reference, 0, sizes.size - 1)  # ignored outputs may be labelled by no class
        return 1.0 / (np.maximum(np.count_nonzero(sizes), 1) * np.maximum(sizes[here], 1))


@dataclass(frozen=True)
class Foreground(Target):
    """Outputs of all classes but the background's.

    Parameters
    ----------
    background
        Names or numbers of the classes that do not count; the first class by default.

    Raises
    ------
    InvalidInputError
        If they are no names or numbers.
    """

    background: tuple[str | int, ...] = (0,)
    name: str = field(init=False, default="foreground")

    def __post_init__(self) -> None:
        require_several("background", self.background, "names or numbers of classes")
        for given in self.background:
            _require_class("background", given)

    def require_classes(self, names: Sequence[str]) -> None:
        """Refuse a background of other classes."""
        self._unwanted(names)

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 outside the background."""
        assert outputs.reference is not None
        return (~np.isin(outputs.reference, self._unwanted(outputs.class_names))).astype(np.float64)

    def _unwanted(self, names: Sequence[str]) -> list[int]:
        return [_class_number(given, names, "background") for given in self.background]


@dataclass(frozen=True)
class OfClass(Target):
    """Outputs of one class.

    Parameters
    ----------
    of
        Its name or number. Targets may be named "class:NAME", too.

    Raises
    ------
    InvalidInputError
        If it is neither.
    """

    of: str | int

    def __post_init__(self) -> None:
        _require_class("of", self.of)
        object.__setattr__(self, "name", f"class:{self.of}")

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 in the class.

        Raises
        ------
        InvalidInputError
            If there is no such class, or its number is the name of another one: results would show that as its name.
        """
        assert outputs.reference is not None
        return (outputs.reference == self._number(outputs.class_names)).astype(np.float64)

    def require_classes(self, names: Sequence[str]) -> None:
        """Refuse another class, and a number that is the name of another one."""
        self._number(names)

    def _number(self, names: Sequence[str]) -> int:
        number = _class_number(self.of, names, "of")
        if not isinstance(self.of, str) and str(self.of) in names and names[number] != str(self.of):
            problem = f'class number {self.of} is called "{names[number]}", and another class "{self.of}"'
            raise InvalidInputError("of", problem, f'Name the class: "{names[number]}"')
        return number


@dataclass(frozen=True, eq=False)
class Weighted(Target):
    """Outputs by weights of the user's own: a region of interest is a mask of zeros and ones.

    Parameters
    ----------
    weights
        Finite weights of at least 0, in the shape of the outputs of every item, or flat.
        They may not come from the samples that are bounded.
    name
        What results call the target; not what they call another one.
    correct
        Whether an output counts only where it is right (or agrees with the clean model, where there are no labels).

    Raises
    ------
    InvalidInputError
        For negative, infinite or NaN weights, where all are 0, and for a name that is taken.
    """

    weights: np.ndarray = field(repr=False)
    name: str = field(default="weighted", kw_only=True)
    correct: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        given = _real_numbers(self.weights)
        with np.errstate(over="ignore"):
            sums = bool(np.isfinite(given.sum()))
        if not (given.size and np.isfinite(given).all() and sums and (given >= 0).all() and (given > 0).any()):
            raise InvalidInputError(
                "weights", "they and their sum must be finite, at least 0 and not all 0", "Pass one for each output"
            )
        object.__setattr__(self, "weights", given)
        require_kind("name", self.name, str)
        if not self.name or self.name in TARGETS or self.name.startswith("class:"):
            raise InvalidInputError("name", f"{self.name!r} is what results call another target", "Choose another")

    def reference(self, outputs: Predicted) -> Int[np.ndarray, "outputs"] | None:
        """Labels or clean predictions where only correct outputs count, else the predictions themselves."""
        return outputs.reference if self.correct else outputs.prediction

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """The weights.

        Raises
        ------
        InvalidInputError
            If there is not one for each output, or they have another shape than the outputs.
        """
        flat, shape = (outputs.prediction.size,), self.weights.shape
        if self.weights.size != flat[0] or (outputs.shape and shape not in (flat, outputs.shape)):
            raise InvalidInputError(
                "weights",
                f"there are {_sized(shape)} for {_sized(outputs.shape or flat)} outputs",
                "Pass one weight for each output",
            )
        return self.weights.ravel()


# One line per target that a configuration can name.
TARGETS: dict[str, Callable[..., Target]] = {
    "ratio": Ratio,
    "accuracy": Accuracy,
    "agreement": Agreement,
    "balanced": Balanced,
    "foreground": Foreground,
    "class": OfClass,
}


def _require_class(argument: str, given: object) -> None:
    require_kind(argument, given, str, int, np.integer)
    if isinstance(given, bool):
        raise InvalidInputError(argument, f"got {given}", "Pass names or numbers of classes")


def _real_numbers(given: object) -> Float[np.ndarray, "*shape"]:
    try:
        made = np.asarray(given)
        if made.dtype.kind not in "biuf":
            raise TypeError(made.dtype)
        return made.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("weights", f"they are no array of numbers ({error})", "Pass real numbers") from error


def _sized(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _class_number(given: str | int, names: Sequence[str], argument: str) -> int:
    number = names.index(given) if isinstance(given, str) and given in names else given
    if isinstance(number, str) and number.isdecimal():  # as in "class:3"
        number = int(number)
    if isinstance(number, str) or not 0 <= number < len(names):
        unnamed = list(names) == [f"class {number}" for number in range(len(names))]
        remedy = f"Name one of: {', '.join(names)}" + (" (or say what they are called: class_names)" if unnamed else "")
        raise InvalidInputError(argument, f"{given!r} is none of the classes", remedy)
    return number
