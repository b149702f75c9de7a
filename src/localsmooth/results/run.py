"""What a certification ran with: the facts that every number of the result depends on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import xarray as xr
from pydantic import TypeAdapter, ValidationError

from localsmooth.errors import InvalidInputError
from localsmooth.results.curves import budget_kinds
from localsmooth.results.smoothed_classifier import SmoothedClassifier

__all__ = ["ATTRIBUTES", "RunInfo", "Saving", "attributes", "run_info"]


@dataclass(frozen=True)
class Saving:
    """How many samples were saved by stopping early.

    Parameters
    ----------
    counted
        For each item, samples of the bound stage that were counted, summed over its output groups.
    planned
        The same if no group had stopped early.

    Raises
    ------
    InvalidInputError
        If an item has more samples than were planned, or none were planned.
    """

    counted: tuple[int, ...]
    planned: tuple[int, ...]

    def __post_init__(self) -> None:
        pairs = zip(self.counted, self.planned, strict=False)
        if len(self.counted) != len(self.planned) or not all(0 < some <= most for some, most in pairs):
            raise InvalidInputError("saving", "counts samples that were not planned", "Pass both for each item")

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the planned samples that was saved, for each item."""
        return tuple(1 - some / most for some, most in zip(self.counted, self.planned, strict=True))

    @property
    def total(self) -> float:
        """Share of the planned samples that was saved, over all items."""
        return 1 - sum(self.counted) / sum(self.planned)


@dataclass(frozen=True)
class RunInfo:
    """What a result says about its run: all that is the same for every item, what was proven included.

    Parameters
    ----------
    budgets
        ε by kind, strictly ascending, in `units`: {"budget": (0.0, 0.5)}, or several kinds, each from 0, such as
        "additions" and "deletions", of which every combination is certified.
    norm
        Norm of the perturbation, such as "l2".
    units
        Units of ε and of the radii, such as "pixel values in [0, 1]".
    alpha
        Probability with which the certificate of one item may fail.
    n_candidate
        Samples per output group to choose the candidate, N₁.
    n_bound
        Further samples per output group to bound its probability, N₂; the largest number where groups stopped early.
    class_names
        Name of each class.
    bound_names
        Names of the collective bounds, weakest first.
    method
        Name of the method, such as "localized".
    configuration
        The whole configuration, as plain JSON values.
    seconds
        Time spent drawing samples, added up over all workers and interruptions.
    batch_size, device, precision
        How the model was evaluated.
    versions
        Version of each library that the numbers depend on.
    input_bounds
        Smallest and largest input value, in `units`; None if the model declares none.
    assumptions
        Sentences that the promise rests on besides α, N₁ and N₂, such as the clamp and the rule for many outputs.
    threat
        What the adversary may do with a budget ε, to follow "under every": by default a perturbation of that norm.
    proven
        False where the confidence bounds reproduce a published rule that does not hold: then the counts promise
        nothing, and the report says so.
    described
        Whether counts alone are promised, so that the probabilities, thresholds and radii of single outputs, and which
        of them abstain, only describe: they follow from a bound at level α for each output by itself.
    saving
        Samples saved by stopping early, or by ending the run before its plan; None where all were drawn.
    promise
        What holds with probability 1 − α, as a clause, where it is not that of certified counts; else empty.
    smoothing
        Which smoothed classifier this is about, at which inputs, and from which samples; None where that was not
        recorded.
    task
        Kind of input, such as "arrays" or "graphs".
    reach
        The largest budget, by kind and by collective bound, at which anything would be certified if all votes agreed;
        without those of which it is not known, or which have no limit.
    limit
        For results that certify nothing beyond 0: the same by kind, if the shares of votes were the probabilities,
        which more samples would lead to.
    work
        Passes of the model over a whole input that the samples of an item are worth, those of both stages and all
        output groups, on average over the items of the run; a pass over a window counts as its share of the input.
        None where that was not recorded.
    drawing_charge
        Where noise is drawn as whole steps of a grid: bound on the total variation distance between the samples that
        bound an item, as drawn, and as certified; the largest of the items. A hundredth of α is set aside for it. None
        where floating point numbers are drawn and taken for real ones.
    left_out
        Items of the run that are not in the result, since sampling was ended before they had enough samples.
    replay
        What drawing some samples again has shown, as `localsmooth.execution.replay_samples` returns it; None where that
        was not asked for.

    Raises
    ------
    InvalidInputError
        If a value is out of range, or the configuration is not plain JSON.
    """

    budgets: dict[str, tuple[float, ...]]
    norm: str
    units: str
    alpha: float
    n_candidate: int
    n_bound: int
    class_names: tuple[str, ...]
    bound_names: tuple[str, ...]
    method: str = "localized"
    configuration: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: float = 0.0
    batch_size: int = 1
    device: str = "cpu"
    precision: str = "float32"
    versions: dict[str, str] = field(default_factory=dict[str, str])
    input_bounds: tuple[float, float] | None = None
    assumptions: tuple[str, ...] = ()
    threat: str = ""
    proven: bool = True
    saving: Saving | None = None
    promise: str = ""
    smoothing: SmoothedClassifier | None = None
    task: str = "arrays"
    reach: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    limit: dict[str, float] = field(default_factory=dict[str, float])
    left_out: tuple[str, ...] = ()
    work: float | None = None
    described: bool = False
    drawing_charge: float | None = None
    replay: dict[str, float] | None = None

    def __post_init__(self) -> None:
        if not self.threat:
            object.__setattr__(self, "threat", f"perturbation of {self.norm} norm at most ε")
        if not self.budgets or not all(self.budgets.values()):
            raise InvalidInputError("budgets", "is empty", "Pass at least one budget of each kind")
        for kind, budgets in self.budgets.items():
            field = f"budgets[{kind!r}]"
            if not all(0 <= one < math.inf for one in budgets) or list(budgets) != sorted(set(budgets)):
                raise InvalidInputError(field, "are not strictly ascending numbers >= 0", "Sort, drop repeats")
            if len(self.budgets) > 1 and budgets[0] != 0:
                raise InvalidInputError(field, "do not begin at 0, beside another kind", "Begin each kind at 0")
        if not 0 < self.alpha < 1:
            raise InvalidInputError("alpha", f"is {self.alpha}", "Pass a probability strictly between 0 and 1")
        for name in ("n_candidate", "n_bound", "batch_size"):
            if getattr(self, name) < 1:
                raise InvalidInputError(name, f"is {getattr(self, name)}", "Pass a number >= 1")
        if self.work is not None and not 0 < self.work < math.inf:
            raise InvalidInputError("work", f"is {self.work}", "Pass how many passes an item took")
        if self.drawing_charge is not None and not 0 <= self.drawing_charge < self.alpha:
            raise InvalidInputError("drawing_charge", f"is {self.drawing_charge}", "Pass a part of alpha")
        if not 0 <= self.seconds < math.inf:
            raise InvalidInputError("seconds", f"is {self.seconds}", "Pass the time spent sampling")
        if not self.class_names:
            raise InvalidInputError("class_names", "is empty", "Name every class")
        if not self.bound_names or len(set(self.bound_names)) != len(self.bound_names):
            raise InvalidInputError("bound_names", "is empty or repeats a name", "Name each bound once")
        if self.input_bounds is not None and not self.input_bounds[0] < self.input_bounds[1]:
            raise InvalidInputError("input_bounds", f"is {self.input_bounds}", "Pass the smaller bound first")
        if self.replay is not None and not self.replay.keys() >= _REPLAY:
            raise InvalidInputError("replay", "lacks numbers", f"Pass {', '.join(sorted(_REPLAY))}")
        try:
            json.dumps(self.configuration, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError("configuration", f"is not plain JSON ({error})", "Pass JSON values") from error

    @property
    def replayed(self) -> tuple[str, ...]:
        """What drawing samples again has shown, in words; nothing where that was not asked for.

        No promise rests on it.
        """
        if self.replay is None:
            return ()
        made = self.replay
        chunk = ""
        if of := made.get("chunk_votes"):
            off = made.get("differing_chunk_votes", 0.0)
            chunk = f" A chunk that was drawn again as a whole is off by {off:.0f} of {of:.0f} votes."
        return (
            f"{made['samples']:.0f} samples, chosen at random, were drawn again, in batches as in the run and one by "
            f"one on one thread: {made['differing']:.0f} of them, and {made['differing_labels']:.0f} of "
            f"{made['labels']:.0f} labels, came out differently. At most {made['upper']:.2%} of the run's samples do "
            f"so ({1 - made['level']:.0%} confidence over the choice), which describes the program and is not charged "
            f"to any bound.{chunk}",
        )


_REPLAY = frozenset({"samples", "differing", "labels", "differing_labels", "upper", "level"})
_PLAIN = (
    "method",
    "norm",
    "threat",
    "units",
    "alpha",
    "n_candidate",
    "n_bound",
    "seconds",
    "batch_size",
    "device",
    "precision",
)
_JSON = (
    "class_names",
    "versions",
    "input_bounds",
    "assumptions",
    "configuration",
    "proven",
    "saving",
    "promise",
    "smoothing",
    "task",
    "reach",
    "limit",
    "left_out",
    "work",
    "described",
    "drawing_charge",
    "replay",
)
ATTRIBUTES = frozenset({"format", "format_version", *_PLAIN, *_JSON})
"""Attributes of a result, apart from the checksum of its file."""
_LATER = {
    "saving": "null",
    "promise": '""',
    "smoothing": "null",
    "task": '"arrays"',
    "reach": "{}",
    "limit": "{}",
    "left_out": "[]",
    "work": "null",
    "described": "false",
    "drawing_charge": "null",
    "replay": "null",
}
"""What results from before these facts were recorded say about them."""


def attributes(run: RunInfo) -> dict[str, Any]:
    """Attributes of a result's data set: plain values as they are, compound ones as JSON text."""
    values = asdict(run)
    plain = {name: values[name] for name in _PLAIN}
    return plain | {name: json.dumps(values[name], ensure_ascii=False) for name in _JSON}


def run_info(dataset: xr.Dataset) -> RunInfo:
    """The facts about the run that a result carries in its attributes and coordinates.

    Raises
    ------
    InvalidInputError
        If an attribute is missing, of the wrong type or out of range.
    """
    attrs = cast("Mapping[str, Any]", dataset.attrs)
    values: dict[str, Any] = {}
    try:
        for name in _PLAIN:
            value = attrs[name]
            values[name] = value.item() if hasattr(value, "item") else value
        for name in _JSON:
            values[name] = json.loads(attrs.get(name, _LATER[name]) if name in _LATER else attrs[name])
        values["budgets"] = {kind: dataset[kind].values.tolist() for kind in budget_kinds(dataset)}
        values["bound_names"] = [str(name) for name in dataset["bound"].values]
        return TypeAdapter(RunInfo).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "attributes"
        raise InvalidInputError(where, str(first["msg"]), "The result is damaged or foreign; certify again") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            "attributes", f"{type(error).__name__}: {error}", "The result is damaged or foreign; certify again"
        ) from error
