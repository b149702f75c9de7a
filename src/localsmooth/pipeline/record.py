"""What a run directory keeps beside the tallies, so that it can be certified again without the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError

from localsmooth.bounds import CandidateVotes, VoteConfidenceSequence
from localsmooth.certificates.combined import OutputScores, OutputVotes
from localsmooth.disk import write_atomically
from localsmooth.errors import LocalsmoothError
from localsmooth.layout import Layout, Partition
from localsmooth.pipeline.item import SampledItem
from localsmooth.pipeline.scores import ScoreCounting
from localsmooth.results import RunInfo, Saving, Smoothing
from localsmooth.runs import DirectoryStore, Store
from localsmooth.sampling.score_counters import NORMALISED, CandidateScores

__all__ = [
    "FINISHED",
    "ONE_BASIS",
    "RunRecord",
    "RunRecordError",
    "load_items",
    "load_record",
    "require_normalised_scores",
    "require_same_run",
    "save_items",
    "save_record",
]

ONE_BASIS = (
    "Votes and scores share α. Each output relies on one of them, as the variable relies_on says, and its promise is "
    "about that classifier at every perturbed input: the class that the base classifier predicts most often, or the "
    "class whose score has the largest mean."
)
"""What a result says where certificates from votes and from scores were made of the same samples."""

FINISHED = "certification.json"
"""File of a run directory that is written when all samples are drawn."""
_VERSION = 1
_LARGEST_FILE = 1 << 26


class RunRecordError(LocalsmoothError):
    """A run directory does not hold a finished run that can be read."""


@dataclass(frozen=True)
class RunRecord:
    """What is kept of a finished run to certify it again without model and data, as plain JSON values.

    `run_info` adds what was proven from it, which makes the `RunInfo` of a result.

    Parameters
    ----------
    method
        Name of the method.
    item_names
        Name of each item.
    item_layouts
        Number of the stored layout of each item.
    class_names
        Name of each class.
    labelled
        Whether labels are stored.
    ignore_label
        Label of outputs that do not count.
    noise
        Configuration of the noise.
    scores
        How scores were counted; None if only votes were.
    n_candidate, n_bound
        Samples drawn in the two stages.
    units
        Units of inputs and budgets.
    input_bounds
        Declared bounds of clean inputs.
    seconds
        Time spent sampling, added up over all workers and interruptions.
    batch_size, device, precision
        How the model was run; the largest batch size used.
    versions
        Versions of the libraries that the tallies depend on.
    alpha, budgets, bound_names
        What was certified first; `recertify` starts from these.
    configuration
        Everything the user asked for.
    sequence
        Confidence sequence that the votes are bounded with, where the number of samples depended on them (`n_bound`
        is then the largest number possible); None otherwise.
    further
        Names of what a method drew for each item beside the tallies.
    sampled
        When the samples were complete (ISO 8601, UTC); empty where that was not recorded.
    version
        Version of this format.
    """

    method: str
    item_names: list[str]
    item_layouts: list[int]
    class_names: list[str]
    labelled: bool
    ignore_label: int | None
    noise: dict[str, Any]
    scores: ScoreCounting | None
    n_candidate: int
    n_bound: int
    units: str
    input_bounds: tuple[float, float] | None
    seconds: float
    batch_size: int
    device: str
    precision: str
    versions: dict[str, str]
    alpha: float
    budgets: list[float]
    bound_names: list[str]
    configuration: dict[str, Any]
    sequence: VoteConfidenceSequence | None = None
    further: tuple[str, ...] = ()
    sampled: str = ""
    version: int = _VERSION

    def run_info(
        self,
        *,
        budgets: tuple[float, ...],
        norm: str,
        alpha: float,
        bound_names: tuple[str, ...],
        assumptions: tuple[str, ...],
        threat: str,
        proven: bool,
        saving: Saving | None = None,
        promise: str = "",
        smoothing: Smoothing | None = None,
    ) -> RunInfo:
        """What a result says of this run, with what was proven from it; see `RunInfo`."""
        return RunInfo(
            budgets=budgets,
            norm=norm,
            units=self.units,
            alpha=alpha,
            n_candidate=self.n_candidate,
            n_bound=self.n_bound,
            class_names=tuple(self.class_names),
            bound_names=bound_names,
            method=self.method,
            configuration=self.configuration,
            seconds=self.seconds,
            batch_size=self.batch_size,
            device=self.device,
            precision=self.precision,
            versions=self.versions,
            input_bounds=self.input_bounds,
            assumptions=assumptions,
            threat=threat,
            proven=proven,
            saving=saving,
            promise=promise,
            smoothing=smoothing,
        )


def save_record(record: RunRecord, folder: Path) -> None:
    """Write the record with a checksum, whole or not at all."""
    content = asdict(record)
    text = json.dumps(content | {"sha256": _digest(content)}, indent=1, allow_nan=False)
    write_atomically(folder / FINISHED, text.encode())


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def load_record(folder: Path) -> RunRecord:
    """Read and check the record.

    Raises
    ------
    RunRecordError
        If sampling has not finished there, or the file is damaged or of another version.
    """
    path = folder / FINISHED
    if not path.is_file():
        raise RunRecordError(
            f"{folder} holds no finished run: there is no {FINISHED}. Run the same certification into this directory "
            "again; it goes on where it stopped"
        )
    if path.stat().st_size > _LARGEST_FILE:
        raise RunRecordError(f"{path} is too large to be a record of a run")
    remedy = "Run the same certification into this directory again: the tallies are kept, the record is written anew"
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or content.pop("sha256", None) != _digest(cast("dict[str, Any]", content)):
            raise RunRecordError(f"{path} is damaged or was edited. {remedy}")
        record = TypeAdapter(RunRecord).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunRecordError(f"{path} is damaged: {where} {first['msg']}. {remedy}") from None
    except (ValueError, RecursionError):
        raise RunRecordError(f"{path} is damaged: it is not JSON. {remedy}") from None
    if record.version != _VERSION:
        raise RunRecordError(f"{path} has format version {record.version}; this program reads version {_VERSION}")
    if len(record.item_layouts) != len(record.item_names):
        raise RunRecordError(f"{path} is damaged: it names {len(record.item_names)} items inconsistently")
    return record


def require_same_run(record: RunRecord, store: DirectoryStore) -> None:
    """Check the record against the sealed configuration of the tallies.

    Raises
    ------
    RunRecordError
        If the two name other numbers of samples or another noise.
    """
    content: Mapping[str, Any] = {} if store.configuration is None else store.configuration.content
    plan, noise = content.get("plan", {}), content.get("noise")
    if (plan.get("n_candidate"), plan.get("n_bound")) != (record.n_candidate, record.n_bound) or noise != record.noise:
        raise RunRecordError(
            f"{store.path}: {FINISHED} does not belong to these tallies. Run the same certification into this "
            "directory again: the tallies are kept, the record is written anew"
        )


def require_normalised_scores(store: DirectoryStore) -> None:
    """Refuse to certify scores that were counted as the model returned them: they may sum to more than 1.

    Raises
    ------
    RunRecordError
        If the counters of the tallies do not say that they normalised.
    """
    content: Mapping[str, Any] = {} if store.configuration is None else store.configuration.content
    counted = content.get("counters", {}).get("bound", [])
    if any(one.get("name") == CandidateScores.name and {**one, **NORMALISED} != one for one in counted):
        raise RunRecordError(
            f"{store.path}: its scores were counted without normalising them, so that a mean above 1/2 need not be a "
            "majority. Certify votes, or sample again in another directory"
        )


def number_layouts(layouts: Sequence[Layout]) -> list[int]:
    """Number the distinct layouts in the order in which they come."""
    numbers: dict[str, int] = {}
    digests = {id(layout): layout.digest() for layout in layouts}
    return [numbers.setdefault(digests[id(layout)], len(numbers)) for layout in layouts]


def save_items(items: Sequence[SampledItem], layouts: Sequence[int], store: Store) -> None:
    """Keep inputs, labels, votes and layouts in a store.

    Parameters
    ----------
    items
        The items.
    layouts
        Number of each item's layout, from `number_layouts`.
    store
        Where to keep them.
    """
    known: set[int] = set()
    for index, (item, number) in enumerate(zip(items, layouts, strict=True)):
        if number not in known:
            known.add(number)
            store.put_array(f"layout{number}-outputs", item.layout.outputs.labels)
            store.put_array(f"layout{number}-inputs", item.layout.inputs.labels)
            store.put_array(f"layout{number}-levels", item.layout.levels)
        store.put_array(f"item{index}-image", item.image)
        if item.label is not None:
            store.put_array(f"item{index}-label", item.label)
        store.put_array(f"item{index}-candidate", item.votes.candidate)
        store.put_array(f"item{index}-votes", item.votes.votes)
        if item.votes.candidate_votes is not None:
            store.put_array(f"item{index}-candidate-votes", item.votes.candidate_votes.votes)
        if not isinstance(item.votes.n, int):
            store.put_array(f"item{index}-n", item.votes.n)
        if item.votes.scores is not None:
            store.put_array(f"item{index}-scores", ScoreCounting.array(item.votes.scores.tally))
            store.put_array(f"item{index}-reference", item.votes.scores.reference)
        for name, array in item.further.items():
            store.put_array(f"item{index}-further-{name}", array)


def load_items(record: RunRecord, store: Store) -> list[SampledItem]:
    """Read back what `save_items` kept; the layouts come without views, which only sampling needs.

    Raises
    ------
    StoreError
        If an array is missing or damaged.
    """
    layouts = {
        number: Layout(
            Partition(store.get_array(f"layout{number}-outputs")),
            Partition(store.get_array(f"layout{number}-inputs")),
            store.get_array(f"layout{number}-levels"),
        )
        for number in set(record.item_layouts)
    }
    made: list[SampledItem] = []
    for index, (name, number) in enumerate(zip(record.item_names, record.item_layouts, strict=True)):
        label = store.get_array(f"item{index}-label") if record.labelled else None
        made.append(
            SampledItem(
                name,
                store.get_array(f"item{index}-image"),
                label,
                ignored_outputs(label, record.ignore_label),
                layouts[number],
                OutputVotes(
                    store.get_array(f"item{index}-candidate"),
                    store.get_array(f"item{index}-votes"),
                    record.n_bound if record.sequence is None else store.get_array(f"item{index}-n"),
                    _load_scores(record, store, index),
                    record.sequence,
                    _load_candidate_votes(record, store, index),
                    record.n_bound,
                ),
                {further: store.get_array(f"item{index}-further-{further}") for further in record.further},
            )
        )
    return made


def _load_candidate_votes(record: RunRecord, store: Store, index: int) -> CandidateVotes | None:
    """Votes of the candidate stage; runs that were sampled before these were kept have none."""
    name = f"item{index}-candidate-votes"
    return CandidateVotes(store.get_array(name), record.n_candidate) if store.has_array(name) else None


def _load_scores(record: RunRecord, store: Store, index: int) -> OutputScores | None:
    if record.scores is None:
        return None
    tally = record.scores.tally(store.get_array(f"item{index}-scores"), record.n_bound)
    return OutputScores(tally, store.get_array(f"item{index}-reference"))


def ignored_outputs(label: np.ndarray | None, ignore_label: int | None) -> np.ndarray | None:
    """Where the label says that an output does not count; None if all count."""
    return None if label is None or ignore_label is None else label == ignore_label
