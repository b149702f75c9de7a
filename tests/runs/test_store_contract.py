"""The package's stores under the contract suite, and such as are wrong on purpose, which it must catch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest

from localsmooth.runs import (
    ChunkRecord,
    DirectoryStore,
    MemoryStore,
    MergedCounts,
    RunIdentity,
    Stage,
    Store,
    open_store,
)
from localsmooth.testing import StoreContract


class TestMemory(StoreContract):
    def make(self) -> Store:
        return MemoryStore()


class Placed(StoreContract):
    """Stores at places of their own."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder, self.count = tmp_path, 0
        yield
        memory = fsspec.filesystem("memory")
        if memory.exists("/bucket"):
            memory.rm("/bucket", recursive=True)

    def place(self) -> str:
        return f"{self.folder}/{self.count}"

    def make(self) -> Store:
        self.count += 1
        return open_store(self.place())

    def reopened(self, store: Store) -> Store:
        return open_store(self.place())


class TestDirectory(Placed):
    def make(self) -> Store:
        self.count += 1
        return DirectoryStore(self.place())

    def reopened(self, store: Store) -> Store:
        assert isinstance(store, DirectoryStore)
        store.close()
        return DirectoryStore(self.place())


class TestAddress(Placed):
    def place(self) -> str:
        return f"file://{self.folder}/{self.count}"


class TestBucket(Placed):
    def place(self) -> str:
        return f"memory://bucket/{self.count}"


class Wrong(MemoryStore):
    """Kept in memory but for one fault."""

    how = ""

    def begin(self, configuration: RunIdentity) -> None:
        if self.how == "mixes runs":
            self._configuration = configuration
        super().begin(configuration)

    def commit(self, record: ChunkRecord) -> bool:
        if self.how == "counts twice":
            self._finished.pop(record.chunk.key, None)
        if self.how == "says it was new":
            super().commit(record)
            return True
        if self.how == "overflows" and (old := self._merged.get(record.chunk.key[:3])) is not None:
            counts = {name: (old.counts[name] + array).astype(array.dtype) for name, array in record.counts.items()}
            self._merged[record.chunk.key[:3]] = MergedCounts(old.n, counts, old.chosen)
            record = replace(record, counts={name: np.zeros_like(array) for name, array in record.counts.items()})
        if self.how == "mixes candidates" and (old := self._merged.get(record.chunk.key[:3])) is not None:
            record = replace(record, chosen=old.chosen)
        return super().commit(record)

    def finished(self) -> Mapping:
        known = super().finished()
        if self.how == "forgets the last":
            return dict(list(known.items())[:-1])
        if self.how == "forgets what was chosen":
            return {key: replace(one, chosen="") for key, one in known.items()}
        return known

    def merged(self, item: int, group: int, stage: Stage) -> MergedCounts:
        return super().merged(item, group, Stage.CANDIDATE if self.how == "mixes stages" else stage)

    def put_array(self, name: str, array: np.ndarray) -> None:
        if self.how == "takes any name":
            self._arrays[name] = np.array(array)
        elif self.how == "keeps no copy":
            super().put_array(name, array)
            self._arrays[name] = array
        elif self.how == "keeps the first" and name in self._arrays:
            return
        else:
            super().put_array(name, array)

    def get_array(self, name: str) -> np.ndarray:
        if self.how == "makes arrays up":
            return self._arrays.get(name, np.zeros(1))
        return super().get_array(name).astype(float) if self.how == "changes types" else super().get_array(name)

    def array_names(self) -> list[str]:
        return list(self._arrays)[::-1] if self.how == "sorts backwards" else super().array_names()


def caught(how: str) -> list[str]:
    """Names of the tests of the suite that fail."""
    kind = type("Kind", (Wrong,), {"how": how})
    suite, failed = type("Suite", (StoreContract,), {"make": lambda self: kind()})(), []
    for name in (name for name in dir(suite) if name.startswith("test_")):
        try:
            getattr(suite, name)()
        except Exception:
            failed.append(name)
    return failed


def test_without_a_fault_nothing_fails() -> None:
    assert caught("does nothing else") == []


@pytest.mark.parametrize(
    "how",
    [
        "mixes runs",
        "counts twice",
        "says it was new",
        "overflows",
        "mixes candidates",
        "forgets the last",
        "forgets what was chosen",
        "mixes stages",
        "takes any name",
        "keeps no copy",
        "keeps the first",
        "makes arrays up",
        "changes types",
        "sorts backwards",
    ],
)
def test_faults_are_caught(how: str) -> None:
    assert caught(how), f"a store that {how} passes"


def test_a_place_that_forgets_is_caught() -> None:
    class Forgetful(StoreContract):
        def make(self) -> Store:
            return MemoryStore()

        def reopened(self, store: Store) -> Store:
            return MemoryStore()

    with pytest.raises(AssertionError):
        Forgetful().test_chunks_are_added_up()
