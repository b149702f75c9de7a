"""Whatever is changed in a finished run is found, also where every checksum was made to fit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from localsmooth.baselines import Cohen
from localsmooth.errors import InvalidInputError
from localsmooth.evidence import DoesNotHoldError, export_certificate, verify_run
from localsmooth.layout import GridLayout
from localsmooth.pipeline import recertify
from localsmooth.results import load_result, save_result
from localsmooth.runs import Chunk, DirectoryStore, record

from .runs import chunk_files, make_run, rewrite_array, rewrite_chunk, rewrite_record


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("runs") / "run")
    assert verify_run(run).complete
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def flip(path: Path, place: int, bit: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= bit
    path.write_bytes(bytes(content))


def test_flipped_bytes_of_every_chunk_are_found(run: Path):
    for path in chunk_files(run):
        kept = path.read_bytes()
        for place in (0, len(kept) // 3, len(kept) // 2, len(kept) - 33, len(kept) - 1):
            flip(path, place)
            with pytest.raises(DoesNotHoldError, match=r"chunks: .*checksum"):
                verify_run(run)
            path.write_bytes(kept)
        path.write_bytes(kept[:-5])
        with pytest.raises(DoesNotHoldError):
            verify_run(run)
        path.write_bytes(kept)
    assert verify_run(run).complete


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8, 0.999])
@pytest.mark.parametrize("name", ["manifest.json", "certification.json", "result.nc", "arrays/item0-votes.array"])
def test_flipped_bytes_of_other_files_are_found(run: Path, name: str, share: float):
    path = run / name
    place = int(len(path.read_bytes()) * share)
    before = load_result(run / "result.nc")
    flip(path, place)
    try:
        verify_run(run)
    except DoesNotHoldError:
        return
    # HDF5 leaves bytes unused, and knows some numbers twice: then nothing that is read has changed.
    assert name == "result.nc"
    assert load_result(path).identical(before)


def of(path: str) -> Callable[[Path], Path]:
    return lambda run: run / "chunks" / "item000000" / path


BOUND = of("group00001-stage1-chunk000001.tally")
FIRST = of("group00001-stage0-chunk000000.tally")


def more_votes(run: Path) -> None:
    def change(chunk: record.ChunkRecord) -> record.ChunkRecord:
        return replace(chunk, counts={"votes.votes": np.minimum(chunk.counts["votes.votes"] + 1, 100).astype(np.uint8)})

    rewrite_chunk(BOUND(run), run, change)


def more_votes_twice(run: Path) -> None:
    more_votes(run)
    store = DirectoryStore(run, read_only=True)
    labels = store.get_array("layout0-outputs").ravel() == 1
    total = sum(
        store.read_chunk(f"chunks/item000000/group00001-stage1-chunk00000{number}.tally")
        .counts["votes.votes"]
        .astype(int)
        for number in range(3)
    )

    def change(votes: np.ndarray) -> np.ndarray:
        votes[labels] = total
        return votes

    rewrite_array(run, "item0-votes", change)


def other_candidates(run: Path) -> None:
    def change(chunk: record.ChunkRecord) -> record.ChunkRecord:
        return replace(chunk, counts={"labels.counts": chunk.counts["labels.counts"][:, ::-1].copy()})

    rewrite_chunk(FIRST(run), run, change)


def too_many_votes(run: Path) -> None:
    rewrite_chunk(
        BOUND(run), run, lambda chunk: replace(chunk, counts={"votes.votes": chunk.counts["votes.votes"] + 101})
    )


def fewer_samples(run: Path) -> None:
    rewrite_chunk(BOUND(run), run, lambda chunk: replace(chunk, n=99, chunk=replace(chunk.chunk, size=99)))


def swapped_files(run: Path) -> None:
    one, two = BOUND(run), of("group00001-stage1-chunk000002.tally")(run)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def swapped_groups(run: Path) -> None:
    """The same chunk of two groups, each under the other's key: votes stay votes, for others' candidates."""
    one, two = BOUND(run), of("group00000-stage1-chunk000001.tally")(run)
    store = DirectoryStore(run, read_only=True)
    first, second = (store.read_chunk(path.relative_to(run).as_posix()) for path in (one, two))
    rewrite_chunk(one, run, lambda chunk: replace(second, chunk=chunk.chunk))
    rewrite_chunk(two, run, lambda chunk: replace(first, chunk=chunk.chunk))


def dropped(run: Path) -> None:
    BOUND(run).unlink()


def last_dropped(run: Path) -> None:
    of("group00003-stage1-chunk000002.tally")(run).unlink()


def duplicated(run: Path) -> None:
    shutil.copy(BOUND(run), of("group00001-stage1-chunk000003.tally")(run))


def counted_twice(run: Path) -> None:
    target = of("group00001-stage1-chunk000003.tally")(run)
    shutil.copy(BOUND(run), target)
    rewrite_chunk(target, run, lambda chunk: replace(chunk, chunk=Chunk(0, 1, 1, 3, 100)))


def foreign_group(run: Path) -> None:
    target = of("group00009-stage1-chunk000000.tally")(run)
    shutil.copy(BOUND(run), target)
    rewrite_chunk(target, run, lambda chunk: replace(chunk, chunk=Chunk(0, 9, 1, 0, 100)))


def smaller_noise_levels(run: Path) -> None:
    rewrite_array(run, "layout0-levels", lambda levels: levels * 2)


def other_groups(run: Path) -> None:
    rewrite_array(run, "layout0-inputs", lambda labels: labels[::-1].copy())


def another_input(run: Path) -> None:
    rewrite_array(run, "item0-image", lambda image: image + np.float32(0.01))


def better_candidates(run: Path) -> None:
    rewrite_array(run, "item0-candidate", lambda candidate: 1 - candidate)


def surer_candidates(run: Path) -> None:
    rewrite_array(run, "item0-candidate-votes", lambda votes: np.minimum(votes + 1, 20).astype(votes.dtype))


def halves_of_votes(run: Path) -> None:
    rewrite_array(run, "item0-votes", lambda votes: votes + 0.5)


def groups_that_are_no_numbers(run: Path) -> None:
    rewrite_array(run, "output-groups", lambda groups: groups + 0.5)


def record_of_more_samples(run: Path) -> None:
    rewrite_record(run, lambda content: content.update(n_bound=3000))


def record_of_larger_alpha(run: Path) -> None:
    rewrite_record(run, lambda content: content["settings"].update(alpha=0.5))


def record_of_other_noise(run: Path) -> None:
    rewrite_record(run, lambda content: content.update(noise={"distribution": "uniform", "clamp": False}))


def record_of_other_bounds(run: Path) -> None:
    rewrite_record(run, lambda content: content.update(input_bounds=[0.0, 255.0]))


def record_of_more_classes(run: Path) -> None:
    rewrite_record(run, lambda content: content["class_names"].append("one more"))


def record_of_other_candidates(run: Path) -> None:
    rewrite_record(run, lambda content: content.update(candidates={"run": "other", "model": "other"}))


def no_result(run: Path) -> None:
    (run / "result.nc").unlink()


def no_record(run: Path) -> None:
    (run / "certification.json").unlink()


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (more_votes, "sum of the chunks"),
        (more_votes_twice, "not what follows from the run"),
        (other_candidates, "votes for other candidates"),
        (too_many_votes, "votes outside"),
        (fewer_samples, "holds 99 of 99 samples, and 100 were planned"),
        (swapped_files, "duplicate or was renamed"),
        (swapped_groups, "other candidates|other outputs"),
        (dropped, "is missing"),
        (last_dropped, "is missing"),
        (duplicated, "duplicate or was renamed"),
        (counted_twice, "was not planned"),
        (foreign_group, "no such group"),
        (smaller_noise_levels, "layout|not what follows"),
        (other_groups, "layout|not what follows"),
        (another_input, "image|input"),
        (better_candidates, "candidate"),
        (surer_candidates, "candidate stage|not what follows"),
        (halves_of_votes, "no whole numbers|violates type hint"),
        (groups_that_are_no_numbers, "chunks: does not hold"),
        (record_of_more_samples, "does not belong"),
        (record_of_larger_alpha, "alpha|not what follows"),
        (record_of_other_noise, "does not belong"),
        (record_of_other_bounds, "does not belong"),
        (record_of_more_classes, "does not belong"),
        (record_of_other_candidates, "which model chose the candidates"),
        (no_result, "result"),
        (no_record, "no finished run"),
    ],
)
def test_consistent_changes_are_found(run: Path, tamper: Callable[[Path], None], said: str):
    tamper(run)
    with pytest.raises(DoesNotHoldError, match=said):
        verify_run(run)


def change_result(run: Path, change: Callable[[xr.Dataset], None]) -> None:
    result = load_result(run / "result.nc").copy(deep=True)
    change(result)
    save_result(result, run / "result.nc")


def raised(result: xr.Dataset) -> None:
    """One more output, as high as the file's own consistency allows."""
    at = {"target": 0, "bound": 1, "budget": 3}
    for name in ("certified", "lower", "upper"):
        result[name][{"item": 0, **at}] = float(result["certified"][{"item": 0, **at}]) + 9


def raised_slightly(result: xr.Dataset) -> None:
    at = {"item": 0, "target": 0, "bound": 2, "budget": 3}
    result["lower"][at] = float(result["certified"][at]) + 0.5
    result["upper"][at] = float(result["upper"][at]) + 1
    result["certified"][at] = int(result["certified"][at]) + 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (raised, "more than what is proven"),
        (raised_slightly, "more than what is proven"),
        (lambda r: r["radius"].__setitem__(slice(None), r["radius"] * 1.01), "radius"),
        (lambda r: r["eta"].__setitem__(slice(None), r["eta"] * 1.01), "eta"),
        (lambda r: r["lower_probability"].__setitem__(slice(None), r["lower_probability"] ** 0.9), "lower_probability"),
        (lambda r: r["image"].__setitem__(slice(None), r["image"] / 2), "image"),
        (lambda r: r["budget"].attrs.update(units="other"), "budget"),
        (lambda r: r["certified"].attrs.update(long_name="robust whatever happens"), "attributes of certified"),
        (lambda r: r.attrs.update(alpha=0.001), "alpha"),
        (lambda r: r.attrs.update(threat="anything at all"), "threat"),
        (lambda r: r.attrs.update(assumptions="[]"), "assumptions"),
        (lambda r: r.attrs.update(units="miles"), "units"),
        (lambda r: r.attrs.update(smoothing="null"), "smoothing"),
        (lambda r: r.attrs.update(norm="l1"), "norm"),
    ],
)
def test_changed_results_are_found(run: Path, change: Callable[[xr.Dataset], None], said: str):
    change_result(run, change)
    with pytest.raises(DoesNotHoldError, match=said):
        verify_run(run)


def test_a_stretched_budget_is_found(run: Path):
    change_result(run, lambda result: None)
    result = load_result(run / "result.nc")
    save_result(
        result.assign_coords(budget=("budget", result["budget"].values * 2, result["budget"].attrs)), run / "result.nc"
    )
    with pytest.raises(DoesNotHoldError, match="budget"):
        verify_run(run)


def test_what_a_baseline_proves_before_rounding_is_compared(tmp_path: Path):
    run = make_run(tmp_path / "run", method=Cohen(), layout=GridLayout((1, 1), 0.3, 0.3))
    assert "baseline cohen" in verify_run(run).unchecked[0]
    change_result(run, lambda result: result["lower"].__setitem__(slice(None), result["lower"] + 1))
    with pytest.raises(DoesNotHoldError, match="lower is larger"):
        verify_run(run)


def test_votes_of_the_candidate_stage_that_are_left_out_are_missed(run: Path):
    """Without them another prior would be chosen, after the votes were seen."""
    (run / "arrays" / "item0-candidate-votes.array").unlink()
    save_result(recertify(run), run / "result.nc")
    assert "does not keep" in verify_run(run).unchecked[0]


def test_nothing_is_exported_of_a_result_that_nothing_was_compared_with(run: Path, tmp_path: Path):
    """Whoever names a class that nobody knows could write anything into the result."""
    rewrite_record(run, lambda content: content["settings"].update(threat={"name": "nobody knows"}))
    change_result(run, raised)
    assert "anything in the result" in verify_run(run).unchecked[0]
    with pytest.raises(InvalidInputError, match="nothing in its result could be checked"):
        export_certificate(run, tmp_path / "certificate.json")
    assert not (tmp_path / "certificate.json").exists()


def test_a_weaker_count_is_true_and_noted(run: Path):
    def lower(result: xr.Dataset) -> None:
        result["certified"][{"item": 0, "target": 0, "bound": 2, "budget": 1}] -= 1

    change_result(run, lower)
    found = verify_run(run)
    assert found.complete
    assert "1 counts differ" in found.notes[0]


def test_a_run_of_invented_tallies_holds_together_as_it_must(run: Path):
    """Nobody sees from a run alone whether its tallies are what the model predicted: that is said to be on trust."""
    more_votes_twice(run)
    save_result(recertify(run), run / "result.nc")
    found = verify_run(run)
    assert found.complete
    assert any("tallies are what the model predicted" in text for text in found.trusted)
