"""Chunks and arrays as earlier versions wrote them: a header in JSON, then a zlib stream of each array."""

from __future__ import annotations

import math
import zlib
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt

__all__ = ["LARGEST", "is_older", "read_older", "unpack"]

LARGEST = 1 << 32
"""Bytes that the arrays of a file may have at most."""
_MAGIC = b"localsmooth/1\r\n\0"
_START = len(_MAGIC) + 4  # of the header, behind its length


class _Array(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    dtype: Literal["|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"]
    shape: list[NonNegativeInt]
    stored: NonNegativeInt


class _Header(BaseModel):
    model_config = ConfigDict(extra="allow")

    arrays: list[_Array]


def is_older(data: bytes) -> bool:
    """Whether bytes begin as those of an earlier version."""
    return data.startswith(_MAGIC)


def read_older(body: memoryview) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is said about the arrays, and the arrays.

    Raises
    ------
    ValueError, zlib.error
        If the content is not what the header says.
    """
    place = _START + int.from_bytes(body[len(_MAGIC) : _START], "little")
    header = _Header.model_validate_json(bytes(body[_START:place]))
    arrays: dict[str, np.ndarray] = {}
    left = LARGEST
    for entry in header.arrays:
        stored, dtype = body[place : place + entry.stored], np.dtype(entry.dtype)
        size = math.prod(entry.shape) * dtype.itemsize
        left, place = left - size, place + entry.stored
        if left < 0 or entry.name in arrays:
            raise ValueError("too much, or twice")
        array = np.frombuffer(unpack(stored, size), dtype).reshape(entry.shape)
        arrays[entry.name] = array.astype(dtype.newbyteorder("="))
    if place != len(body):
        raise ValueError("the file goes on")
    return dict(header.model_extra or {}), arrays


def unpack(stored: memoryview, most: int) -> bytes:
    """Unpack a whole zlib stream, of which more than `most` bytes are not even made.

    Raises
    ------
    ValueError, zlib.error
        If it is no such stream, ends too early or too late, or holds more.
    """
    stream = zlib.decompressobj()
    raw = stream.decompress(stored, most + 1)
    if len(raw) > most or not stream.eof or stream.unused_data:
        raise ValueError("a stream has another length than it should")
    return raw
