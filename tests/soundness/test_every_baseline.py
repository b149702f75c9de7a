"""Every baseline × noise × threat on arrays, as `test_every_certificate` does it for localized smoothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from ledger import Ledger
from registered import BASELINES, NOISES
from scipy.special import ndtr
from test_every_certificate import sampled, truthful
from threats import cases_for
from worlds import WORLDS, BitWorld, RealWorld, World

from localsmooth.baselines import CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth
from localsmooth.baselines.centre_sampling import BALL, HISTOGRAM
from localsmooth.bounds import FixedThresholdHolm
from localsmooth.certificates import GaussianVotes
from localsmooth.certificates.combined import OutputVotes
from localsmooth.collective import Naive
from localsmooth.errors import InvalidInputError
from localsmooth.layout import isotropic_layout
from localsmooth.noise import Gaussian, Noise
from localsmooth.results import ACCURACY, RATIO
from localsmooth.tasks.arrays import ItemMethod, NormBall, Settings
from localsmooth.tasks.arrays.sampled import SampledItem

Make = Callable[[World], ItemMethod]


def seen_fields(world: World) -> np.ndarray:
    """Inputs that an output's score depends on, found by trying them all: outputs × inputs."""
    if isinstance(world, RealWorld):
        return np.stack([np.any(look != 0, axis=0) for look in world.direction])
    assert isinstance(world, BitWorld)
    bits = world.image.size
    cube = world.table.reshape(*world.table.shape[:2], *(2,) * bits)
    return np.stack(
        [
            (np.take(cube, 0, 2 + bit) != np.take(cube, 1, 2 + bit)).reshape(len(cube), -1).any(axis=1)
            for bit in range(bits)
        ],
        axis=1,
    )


def narrowed(world: World, rng: np.random.Generator) -> None:
    """Let half of the outputs see some of the inputs only."""
    size = world.image.size
    for n in range(0, world.label.size, 2):
        blind = rng.permutation(size)[: rng.integers(1, size)]
        if isinstance(world, BitWorld):
            cube = world.table[n].reshape(-1, *(2,) * size)
            for bit in blind:
                np.moveaxis(cube, 1 + bit, 0)[1] = np.moveaxis(cube, 1 + bit, 0)[0]
        elif isinstance(world, RealWorld) and len(look := world.direction[n]) == 1:
            look[0, blind] = 0.0
            if not look.any():
                look[0, int(rng.integers(size))] = 1.0
    if isinstance(world, RealWorld):
        world.explore()


COUNTED: Mapping[type[ItemMethod], Make] = {
    Cohen: lambda world: Cohen(),
    SparseSmooth: lambda world: SparseSmooth(),
    ReceptiveFields: lambda world: ReceptiveFields(fields=seen_fields(world)),
}
"""Baselines that take any rule for many outputs."""
OTHERS = {SegCertify, CentreSmoothing}
"""Those with tests of their own below."""


def test_every_baseline_is_attacked() -> None:
    assert set(BASELINES.values()) == COUNTED.keys() | OTHERS


def admitted(kind: type[ItemMethod], noise: Noise) -> bool:
    world = WORLDS[type(noise)](noise, 0, isotropic=True)
    try:
        COUNTED[kind](world).require(world.layout, noise)
    except InvalidInputError:
        return False
    return True


def attack(kind: type[ItemMethod], noise: Noise, seed: int, ledger: Ledger, folder: Path) -> None:
    world = WORLDS[type(noise)](noise, seed, isotropic=True)
    rng = np.random.default_rng(seed)
    if kind is ReceptiveFields:
        narrowed(world, rng)
    candidate, truth = sampled(world, folder)
    name = f"{kind.__name__}, {type(noise).__name__}"
    for case in cases_for(world):
        if not case.one_ball:
            continue
        for budgets in (world.budgets, world.budgets[:3]):
            wrong = rng.choice(candidate.size, int(rng.integers(0, 3)), replace=False).tolist()
            wrong = wrong if rng.random() < 0.5 else []
            result = truthful(
                world, folder, candidate, method=COUNTED[kind](world), threat=case.threat, wrong=wrong, budgets=budgets
            )
            masks = case.masks(world, result["budget"].values, truth.size)
            inside = case.allowed(world, world.spending())
            ledger.check(f"{name} {seed} {case.name}", result, truth, masks, name, wrong=wrong, alone=inside)


def sweep(kind: type[ItemMethod], seeds: range, folder: Path) -> Ledger:
    ledger = Ledger()
    for noise in (made() for made in NOISES.values()):
        if admitted(kind, noise):
            for seed in seeds:
                attack(kind, noise, seed, ledger, folder / f"{type(noise).__name__}{seed}")
            assert ledger.promised[f"{kind.__name__}, {type(noise).__name__}"] > 0
    ledger.settle()
    return ledger


@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
def test_no_baseline_certifies_what_is_false(kind: type[ItemMethod], tmp_path: Path) -> None:
    assert sweep(kind, range(2), tmp_path).claims > 50


@pytest.mark.long
@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
def test_no_baseline_certifies_what_is_false_in_many_worlds(kind: type[ItemMethod], tmp_path: Path) -> None:
    assert sweep(kind, range(100, 140), tmp_path).claims > 1_000


def item_of(world: World, candidate: np.ndarray, votes: np.ndarray, n: int, **further: np.ndarray) -> SampledItem:
    return SampledItem(
        "item",
        world.image,
        world.label,
        world.label == 255,
        world.layout,
        OutputVotes(candidate, votes.astype(np.int64), n),
        further,
    )


def settings_of(budgets: tuple[float, ...], alpha: float) -> Settings:
    return Settings(alpha, budgets, (GaussianVotes(),), {"naive": Naive()}, threat=NormBall())


def segcertify(seed: int, ledger: Ledger) -> None:
    """Votes that pass the test exactly where the probability exceeds τ: no more can pass where nothing failed."""
    world = WORLDS[Gaussian](Gaussian(), seed, isotropic=True)
    truth, outputs = world.law(), np.arange(world.label.size)
    candidate = truth.votes[0].argmax(axis=1)
    q = truth.votes[0][outputs, candidate]
    inside = q[(q > 0.5) & (q < 1)]
    for tau in {0.75, *(np.nextafter(inside, 0) - 1e-12).tolist()}:
        if not 0.5 < tau < 1:
            continue
        method, votes = SegCertify(tau), np.where(q > tau, 4000, 0)
        settings = method.adjust(settings_of(world.budgets, 0.01))
        assert settings.simultaneous == FixedThresholdHolm(tau)
        made = method.certify(item_of(world, candidate, votes, 4000), world.noise, settings)
        prediction = made.prediction.ravel()
        assert (q[prediction >= 0] > tau).all()
        kept = truth.kept(prediction, np.zeros(outputs.size, bool))
        counted = (prediction >= 0) & (world.label != 255)
        for target, mask in {RATIO: counted, ACCURACY: counted & (prediction == world.label)}.items():
            claimed = made.curves[target, "naive"].certified
            for count, budget in zip(claimed, settings.budgets, strict=True):
                points = truth.size <= budget
                true = int((kept & mask)[points].sum(axis=1).min())
                ledger.claim(f"segcertify {seed} {tau} {target} {budget}", int(count), true, points.sum(), "segcertify")
        for n in np.flatnonzero(prediction >= 0).tolist():
            points = truth.size < made.radius.ravel()[n]
            ledger.claim(f"segcertify {seed} radius {n}", 1, int(kept[points, n].min(initial=1)), points.sum())


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(100, 160), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_segcertify_certifies_nothing_false(seeds: range) -> None:
    ledger = Ledger()
    for seed in seeds:
        segcertify(seed, ledger)
    ledger.settle()
    assert ledger.promised["segcertify"] > 0


@dataclass(frozen=True, eq=False)
class Maps:
    """Exact distribution of the label maps at every point of a world whose outputs all look at one projection."""

    maps: np.ndarray
    law: np.ndarray
    size: np.ndarray


def label_maps(rng: np.random.Generator, outputs: int, sigma: float) -> Maps:
    """Two-class label maps that are constant between edges on one real input."""
    edges = np.sort(rng.uniform(-1.5, 3.0, 5)) * sigma
    usual = rng.integers(0, 2, outputs)
    maps = np.where(rng.random((6, outputs)) < rng.choice([0.1, 0.4, 1.0], (6, 1)), 1 - usual, usual)
    maps[: rng.integers(2, 5)] = usual
    at = np.concatenate([[0.0], np.linspace(-2.5, 2.5, 201) * sigma])
    below = ndtr((edges - at[:, None]) / sigma)
    law = np.diff(np.concatenate([np.zeros((len(at), 1)), below, np.ones((len(at), 1))], axis=1), axis=1)
    return Maps(maps, law, np.abs(at))


def centre(seed: int, ledger: Ledger) -> None:
    """Whatever centre the smoothed model may return at x', without sampling error: the deterministic part.

    By the documented steps: a ball around ẑ' of at most twice the smallest radius with half of the maps, which holds a
    share of at least ½ − Δ. What is counted of a share among finitely many maps is off by at most Δ, so that a smallest
    ball is one of ½ + Δ at the largest.
    """
    rng = np.random.default_rng(seed)
    outputs, delta = 5, float(rng.choice([0.01, 0.05, 0.1]))
    sigma, alpha, m = float(rng.choice([0.2, 1.0])), 0.02, 200_000
    world = label_maps(rng, outputs, sigma)
    every = np.array(list(product((0, 1), repeat=outputs)))
    distance = (every[:, None] != world.maps[None]).sum(axis=2)  # centres × maps
    start = int(np.argmax([world.law[0][row <= 1].sum() for row in distance])) if seed % 2 else int(rng.integers(32))
    method = CentreSmoothing(delta, 64)
    _, alpha2 = method.options.risks(alpha)
    # The band leaves out λ of the distances: with λ more at each of them its lower end is the truth.
    share = np.array([world.law[0][distance[start] <= r].sum() for r in range(outputs + 1)])
    band = sqrt(log(1 / alpha2) / (2 * m))
    counts = np.floor(np.minimum(share + band, 1) * m).astype(np.int64)
    counts[-1] = m
    histogram = np.diff(counts, prepend=0)
    layout = isotropic_layout(sigma, (1,), (outputs,))
    budgets = tuple(np.unique(rng.uniform(0, 1.2, 8) * sigma).tolist())
    label = np.where(rng.random(outputs) < 0.8, every[start], 1 - every[start])
    item = SampledItem(
        "item",
        np.zeros((1, 1), np.float32),
        label,
        None,
        layout,
        OutputVotes(every[start].astype(np.int64), np.zeros(outputs, np.int64), m),
        {BALL: np.array([0, m, m, 64]), HISTOGRAM: histogram},
    )
    made = method.certify(item, Gaussian(), method.adjust(settings_of(budgets, alpha)))
    # inside[point, centre, radius]
    inside = np.stack([world.law @ (distance <= r).T for r in range(outputs + 1)], axis=2)
    smallest = np.argmax((inside >= 0.5 + delta - 1e-9).any(axis=1), axis=1)
    reached = np.minimum(2 * smallest, outputs)
    possible = np.take_along_axis(inside, reached[:, None, None], 2)[..., 0] >= 0.5 - delta + 1e-9  # points × centres
    same = every == every[start]
    for target, mask in {RATIO: np.ones(outputs, bool), ACCURACY: label == every[start]}.items():
        agree = same[:, mask].sum(axis=1)
        for count, budget in zip(made.curves[target, "centre"].certified, budgets, strict=True):
            points = possible[world.size <= budget * (1 - 1e-9)]
            true = int(np.where(points, agree, outputs).min(initial=outputs))
            ledger.claim(f"centre {seed} {target} {budget}", int(count), true, points.size, "centre")
    radius = float(made.radius.ravel()[0])
    points = possible[world.size < radius * (1 - 1e-9)]
    true = int(np.where(points, same.sum(axis=1), outputs).min(initial=outputs))
    ledger.claim(f"centre {seed} radius {radius}", outputs if radius > 0 else 0, true, points.size)


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(1000), marks=pytest.mark.long)], ids=["few", "many"])
def test_centre_smoothing_certifies_nothing_false(seeds: range) -> None:
    ledger = Ledger()
    for seed in seeds:
        centre(seed, ledger)
    ledger.settle()
    assert ledger.promised["centre"] > 20
