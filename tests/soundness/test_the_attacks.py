"""The harness itself: what it takes for the truth is what is sampled, and what is wrong on purpose is caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_worlds import attribute_world, edge_world
from ledger import Ledger
from registered import BOUNDS, CERTIFICATES, NOISES, THREATS, certificates_for, concrete, quick
from test_every_baseline import COUNTED, admitted
from test_every_certificate import sampled, truthful
from threats import COLLECTIVE_THREATS, ITEM_THREATS, cases_for
from worlds import WORLDS

from localsmooth import collective
from localsmooth.collective import Bound, Envelope, Threat, as_bound
from localsmooth.execution import NoProgress, sample_subject
from localsmooth.layout import Layout
from localsmooth.noise import Gaussian, Noise, SparseFlips
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Smoothing, arrays
from localsmooth.tasks.arrays import ItemMethod, ItemThreat, NormBall, Settings
from localsmooth.tasks.graphs import EdgeTask, sample_nodes
from localsmooth.tasks.graphs.sampler import SCORE_BINS
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.testing.chance import assert_binomial

SEEDS = range(3)


def test_everything_that_is_registered_is_attacked() -> None:
    """A noise, certificate, bound or threat without a case here is one that nobody attacked."""
    assert set(NOISES.values()) == WORLDS.keys()
    worlds = [make(kind(), seed) for kind, make in WORLDS.items() for seed in range(4)]
    known = {type(one) for world in worlds for _, one in certificates_for(world.noise, world.layout.levels)}
    assert known == set(CERTIFICATES.values())
    covered = {kind for world in worlds for case in cases_for(world) for kind in case.covers}
    assert set(THREATS.values()) == COLLECTIVE_THREATS <= covered
    assert set(concrete(arrays, ItemThreat).values()) == ITEM_THREATS <= covered
    named = {type(bound) for bound in map(as_bound, collective.BOUNDS)}
    assert named <= {type(bound) for bound in BOUNDS.values()}


@pytest.mark.parametrize("kind", NOISES.values(), ids=NOISES)
def test_the_truth_is_what_is_sampled(kind: type[Noise], tmp_path: Path) -> None:
    """Hidden inputs, special levels and all: votes are as many as the law in closed form says."""
    for seed in SEEDS:
        world = WORLDS[kind](kind(), seed)
        candidate, truth = sampled(world, tmp_path / str(seed), 1200)
        votes = truthful(world, tmp_path / str(seed), candidate, bounds=QUICK)["votes"].values[0]
        q = truth.votes[0][np.arange(candidate.size), candidate]
        assert_binomial(votes, 1200, np.clip(q, 0, 1))


def test_the_truth_about_graphs_is_what_is_sampled() -> None:
    plan, options = SamplingPlan(20, 1200, seed=2), SamplingOptions(batch_size=64)
    for seed in SEEDS:
        for world in (attribute_world(seed, seed % 3 == 0, seed % 4 < 2), edge_world(seed, seed % 3 == 0)):
            if world.edges:
                task = EdgeTask(world.classifier, world.graph, np.arange(world.graph.nodes))
                counting = ScoreCounting("histogram", SCORE_BINS)
                made = task.assign(Smoothing(world.layout, plan), Settings(0.1, [1]), options, counting)
                tally = sample_subject(made.subject, plan, options=options, progress=NoProgress())[0]
            else:
                parts = world.classifier, world.graph, world.layout
                tally = sample_nodes(*parts, plan, options=options, progress=NoProgress())
            q, mean, _ = world.moments(np.arange(world.graph.nodes), tally.candidate)
            assert_binomial(tally.votes, 1200, q)
            bins = tally.further["scores.bins"]
            sampled_mean = bins @ np.arange(bins.shape[1]) / (bins.shape[1] - 1) / 1200
            assert np.abs(sampled_mean - mean).max() < 0.11  # Hoeffding: below 1e-8 each


@dataclass(frozen=True)
class Understated(ItemThreat):
    """Says that the adversary has less than it has."""

    one_ball = True

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        return NormBall().threat([0.6 * budget for budget in budgets], image, layout, noise)

    def words(self, noise: Noise, units: str) -> str:
        return "less"


QUICK: dict[str, Bound] = {"envelope": Envelope()}


def found_false(kind: type[Noise], folder: Path, method: type[ItemMethod] | None = None, **wrong: Any) -> list[str]:
    """What is found false in the first world in which something is, of those in which something is wrong."""
    noise = kind()
    for seed in range(20):
        world = WORLDS[kind](noise, seed, isotropic=method is not None)
        candidate, truth = sampled(world, folder / str(seed))
        made = None if method is None else COUNTED[method](world)
        result = truthful(world, folder / str(seed), candidate, **({"bounds": QUICK, "method": made} | wrong))
        ledger = Ledger()
        ledger.check(
            kind.__name__, result, truth, cases_for(world)[0].masks(world, result["budget"].values, truth.size)
        )
        if ledger.failures:
            return ledger.failures
    return []


@pytest.mark.parametrize("kind", NOISES.values(), ids=NOISES)
def test_inflated_probabilities_are_caught(kind: type[Noise], tmp_path: Path) -> None:
    for name, certificate in certificates_for(kind(), WORLDS[kind](kind(), 0).layout.levels):
        assert found_false(kind, tmp_path / name, certificates=[certificate], reference="mean", inflated=0.2), name


@pytest.mark.parametrize("name", BOUNDS)
def test_an_understated_threat_is_caught(name: str, tmp_path: Path) -> None:
    """The count is wrong then, and no radius."""
    found = found_false(Gaussian, tmp_path, bounds={name: quick(BOUNDS)[name]}, threat=Understated())
    assert any(f" {name} " in failure for failure in found)


@pytest.mark.parametrize("method", COUNTED, ids=lambda kind: kind.name)
def test_inflated_probabilities_of_baselines_are_caught(method: type[ItemMethod], tmp_path: Path) -> None:
    for kind in NOISES.values():
        if admitted(method, kind()):
            assert found_false(kind, tmp_path / kind.__name__, method, inflated=0.2)


def test_the_other_classifier_is_caught(tmp_path: Path) -> None:
    """A promise about votes is none about scores: with `relies_on` the other way round it is false somewhere."""
    ledger, noise = Ledger(), SparseFlips()
    for seed in range(8):
        world = WORLDS[SparseFlips](noise, seed)
        candidate, truth = sampled(world, tmp_path / str(seed))
        every = certificates_for(noise, world.layout.levels)
        result = truthful(world, tmp_path / str(seed), candidate, certificates=[one for _, one in every], bounds=QUICK)
        swapped = result["relies_on"]
        result["relies_on"] = swapped.where(swapped < 0, 1 - swapped)
        masks = cases_for(world)[0].masks(world, result["budget"].values, truth.size)
        ledger.check("swapped", result, truth, masks)
        if ledger.failures:
            return
    pytest.fail("nothing was found false")
