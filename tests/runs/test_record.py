"""The bytes of chunks and arrays: what comes back, and whatever is torn, altered, foreign or made up is refused."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.runs import Chunk, ChunkRecord, CorruptRecordError, Stage
from localsmooth.runs.record import decode_array, decode_chunk, encode_array, encode_chunk

HASH = "0123456789abcdef" * 4


def record(index: int = 0, chosen: str = "", stage: Stage = Stage.CANDIDATE) -> ChunkRecord:
    counts = {"labels.counts": np.array([[1, 2], [3, 0]], np.uint8), "mean.sum": np.array([0.5, -1.0])}
    return ChunkRecord(Chunk(0, 1, stage.value, index, 3), 3, counts, chosen, {"device": "cpu", "seconds": 0.5})


def test_a_chunk_survives_the_round_trip() -> None:
    before = record()
    after = decode_chunk(encode_chunk(before, HASH), HASH)
    assert (after.chunk, after.n, after.chosen) == (before.chunk, before.n, before.chosen)
    assert dict(after.provenance) == dict(before.provenance)
    for name, array in before.counts.items():
        np.testing.assert_array_equal(after.counts[name], array)
        assert after.counts[name].dtype == array.dtype


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "<i4", ">i4", ">f8", "float16", "uint64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_arrays_survive_the_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    after = decode_array(encode_array("image", array, HASH), "image", HASH)
    np.testing.assert_array_equal(after, array)
    assert after.shape == shape
    assert after.dtype == array.dtype.newbyteorder("=")


def test_objects_are_never_stored() -> None:
    with pytest.raises(TypeError):
        encode_array("image", np.array([{}], dtype=object), HASH)


@settings(max_examples=200, deadline=None)
@given(position=st.integers(0, 10**6), change=st.integers(1, 255))
def test_every_altered_byte_is_noticed(position: int, change: int) -> None:
    data = bytearray(encode_chunk(record(), HASH))
    data[position % len(data)] ^= change
    with pytest.raises(CorruptRecordError):
        decode_chunk(bytes(data), HASH)


@settings(max_examples=100, deadline=None)
@given(length=st.integers(0, 10**6))
def test_every_truncation_is_noticed(length: int) -> None:
    data = encode_chunk(record(), HASH)
    with pytest.raises(CorruptRecordError):
        decode_chunk(data[: length % len(data)], HASH)


def sealed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def stored(facts: object, header: dict[str, object], payload: bytes = b"", entry: str = "localsmooth/2") -> bytes:
    text = facts if isinstance(facts, str) else json.dumps(facts)
    front = json.dumps({"__metadata__": {entry: text}, **header}).encode()
    return sealed(zlib.compress(len(front).to_bytes(8, "little") + front + payload))


GOOD = {"kind": "chunk", "configuration": HASH, "key": [0, 1, 0, 0], "size": 3, "n": 3}
BYTES = {"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}


def test_what_the_tests_of_nonsense_start_from_is_sound() -> None:
    assert decode_chunk(stored(GOOD, BYTES, b"abc"), HASH).counts["a"].tolist() == [97, 98, 99]


WRONG_FACTS = (
    {**GOOD, "n": 4},
    {**GOOD, "n": -1},
    {**GOOD, "n": 2.5},
    {**GOOD, "key": [0, 1]},
    {**GOOD, "key": [0, 1, 0, -1]},
    {**GOOD, "kind": "array"},
    {**GOOD, "kind": "code"},
    {**GOOD, "configuration": "f" * 64},
    {**GOOD, "surprise": 1},
)


@pytest.mark.parametrize("facts", [*WRONG_FACTS, "[]", "{", "\ud800", "[" * 100_000, "1" * 5000, "NaN"])
def test_well_sealed_nonsense_is_refused(facts: object) -> None:
    with pytest.raises(CorruptRecordError):
        decode_chunk(stored(facts, BYTES, b"abc"), HASH)


def tensor(**changes: object) -> dict[str, object]:
    return {"a": {**BYTES["a"], **changes}}


@pytest.mark.parametrize(
    "header",
    [
        tensor(shape=[4]),
        tensor(shape=[1 << 62, 4]),
        tensor(shape=[-3]),
        tensor(shape=[1] * 100 + [3]),
        tensor(dtype="O"),
        tensor(dtype="BF16"),
        tensor(dtype="F8_E4M3"),
        tensor(data_offsets=[0, 2]),
        tensor(data_offsets=[0, 1 << 63]),
        tensor(data_offsets=[1, 3]),
        {**BYTES, "b": BYTES["a"]},
        {"a": {"dtype": "C64", "shape": [0], "data_offsets": [0, 0]}},
        {},
        {**BYTES, "__metadata__": None},
        {**BYTES, "__metadata__": {"format": "np"}},
    ],
)
def test_well_sealed_nonsense_about_arrays_is_refused(header: dict[str, object]) -> None:
    with pytest.raises(CorruptRecordError):
        decode_chunk(stored(GOOD, header, b"abc"), HASH)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        zlib.compress(b""),
        zlib.compress(b"[" * 1000),
        zlib.compress(bytes(10**7)),
        zlib.compress(b"\2" + bytes(7) + b"{}"),
    ],
)
def test_well_sealed_streams_of_something_else_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        decode_chunk(sealed(body), HASH)


@pytest.mark.parametrize("change", [lambda body: body[:-1], lambda body: body + b"x", lambda body: body + body])
def test_well_sealed_streams_of_another_length_are_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CorruptRecordError, match="length"):
        decode_chunk(sealed(change(stored(GOOD, BYTES, b"abc")[:-32])), HASH)


def test_a_stream_that_unpacks_to_more_than_a_file_may_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localsmooth.runs.record._LARGEST", 10**6)
    data = stored(GOOD, tensor(shape=[10**7], data_offsets=[0, 10**7]), bytes(10**7))
    assert len(data) < 20_000
    with pytest.raises(CorruptRecordError, match="length"):
        decode_chunk(data, HASH)


def test_a_file_of_a_newer_version_is_told_from_a_damaged_one() -> None:
    with pytest.raises(CorruptRecordError, match="newer version"):
        decode_chunk(stored({"all": "new"}, BYTES, b"abc", entry="localsmooth/3"), HASH)


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([bytes, sealed, lambda data: sealed(zlib.compress(data))]),
)
def test_random_bytes_are_refused(data: bytes, seal: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CorruptRecordError):
        decode_chunk(seal(data), HASH)
