"""The harness itself: what it takes for the truth is what is sampled, and what is wrong on purpose is caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from graph_worlds import attribute_world, edge_world
from ledger import Ledger
from registered import BOUNDS, CERTIFICATES, NOISES, THREATS, certificates_for, concrete, quick
from test_every_baseline import COUNTED, admitted
from test_every_certificate import sampled, truthful
from tests.chance import assert_binomial
from threats import COLLECTIVE_THREATS, ITEM_THREATS, cases_for
from worlds import WORLDS

from localsmooth import graphs, pipeline
from localsmooth.certificates import ScoreCertificate, VoteCertificate
from localsmooth.collective import Threat
from localsmooth.graphs import sample_edges, sample_nodes
from localsmooth.layout import Layout
from localsmooth.noise import Noise, SparseFlips
from localsmooth.pipeline import ItemMethod, ItemThreat, NormBall
from localsmooth.sampling import NoProgress, SamplingOptions, SamplingPlan

SEEDS = range(6)


def test_everything_that_is_registered_is_attacked() -> None:
    """A noise, certificate, bound or threat without a case here is one that nobody attacked."""
    assert set(NOISES.values()) == WORLDS.keys()
    worlds = [make(kind(), seed) for kind, make in WORLDS.items() for seed in range(4)]
    known = {type(one) for world in worlds for _, one in certificates_for(world.noise, world.layout.levels)}
    assert known == set(CERTIFICATES.values())
    covered = {kind for world in worlds for case in cases_for(world) for kind in case.covers}
    assert set(THREATS.values()) == COLLECTIVE_THREATS <= covered
    assert set(concrete(pipeline, ItemThreat).values()) == ITEM_THREATS <= covered
    named = {type(bound) for bound in (*pipeline.COLLECTIVE_BOUNDS.values(), *graphs.COLLECTIVE_BOUNDS.values())}
    assert named <= {type(bound) for bound in BOUNDS.values()}


@pytest.mark.parametrize("kind", NOISES.values(), ids=NOISES)
def test_the_truth_is_what_is_sampled(kind: type[Noise], tmp_path: Path) -> None:
    """Hidden inputs, special levels and all: votes are as many as the law in closed form says."""
    for seed in SEEDS:
        world = WORLDS[kind](kind(), seed)
        candidate, truth = sampled(world, tmp_path / str(seed), 1200)
        votes = truthful(world, tmp_path / str(seed), candidate)["votes"].values[0]
        q = truth.votes[0][np.arange(candidate.size), candidate]
        assert_binomial(votes, 1200, np.clip(q, 0, 1))


def test_the_truth_about_graphs_is_what_is_sampled() -> None:
    plan, options = SamplingPlan(20, 1200, seed=2), SamplingOptions(batch_size=64)
    for seed in SEEDS:
        for world in (attribute_world(seed, seed % 3 == 0, seed % 4 < 2), edge_world(seed, seed % 3 == 0)):
            sample = sample_edges if world.edges else sample_nodes
            tally = sample(world.classifier, world.graph, world.layout, plan, options=options, progress=NoProgress())
            q, mean, _ = world.moments(np.arange(world.graph.nodes), tally.candidate)
            assert_binomial(tally.votes, 1200, q)
            bins = tally.further["scores.bins"]
            sampled_mean = bins @ np.arange(bins.shape[1]) / (bins.shape[1] - 1) / 1200
            assert np.abs(sampled_mean - mean).max() < 0.11  # Hoeffding: below 1e-8 each


@dataclass(frozen=True)
class Understated(ItemThreat):
    """Says that the adversary has less than it has."""

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        return NormBall().threat([0.6 * budget for budget in budgets], image, layout, noise)

    def words(self, noise: Noise) -> str:
        return "less"


def found_false(kind: type[Noise], folder: Path, **wrong: object) -> Ledger:
    """Failures in some worlds where something is wrong."""
    ledger, noise = Ledger(), kind()
    isotropic = "method" in wrong
    for seed in SEEDS:
        world = WORLDS[kind](noise, seed, isotropic=isotropic)
        candidate, truth = sampled(world, folder / str(seed))
        given = dict(wrong)
        if isinstance(given.get("method"), type):
            given["method"] = COUNTED[given["method"]](world)  # pyright: ignore
        result = truthful(world, folder / str(seed), candidate, **given)  # pyright: ignore
        masks = cases_for(world)[0].masks(world, result["budget"].values, truth.size)
        ledger.check(kind.__name__, result, truth, masks)
    return ledger


@pytest.mark.parametrize("kind", NOISES.values(), ids=NOISES)
def test_inflated_probabilities_are_caught(kind: type[Noise], tmp_path: Path) -> None:
    for name, certificate in certificates_for(kind(), WORLDS[kind](kind(), 0).layout.levels):
        if isinstance(certificate, VoteCertificate | ScoreCertificate):
            given = {"certificates": [certificate], "reference": "mean"}
            assert not found_false(kind, tmp_path / name, **given).failures
            assert found_false(kind, tmp_path / name, **given, inflated=0.2).failures, name


@pytest.mark.parametrize("name", BOUNDS)
def test_an_understated_threat_is_caught(name: str, tmp_path: Path) -> None:
    given = {"bounds": {name: quick(BOUNDS)[name]}, "threat": Understated()}
    found = [found_false(kind, tmp_path / kind.__name__, **given).failures for kind in NOISES.values()]
    assert any(any(f" {name} " in failure for failure in failures) for failures in found)


@pytest.mark.parametrize("method", COUNTED, ids=lambda kind: kind.name)
def test_inflated_probabilities_of_baselines_are_caught(method: type[ItemMethod], tmp_path: Path) -> None:
    for kind in NOISES.values():
        if admitted(method, kind()):
            failures = found_false(kind, tmp_path / kind.__name__, method=method, inflated=0.2).failures
            assert any("budget" in failure for failure in failures)
            assert any("radius" in failure for failure in failures)


def test_the_other_classifier_is_caught(tmp_path: Path) -> None:
    """A promise about votes is none about scores: with `relies_on` the other way round it is false somewhere."""
    ledger, noise = Ledger(), SparseFlips()
    for seed in range(12):
        world = WORLDS[SparseFlips](noise, seed)
        candidate, truth = sampled(world, tmp_path / str(seed))
        every = certificates_for(noise, world.layout.levels)
        result = truthful(world, tmp_path / str(seed), candidate, certificates=[one for _, one in every])
        swapped = result["relies_on"]
        result["relies_on"] = swapped.where(swapped < 0, 1 - swapped)
        masks = cases_for(world)[0].masks(world, result["budget"].values, truth.size)
        ledger.check("swapped", result, truth, masks)
    assert ledger.failures
