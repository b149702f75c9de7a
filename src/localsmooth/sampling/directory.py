"""The durable tally store: a directory in which every finished chunk is one file, written once."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import numpy as np
from filelock import FileLock, Timeout

from localsmooth.sampling.configuration import RunConfiguration
from localsmooth.sampling.plan import Stage
from localsmooth.sampling.record import (
    ChunkRecord,
    CorruptRecordError,
    decode_array,
    decode_chunk,
    encode_array,
    encode_chunk,
)
from localsmooth.sampling.store import (
    ChunkKey,
    FinishedChunk,
    MergedCounts,
    Store,
    StoreError,
    check_array_name,
    merge,
    require_same,
)

__all__ = ["DirectoryStore"]

_FORMAT = "localsmooth-tallies"
_VERSION = 1
_LARGEST_MANIFEST = 1 << 28
# What an interrupted writer leaves behind; nothing else in the directory is ever deleted.
_LEFTOVERS = ("manifest.json.partial", "arrays/*.array.partial", "chunks/item*/*.tally.partial")
_CHUNK_NAME = re.compile(r"chunks/item\d{6,}/group\d{5,}-stage\d-chunk\d{6,}\.tally")


class DirectoryStore(Store):
    """A run directory: `manifest.json`, one file per chunk under `chunks`, one per array under `arrays`.

    Files appear whole or not at all (written under another name, flushed to the disk, then renamed), so that a killed
    run leaves a consistent directory. One process at a time may write to it.

    Parameters
    ----------
    path
        The directory; made if it does not exist, unless read-only.
    read_only
        Read finished chunks without claiming the directory, also while another process writes to it.

    Raises
    ------
    StoreError
        If another process writes to the directory, or it is to be read and holds no run.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._configuration: RunConfiguration | None = None
        self._lock: FileLock | None = None
        if read_only:
            self._configuration = self._read_manifest()
            if self._configuration is None:
                raise StoreError(f"{self.path} holds no run: there is no manifest.json")
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be a run directory ({error.strerror}); name another folder") from None
        self._lock = FileLock(self.path / "lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout:
            raise StoreError(
                f"another process is writing to {self.path}; wait for it to end, or use another run directory"
            ) from None
        try:
            self._configuration = self._read_manifest()
            if self._configuration is not None:
                self._remove_leftovers()
        except BaseException:
            self.close()
            raise

    def _remove_leftovers(self) -> None:
        for pattern in _LEFTOVERS:
            for leftover in self.path.glob(pattern):
                if leftover.is_file():
                    leftover.unlink(missing_ok=True)

    def close(self) -> None:
        """Let other processes write to the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> DirectoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def configuration(self) -> RunConfiguration | None:
        """The configuration that the directory belongs to, None before the first run."""
        return self._configuration

    def begin(self, configuration: RunConfiguration) -> None:
        """Start a run in an empty directory, or go on with one."""
        if self._configuration is None:
            if any(self._chunk_files()):
                raise StoreError(
                    f"{self.path} holds chunks but no manifest.json, so their configuration is unknown. "
                    "Restore the file, or use another run directory"
                )
            manifest = {
                "format": _FORMAT,
                "version": _VERSION,
                "sha256": configuration.sha256,
                "configuration": configuration.content,
            }
            self._write("manifest.json", json.dumps(manifest, indent=1, allow_nan=False).encode())
            self._configuration = configuration
        require_same(self._configuration, configuration, str(self.path))

    def finished(self) -> Mapping[ChunkKey, FinishedChunk]:
        """All chunks in the directory, each read and checked.

        Raises
        ------
        StoreError
            Naming the first file that is torn, altered, misplaced or foreign.
        """
        chunks: dict[ChunkKey, FinishedChunk] = {}
        for name in self._chunk_files():
            record = self._read_chunk(name)
            chunks[record.chunk.key] = FinishedChunk.of(record)
        return chunks

    def commit(self, record: ChunkRecord) -> bool:
        """Write a finished chunk, unless it is there already."""
        name = _chunk_name(record.chunk.key)
        if (self.path / name).exists():
            return False
        self._write(name, encode_chunk(record, self._sha256))
        return True

    def merged(self, item: int, group: int, stage: Stage) -> MergedCounts:
        """Add up the chunks of one stage of one output group, in the order of their numbers."""
        folder = self.path / Path(_chunk_name((item, group, stage.value, 0))).parent
        pattern = f"group{group:05d}-stage{stage.value}-chunk*.tally"
        names = sorted(p.relative_to(self.path).as_posix() for p in folder.glob(pattern))
        return merge(self._read_chunk(name) for name in names)

    def put_array(self, name: str, array: np.ndarray) -> None:
        """Write an array, replacing an earlier one of that name."""
        check_array_name(name)
        self._write(f"arrays/{name}.array", encode_array(name, array, self._sha256))

    def get_array(self, name: str) -> np.ndarray:
        """Read and check an array."""
        check_array_name(name)
        path = self.path / "arrays" / f"{name}.array"
        if not path.is_file():
            raise StoreError(f"{self.path} holds no array {name!r}; it holds {self.array_names()}")
        try:
            return decode_array(path.read_bytes(), name, self._sha256)
        except CorruptRecordError as error:
            raise StoreError(f"{path} cannot be used: {error}. Delete the file and start the run again") from error

    def array_names(self) -> list[str]:
        """Names of all arrays in the directory, sorted."""
        return sorted(p.name.removesuffix(".array") for p in (self.path / "arrays").glob("*.array"))

    @property
    def _sha256(self) -> str:
        if self._configuration is None:
            raise StoreError(f"{self.path} has no configuration yet: begin a run before keeping anything")
        return self._configuration.sha256

    def _chunk_files(self) -> Iterator[str]:
        folder = self.path / "chunks"
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield path.relative_to(self.path).as_posix()

    def _read_chunk(self, name: str) -> ChunkRecord:
        remedy = "Delete the file and start the run again: the chunk is drawn anew from its own seed"
        if _CHUNK_NAME.fullmatch(name) is None:
            raise StoreError(f"{self.path / name} is not named like a chunk. Move the file out of the run directory")
        try:
            record = decode_chunk((self.path / name).read_bytes(), self._sha256)
        except CorruptRecordError as error:
            raise StoreError(f"{self.path / name} cannot be used: {error}. {remedy}") from error
        if name != _chunk_name(record.chunk.key):
            raise StoreError(
                f"{self.path / name} is a duplicate or was renamed: it holds chunk {record.chunk.key}. {remedy}"
            )
        return record

    def _read_manifest(self) -> RunConfiguration | None:
        path = self.path / "manifest.json"
        if not path.is_file():
            return None
        broken = StoreError(f"{path} is damaged. Restore the file, or use another run directory")
        if path.stat().st_size > _LARGEST_MANIFEST:
            raise broken
        try:
            manifest = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise broken from error
        if not isinstance(manifest, dict) or not isinstance(manifest.get("configuration"), dict):
            raise broken
        if manifest.get("format") != _FORMAT or manifest.get("version") != _VERSION:
            raise StoreError(f"{path} was written by another version of this program; use that one to read it")
        configuration = RunConfiguration(cast("dict[str, object]", manifest["configuration"]))
        if configuration.sha256 != manifest.get("sha256"):
            raise broken
        return configuration

    def _write(self, name: str, data: bytes) -> None:
        if self._lock is None:
            raise StoreError(f"{self.path} was opened for reading, or closed")
        target = self.path / name
        partial = target.with_name(target.name + ".partial")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, target)
            _flush_directory(target.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise StoreError(
                f"{target} cannot be written ({error.strerror or error}). Nothing that was finished is lost: free "
                "some space, or restore access, and start the run again"
            ) from error


def _chunk_name(key: ChunkKey) -> str:
    item, group, stage, index = key
    return f"chunks/item{item:06d}/group{group:05d}-stage{stage}-chunk{index:06d}.tally"


def _flush_directory(path: Path) -> None:
    """Make a rename durable; systems that cannot open directories do without."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
