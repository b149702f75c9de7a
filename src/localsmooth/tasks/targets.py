"""What a certificate counts: outputs that keep their prediction, each worth what it is worth to the user.

Values are fixed by labels, clean predictions and the user alone, and which outputs qualify by the candidate stage
besides; none depends on the samples that are bounded. So a certified sum of values is as sound as a count
(MATH section 11).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from localsmooth.certificates import ABSTAIN
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.results import ACCURACY, AGREEMENT, RATIO, Stake

__all__ = [
    "TARGETS",
    "Accuracy",
    "Agreement",
    "Alike",
    "Balanced",
    "Foreground",
    "OfClass",
    "Predicted",
    "Ratio",
    "Stakes",
    "Target",
    "Weighted",
    "alike",
    "as_targets",
    "kinds_of",
    "require_stakes",
    "stakes_of",
]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Outputs of one item, flat, as targets look at them.

    Parameters
    ----------
    prediction
        Predicted class of each output, or `ABSTAIN`.
    label
        Known classes; None where there are none.
    clean
        Predictions of the base classifier without noise; None where it was not asked.
    ignored
        Outputs that do not count; None if all count.
    class_names
        Name of each class.
    shape
        Shape that the outputs have in their item; None where that is not known.
    """

    prediction: Int[np.ndarray, "outputs"]
    label: Int[np.ndarray, "outputs"] | None
    clean: Int[np.ndarray, "outputs"] | None
    ignored: Bool[np.ndarray, "outputs"] | None
    class_names: Sequence[str]
    shape: tuple[int, ...] | None = None

    @property
    def counted(self) -> Bool[np.ndarray, "outputs"]:
        """Outputs that are not ignored."""
        return np.ones(self.prediction.size, np.bool_) if self.ignored is None else ~self.ignored

    @property
    def reference(self) -> Int[np.ndarray, "outputs"] | None:
        """The labels, or without them what the clean model predicts."""
        return self.clean if self.label is None else self.label


@dataclass(frozen=True, eq=False)
class Stakes:
    """What one target makes of every output of one item.

    Parameters
    ----------
    values
        What each output adds while it keeps its prediction; 0 where that cannot count.
    total
        What all outputs together would be worth, right or wrong: the denominator of every share.
    counts
        Whether every output is worth 1 or nothing, so that sums are numbers of outputs.
    """

    values: Float[np.ndarray, "outputs"]
    total: float
    counts: bool

    @property
    def qualify(self) -> Bool[np.ndarray, "outputs"]:
        """Outputs that can count."""
        return self.values > 0

    @property
    def problem_value(self) -> Float[np.ndarray, "outputs"] | None:
        """What `Problem` takes as values: none where outputs are counted."""
        return None if self.counts else self.values

    def left_by(self, prediction: Int[np.ndarray, "outputs"]) -> Stakes:
        """The same where some outputs abstain."""
        return replace(self, values=np.where(prediction == ABSTAIN, 0.0, self.values))

    @property
    def stake(self) -> Stake:
        """The sums."""
        return Stake(min(_rounded_up(math.fsum(self.values)), self.total), self.total, self.counts)

    def less(
        self, certified: Real[np.ndarray, "budgets"], discount: int, spare: float = 0.0
    ) -> Int[np.ndarray, "budgets"] | Float[np.ndarray, "budgets"]:
        """Lower what is certified by what may be wrong unnoticed.

        Parameters
        ----------
        certified
            Number of outputs, or their values.
        discount
            Number of outputs that may be: in the worst case those that are worth the most.
        spare
            Value that may be lost besides.
        """
        if self.counts:
            return np.maximum(certified - discount, 0)
        kept = max(self.values.size - discount, 0)
        dearest = math.fsum(np.sort(self.values)[kept:]) if discount else 0.0
        lost = math.nextafter(dearest + spare, math.inf) if discount or spare else 0.0
        return np.maximum(np.nextafter(certified - lost, -math.inf) if lost else certified, 0.0)


def _rounded_up(total: float) -> float:
    """Shares of the total must not be rounded up; numbers of outputs are exact."""
    return total if total.is_integer() else math.nextafter(total, math.inf)


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
        return Stakes(values, _rounded_up(math.fsum(worth)), bool(np.isin(worth, (0.0, 1.0)).all()))


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

    def worth(self, outputs: Predicted) -> Float[np.ndarray, "outputs"]:
        """1 outside the background."""
        unwanted = [_class_number(given, outputs.class_names, "background") for given in self.background]
        assert outputs.reference is not None
        return (~np.isin(outputs.reference, unwanted)).astype(np.float64)


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
        """1 in the class."""
        assert outputs.reference is not None
        return (outputs.reference == _class_number(self.of, outputs.class_names, "of")).astype(np.float64)


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


def as_targets(given: Sequence[Target | str] | None, field: str = "targets") -> tuple[Target, ...]:
    """Return targets that may be named; none stands for the usual ones.

    Parameters
    ----------
    given
        Names and targets.
    field
        What errors call the argument.

    Raises
    ------
    InvalidInputError
        For what is no target, an unknown name, or two targets of one name.
    """
    if given is None or (isinstance(given, tuple) and not given):
        return ()
    require_several(field, given, "targets")
    made: list[Target] = []
    for one in given:
        if isinstance(one, str):
            made.append(_named(one, field))
        else:
            require_kind(field, one, Target)
            made.append(one)
    names = [target.name for target in made]
    if not made or len(set(names)) < len(names):
        raise InvalidInputError(field, "there is none, or one comes twice", "Name each once")
    return tuple(made)


def _named(name: str, field: str) -> Target:
    kind, _, of = name.partition(":")
    if (kind == "class" and of) or (kind in TARGETS and kind != "class" and name == kind):
        return OfClass(of) if of else TARGETS[kind]()
    known = ", ".join(name for name in TARGETS if name != "class")
    raise InvalidInputError(field, f"{name!r} is not known", f"Name one of {known}, class:NAME, or pass a Target")


def stakes_of(targets: Sequence[Target], outputs: Predicted) -> Mapping[str, Stakes]:
    """What each target makes of an item, by its name; targets whose labels or clean predictions miss are left out.

    Parameters
    ----------
    targets
        What is counted; where there is none, the ratio, and the accuracy or (without labels) the agreement.
    outputs
        The outputs of one item.

    Raises
    ------
    InvalidInputError
        If no target is left, or one does not fit the item.
    """
    usual = (Ratio(), Agreement() if outputs.label is None else Accuracy())
    made = {target.name: target.stakes(outputs) for target in targets or usual}
    told = {name: stakes for name, stakes in made.items() if stakes is not None}
    if not told:
        raise InvalidInputError("targets", f"{', '.join(made)} cannot be told without labels", "Add labels, or ratio")
    return told


def require_stakes(targets: Sequence[Target], outputs: Predicted, *, counting: bool) -> None:
    """Refuse targets of which nothing could be said once an item is sampled.

    Parameters
    ----------
    targets
        What is counted, as for `stakes_of`.
    outputs
        The outputs of one item, with any predictions.
    counting
        Whether what is to be used counts outputs, whatever they are worth, as baselines do.

    Raises
    ------
    InvalidInputError
        Naming the targets, or what of them does not fit the item.
    """
    told = stakes_of(targets, outputs)
    if counting and not any(stakes.counts for stakes in told.values()):
        raise InvalidInputError(
            "targets", f"{', '.join(told)} weigh outputs, and baselines count them", "Add ratio, or leave the baseline"
        )


@dataclass(frozen=True, eq=False)
class Alike:
    """Outputs that one target values alike, as rules for counts need them.

    Parameters
    ----------
    kind
        Number of each output's value among all that occur; −1 for ignored outputs.
    worth
        The values, if the candidate stands; None where outputs are counted.
    """

    kind: Int[np.ndarray, "outputs"]
    worth: Float[np.ndarray, "outputs"] | None


def alike(stakes: Stakes, ignored: Bool[np.ndarray, "outputs"] | None = None) -> Alike:
    """Number the outputs by what a target makes of them.

    Parameters
    ----------
    stakes
        What the target makes of the outputs if every candidate stands.
    ignored
        Outputs that do not count; None if all count.
    """
    number = np.unique(stakes.values, return_inverse=True)[1].astype(np.int64)
    return Alike(number if ignored is None else np.where(ignored, -1, number), stakes.problem_value)


def kinds_of(
    valued: Mapping[str, Stakes], ignored: Bool[np.ndarray, "outputs"] | None = None
) -> Int[np.ndarray, "outputs"]:
    """Number the outputs so that those of one number are worth the same to every target; −1 for ignored ones."""
    number = np.zeros(next(iter(valued.values())).values.size, np.int64)
    for stakes in valued.values():
        seen, row = np.unique(stakes.values, return_inverse=True)
        number = np.unique(number * seen.size + row, return_inverse=True)[1].astype(np.int64)
    return number if ignored is None else np.where(ignored, -1, number)


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
        raise InvalidInputError(argument, f"{given!r} is none of the classes", f"Name one of: {', '.join(names)}")
    return number
