"""Stores keep every chunk exactly once, and refuse whatever is torn, altered, misplaced or foreign."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.runs import (
    Chunk,
    ChunkRecord,
    DirectoryStore,
    MemoryStore,
    RunIdentity,
    SamplingPlan,
    Stage,
    StoreError,
    open_store,
)
from localsmooth.runs.record import decode_chunk, encode_chunk
from tests.runs.test_record import record
from tests.sampling.exact import PLAN, ExactModel, assert_same, make_layout, run

CONFIGURATION = RunIdentity({"plan": {"seed": 1}, "items": [{"content": "a"}, {"content": "b"}]})


def test_at_an_address_another_process_may_be_about_to_draw(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/run")
    store.begin(CONFIGURATION)
    store.put_array("trial-predictions", np.zeros(3))
    with pytest.raises(StoreError, match="another configuration"):
        open_store(f"file://{tmp_path}/run").begin(RunIdentity({"plan": {"seed": 2}}))
    assert store.array_names() == ["trial-predictions"]
    store.commit(record())
    assert open_store(f"file://{tmp_path}/run").finished()


@pytest.mark.parametrize("drawn", ["item0-centre", "layout0-levels", "graph-edges"])
def test_a_place_where_nothing_was_drawn_takes_another_run(tmp_path: Path, drawn: str) -> None:
    store = DirectoryStore(tmp_path / "run")
    store.begin(CONFIGURATION)
    store.put_array("trial-predictions", np.zeros(3))
    other = RunIdentity({"plan": {"seed": 2}})
    store.begin(other)
    assert not store.array_names()
    store.put_array(drawn, np.zeros(3))
    store.close()
    with DirectoryStore(tmp_path / "run") as again, pytest.raises(StoreError, match="another configuration"):
        again.begin(CONFIGURATION)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("plan.seed", {"plan": SamplingPlan(10, 45, seed=4, chunk_size=20)}),
        ("plan.n_bound", {"plan": SamplingPlan(10, 46, seed=3, chunk_size=20)}),
        ("plan.n_candidate", {"plan": SamplingPlan(11, 45, seed=3, chunk_size=20)}),
        ("plan.chunk_size", {"plan": SamplingPlan(10, 45, seed=3, chunk_size=21)}),
        (r"items\[0\].layout", {"layout": make_layout(cells=(1, 2))}),
        (r"items\[0\].precision", {"item_dtype": torch.float64}),
        ("model.fingerprint", {"model": ExactModel(name="another")}),
    ],
)
def test_whatever_changes_tallies_changes_the_configuration(name: str, change: dict[str, object]) -> None:
    store = MemoryStore()
    run(store=store)
    with pytest.raises(StoreError, match=name):
        run(store=store, **change)  # type: ignore[arg-type]


def test_batch_size_and_calibration_do_not_change_the_configuration() -> None:
    store = MemoryStore()
    first = run(store=store, batch_size=7)
    assert_same(run(store=store, batch_size=3), first)
    assert {kept.batch_size for kept in store.finished().values()} == {5, 7}, "a chunk holds 5 samples only"


def test_a_finished_run_is_read_without_calling_the_model(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        first = run(store=store)

    def fail(_: torch.Tensor) -> None:
        raise AssertionError("the model was called")

    with DirectoryStore(tmp_path) as store:
        assert_same(run(ExactModel(watch=fail), store=store), first)
    assert_same(first, run())


def chunk_files(path: Path) -> list[Path]:
    return sorted(p for p in (path / "chunks").rglob("*") if p.is_file())


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def take_from_another_run(path: Path) -> None:
    path.write_bytes(encode_chunk(decode_chunk_of(path), "f" * 64))


def decode_chunk_of(path: Path) -> ChunkRecord:
    manifest = json.loads((path.parents[2] / "manifest.json").read_bytes())
    return decode_chunk(path.read_bytes(), manifest["sha256"])


def copy_under_another_name(path: Path) -> None:
    path.with_name("group00003-stage1-chunk000009.tally").write_bytes(path.read_bytes())
    path.unlink()


def add_a_stranger(path: Path) -> None:
    path.with_name("notes.txt").write_text("hello")


@pytest.mark.parametrize("damage", [truncate, flip, take_from_another_run, copy_under_another_name, add_a_stranger])
def test_damaged_chunks_are_named_and_redrawn_after_deletion(damage: Callable[[Path], None], tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        first = run(store=store)
    before = {p.name for p in chunk_files(tmp_path)}
    victim = chunk_files(tmp_path)[5]
    damage(victim)
    with DirectoryStore(tmp_path) as store:
        with pytest.raises(StoreError, match=r"(Delete|Move) the file") as caught:
            run(store=store)
        named = Path(str(caught.value).split(" ")[0])
        assert named.parent == victim.parent
        named.unlink()
        assert_same(run(store=store), first)
    assert {p.name for p in chunk_files(tmp_path)} == before


def test_votes_for_candidates_that_have_changed_are_refused(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
    path = chunk_files(tmp_path)[0]
    old = decode_chunk_of(path)
    assert old.chunk.stage == Stage.CANDIDATE.value
    counts = {"labels.counts": np.roll(old.counts["labels.counts"], 1, axis=1)}
    sha256 = json.loads((tmp_path / "manifest.json").read_bytes())["sha256"]
    path.write_bytes(encode_chunk(ChunkRecord(old.chunk, old.n, counts), sha256))
    with DirectoryStore(tmp_path) as store, pytest.raises(StoreError, match="other candidates"):
        run(store=store)
    for stale in tmp_path.rglob("group00000-stage1-*"):
        stale.unlink()
    with DirectoryStore(tmp_path) as store:
        run(store=store)


def test_a_chunk_of_another_size_is_refused(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
        path = chunk_files(tmp_path)[0]
        old = decode_chunk_of(path)
        sha256 = json.loads((tmp_path / "manifest.json").read_bytes())["sha256"]
        short = ChunkRecord(Chunk(*old.chunk.key, 9), 9, old.counts)
        path.write_bytes(encode_chunk(short, sha256))
        with pytest.raises(StoreError, match="does not belong to the plan"):
            run(store=store)


def test_two_writers_exclude_each_other_and_a_reader_does_not_mind(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
        with pytest.raises(StoreError, match="another process is writing"):
            DirectoryStore(tmp_path)
        reader = DirectoryStore(tmp_path, read_only=True)
        assert reader.merged(0, 0, Stage.BOUND).n == PLAN.n_bound
        with pytest.raises(StoreError, match="opened for reading"):
            reader.put_array("image", np.zeros(1))
    DirectoryStore(tmp_path).close()


def test_a_directory_without_a_run_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no run"):
        DirectoryStore(tmp_path, read_only=True)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"configuration": {}, "format": "other"}', "[" * 50_000])
def test_a_damaged_manifest_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        DirectoryStore(tmp_path)


def test_an_edited_manifest_is_refused(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        store.begin(CONFIGURATION)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(StoreError, match="damaged"):
        DirectoryStore(tmp_path)


def test_a_run_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
    manifest = json.loads((tmp_path / "manifest.json").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": 1}))
    with pytest.raises(StoreError, match="another version of this program; use that one to read it"):
        DirectoryStore(tmp_path)


def test_chunks_without_a_manifest_are_refused(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
    (tmp_path / "manifest.json").unlink()
    with DirectoryStore(tmp_path) as store, pytest.raises(StoreError, match="configuration is unknown"):
        run(store=store)


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    flush = os.fsync

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 13:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(handle)

    with DirectoryStore(tmp_path) as store:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left on device"):
            run(store=store)
        monkeypatch.undo()
        assert not list(tmp_path.rglob("*.partial"))
        finished = len(store.finished())
        assert finished >= 3
        assert_same(run(store=store), run())
