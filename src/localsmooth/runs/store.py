"""Where finished chunks are kept: in memory here, in a directory in its own module."""

from __future__ import annotations

import functools
import operator
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.runs.identity import RunIdentity
from localsmooth.runs.plan import Stage
from localsmooth.runs.record import ChunkRecord

__all__ = [
    "ChunkKey",
    "FewerSamplesError",
    "FinishedChunk",
    "MemoryStore",
    "MergedCounts",
    "OtherRunError",
    "Store",
    "StoreError",
    "interrupted_words",
    "merge",
]

_FINGERPRINT = "model.fingerprint"
_COMPUTES_OTHERWISE = (
    f"{_FINGERPRINT} is of all that the model computes with: its weights or options are others, or the code of a "
    "function, or something that this reads (a global variable, a function that it calls, an attribute)"
)

ChunkKey = tuple[int, int, int, int]
"""Item, output group, stage and number of a chunk."""


class StoreError(LocalsmoothError):
    """Stored tallies cannot be used or added to."""


class OtherRunError(StoreError):
    """A store holds the tallies of a run with another configuration."""


class FewerSamplesError(OtherRunError):
    """A store holds the tallies of a run with more samples than are asked for, and no other difference."""


@dataclass(frozen=True)
class FinishedChunk:
    """What a store says about a chunk without its counts.

    Parameters
    ----------
    size, n
        Samples planned and counted; they are equal in a sound store.
    chosen
        See `ChunkRecord`.
    batch_size
        Samples per forward pass that it was drawn with; 0 if that was not recorded.
    seconds
        Time that it took; 0 if that was not recorded.
    """

    size: int
    n: int
    chosen: str
    batch_size: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, record: ChunkRecord) -> FinishedChunk:
        """Leave the counts of a chunk out."""
        used, seconds = record.provenance.get("batch_size"), record.provenance.get("seconds")
        return cls(
            record.chunk.size,
            record.n,
            record.chosen,
            used if isinstance(used, int) else 0,
            seconds if isinstance(seconds, float) else 0.0,
        )


@dataclass(frozen=True, eq=False)
class MergedCounts:
    """Counts of one stage of one output group, added up over its finished chunks.

    Parameters
    ----------
    n
        Samples counted.
    counts
        Arrays by "counter.array": 32-bit integers (64-bit where a counter asks for them) or 64-bit floating point.
    chosen
        Digest of what the candidate stage had chosen when these samples were counted; empty for that stage itself.
    """

    n: int = 0
    counts: Mapping[str, np.ndarray] = field(default_factory=dict)
    chosen: str = ""

    def __add__(self, record: ChunkRecord) -> MergedCounts:
        """Add one more chunk of the same output group and stage; the arrays of the sum may be shared with `self`."""
        if not self.n:
            counts = {name: array.astype(_wide(array.dtype)) for name, array in record.counts.items()}
            return MergedCounts(record.n, counts, record.chosen)
        if record.chosen != self.chosen:
            raise StoreError(
                f"chunk {record.chunk.key} voted for other candidates than the chunks before it. Delete the chunks of "
                "this item, output group and stage, and start the run again"
            )
        if self.counts.keys() != record.counts.keys():
            raise StoreError(f"chunk {record.chunk.key} holds other counts than the chunks before it")
        for name, array in record.counts.items():
            if self.counts[name].shape != array.shape:
                raise StoreError(f"chunk {record.chunk.key} counts other outputs than the chunks before it")
            np.add(self.counts[name], array, out=self.counts[name])
        return MergedCounts(self.n + record.n, self.counts, self.chosen)


def _wide(dtype: np.dtype) -> type[np.generic]:
    if dtype.kind == "f":
        return np.float64
    return np.int64 if dtype.itemsize == 8 else np.int32


class Store(ABC):
    """Keeps every finished chunk exactly once, for one run."""

    @property
    @abstractmethod
    def configuration(self) -> RunIdentity | None:
        """The configuration of the run that is kept, None before the first one."""

    @abstractmethod
    def begin(self, configuration: RunIdentity) -> None:
        """Start a run, or go on with one.

        Raises
        ------
        StoreError
            If the store holds a run with another configuration.
        """

    @abstractmethod
    def finished(self) -> Mapping[ChunkKey, FinishedChunk]:
        """All chunks that are kept, checked."""

    @abstractmethod
    def commit(self, record: ChunkRecord) -> bool:
        """Keep a finished chunk; False, without an effect, if that chunk is kept already."""

    @abstractmethod
    def merged(self, item: int, group: int, stage: Stage) -> MergedCounts:
        """Add up the chunks of one stage of one output group, in the order of their numbers where they are kept."""

    def settle(self, item: int, group: int, stage: Stage, counts: MergedCounts) -> None:
        """Take note of what is left to be known of a stage that is complete; where memory is dear, the rest goes."""
        del item, group, stage, counts

    @abstractmethod
    def put_array(self, name: str, array: np.ndarray) -> None:
        """Keep an array beside the tallies, such as an image or its labels; an earlier one is replaced."""

    @abstractmethod
    def get_array(self, name: str) -> np.ndarray:
        """Give back what `put_array` kept.

        Raises
        ------
        StoreError
            If there is no such array.
        """

    def has_array(self, name: str) -> bool:
        """Whether there is an array of that name."""
        return name in self.array_names()

    @abstractmethod
    def array_names(self) -> list[str]:
        """Names of all arrays that are kept, sorted."""


def merge(records: Iterable[ChunkRecord]) -> MergedCounts:
    """Add up chunks of the same output group and stage."""
    return functools.reduce(operator.add, records, MergedCounts())


class MemoryStore(Store):
    """Keeps merged counts only, so that memory does not depend on the number of samples; lost with the process."""

    def __init__(self) -> None:
        self._configuration: RunIdentity | None = None
        self._finished: dict[ChunkKey, FinishedChunk] = {}
        self._merged: dict[tuple[int, int, int], MergedCounts] = {}
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def configuration(self) -> RunIdentity | None:
        """The configuration of the run, None before it begins."""
        return self._configuration

    def begin(self, configuration: RunIdentity) -> None:
        """Start a run, or go on with one."""
        if self._configuration is None:
            self._configuration = configuration
        require_same(self._configuration, configuration, "this store")

    def finished(self) -> Mapping[ChunkKey, FinishedChunk]:
        """All chunks that are kept."""
        return dict(self._finished)

    def commit(self, record: ChunkRecord) -> bool:
        """Add a finished chunk to the merged counts, unless it is there already."""
        key = record.chunk.key
        if key in self._finished:
            return False
        self._merged[key[:3]] = self._merged.get(key[:3], MergedCounts()) + record
        self._finished[key] = FinishedChunk.of(record)
        return True

    def merged(self, item: int, group: int, stage: Stage) -> MergedCounts:
        """The counts of one stage of one output group."""
        return self._merged.get((item, group, stage.value), MergedCounts())

    def settle(self, item: int, group: int, stage: Stage, counts: MergedCounts) -> None:
        """Keep these counts in place of the stage's own."""
        self._merged[item, group, stage.value] = counts

    def put_array(self, name: str, array: np.ndarray) -> None:
        """Keep a copy of an array."""
        check_array_name(name)
        self._arrays[name] = np.array(array)

    def get_array(self, name: str) -> np.ndarray:
        """Give back an array that was put in.

        Raises
        ------
        StoreError
            If there is none of that name.
        """
        if name not in self._arrays:
            raise StoreError(f"there is no array {name!r}; there are {self.array_names()}")
        return self._arrays[name]

    def array_names(self) -> list[str]:
        """Names of all arrays that are kept, sorted."""
        return sorted(self._arrays)


def require_same(kept: RunIdentity, wanted: RunIdentity, place: str) -> None:
    """Refuse to mix runs with different configurations.

    Raises
    ------
    OtherRunError
        Naming the entries that differ; a `FewerSamplesError` if nothing does but a smaller number of samples.
    """
    if kept.sha256 == wanted.sha256:
        return
    names = kept.differences(wanted)
    if kept.samples is not None and wanted.samples is not None and wanted.grown_to(kept) is not None:
        numbers = f"n_bound = {kept.samples}, and n_candidate = {kept.leaves().get('plan.n_candidate')} as it is"
        raise FewerSamplesError(
            f"{place} has more samples than are asked for: n_bound was {kept.samples} and is {wanted.samples}. Samples "
            f"that were drawn are never left out, or they could be chosen: pass {numbers} (a SamplingPlan, where "
            "numbers followed from passes), or use another run directory"
        )
    # A layout is known by its digest: partitions, noise levels and views.
    names = [f"{name} and its noise levels" if name.endswith(".layout") else name for name in names]
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    changed = f". {_COMPUTES_OTHERWISE}" if _FINGERPRINT in names else ""
    raise OtherRunError(
        f"{place} holds tallies of another configuration (differing in {shown}), and tallies of different "
        f"distributions must not be mixed{changed}. Use another run directory, or restore the configuration"
    )


def interrupted_words(place: object, samples: int) -> str:
    """Say that a finished run was being extended, and how that goes on.

    Parameters
    ----------
    place
        The run directory.
    samples
        How many samples it is to have, in all.
    """
    folder = shlex.quote(str(place))
    return (
        f"{place}: an extension to {samples:,} samples was interrupted, or still runs: `localsmooth extend {folder} "
        f"--samples {samples}` goes on (in Python, or with a file of your own: certify into this directory again, with "
        f"n_bound = {samples})"
    )


def check_array_name(name: str) -> None:
    """Refuse names that could leave a directory.

    Raises
    ------
    InvalidInputError
        Unless the name consists of 1 to 100 letters, digits, hyphens, underscores and inner dots.
    """
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not (0 < len(name) <= 100 and plain.isascii() and plain.isalnum() and not name.startswith(".")):
        raise InvalidInputError("name", f"{name!r} is not a name for an array", "Use letters, digits, '-', '_' and '.'")
