"""What a run directory keeps beside the tallies, so that it can be certified again without the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from localsmooth.bounds import VoteConfidenceSequence
from localsmooth.disk import write_atomically
from localsmooth.errors import LocalsmoothError
from localsmooth.runs import DirectoryStore, RunIdentity, interrupted_words
from localsmooth.sampling import NORMALISED, CandidateScores
from localsmooth.tasks.scores import ScoreCounting

__all__ = [
    "FINISHED",
    "ONE_BASIS",
    "Facts",
    "RunRecord",
    "RunRecordError",
    "interrupted_extension",
    "load_record",
    "require_normalised_scores",
    "require_same_run",
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
_VERSION = 2
_ENDED = 3  # earlier versions would take the number of samples for the planned one
_LARGEST_FILE = 1 << 26
_REWRITTEN = "Run the same certification into this directory again: the tallies are kept, the record is written anew"


class RunRecordError(LocalsmoothError):
    """A run directory does not hold a finished run that can be read."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a task says of a run before anything is drawn, as plain JSON values.

    Parameters
    ----------
    task
        Name of the kind of input.
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
    units
        Units of inputs and budgets.
    input_bounds
        Declared bounds of clean inputs.
    device, precision
        How the model is run.
    sequence
        Confidence sequence that the votes are bounded with, where the number of samples depends on them (`n_bound`
        is then the largest number possible); None otherwise.
    shown
        Share of the input that a sample of each output group takes a pass over, by number of the layout; empty if that
        is not known.
    further
        Names of what a method draws for each item beside the tallies.
    details
        What else the task wants to know when it is certified again.
    """

    task: str = "arrays"
    item_names: list[str]
    item_layouts: list[int]
    class_names: list[str]
    labelled: bool
    ignore_label: int | None
    noise: dict[str, Any]
    scores: ScoreCounting | None
    units: str
    input_bounds: tuple[float, float] | None
    device: str
    precision: str
    sequence: VoteConfidenceSequence | None = None
    shown: list[list[float]] = field(default_factory=list[list[float]])
    further: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class RunRecord(Facts):
    """What is kept of a finished run to certify it again without model and data, as plain JSON values.

    With what was proven from it, it makes the `RunInfo` of a result (`run_facts`).

    Parameters
    ----------
    method
        Name of the method.
    n_candidate, n_bound
        Samples drawn in the two stages.
    seconds
        Time spent sampling, added up over all workers and interruptions.
    batch_size
        The largest batch size used.
    versions
        Versions of the libraries that the tallies depend on.
    configuration
        Everything the user asked for.
    extended
        How many samples the bound stage was planned to have at first, where it got more after the run had begun: what
        is proven must hold at every number of samples at once. None otherwise.
    begun
        Numbers of the items that are certified, where sampling was ended before its plan: what is proven must hold at
        every number of samples at once. None where all samples were drawn.
    sampled
        When the samples were complete (ISO 8601, UTC); empty where that was not recorded.
    candidates
        Identity of the run whose candidate stage was taken ("run"), and fingerprint of its model ("model"); None for
        candidates that this model chose.
    replay
        What drawing some samples again has shown; None where that was not asked for.
    settings
        What was asked to be proven, each field described as far as it can be.
    counted
        Whether that bounds counts since the run went on or could be ended, and not since somebody named that rule; None
        where that is not known, as in records of earlier versions.
    version
        Version of this format.
    """

    method: str
    n_candidate: int
    n_bound: int
    seconds: float
    batch_size: int
    versions: dict[str, str]
    configuration: dict[str, Any]
    extended: int | None = None
    begun: list[int] | None = None
    sampled: str = ""
    candidates: dict[str, str] | None = None
    replay: dict[str, float] | None = None
    settings: dict[str, Any]
    counted: bool | None = None
    version: int = _VERSION

    @property
    def certified_items(self) -> list[int]:
        """Numbers of the items that are certified: all, unless sampling was ended before."""
        return list(range(len(self.item_names))) if self.begun is None else self.begun

    @property
    def kept_items(self) -> list[tuple[str, int]]:
        """Name of each certified item and number of its layout among theirs, in the order in which they are kept."""
        layouts = [self.item_layouts[item] for item in self.certified_items]
        numbers = list(dict.fromkeys(layouts))
        names = [self.item_names[item] for item in self.certified_items]
        return list(zip(names, map(numbers.index, layouts), strict=True))

    @property
    def left_out(self) -> list[str]:
        """Names of the items that are not certified, since sampling was ended before."""
        return [name for item, name in enumerate(self.item_names) if item not in set(self.certified_items)]


def save_record(record: RunRecord, folder: Path) -> None:
    """Write the record with a checksum, whole or not at all."""
    content = asdict(replace(record, version=_VERSION if record.begun is None else _ENDED))
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
        if not folder.is_dir():
            raise RunRecordError(f"{folder} is no directory. Name the directory of a finished run")
        raise RunRecordError(
            f"{folder} holds no finished run: there is no {FINISHED}. Run the same certification into this directory "
            "again; it goes on where it stopped"
        )
    if path.stat().st_size > _LARGEST_FILE:
        raise RunRecordError(f"{path} is too large to be a record of a run")
    remedy = _REWRITTEN
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
    if record.version not in (_VERSION, _ENDED):
        raise RunRecordError(f"{path} is of another version of this program. {remedy}")
    if (record.version == _ENDED) != (record.begun is not None) or (
        record.begun is not None
        and (
            not record.begun
            or record.begun != sorted(set(record.begun))
            or not set(record.begun) <= set(range(len(record.item_names)))
        )
    ):
        raise RunRecordError(f"{path} is damaged: it names items that it does not have. {remedy}")
    if len(record.item_layouts) != len(record.item_names):
        raise RunRecordError(f"{path} is damaged: it names {len(record.item_names)} items inconsistently")
    if record.shown and not (
        len(record.shown) > max(record.item_layouts, default=0)
        and all(0 < one <= 1 for row in record.shown for one in row)
    ):
        raise RunRecordError(f"{path} is damaged: shown holds no shares of passes for each layout. {remedy}")
    return record


class _Item(BaseModel, strict=True):
    content: str = ""
    layout: str = ""


class _Plan(BaseModel, strict=True):
    stop: dict[str, Any] = {}


class _Sealed(BaseModel, strict=True):
    """The parts of a sealed configuration that are read back; a stranger can seal others."""

    plan: _Plan = _Plan()
    noise: dict[str, Any] = {}
    model: dict[str, Any] = {}
    counters: dict[str, list[dict[str, Any]]] = {}
    items: list[_Item] = []
    graph: str = ""
    layout: str = ""


def _sealed(store: DirectoryStore) -> Mapping[str, Any]:
    content: Mapping[str, Any] = {} if store.configuration is None else store.configuration.content
    try:
        _Sealed.model_validate(content)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise RunRecordError(f"{store.path}: the configuration of its tallies is damaged at {where}") from None
    return content


def require_same_run(record: RunRecord, store: DirectoryStore) -> None:
    """Check the record against the sealed configuration of the tallies.

    Raises
    ------
    RunRecordError
        If the two name other numbers of samples, another noise, sequence or layouts, other bounds of inputs, or another
        number of classes; with how it goes on, where extending the run was interrupted.
    """
    samples = interrupted_extension(record, store.configuration)
    first = None if store.configuration is None else store.configuration.first
    wanted = record if samples is None else replace(record, n_bound=samples, extended=first)
    if not _same_run(wanted, store):
        raise RunRecordError(f"{store.path}: {FINISHED} does not belong to these tallies. {_REWRITTEN}")
    if samples is not None:
        raise RunRecordError(interrupted_words(store.path, samples))


def interrupted_extension(record: RunRecord, configuration: RunIdentity | None) -> int | None:
    """How many samples a finished run was to get, in all, when extending it was interrupted; None if it was not.

    The tallies' configuration names the larger number from when the first of the new samples is drawn, the record from
    when all of them are.

    Parameters
    ----------
    record
        Of the run.
    configuration
        Of its tallies.
    """
    samples = None if configuration is None else configuration.samples
    if configuration is None or samples is None or samples <= record.n_bound:
        return None
    began = record.n_bound if record.extended is None else record.extended
    return samples if configuration.first == began else None


def _same_run(record: RunRecord, store: DirectoryStore) -> bool:
    content = _sealed(store)
    plan, noise = content.get("plan", {}), content.get("noise")
    sequence = None if record.sequence is None else [record.sequence.a, record.sequence.b]
    layouts = [item.get("layout") for item in content.get("items", ())]  # numbered as they come
    first = None if store.configuration is None else store.configuration.first
    planned = (plan.get("n_candidate"), plan.get("n_bound"), first)
    bounds = None if record.input_bounds is None else list(record.input_bounds)
    model = {"bounds": bounds, "classes": len(record.class_names), **content.get("model", {})}
    return (
        planned == (record.n_candidate, record.n_bound, record.extended)
        and noise == record.noise
        and (model["bounds"], model["classes"]) == (bounds, len(record.class_names))
        and plan.get("stop", {}).get("sequence", sequence) == sequence
        and (not layouts or [list(dict.fromkeys(layouts)).index(one) for one in layouts] == record.item_layouts)
    )


def require_normalised_scores(store: DirectoryStore) -> None:
    """Refuse to certify scores that were counted as the model returned them: they may sum to more than 1.

    Raises
    ------
    RunRecordError
        If the counters of the tallies do not say that they normalised.
    """
    content = _sealed(store)
    counted = content.get("counters", {}).get("bound", [])
    if any(one.get("name") == CandidateScores.name and {**one, **NORMALISED} != one for one in counted):
        raise RunRecordError(
            f"{store.path}: its scores were counted without normalising them, so that a mean above 1/2 need not be a "
            "majority. Certify votes, or sample again in another directory"
        )
