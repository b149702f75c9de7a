"""The durable tally store: every finished chunk is one file, written once, wherever the files are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from localsmooth.runs.files import Files
from localsmooth.runs.identity import RunIdentity
from localsmooth.runs.plan import Stage
from localsmooth.runs.record import (
    ChunkRecord,
    CorruptRecordError,
    decode_array,
    decode_chunk,
    encode_array,
    encode_chunk,
)
from localsmooth.runs.store import (
    ChunkKey,
    FinishedChunk,
    MergedCounts,
    Store,
    StoreError,
    check_array_name,
    interrupted_words,
    merge,
    require_same,
)

__all__ = ["FileStore"]

_MANIFEST = "manifest.json"
_FORMAT = "localsmooth-tallies"
_VERSION = 2
_EXTENDED = 3  # of runs that got more samples, which earlier versions would certify by any rule
_READABLE = (_VERSION, _EXTENDED)
_LARGEST_MANIFEST = 1 << 28
_OF_ITEMS = ("item", "layout", "graph-")  # arrays of what was drawn; others are made before anything is
_CHUNK_NAME = re.compile(r"chunks/item\d{6,}/group\d{5,}-stage\d-chunk\d{6,}\.tally")


class FileStore(Store):
    """Tallies in files: `manifest.json`, one file per chunk under `chunks`, one per array under `arrays`.

    Parameters
    ----------
    files
        Where the files are.
    must_hold_run
        Whether to refuse a place that holds no run.

    Raises
    ------
    StoreError
        If the manifest is damaged, or there is none where there must be one.
    """

    def __init__(self, files: Files, *, must_hold_run: bool = False) -> None:
        self.files = files
        self._configuration = self._read_manifest()
        if must_hold_run and self._configuration is None:
            raise StoreError(f"{files.place} holds no run: there is no {_MANIFEST}")

    def close(self) -> None:
        """Let other processes write."""
        self.files.close()

    def __enter__(self) -> FileStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def configuration(self) -> RunIdentity | None:
        """The configuration that the place belongs to, None before the first run."""
        return self._configuration

    @property
    def untouched(self) -> bool:
        """Whether nothing was drawn here yet, so that a run of any configuration may begin."""
        drawn = any(name.startswith(_OF_ITEMS) for name in self.array_names())
        return not drawn and not self.files.names("chunks")

    def begin(self, configuration: RunIdentity) -> None:
        """Start a run in an empty place or in a directory where none has drawn anything, or go on with one.

        A configuration with a larger `n_bound`, and no other difference, extends the run: the manifest, which is one
        file, then names the larger number, and the first one beside it.
        """
        kept = self._configuration
        if kept is not None and kept.sha256 != configuration.sha256 and self.files.claimed and self.untouched:
            # A first attempt that failed, say with a model that could not be called, is not worth a directory. At an
            # address it may as well be about to draw: nobody else's run is taken away there.
            for name in self.files.names("arrays"):
                self.files.remove(name)
            self._configuration = None
        if self._configuration is None:
            if self.files.names("chunks"):
                raise StoreError(
                    f"{self.files.place} holds chunks but no {_MANIFEST}, so their configuration is unknown. "
                    "Restore the file, or use another run directory"
                )
            self._write_manifest(configuration)
            return
        if (grown := self._configuration.grown_to(configuration)) is not None:
            self._write_manifest(grown)
            return
        require_same(self._configuration, configuration, self.files.place)

    def _write_manifest(self, configuration: RunIdentity) -> None:
        manifest: dict[str, object] = {
            "format": _FORMAT,
            "version": _VERSION if configuration.first is None else _EXTENDED,
            "sha256": configuration.sha256,
            "configuration": configuration.content,
        }
        if configuration.first is not None:
            manifest["first_n_bound"] = configuration.first
        self.files.write(_MANIFEST, json.dumps(manifest, indent=1, allow_nan=False).encode())
        self._configuration = configuration

    def require_belongs_to(self, tallies: FileStore, *, may_grow: bool = False) -> None:
        """Refuse a place that holds another run than the one that its tallies are kept elsewhere for.

        Parameters
        ----------
        tallies
            Where the chunks are.
        may_grow
            Whether the tallies may be of more samples: extending the run was interrupted, and goes on.

        Raises
        ------
        StoreError
            If this place has a configuration, and the tallies have another or none, or are of more samples and may not.
        """
        if self._configuration is None or tallies is self:
            return
        if tallies.configuration is None:
            raise StoreError(
                f"{self.files.place} holds a run already, and {tallies.files.place} none of its chunks. Use another "
                "run directory, or the address that belongs to it"
            )
        grown = self._configuration.grown_to(tallies.configuration)
        if grown is not None and not may_grow:
            raise StoreError(interrupted_words(self.files.place, grown.samples or 0))
        if grown is None:
            require_same(self._configuration, tallies.configuration, self.files.place)

    def records(self) -> Iterator[ChunkRecord]:
        """All chunks, each read and checked, in the order of their names.

        Raises
        ------
        StoreError
            Naming the first file that is torn, altered, misplaced or foreign.
        """
        return map(self.read_chunk, self.files.names("chunks"))

    def finished(self) -> Mapping[ChunkKey, FinishedChunk]:
        """All chunks without their counts, each read and checked.

        Raises
        ------
        StoreError
            Naming the first file that is torn, altered, misplaced or foreign.
        """
        return {record.chunk.key: FinishedChunk.of(record) for record in self.records()}

    def commit(self, record: ChunkRecord) -> bool:
        """Write a finished chunk, unless it is there; in a run that was extended, a larger one takes its place."""
        name = _chunk_name(record.chunk.key)
        if self.files.size(name) is not None and not self._outgrown(name, record):
            return False
        self.files.write(name, encode_chunk(record, self._sha256))
        return True

    def _outgrown(self, name: str, record: ChunkRecord) -> bool:
        extended = self._configuration is not None and self._configuration.first is not None
        return extended and self.read_chunk(name).n < record.n

    def chunk(self, key: ChunkKey) -> ChunkRecord | None:
        """Read and check one chunk; None if it is not there."""
        name = _chunk_name(key)
        return None if self.files.size(name) is None else self.read_chunk(name)

    def read_chunk(self, name: str) -> ChunkRecord:
        """Read and check one file of a chunk.

        Raises
        ------
        StoreError
            If it is torn, altered, misplaced or foreign.
        """
        where = self.files.where(name)
        remedy = "Delete the file and start the run again: the chunk is drawn anew from its own seed"
        if _CHUNK_NAME.fullmatch(name) is None:
            raise StoreError(f"{where} is not named like a chunk. Move the file out of the run directory")
        try:
            record = decode_chunk(self.files.read(name), self._sha256)
        except CorruptRecordError as error:
            raise StoreError(f"{where} cannot be used: {error}. {remedy}") from error
        if name != _chunk_name(record.chunk.key):
            raise StoreError(f"{where} is a duplicate or was renamed: it holds chunk {record.chunk.key}. {remedy}")
        return record

    def merged(self, item: int, group: int, stage: Stage) -> MergedCounts:
        """Add up the chunks of one stage of one output group, in the order of their numbers."""
        folder, _, first = _chunk_name((item, group, stage.value, 0)).rpartition("/")
        start = f"{folder}/{first.rpartition('chunk')[0]}"
        return merge(self.read_chunk(name) for name in self.files.names(folder) if name.startswith(start))

    def put_array(self, name: str, array: np.ndarray) -> None:
        """Write an array, replacing an earlier one of that name."""
        check_array_name(name)
        self.files.write(f"arrays/{name}.array", encode_array(name, array, self._sha256))

    def get_array(self, name: str) -> np.ndarray:
        """Read and check an array."""
        check_array_name(name)
        file = f"arrays/{name}.array"
        if self.files.size(file) is None:
            raise StoreError(f"{self.files.place} holds no array {name!r}; it holds {self.array_names()}")
        try:
            return decode_array(self.files.read(file), name, self._sha256)
        except CorruptRecordError as error:
            raise StoreError(
                f"{self.files.where(file)} cannot be used: {error}. Delete the file and start the run again"
            ) from error

    def array_names(self) -> list[str]:
        """Names of all arrays, sorted."""
        names = (name.rpartition("/")[2] for name in self.files.names("arrays"))
        return sorted(name.removesuffix(".array") for name in names if name.endswith(".array"))

    @property
    def _sha256(self) -> str:
        if self._configuration is None:
            raise StoreError(f"{self.files.place} has no configuration yet: begin a run before keeping anything")
        return self._configuration.seal

    def _read_manifest(self) -> RunIdentity | None:
        size, where = self.files.size(_MANIFEST), self.files.where(_MANIFEST)
        if size is None:
            return None
        broken = StoreError(f"{where} is damaged. Restore the file, or use another run directory")
        if size > _LARGEST_MANIFEST:
            raise broken
        try:
            manifest = json.loads(self.files.read(_MANIFEST))
        except (ValueError, RecursionError) as error:
            raise broken from error
        if not isinstance(manifest, dict) or not isinstance(manifest.get("configuration"), dict):
            raise broken
        if manifest.get("format") != _FORMAT or manifest.get("version") not in _READABLE:
            raise StoreError(f"{where} was written by another version of this program; use that one to read it")
        first: object = manifest.get("first_n_bound")
        if (manifest["version"] == _EXTENDED) != isinstance(first, int):
            raise broken
        configuration = RunIdentity(cast("dict[str, object]", manifest["configuration"]), cast("int | None", first))
        try:
            if configuration.sha256 != manifest.get("sha256"):
                raise broken
            if first is not None and not 0 < cast("int", first) < (configuration.samples or 0):
                raise broken
        except ValueError as error:  # numbers that JSON does not have
            raise broken from error
        return configuration


def _chunk_name(key: ChunkKey) -> str:
    item, group, stage, index = key
    return f"chunks/item{item:06d}/group{group:05d}-stage{stage}-chunk{index:06d}.tally"
