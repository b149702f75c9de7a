"""How far stored runs have come, and what they have cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from localsmooth.runs.file_store import FileStore
from localsmooth.runs.plan import Stage
from localsmooth.runs.store import ChunkKey, StoreError

__all__ = ["OUTPUT_GROUPS", "Survey", "find_runs", "poisoned_name", "survey"]

_POISONED = re.compile(r"poisoned-item([0-9]{1,12})-group([0-9]{1,12})-stage([0-9])-chunk([0-9]{1,12})")

OUTPUT_GROUPS = "output-groups"
"""Array with the number of output groups of every item."""

_DEPTH = 3
_MOST_GROUPS = 1 << 22  # in all items; more are no run's, and would take for ever to go through


@dataclass(frozen=True)
class Survey:
    """How far a stored run has come, finished or not, read off its chunks.

    Parameters
    ----------
    place
        Where it is.
    noise
        Name of the smoothing distribution.
    items
        Number of items.
    counted
        Samples in the store.
    planned
        Samples of the whole run (with early stopping the most there can be); None if the run was made before the
        number of output groups was kept.
    stops_early
        Whether groups may do with fewer samples than planned.
    missing
        Missing samples by (item, output group, stage), where there are any.
    seconds
        Time that the samples took, over all workers.
    devices
        Devices and precisions that drew chunks, with their numbers of chunks.
    versions
        Versions of torch that drew chunks.
    damaged
        Messages about files that cannot be used.
    failed
        Chunks (item, output group, stage, number) that could not be drawn when they were last tried and that the store
        does not have, with the array that holds their noisy inputs; those too large to be kept are not known here.
    """

    place: str
    noise: str
    items: int
    counted: int
    planned: int | None
    stops_early: bool
    missing: Mapping[tuple[int, int, str], int]
    seconds: float
    devices: Mapping[str, int]
    versions: Mapping[str, int]
    damaged: tuple[str, ...]
    failed: Mapping[tuple[int, int, str, int], str] = field(default_factory=dict[tuple[int, int, str, int], str])

    @property
    def share(self) -> float | None:
        """Share of the planned samples that are there."""
        return None if not self.planned else self.counted / self.planned


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Plan(_Lenient):
    n_candidate: int
    n_bound: int
    stop: dict[str, Any] | None = None


class _Noise(_Lenient):
    distribution: str


class _Facts(_Lenient):
    """What is read of a run's configuration."""

    plan: _Plan
    noise: _Noise
    items: list[dict[str, Any]] | None = None
    graph: str | None = None

    @model_validator(mode="after")
    def _has_items(self) -> _Facts:
        if self.items is None and self.graph is None:
            raise ValueError("names neither items nor a graph")
        return self

    @property
    def count(self) -> int:
        """Number of items; a graph is one."""
        return 1 if self.items is None else len(self.items)


def survey(store: FileStore) -> Survey:
    """Read and check every chunk of a store; damaged ones are listed and not counted.

    Raises
    ------
    StoreError
        If the store holds no run.
    """
    if store.configuration is None:
        raise StoreError(f"{store.files.place} holds no run")
    content = store.configuration.content
    damaged: list[str] = []
    counted: Counter[tuple[int, int, int]] = Counter()
    devices: Counter[str] = Counter()
    versions: Counter[str] = Counter()
    seconds = 0.0
    present: set[ChunkKey] = set()
    for name in store.files.names("chunks"):
        try:
            record = store.read_chunk(name)
        except StoreError as error:
            damaged.append(str(error))
            continue
        counted[record.chunk.key[:3]] += record.n
        present.add(record.chunk.key)
        made = record.provenance
        devices[f"{made.get('device_name', '?')} ({made.get('device', '?')}), {made.get('precision', '?')}"] += 1
        versions[str(made.get("torch", "?"))] += 1
        spent = made.get("seconds")
        seconds += spent if isinstance(spent, float) else 0.0
    try:
        facts = _Facts.model_validate(content)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "items"
        raise StoreError(f"{store.files.place}: the configuration in it is damaged at {where}") from None
    try:
        missing, planned = _missing(_output_groups(store, facts.count), facts.plan, counted)
    except StoreError as error:
        damaged.append(str(error))
        missing, planned = {}, None
    return Survey(
        place=store.files.place,
        noise=facts.noise.distribution,
        items=facts.count,
        counted=sum(counted.values()),
        planned=planned,
        stops_early=facts.plan.stop is not None,
        missing=missing,
        seconds=seconds,
        devices=dict(devices),
        versions=dict(versions),
        damaged=tuple(damaged),
        failed={
            (item, group, Stage(stage).name.lower(), number): array
            for (item, group, stage, number), array in _poisoned(store.array_names()).items()
            if (item, group, stage, number) not in present and stage in {known.value for known in Stage}
        },
    )


def _output_groups(store: FileStore, items: int) -> list[int] | None:
    """Number of output groups of every item; None where that was not kept."""
    if not store.has_array(OUTPUT_GROUPS):
        return None
    groups = store.get_array(OUTPUT_GROUPS)
    if groups.shape != (items,) or groups.dtype.kind != "i" or not (groups >= 1).all():
        raise StoreError(f"array {OUTPUT_GROUPS!r} of {store.files.place} holds no numbers of groups")
    if sum(found := groups.tolist()) > _MOST_GROUPS:
        raise StoreError(f"array {OUTPUT_GROUPS!r} of {store.files.place} names more groups than a run can have")
    return found


def _missing(
    groups: list[int] | None, plan: _Plan, counted: Counter[tuple[int, int, int]]
) -> tuple[dict[tuple[int, int, str], int], int | None]:
    if groups is None:
        return {}, None
    wanted = {Stage.CANDIDATE: plan.n_candidate, Stage.BOUND: plan.n_bound}
    missing: dict[tuple[int, int, str], int] = {}
    planned = 0
    for item, count in enumerate(groups):
        for group in range(count):
            for stage, samples in wanted.items():
                planned += samples
                absent = samples - counted[item, group, stage.value]
                if absent > 0:
                    missing[item, group, stage.name.lower()] = absent
    return missing, planned


def find_runs(folder: Path) -> list[Path]:
    """Run directories in a folder, itself included, down to three levels.

    Raises
    ------
    StoreError
        If there is no such folder.
    """
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder")
    found = {folder} if (folder / "manifest.json").is_file() else set[Path]()
    for depth in range(1, _DEPTH + 1):
        found |= {path.parent for path in folder.glob("*/" * depth + "manifest.json")}
    return sorted(found)


def poisoned_name(key: ChunkKey) -> str:
    """Name of the array that keeps the noisy inputs of a chunk that was given up."""
    item, group, stage, index = key
    return f"poisoned-item{item:06d}-group{group:05d}-stage{stage}-chunk{index:06d}"


def _poisoned(names: Sequence[str]) -> dict[ChunkKey, str]:
    """Which of a store's arrays are noisy inputs of chunks that were given up, by chunk.

    An array stays after its chunk has been drawn after all: whether the store has the chunk is another question.
    """
    found = {name: _POISONED.fullmatch(name) for name in names}
    return {(int(m[1]), int(m[2]), int(m[3]), int(m[4])): name for name, m in found.items() if m}
