"""One finished chunk, and the bytes that hold it: a small checked format without pickle.

A file is the magic, the length of the header (4 bytes, little endian), the header (JSON), the arrays in the header's
order (zlib streams of raw little-endian data), and the SHA-256 of all of that.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from localsmooth.errors import LocalsmoothError
from localsmooth.runs.plan import Chunk

__all__ = ["ChunkRecord", "CorruptRecordError", "decode_array", "decode_chunk", "encode_array", "encode_chunk"]

_MAGIC = b"localsmooth/1\r\n\0"
_LENGTH = 4
_CHECKSUM = 32
_LARGEST_HEADER = 1 << 20
_LARGEST_CONTENT = 1 << 32
_COMPRESSION = 1
_TYPES = ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8")


class CorruptRecordError(LocalsmoothError):
    """Stored bytes are torn, altered, or not what their name says."""


@dataclass(frozen=True, eq=False)
class ChunkRecord:
    """The counts of one finished chunk.

    Parameters
    ----------
    chunk
        Which chunk.
    n
        Samples actually drawn and counted.
    counts
        Arrays of every counter, named "counter.array"; each has one row per output of the group.
    chosen
        Digest of what the candidate stage chose, for a chunk of the bound stage; empty otherwise.
    provenance
        Device, precision, batch size, library versions and seconds, for the record.
    """

    chunk: Chunk
    n: int
    counts: Mapping[str, np.ndarray]
    chosen: str = ""
    provenance: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _ArrayEntry(_Strict):
    name: Annotated[str, Field(max_length=200)]
    dtype: str
    shape: Annotated[list[Annotated[int, Field(ge=0, le=1 << 40)]], Field(max_length=16)]
    stored: Annotated[int, Field(ge=0)]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class _Header(_Strict):
    kind: Literal["chunk", "array"]
    configuration: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    arrays: Annotated[list[_ArrayEntry], Field(max_length=1000)]
    key: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=4)] = []
    size: Annotated[int, Field(ge=0)] = 0
    n: Annotated[int, Field(ge=0)] = 0
    chosen: str = ""
    provenance: dict[str, str | int | float | bool | None] = {}


def encode_chunk(record: ChunkRecord, configuration: str) -> bytes:
    """Bytes of a finished chunk of the run whose configuration has this hash."""
    chunk = record.chunk
    return _encode(
        "chunk",
        configuration,
        record.counts,
        key=list(chunk.key),
        size=chunk.size,
        n=record.n,
        chosen=record.chosen,
        provenance=dict(record.provenance),
    )


def decode_chunk(data: bytes, configuration: str) -> ChunkRecord:
    """Read back what `encode_chunk` wrote.

    Raises
    ------
    CorruptRecordError
        If the bytes are torn or altered, are not a chunk, or belong to a run with another configuration.
    """
    header, arrays = _decode(data, "chunk", configuration)
    if len(header.key) != 4 or header.n > header.size:
        raise CorruptRecordError("it does not describe a chunk")
    item, group, stage, index = header.key
    return ChunkRecord(
        Chunk(item, group, stage, index, header.size), header.n, arrays, header.chosen, header.provenance
    )


def encode_array(name: str, array: np.ndarray, configuration: str) -> bytes:
    """Bytes of one named array that belongs to a run."""
    return _encode("array", configuration, {name: array})


def decode_array(data: bytes, name: str, configuration: str) -> np.ndarray:
    """Read back what `encode_array` wrote.

    Raises
    ------
    CorruptRecordError
        If the bytes are torn or altered, hold another array, or belong to a run with another configuration.
    """
    arrays = _decode(data, "array", configuration)[1]
    if list(arrays) != [name]:
        raise CorruptRecordError(f"it holds {list(arrays)}, not {name!r}")
    return arrays[name]


def _encode(kind: str, configuration: str, arrays: Mapping[str, np.ndarray], **fields: object) -> bytes:
    entries: list[dict[str, object]] = []
    payload: list[bytes] = []
    for name, array in arrays.items():
        little = np.asarray(array, dtype=array.dtype.newbyteorder("<"))
        if little.dtype.str not in _TYPES:
            raise TypeError(f"arrays of type {array.dtype} cannot be stored")
        stored = zlib.compress(np.ascontiguousarray(little).tobytes(), _COMPRESSION)
        entries.append({"name": name, "dtype": little.dtype.str, "shape": list(little.shape), "stored": len(stored)})
        payload.append(stored)
    if sum(array.nbytes for array in arrays.values()) > _LARGEST_CONTENT:
        raise ValueError("the arrays of a record exceed 4 GiB; use more output groups")
    header = json.dumps(
        {"kind": kind, "configuration": configuration, "arrays": entries, **fields}, allow_nan=False
    ).encode()
    if len(header) > _LARGEST_HEADER:
        raise ValueError("the header of a record exceeds 1 MiB")
    body = b"".join((_MAGIC, len(header).to_bytes(_LENGTH, "little"), header, *payload))
    return body + hashlib.sha256(body).digest()


def _decode(data: bytes, kind: str, configuration: str) -> tuple[_Header, dict[str, np.ndarray]]:
    start = len(_MAGIC) + _LENGTH
    if len(data) < start + _CHECKSUM or not data.startswith(_MAGIC):
        raise CorruptRecordError("it is cut off, or not written by this program")
    view = memoryview(data)
    if hashlib.sha256(view[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
        raise CorruptRecordError("its checksum does not match: it is cut off or was altered")
    length = int.from_bytes(data[len(_MAGIC) : start], "little")
    if length > _LARGEST_HEADER:
        raise CorruptRecordError("its header is too long")
    try:
        header = _Header.model_validate_json(data[start : start + length])
    except ValidationError as error:
        raise CorruptRecordError("its header is malformed") from error
    if header.kind != kind:
        raise CorruptRecordError(f"it holds a {header.kind}, not a {kind}")
    if header.configuration != configuration:
        raise CorruptRecordError("it was written by a run with another configuration")
    if any(entry.dtype not in _TYPES for entry in header.arrays):
        raise CorruptRecordError("its arrays have unsupported types")
    if sum(entry.bytes for entry in header.arrays) > _LARGEST_CONTENT:
        raise CorruptRecordError("its arrays are larger than 4 GiB")
    arrays: dict[str, np.ndarray] = {}
    position, end = start + length, len(data) - _CHECKSUM
    for entry in header.arrays:
        stop = position + entry.stored
        if stop > end or entry.name in arrays:
            raise CorruptRecordError("its arrays do not fit its header")
        arrays[entry.name] = _decode_entry(entry, view[position:stop])
        position = stop
    if position != end:
        raise CorruptRecordError("its arrays do not fit its header")
    return header, arrays


def _decode_entry(entry: _ArrayEntry, stored: memoryview) -> np.ndarray:
    stream = zlib.decompressobj()
    try:
        # One byte more than expected is allowed for, so that too long a stream shows without being unpacked.
        raw = stream.decompress(stored, entry.bytes + 1)
    except zlib.error as error:
        raise CorruptRecordError(f"array {entry.name!r} cannot be unpacked") from error
    if len(raw) != entry.bytes or not stream.eof or stream.unused_data:
        raise CorruptRecordError(f"array {entry.name!r} has another length than its header says")
    array = np.frombuffer(raw, dtype=entry.dtype).reshape(entry.shape)
    return array.astype(array.dtype.newbyteorder("="), copy=True)
