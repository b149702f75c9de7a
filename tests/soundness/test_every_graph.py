"""Every certificate, bound and limit on graphs (attributes, edges), as `test_every_certificate` for arrays."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from graph_worlds import GraphWorld, attribute_world, edge_world
from ledger import Ledger, Truth
from registered import BOUNDS, combinations, quick
from test_every_certificate import REFERENCES
from tests.flat import certify_graph, recertify
from truthful import Exactly, ExactScores

from localsmooth.baselines import SparseSmooth
from localsmooth.certificates import ABSTAIN, VoteCertificate
from localsmooth.execution import NoProgress
from localsmooth.noise import SparseFlips
from localsmooth.pipeline import Run, certify
from localsmooth.results import ACCURACY, RATIO
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import Flips, Kind, Settings
from localsmooth.tasks.graphs import AttackLimits, EdgeTask, GraphSettings
from localsmooth.tasks.graphs.sampler import SCORE_BINS
from localsmooth.tasks.scores import ScoreCounting

PLAN = SamplingPlan(30, 60, seed=1)
OPTIONS = SamplingOptions(batch_size=64)
EDGES = (0.0, 1.0, 2.0, 3.0, 6.0)
ADDITIONS, DELETIONS = (0, 1, 2, 6), (0, 1, 2, 3, 7)
LIMITS = [
    AttackLimits(),
    AttackLimits(node_budget=1),
    AttackLimits(attacked_nodes=1),
    AttackLimits(cluster_budget=1),
    AttackLimits(attacked_clusters=1),
    AttackLimits(node_flips=1),
    AttackLimits(cluster_flips=2),
    AttackLimits(node_budget=1, attacked_nodes=2, cluster_flips=3),
    AttackLimits(node_flips=1, attacked_clusters=1, cluster_budget=1),
    AttackLimits(attacked_nodes=0),
]


def test_every_limit_is_attacked() -> None:
    tried = {field.name for limits in LIMITS for field in fields(limits) if getattr(limits, field.name) is not None}
    assert tried == {field.name for field in fields(AttackLimits)}


def allowed(world: GraphWorld, limits: AttackLimits) -> np.ndarray:
    """Points that the limits allow, from what is flipped at each node."""
    clusters = np.eye(world.layout.inputs.count, dtype=int)[world.layout.inputs.labels]
    fine = np.ones(len(world.points), bool)
    for into, budget, flips, most in (
        (np.eye(len(clusters), dtype=int), limits.node_budget, limits.node_flips, limits.attacked_nodes),
        (clusters, limits.cluster_budget, limits.cluster_flips, limits.attacked_clusters),
    ):
        added, deleted = (flipped @ into for flipped in world.flips())
        if budget is not None:
            fine &= (added <= budget).all(axis=1) & (deleted <= budget).all(axis=1)
        if flips is not None:
            fine &= (added + deleted <= flips).all(axis=1)
        if most is not None:
            fine &= ((added + deleted) > 0).sum(axis=1) <= most
    return fine


def check(
    ledger: Ledger,
    what: str,
    world: GraphWorld,
    truth: Truth,
    result: xr.Dataset,
    limits: AttackLimits,
    key: str,
    wrong: list[int],
) -> None:
    prediction = result["prediction"].values[0].astype(np.int64)
    kept = truth.kept(prediction, result["relies_on"].values[0] == 1)
    counted = (prediction >= 0) & ~result["ignored"].values[0].astype(bool)
    added, deleted = (flips.sum(axis=1) for flips in world.flips())
    inside = allowed(world, limits)
    targets = {RATIO: counted, ACCURACY: counted & (prediction == world.graph.labels)}
    for target in result["target"].values.tolist():
        alive = (kept & targets[target]).sum(axis=1)
        for bound in result["bound"].values.tolist():
            table = result["certified"].sel(target=target, bound=bound).values.reshape(len(ADDITIONS), len(DELETIONS))
            for i, j in np.ndindex(*table.shape):
                points = inside & (added <= ADDITIONS[i]) & (deleted <= DELETIONS[j])
                keys = (key, f"bound {bound}") if i + j else ()
                at = f"{what} {bound} {target} at {ADDITIONS[i]}, {DELETIONS[j]}"
                ledger.claim(at, int(table[i, j]), int(alive[points].min()), int(points.sum()), *keys)
    radius = result["radius"].values[0]
    alone = result["alone"].values.reshape(len(ADDITIONS), len(DELETIONS), -1)
    for n in np.flatnonzero(prediction >= 0).tolist():
        if n in wrong:
            continue
        points = (truth.size < radius[n]) | (truth.size == 0)
        ledger.claim(f"{what} radius of {n}, {radius[n]}", 1, int(kept[points, n].min()), int(points.sum()))
        for i, j in np.argwhere(alone[..., n]):
            points = (added <= ADDITIONS[i]) & (deleted <= DELETIONS[j])
            ledger.claim(f"{what} {n} alone at {i}, {j}", 1, int(kept[points, n].min()), int(points.sum()))


def attack(seed: int, ledger: Ledger, folder: Path, tries: int | None = None) -> None:
    """Attack an isotropic world or one with clusters, of a local classifier or another."""
    world = attribute_world(seed, isotropic=seed % 3 == 0, local=seed % 4 < 2)
    rng, truth = np.random.default_rng(seed), world.law()
    nodes = np.sort(rng.permutation(world.graph.nodes)[: rng.integers(2, world.graph.nodes + 1)])
    settings = GraphSettings(0.9, bounds=quick({"envelope": BOUNDS["envelope"]}))
    first = certify_graph(
        world.classifier,
        world.graph,
        world.layout,
        nodes,
        plan=PLAN,
        settings=settings,
        out=folder,
        options=OPTIONS,
        progress=NoProgress(),
    )
    candidate = first["candidate"].values[0].astype(np.int64)
    q, mean, square = world.moments(nodes, candidate)
    every = list(combinations(SparseFlips(), world.layout.levels))
    some = range(len(every)) if tries is None else rng.choice(len(every), tries, replace=False)
    for place in some:
        called, chosen = every[place]
        limits = LIMITS[rng.integers(len(LIMITS))]
        votes_alone = all(isinstance(one, VoteCertificate) for one in chosen)
        baseline = SparseSmooth() if seed % 3 == 0 and votes_alone and rng.random() < 0.4 else None
        limits = LIMITS[0] if baseline else limits
        local = world.depth is not None and baseline is None and bool(rng.random() < 0.7)
        wrong = rng.choice(nodes.size, int(rng.integers(0, 2)), replace=False)
        sure = [np.where(np.isin(np.arange(nodes.size), wrong), 1.0, one) for one in (q, mean, square)]
        result = recertify(
            folder,
            GraphSettings(
                float(rng.choice([1e-9, 0.01, 0.7])),
                additions=ADDITIONS,
                deletions=DELETIONS,
                certificates=chosen,
                bounds=quick(BOUNDS),
                simultaneous=Exactly(sure[0], wrong.size),
                score_bound=ExactScores(sure[1], sure[2], REFERENCES[rng.integers(4)]),
                limits=limits,
                strictly_local=local,
                baseline=baseline,
            ),
        )
        key = "sparse-smooth" if baseline else ("local " if local else "") + called
        what = f"graph {seed} {key} {limits}"
        check(ledger, what, world, truth, result, limits, key, nodes[wrong].tolist())


@pytest.mark.parametrize(
    ("seeds", "tries"),
    [(range(2), 2), pytest.param(range(100, 112), None, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_nothing_false_is_certified_of_attributes(seeds: range, tries: int | None, tmp_path: Path) -> None:
    ledger = Ledger()
    for seed in seeds:
        attack(seed, ledger, tmp_path / str(seed), tries)
    ledger.settle()
    assert ledger.claims > 100
    assert {f"bound {name}" for name in BOUNDS} <= ledger.promised.keys()
    if tries is None:
        world = attribute_world(0, isotropic=False, local=False)
        every = {called for called, _ in combinations(SparseFlips(), world.layout.levels)}
        assert every | {"sparse-smooth"} | {f"local {called}" for called in every} <= ledger.promised.keys()


def attack_edges(seed: int, ledger: Ledger, folder: Path) -> None:
    """Attack certificates of some nodes against additions, deletions or both of edges."""
    world = edge_world(seed, isotropic=seed % 3 == 0)
    rng, truth = np.random.default_rng(seed), world.law()
    nodes = np.sort(rng.permutation(4)[: rng.integers(2, 5)])
    counting = ScoreCounting("moments", SCORE_BINS)
    first = certify(
        EdgeTask(world.classifier, world.graph, nodes),
        Smoothing(world.layout, PLAN),
        Settings(0.9, [1], bounds=quick({"envelope": BOUNDS["envelope"]})),
        run=Run(folder, progress=NoProgress(), options=OPTIONS, scores=counting),
    )
    candidate = np.zeros(4, np.int64)
    candidate[nodes] = first["candidate"].values[0]
    q, mean, square = world.moments(nodes, candidate)
    added, deleted = (flips.sum(axis=1) for flips in world.flips())
    allowed = {Kind.ANY: added * 0 == 0, Kind.ADDITIONS: deleted == 0, Kind.DELETIONS: added == 0}
    for called, chosen in combinations(SparseFlips(), world.layout.levels):
        kind = list(Kind)[rng.integers(3)]
        votes_alone = all(isinstance(one, VoteCertificate) for one in chosen)
        method = SparseSmooth() if seed % 3 == 0 and votes_alone and rng.random() < 0.4 else None
        result = recertify(
            folder,
            Settings(
                0.01,
                EDGES,
                certificates=chosen,
                bounds=quick(BOUNDS),
                simultaneous=Exactly(q),
                score_bound=ExactScores(mean, square, REFERENCES[rng.integers(4)]),
                threat=Flips(kind),
                method=method,
            ),
        )
        prediction, scored = np.full(4, ABSTAIN), np.zeros(4, bool)
        prediction[nodes] = result["prediction"].values[0]
        scored[nodes] = result["relies_on"].values[0] == 1
        kept, robust = truth.kept(prediction, scored), prediction != ABSTAIN
        masks = {RATIO: robust, ACCURACY: robust & (prediction == world.graph.labels)}
        name = called if method is None else method.name
        for (target, mask), bound in product(masks.items(), result["bound"].values.tolist()):
            for claimed, budget in zip(
                result["certified"].sel(target=target, bound=bound).values[0], EDGES, strict=True
            ):
                points = allowed[kind] & (truth.size <= budget)
                true = int((kept & mask)[points].sum(axis=1).min())
                what = f"edges {seed} {name} {bound} {kind} {target} at {budget}"
                ledger.claim(what, int(claimed), true, points.sum(), *((name, bound) if budget else ()))
        for n, radius in zip(nodes.tolist(), result["radius"].values[0].tolist(), strict=True):
            points = allowed[kind] & ((truth.size < radius) | (truth.size == 0))
            if robust[n]:
                ledger.claim(f"edges {seed} {name} radius of {n}", 1, int(kept[points, n].min()), points.sum())


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(100, 106), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_nothing_false_is_certified_of_edges(seeds: range, tmp_path: Path) -> None:
    ledger = Ledger()
    for seed in seeds:
        attack_edges(seed, ledger, tmp_path / str(seed))
    ledger.settle()
    assert ledger.claims > 500
    if len(seeds) > 1:
        assert {called for called, _ in combinations(SparseFlips(), edge_world(0, False).layout.levels)} <= set(
            ledger.promised
        )
