"""One finished chunk, and the bytes that hold it, without pickle.

A file is a zlib stream and its SHA-256; in the stream are the arrays as safetensors, whose metadata say what they are:
`safetensors.numpy.load(zlib.decompress(data[:-32]))` shows the arrays to anybody.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json
from safetensors import SafetensorError
from safetensors.numpy import load, save

from localsmooth.errors import LocalsmoothError
from localsmooth.runs.plan import Chunk

__all__ = ["ChunkRecord", "CorruptRecordError", "decode_array", "decode_chunk", "encode_array", "encode_chunk"]

_FACTS = "localsmooth/2"  # the entry of the metadata that says what the arrays are, and the version of all this
_CHECKSUM = 32
_LARGEST = 1 << 32  # bytes that the arrays of a file may have at most
_COMPRESSION = 1


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


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: Literal["chunk", "array"]
    configuration: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
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
    facts, arrays = _decode(data, "chunk", configuration)
    if len(facts.key) != 4 or facts.n > facts.size:
        raise CorruptRecordError("it does not describe a chunk")
    item, group, stage, index = facts.key
    return ChunkRecord(Chunk(item, group, stage, index, facts.size), facts.n, arrays, facts.chosen, facts.provenance)


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
    for array in arrays.values():
        if not _storable(array):
            raise TypeError(f"arrays of type {array.dtype} cannot be stored")
    facts = json.dumps({"kind": kind, "configuration": configuration, **fields}, allow_nan=False)
    stored = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, {_FACTS: facts})
    if len(stored) > _LARGEST:
        raise ValueError("the arrays of a record exceed 4 GiB; use more output groups")
    body = zlib.compress(stored, _COMPRESSION)
    return body + hashlib.sha256(body).digest()


def _decode(data: bytes, kind: str, configuration: str) -> tuple[_Facts, dict[str, np.ndarray]]:
    body = memoryview(data)[:-_CHECKSUM]
    if hashlib.sha256(body).digest() != data[-_CHECKSUM:]:
        raise CorruptRecordError("its checksum does not match: it is cut off, was altered, or is no file of a run")
    try:
        content, arrays = _read(body)
        facts = _Facts.model_validate(content)
    except (SafetensorError, zlib.error, ValueError, KeyError) as error:
        first = str(error).partition("\n")[0]
        raise CorruptRecordError(f"its content is malformed: {first}") from error
    if not all(map(_storable, arrays.values())):
        raise CorruptRecordError("its arrays have unsupported types")
    if facts.kind != kind:
        raise CorruptRecordError(f"it holds a {facts.kind}, not a {kind}")
    if facts.configuration != configuration:
        raise CorruptRecordError("it was written by a run with another configuration")
    return facts, arrays


def _storable(array: np.ndarray) -> bool:
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def _read(body: memoryview) -> tuple[object, dict[str, np.ndarray]]:
    stored = _unpack(body)
    arrays = load(stored)
    length = int.from_bytes(stored[:8], "little")  # of the header of safetensors, which `load` has checked
    metadata = from_json(stored[8 : 8 + length]).get("__metadata__") or {}
    if _FACTS not in metadata:
        raise CorruptRecordError("it was written by a newer version of this program, or by another program")
    return from_json(metadata[_FACTS]), arrays


def _unpack(body: memoryview) -> bytes:
    """Unpack a whole zlib stream, of which more than a file may hold is not even made."""
    stream = zlib.decompressobj()
    raw = stream.decompress(body, _LARGEST + 1)
    if len(raw) > _LARGEST or not stream.eof or stream.unused_data:
        raise ValueError("a stream has another length than it should")
    return raw
