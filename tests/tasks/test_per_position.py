"""The threat that moves every position by at most ε allows whatever such an adversary does."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from localsmooth.baselines import Cohen, ReceptiveFields, SegCertify
from localsmooth.certificates import BaseCertificates
from localsmooth.collective import Exact, Problem, solve
from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout, Layout, Partition, isotropic_layout
from localsmooth.noise import Bernoulli, Gaussian, Noise, Uniform
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Smoothing, StopWhenDecided
from localsmooth.tasks.arrays import ArrayTask, NormBall, PerPosition, Settings
from tests.flat import certify
from tests.pipeline.models import threshold_model

BUDGETS = [0.0, 0.1, 0.3, 1.7]


def layouts(rng: np.random.Generator, channels: int, positions: int) -> list[Layout]:
    """Groups of positions, and groups that split the channels of a position."""
    outputs = Partition(np.zeros(2, np.int32))
    made = []
    for shape in ((positions,), (channels, positions)):
        groups = np.unique(rng.integers(0, 3, shape), return_inverse=True)[1].reshape(shape)
        levels = rng.uniform(0.2, 1.0, (1, int(groups.max()) + 1))
        made.append(Layout(outputs, Partition(groups.astype(np.int32)), levels))
    return made


def allowed(rng: np.random.Generator, shape: tuple[int, int], most: int | None, epsilon: float, norm: int):
    """Perturbations at the rim of what is allowed: chosen positions move by ε, along axes and anywhere else."""
    channels, positions = shape
    count = positions if most is None else min(most, positions)
    for moved in itertools.combinations(range(positions), count):
        for _ in range(6):
            direction = rng.standard_normal(shape) if rng.random() < 0.5 else np.zeros(shape)
            direction[rng.integers(channels, size=positions), np.arange(positions)] += 1e-9
            direction *= epsilon / np.linalg.norm(direction, ord=norm, axis=0)
            yield np.where(np.isin(np.arange(positions), moved), direction, 0.0)


@pytest.mark.parametrize("noise", [Gaussian(), Uniform()], ids=["l2", "l1"])
@pytest.mark.parametrize("most", [None, 1, 2, 9])
def test_everything_that_is_allowed_fits_the_rows(noise: Noise, most: int | None) -> None:
    rng = np.random.default_rng(5)
    for channels, positions in itertools.product((1, 2, 3), (1, 4)):
        image = rng.standard_normal((channels, positions)).astype(np.float32)
        for layout in layouts(rng, channels, positions):
            rows = PerPosition(most).threat(BUDGETS, image, layout, noise).constraints(layout.inputs.count)
            labels = np.broadcast_to(layout.inputs.labels, image.shape).ravel()
            for epsilon, limit in zip(BUDGETS, rows.budgets, strict=True):
                tightest = np.zeros(len(limit))
                for delta in allowed(rng, image.shape, most, epsilon, noise.norm):
                    spent = np.bincount(labels, np.abs(delta).ravel() ** noise.norm, minlength=layout.inputs.count)
                    used = rows.rows @ spent
                    assert (used <= limit * (1 + 1e-12)).all()
                    tightest = np.maximum(tightest, used)
                if layout.inputs.labels.ndim == 1:  # and no row allows more than some perturbation spends
                    assert np.allclose(tightest, limit, rtol=1e-9)


@pytest.mark.parametrize("count", [1, 3, 7, 10**6])
def test_budgets_are_rounded_up(count: int) -> None:
    layout = isotropic_layout(0.3, (count,), (1,))
    budgets = [0.1, 0.3, 1e-170, 1e160, 2 / 3]
    limits = PerPosition().threat(budgets, np.zeros((2, count)), layout, Gaussian()).constraints(1).budgets
    for epsilon, row in zip(budgets, limits, strict=True):
        for limit in row:
            assert limit == math.inf or Fraction(limit) >= count * Fraction(epsilon) ** 2
    assert limits[1, 0] == pytest.approx(count * 0.09, rel=1e-12)


def test_counts_are_those_of_the_worst_perturbation() -> None:
    """Against every choice of moved positions: one output for each of six, in windows of two."""
    layout = GridLayout((3,), 0.3, 0.9).layout((1, 6), (6,))
    weights, rng = Gaussian().weights(layout.levels), np.random.default_rng(2)
    image, group = np.zeros((1, 6)), layout.outputs.labels.astype(np.int64)
    for _ in range(20):
        eta = rng.uniform(0.05, 3.0, 6)
        base = BaseCertificates(weights, eta, group, np.zeros(6, np.int64))
        for most in (1, 2, 3, 6):
            threat, epsilons = PerPosition(most), [0.2, 0.5, 1.0]
            problem = Problem(weights, eta, group, threat.threat(epsilons, image, layout, Gaussian()), eta > 0)
            solved = solve(problem, Exact())
            radius = threat.radius(base, image, layout, Gaussian())
            for epsilon, certified in zip(epsilons, solved.certified, strict=True):
                for moved in itertools.combinations(range(6), most):
                    spent = np.bincount(np.array(moved) // 2, minlength=3) * epsilon**2
                    survives = weights[group] @ spent < eta
                    assert survives[radius > epsilon].all()
                    assert survives.sum() >= certified


def test_goals_of_early_stopping_follow_the_threat() -> None:
    """A group has to reach further where two positions of a window may move than where one budget is shared."""
    goals = []
    for threat in (NormBall(), PerPosition(1), PerPosition()):
        task = ArrayTask(threshold_model(np.zeros(4)), np.zeros((1, 1, 4), np.float32))
        plan = SamplingPlan(100, 10_000, stop=StopWhenDecided())
        settings = Settings(0.1, [0.3], threat=threat)
        assigned = task.assign(Smoothing(GridLayout((2,), 0.5, 0.5), plan), settings, SamplingOptions(), None)
        assert isinstance(assigned.plan.stop, StopWhenDecided)
        goals.append(assigned.plan.stop.goals[0][0].target)
    assert goals[0] == goals[1] == pytest.approx(ndtr(0.6), abs=1e-4)
    assert goals[2] == pytest.approx(ndtr(0.6 * 2), abs=1e-4)  # four positions, (1 + 1 + 1 + 1) · 0.3² / 0.5²


def test_a_radius_is_reached_by_moving_the_worst_positions() -> None:
    layout = GridLayout((3,), 0.3, 0.9).layout((1, 6), (6,))
    weights, group = Gaussian().weights(layout.levels), layout.outputs.labels.astype(np.int64)
    base = BaseCertificates(weights, np.ones(6), group, np.zeros(6, np.int64))
    radius = PerPosition(3).radius(base, np.zeros((1, 6)), layout, Gaussian())
    worst = np.array([np.sort(weights[g].repeat(2))[::-1][:3].sum() for g in group])
    assert np.allclose(radius, np.sqrt(1 / worst), rtol=1e-12)
    assert (radius <= np.sqrt(1 / worst)).all()


@pytest.mark.parametrize("most", [0, -1])
def test_it_takes_a_position_to_move(most: int) -> None:
    with pytest.raises(InvalidInputError, match="most"):
        PerPosition(most)


def test_bits_do_not_move() -> None:
    with pytest.raises(InvalidInputError, match=r"threat.*bits"):
        PerPosition().threat([1.0], np.zeros((1, 4)), isotropic_layout(0.1, (4,), (4,)), Bernoulli())


@pytest.mark.parametrize("method", [Cohen(), SegCertify(), ReceptiveFields(1)], ids=lambda method: method.name)
def test_baselines_for_balls_refuse_it_before_anything_is_sampled(method: object) -> None:
    settings = Settings(0.1, [0.1], threat=PerPosition(), method=method)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInputError, match=r"threat.*balls"):
        certify(
            threshold_model(np.zeros(4)),
            np.zeros((1, 1, 4), np.float32),
            settings=settings,
            layout=GridLayout((1,), 0.3, 0.3),
            plan=SamplingPlan(2**40, 2**40),  # would never end
        )
