"""Runs that several machines share: parts, joining, and what is said about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fsspec
import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import OtherPartsMissingError, Part, PoisonedChunksError
from localsmooth.runs import (
    ChunkRecord,
    DirectoryStore,
    FileStore,
    SamplingPlan,
    Stage,
    StoreError,
    find_runs,
    join,
    open_store,
    survey,
)
from localsmooth.runs.record import decode_chunk, encode_chunk
from tests.sampling.exact import PLAN, ExactModel, assert_same, run

COUNTED = 4 * (PLAN.n_candidate + PLAN.n_bound)


def draw_part(place: Path | str, number: int, count: int = 2, **changes: object) -> None:
    with open_store(place) as store, pytest.raises(OtherPartsMissingError, match="localsmooth merge"):
        run(store=store, part=Part(number, count), **changes)  # type: ignore[arg-type]


def test_parts_joined_are_the_undisturbed_run(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        draw_part(tmp_path / f"part{number}", number, 3)
    with DirectoryStore(tmp_path / "part1") as into:
        others = [DirectoryStore(tmp_path / f"part{n}", read_only=True) for n in (2, 3)]
        joined = join(into, others)
        assert joined.known == 0
        assert joined.added == sum(len(other.finished()) for other in others)

        def fail(_: object) -> None:
            raise AssertionError("the model was called")

        assert_same(run(ExactModel(watch=fail), store=into), run())
        assert join(into, others).added == 0, "joining again changes nothing"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_every_output_group_is_in_one_part(count: int, tmp_path: Path) -> None:
    keys: list[tuple[int, int, int, int]] = []
    for number in range(1, count + 1):
        with DirectoryStore(tmp_path / str(number)) as store:
            try:
                run(store=store, part=Part(number, count))
            except OtherPartsMissingError:
                assert count > 1
            keys += list(store.finished())
    assert len(set(keys)) == len(keys) == 4 * (1 + 3)


def test_the_last_part_of_a_shared_store_gives_the_tallies(tmp_path: Path) -> None:
    draw_part(tmp_path, 1)
    with DirectoryStore(tmp_path) as store:
        assert_same(run(store=store, part=Part(2, 2)), run())


def test_joining_into_an_empty_place(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path / "a") as store:
        run(store=store)
        join(into := open_store("memory://joined/run"), [store])
    assert_same(run(store=into), run())
    fsspec.filesystem("memory").rm("/joined", recursive=True)


def test_another_seed_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    draw_part(tmp_path / "a", 1)
    draw_part(tmp_path / "b", 2, plan=SamplingPlan(10, 45, seed=4, chunk_size=20))
    with DirectoryStore(tmp_path / "a") as into:
        before = dict(into.finished())
        with pytest.raises(StoreError, match=r"plan\.seed"):
            join(into, [DirectoryStore(tmp_path / "b", read_only=True)])
        assert into.finished() == before


def edit(path: Path, change: Callable[[ChunkRecord], ChunkRecord]) -> None:
    sha256 = json.loads((path.parents[2] / "manifest.json").read_bytes())["sha256"]
    path.write_bytes(encode_chunk(change(decode_chunk(path.read_bytes(), sha256)), sha256))


def one_vote_less(old: ChunkRecord) -> ChunkRecord:
    counts = dict(old.counts)
    counts["votes.votes"] = np.where(counts["votes.votes"] > 0, counts["votes.votes"] - 1, 0).astype(np.uint8)
    return ChunkRecord(old.chunk, old.n, counts, old.chosen, old.provenance)


def test_a_chunk_with_two_contents_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    for name in "abc":
        draw_part(tmp_path / name, 2 if name == "c" else 1)
    edit(sorted((tmp_path / "b").rglob("*stage1*.tally"))[0], one_vote_less)
    with DirectoryStore(tmp_path / "c") as into:
        before = dict(into.finished())
        with pytest.raises(StoreError, match="different counts"):
            join(into, [DirectoryStore(tmp_path / name, read_only=True) for name in "ab"])
        assert into.finished() == before


def test_a_damaged_chunk_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    draw_part(tmp_path / "a", 1)
    draw_part(tmp_path / "b", 2)
    victim = sorted((tmp_path / "b").rglob("*.tally"))[-1]
    victim.write_bytes(victim.read_bytes()[:-5])
    with DirectoryStore(tmp_path / "a") as into:
        before = dict(into.finished())
        with pytest.raises(StoreError, match=victim.name):
            join(into, [DirectoryStore(tmp_path / "b", read_only=True)])
        assert into.finished() == before


def test_models_that_predict_differently_are_not_joined(tmp_path: Path) -> None:
    draw_part(tmp_path / "a", 1)
    draw_part(tmp_path / "b", 2)
    stores: list[FileStore] = [DirectoryStore(tmp_path / name) for name in "ab"]
    for store, labels in zip(stores, (np.zeros(100, np.int32), np.ones(100, np.int32)), strict=True):
        store.put_array("trial-predictions", labels)
    with pytest.raises(StoreError, match="predicts differently"):
        join(stores[0], stores[1:])
    for store in stores:
        store.close()


def test_nothing_to_join(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path / "a") as empty:
        with pytest.raises(InvalidInputError, match="nothing to join"):
            join(empty, [])
        with pytest.raises(StoreError, match="holds no run"):
            join(empty, [open_store("memory://nowhere")])


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b"])
def test_parts_that_do_not_exist(text: str) -> None:
    with pytest.raises(InvalidInputError, match="part"):
        Part.parse(text)


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(InvalidInputError, match="protocol"):
        open_store("nosuch://bucket")


def test_the_overview_says_what_is_there_and_what_is_missing(tmp_path: Path) -> None:
    draw_part(tmp_path / "a", 1)
    overview = survey(DirectoryStore(tmp_path / "a", read_only=True))
    assert (overview.counted, overview.planned, overview.items) == (COUNTED // 2, COUNTED, 1)
    assert overview.noise == "gaussian"
    assert overview.missing == {(0, g, s.name.lower()): PLAN.samples(s) for g in (1, 3) for s in Stage}
    assert overview.seconds > 0
    assert sum(overview.devices.values()) == 2 * (1 + 3)
    assert not overview.damaged


def test_the_overview_names_damaged_chunks_and_does_not_count_them(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
    victim = sorted(tmp_path.rglob("*.tally"))[0]
    victim.write_bytes(victim.read_bytes()[:-5])
    overview = survey(DirectoryStore(tmp_path, read_only=True))
    assert overview.counted == COUNTED - PLAN.n_candidate
    assert victim.name in overview.damaged[0]
    assert overview.missing == {(0, 0, "candidate"): PLAN.n_candidate}


@pytest.mark.parametrize("groups", [[10**12], [-4], [4, 4], [[4]], [4.0], [0]])
def test_numbers_of_groups_that_no_run_has_are_damage_and_not_counted_up_to(groups: list[int], tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
        store.put_array("output-groups", np.array(groups))
        overview = survey(store)
    assert overview.counted == COUNTED
    assert (overview.planned, overview.missing) == (None, {})
    assert "output-groups" in overview.damaged[0]


def test_chunks_that_failed_are_listed_until_they_are_drawn(tmp_path: Path) -> None:
    def dazzled(batch: torch.Tensor) -> None:
        if float(batch.max()) > 2.5:
            raise ValueError("too bright")

    with DirectoryStore(tmp_path) as store:
        with pytest.raises(PoisonedChunksError) as caught:
            run(ExactModel(watch=dazzled), store=store)
        failed = {chunk.chunk.key: chunk.array for chunk in caught.value.chunks if chunk.array}
        assert failed
        overview = survey(store)
        listed = {(i, g, Stage[stage.upper()].value, n): array for (i, g, stage, n), array in overview.failed.items()}
        assert listed == failed
        run(store=store)
        assert not survey(store).failed
        assert set(failed.values()) <= set(store.array_names()), "what was kept has been deleted"


def test_a_chunk_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
        (sorted(tmp_path.rglob("*.tally"))[0].parent / "group00009-stage0-chunk000000.tally.partial").write_bytes(b"lo")
        assert not survey(DirectoryStore(tmp_path, read_only=True)).damaged


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DirectoryStore(tmp_path) as store:
        run(store=store)
        victim = sorted(tmp_path.rglob("*.tally"))[0]
        opened = Path.open

        def deny(path: Path, mode: str = "r") -> object:
            if path == victim:
                raise PermissionError(13, "Permission denied")
            return opened(path, mode)

        monkeypatch.setattr(Path, "open", deny)
        assert any(victim.name in line and "Permission denied" in line for line in survey(store).damaged)
        with pytest.raises(StoreError, match="cannot be read"):
            run(store=store)


def test_runs_are_found(tmp_path: Path) -> None:
    for name in ("a", "b/c/d", "b/c/d/e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text("{}")
    assert find_runs(tmp_path) == [tmp_path / "a", tmp_path / "b" / "c" / "d"]
    with pytest.raises(StoreError, match="no folder"):
        find_runs(tmp_path / "nowhere")
