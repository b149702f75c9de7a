"""Runs on bits, arrays and graphs, are verified in full; what is changed in them, or made wrongly, is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from localsmooth.bounds import Bonferroni, JointCount
from localsmooth.certificates import ExactVotes, RenyiVotes
from localsmooth.collective import Constraints
from localsmooth.evidence import DoesNotHoldError, export_certificate, verify_run
from localsmooth.evidence.threats import flips_fail
from localsmooth.execution import NoProgress
from localsmooth.layout import Layout, Partition
from localsmooth.noise import Bernoulli, SparseFlips
from localsmooth.pipeline import recertify
from localsmooth.results import load_result, save_result
from localsmooth.runs import SamplingPlan, StoreError, record
from localsmooth.tasks import RunRecordError
from localsmooth.tasks.arrays import Flips, Kind
from localsmooth.tasks.graphs import (
    GCN,
    AttackLimits,
    GraphSettings,
    NetworkClassifier,
    cluster_layout,
    graph_from_arrays,
)
from tests.flat import certify_graph
from tests.seeding import seeded

from .runs import SHAPE, chunk_files, make_run, rewrite_array, rewrite_chunk
from .test_mistakes import around

HALVES = np.repeat([0, 1], [24, 24]).reshape(SHAPE)


def bits() -> list[np.ndarray]:
    return [(np.random.default_rng(3).random((1, *SHAPE)) < 0.4).astype(np.float32)]


def make_binary(out: Path, noise: Any, **changes: Any) -> Path:
    pairs = np.array([[[0.05, 0.2], [0.2, 0.4]], [[0.2, 0.4], [0.05, 0.2]]])
    levels = pairs if isinstance(noise, SparseFlips) else pairs[..., 0]
    arguments: dict[str, Any] = {
        "images": bits(),
        "noise": noise,
        "layout": Layout(Partition(HALVES), Partition(HALVES), levels),
        "budgets": [0, 1, 2, 5],
        "certificates": [RenyiVotes()],
        "bounds": ["lp"],
    }
    return make_run(out, **arguments | changes)


def make_graph(out: Path, most: tuple[float, float] = (0.05, 0.6), **changes: Any) -> Path:
    """Eight nodes of four bits, in two clusters."""
    generator = np.random.default_rng(2)
    edges = np.array([[0, 1, 2, 3, 4, 5, 6, 0], [1, 2, 3, 4, 5, 6, 7, 2]])
    attributes = (generator.random((8, 4)) < 0.5).astype(np.int64)
    graph = graph_from_arrays(edges, attributes, np.arange(8) // 4)
    layout = cluster_layout(np.arange(8) // 4, graph.adjacency, addition=(0.02, most[0]), deletion=(0.3, most[1]))
    with seeded(0):
        classifier = NetworkClassifier(GCN(4, 2, (4,)).eval())
    arguments: dict[str, Any] = {"simultaneous": Bonferroni(), "bounds": ["lp"], **changes}
    certify_graph(
        classifier,
        graph,
        layout,
        np.arange(1, 8),
        plan=SamplingPlan(20, 300, chunk_size=150),
        settings=GraphSettings(0.1, [0, 1, 2], [0, 1, 3], **arguments),
        progress=NoProgress(),
        out=out,
    )
    return out


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_binary(tmp_path_factory.mktemp("bits") / "run", SparseFlips())


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("graph") / "run")


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.getfixturevalue(request.param), tmp_path / "run"))


EITHER = pytest.mark.parametrize("run", ["binary", "graph"], indirect=True)


@EITHER
def test_these_runs_are_verified_in_full(run: Path, tmp_path: Path) -> None:
    found = export_certificate(run, tmp_path / "certificate.json")
    assert found.unchecked == ()
    counted = {line.what: line.number for line in found.checked}
    assert all(counted.values())
    assert any("not larger than these proofs" in what for what in counted)
    assert int(load_result(run / "result.nc")["certified"].isel(bound=0).values.ravel()[1]) > 0
    assert verify_run(run, tmp_path / "certificate.json").complete  # with the proofs that were kept


@pytest.mark.parametrize(
    ("make", "trusted"),
    [
        (lambda out: make_binary(out, Bernoulli(), simultaneous=JointCount()), ""),
        (lambda out: make_binary(out, SparseFlips(), threat=Flips(Kind.DELETIONS)), ""),
        (lambda out: make_graph(out, strictly_local=True), "no farther than 2 hops"),
        (lambda out: make_graph(out, simultaneous=None, bounds=["naive", "lp", "exact"], targets=["ratio"]), ""),
    ],
    ids=["joint", "deletions", "receptive fields", "automatic"],
)
def test_others_are_too(make: Callable[[Path], Path], trusted: str, tmp_path: Path) -> None:
    found = verify_run(make(tmp_path / "run"))
    assert found.unchecked == ()
    assert trusted in " ".join(found.trusted)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda out: make_binary(out, Bernoulli(), certificates=[ExactVotes(vectors=50)]), "thresholds of exact-votes"),
        (lambda out: make_graph(out, limits=AttackLimits(node_budget=1)), "at any one node at most 1 additions"),
    ],
    ids=["exact-votes", "limits"],
)
def test_what_is_not_checked_is_said_precisely(make: Callable[[Path], Path], said: str, tmp_path: Path) -> None:
    found = verify_run(make(tmp_path / "run"))
    (text,) = found.unchecked
    assert said in text
    assert any("proofs were verified" in line.what for line in found.checked)


def one_more_vote(run: Path) -> None:
    def change(chunk: record.ChunkRecord) -> record.ChunkRecord:
        votes = np.minimum(chunk.counts["votes.votes"] + 1, chunk.n)
        return replace(chunk, counts={**chunk.counts, "votes.votes": votes})

    rewrite_chunk(next(path for path in chunk_files(run) if "stage1" in path.name), run, change)


def other_reference(run: Path) -> None:
    def change(chunk: record.ChunkRecord) -> record.ChunkRecord:
        sums = chunk.counts["labels.score_sums"] + 1
        return replace(chunk, counts={**chunk.counts, "labels.score_sums": sums})

    rewrite_chunk(next(path for path in chunk_files(run) if "stage0" in path.name), run, change)


def surer_votes(run: Path) -> None:
    rewrite_array(run, "item0-votes", lambda votes: np.minimum(votes + 3, 300).astype(votes.dtype))


def lower_levels(run: Path) -> None:
    rewrite_array(run, "layout0-levels", lambda levels: levels * 1.01)


def fewer_ones(run: Path) -> None:
    name = "graph-ones" if (run / "arrays" / "graph-ones.array").exists() else "item0-image"
    rewrite_array(run, name, lambda kept: np.roll(kept, 1))


def change_result(change: Callable[[xr.Dataset], None]) -> Callable[[Path], None]:
    def changed(run: Path) -> None:
        result = load_result(run / "result.nc").copy(deep=True)
        change(result)
        save_result(result, run / "result.nc")

    return changed


def raise_one(result: xr.Dataset) -> None:
    """As many outputs at the second budget of the first target as at the first."""
    for name in ("certified", "lower", "upper"):
        values = result[name].values.reshape(-1)
        values[1] = max(values[1], values[0])


@EITHER
@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (one_more_vote, "sum of the chunks"),
        (surer_votes, "sum of the chunks|not what follows"),
        (lower_levels, "smoothing|not the one|not what follows"),
        (fewer_ones, "sampled|not what follows"),
        (change_result(raise_one), "more than what is proven"),
        (change_result(lambda r: r["eta"].__setitem__(slice(None), r["eta"] * 1.01)), "eta"),
        (
            change_result(lambda r: r["lower_probability"].__setitem__(slice(None), r["lower_probability"] ** 0.9)),
            "lower_p",
        ),
        (change_result(lambda r: r["radius"].__setitem__(slice(None), r["radius"] * 1.01)), "radius"),
    ],
    ids=["chunk", "votes", "levels", "input", "count", "eta", "q", "radius"],
)
def test_whatever_is_changed_is_found(run: Path, tamper: Callable[[Path], None], said: str) -> None:
    tamper(run)
    with pytest.raises(DoesNotHoldError, match=said):
        verify_run(run)


@pytest.mark.parametrize("run", ["graph"], indirect=True)
def test_scores_that_the_candidate_stage_added_up_belong_to_its_choice(run: Path) -> None:
    other_reference(run)
    with pytest.raises(DoesNotHoldError, match="other candidates"):
        verify_run(run)


@pytest.mark.parametrize("run", ["graph"], indirect=True)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("graph-nodes", lambda kept: np.append(kept[:-1], kept[0])),
        ("graph-nodes", lambda kept: kept + 1),
        ("graph-nodes", lambda kept: kept[None]),
        ("graph-depth", lambda kept: kept[:0]),
        ("graph-width", lambda kept: -kept),
        ("graph-ones", lambda kept: kept + 4),
        ("graph-places", lambda kept: kept[:3]),
        ("item0-clean", lambda kept: kept[:1]),
        ("item0-votes", lambda kept: kept[1:]),
    ],
)
def test_arrays_of_a_graph_that_do_not_fit_are_named(
    run: Path, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    rewrite_array(run, name, change)
    with pytest.raises((RunRecordError, StoreError), match="Run the same certification into this directory again"):
        recertify(run)


@pytest.mark.parametrize("run", ["binary"], indirect=True)
@pytest.mark.parametrize("name", ["item0-image", "item0-label", "item0-candidate", "item0-candidate-votes"])
def test_arrays_of_an_item_that_do_not_fit_are_named(run: Path, name: str) -> None:
    rewrite_array(run, name, lambda kept: kept[..., :-1].copy())
    with pytest.raises(StoreError, match="Run the same certification into this directory again"):
        recertify(run)


def test_no_depth_that_a_run_claims_keeps_verify_busy(tmp_path: Path) -> None:
    run = make_graph(tmp_path / "run", strictly_local=True)
    rewrite_array(run, "graph-depth", lambda kept: kept + 10**8)
    save_result(recertify(run), run / "result.nc")
    assert any("100000002 hops, as the run says" in text for text in verify_run(run).trusted)


def looser(kept: Constraints) -> Constraints:
    return Constraints(kept.rows, np.maximum(kept.budgets - 1, 0), kept.caps, kept.integer, kept.limits)


def fewer(kept: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Counted flips of which one more is said to be needed."""
    return kept[0], kept[1] + (kept[1] > 0)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (around("localsmooth.bounds.simultaneous.clopper_pearson_lower", lambda q: q + (1 - q) * 1e-6), "do not bound"),
        (around("localsmooth.certificates.renyi_votes.renyi_eta", lambda eta: eta * (1 + 1e-9)), "threshold"),
        (around("localsmooth.noise.binary.renyi_divergence", lambda w: w * (1 - 1e-9)), "weight"),
        (around("localsmooth.tasks.graphs.threat.attribute_caps", lambda c: type(c)(c[0], c[1] * 0)), "bits to flip"),
        (around("localsmooth.collective.kernel.threat.Ball.constraints", looser), "is smaller than"),
        (around("localsmooth.tasks.graphs.problem._counted", fewer), "not shown to be needed"),
        (around("localsmooth.evidence.graphs.certified_radius", lambda r: r * (1 + 1e-9)), "radius"),
    ],
    ids=["q", "eta", "W", "caps", "budgets", "flips", "radius"],
)
def test_mistakes_are_found(mistake: Callable[[pytest.MonkeyPatch], None], said: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patching:
        mistake(patching)
        with seeded(0):
            run = make_graph(tmp_path / "run", (0.02, 0.3))  # flips of one kind are counted
        with pytest.raises(DoesNotHoldError, match=said):
            verify_run(run)


def test_a_field_that_leaves_out_what_is_seen_is_found(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patching:
        run = make_graph(tmp_path / "run", strictly_local=True)
        around("localsmooth.evidence.graphs.receptive_fields", _without_the_last)(patching)
        with pytest.raises(DoesNotHoldError, match="smaller than those of what it sees"):
            verify_run(run)


def _without_the_last(fields: Any) -> Any:
    narrow = fields.tolil()
    narrow[:, 0] = False
    made = narrow.tocsr()
    made.eliminate_zeros()
    return made


def test_constraints_that_allow_less_than_what_is_promised_are_named() -> None:
    sizes, kind, room = np.array([[2.0, 1.0]]), np.array([0, 0, 1]), np.array([3, 3, 2])

    def fails(rows: list[list[float]], limits: list[float], caps: list[float]) -> str:
        made = Constraints(
            np.array(rows, float), np.array([limits], float), np.array(caps, float), np.ones(3, np.bool_)
        )
        return flips_fail(sizes, kind, room, made)

    assert fails([[1, 1, 0], [0, 0, 1]], [2, 1], [3, 3, 2]) == ""
    assert fails([[1, 1, 1]], [3], [3, 3, 2]) == ""
    assert "smaller" in fails([[1, 1, 1]], [2], [3, 3, 2])
    assert "smaller" in fails([[1, 1, 0], [0, 0, 1.5]], [2, 1], [3, 3, 2])
    assert "bits to flip" in fails([[1, 1, 0]], [2], [3, 2, 2])
