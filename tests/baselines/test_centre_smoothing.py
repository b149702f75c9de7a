"""Centre smoothing, step by step and as a whole, on models whose label maps have a known distribution."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from localsmooth.baselines import CentreSmoothing, Cohen
from localsmooth.baselines.centre import (
    CentreOptions,
    ball_radius,
    change_bounds,
    choose_centre,
    hoeffding_slack,
    quantile_share,
)
from localsmooth.baselines.centre_sampling import Ball
from localsmooth.certificates import ABSTAIN, Basis
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Uniform
from localsmooth.report.html import render_report
from localsmooth.results import load
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import StopWhenDecided
from localsmooth.testing.chance import CHECK, assert_binomial, assert_level_kept, mean_margin
from tests.flat import certify, recertify

SIGMA = 0.5
STEPS = np.linspace(-1.0, 1.0, 9)


def staircase_model(steps: np.ndarray) -> CallableModel:
    """Output n of an item with one input is 1 above the n-th step, so that label maps are counts of steps passed."""

    def predict(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > steps).astype(np.int64)

    return CallableModel(predict, name="staircase", bounds=None, classes=2, output=OutputKind.LABELS)


def step_law(x: float) -> np.ndarray:
    """Probability of passing 0, 1, …, 9 steps."""
    return np.diff(np.concatenate([[0.0], norm.cdf(STEPS, x, SIGMA), [1.0]]))


def run(x: float = 0.0, seed: int = 0, steps: np.ndarray = STEPS, **changes: object):
    arguments = {
        "labels": [(x > steps).astype(np.int64)],
        "layout": GridLayout((1,), SIGMA, SIGMA),
        "plan": SamplingPlan(n_candidate=800, n_bound=1500, seed=seed, chunk_size=400),
        "alpha": 0.1,
        "budgets": [0.0, 0.05, 0.1, 0.2, 0.4, 3.0],
        "method": CentreSmoothing(),
        "options": SamplingOptions(batch_size=200, channels_last=False, check_model=False),
        "progress": NoProgress(),
    }
    image = np.full((1, 1), x, np.float32)
    return certify(staircase_model(steps), [image], **(arguments | changes))  # type: ignore[arg-type]


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=9))
def test_a_centre_among_the_points_is_a_factor_of_two_from_the_best(points: list[tuple[int, ...]]) -> None:
    maps = np.array(points)
    distances = (maps[:, None] != maps[None]).sum(axis=2)
    best, radius = choose_centre(distances)
    half = math.ceil(len(maps) / 2)
    # The definition, by sorting; and the smallest ball around any label map at all.
    assert radius == min(sorted(row)[half - 1] for row in distances)
    assert (distances[:, best] <= radius).sum() >= half
    everywhere = np.array(list(itertools.product(range(3), repeat=4)))
    optimum = ball_radius((maps[:, None] != everywhere[None]).sum(axis=2)).min()
    assert optimum <= radius <= 2 * optimum


def test_risks_and_slacks() -> None:
    options = CentreOptions(share=0.3)
    first, second = options.risks(0.01)
    assert first <= 0.003
    assert first + second <= 0.01
    assert hoeffding_slack(CentreOptions(candidates=5000), 0.01, 1000) == pytest.approx(
        math.sqrt(math.log(2 / 0.005) / 2000)
    )
    # Fewer candidates than label maps cost 2⁻ᵏ of the risk.
    assert hoeffding_slack(CentreOptions(candidates=10), 0.01, 1000) == pytest.approx(
        math.sqrt(math.log(2 / (0.005 - 2**-10)) / 2000)
    )
    assert hoeffding_slack(CentreOptions(candidates=5), 0.01, 1000) == math.inf
    for wrong in ({"delta": 0.0}, {"delta": 0.5}, {"candidates": 0}, {"share": 1.0}, {"delta": math.nan}):
        with pytest.raises(InvalidInputError):
            CentreOptions(**wrong)
    with pytest.raises(InvalidInputError, match="alpha"):
        quantile_share(0.05, 0.7, 100, 0.1)


def test_the_quantile_by_hand() -> None:
    distances = np.arange(1000)
    share = norm.cdf(norm.ppf(0.55) + 0.5) + math.sqrt(math.log(1 / 0.005) / 2000)
    (bound,) = change_bounds(distances, 0.05, 0.005, np.array([0.5]))
    assert bound == 3 * (math.ceil(1000 * share) - 1)
    assert change_bounds(distances, 0.05, 0.005, np.array([3.0]))[0] == np.inf
    bounds = change_bounds(distances, 0.05, 0.005, np.linspace(0, 2, 50))
    assert (np.diff(bounds[np.isfinite(bounds)]) >= 0).all()


@pytest.mark.parametrize("alpha2", [0.05, 0.4])
def test_the_band_fails_no_more_often_than_its_risk(alpha2: float) -> None:
    """From m distances at x: the true share of the ball at the worst x' must exceed 1/2 + Δ.

    The distance rises with the input, as for the worst function there is, in steps too fine to matter.
    """
    rng = np.random.default_rng(0)
    trials, m, budget, delta = 2000, 60, 0.1, 0.05
    steps = np.linspace(-3, 3, 6001)
    failures = {0.5: 0, 1.0: 0, 1.5: 0}
    for _ in range(trials):
        distances = np.searchsorted(steps, rng.normal(0, SIGMA, m))
        (bound,) = change_bounds(distances, delta, alpha2, np.array([budget / SIGMA]))
        for stretch in failures:
            if np.isfinite(bound):
                share = norm.cdf(steps[int(bound) // 3], stretch * budget, SIGMA)
                failures[stretch] += share <= 0.5 + delta
    assert_level_kept(failures[1.0], trials, alpha2)
    assert failures[0.5] < failures[1.0] < failures[1.5], "other budgets make no difference: the test shows nothing"


def smooth(rng: np.random.Generator, law: np.ndarray, options: CentreOptions, alpha: float, n: int) -> int | None:
    """The smoothed model from the definition, for label maps that are numbers of steps passed."""
    drawn, further = rng.choice(len(law), (2, n), p=law)
    candidates = drawn[: options.candidates]
    best, radius = choose_centre(np.abs(drawn[:, None] - candidates[None]))
    ball = Ball(radius, int((np.abs(further - candidates[best]) <= radius).sum()), n, options.candidates)
    method = CentreSmoothing(options.delta, options.candidates, options.share)
    return None if method.abstains(ball, alpha) else int(candidates[best])


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
def test_both_runs_together_fail_no_more_often_than_alpha(shift: float) -> None:
    rng = np.random.default_rng(1)
    options, alpha, n, m, trials = CentreOptions(candidates=8), 0.3, 800, 200, 300
    _, alpha2 = options.risks(alpha)
    answered, failures, tight = 0, 0, 0
    for _ in range(trials):
        here = smooth(rng, step_law(0.0), options, alpha, n)
        there = smooth(rng, step_law(shift), options, alpha, n)
        if here is None or there is None:
            continue
        distances = np.abs(rng.choice(len(STEPS) + 1, m, p=step_law(0.0)) - here)
        bound = change_bounds(distances, options.delta, alpha2, np.array([shift / SIGMA]))[0]
        answered += 1
        failures += abs(here - there) > bound
        tight += abs(here - there) > bound / 9
    assert answered > trials / 4
    assert_level_kept(failures, trials, alpha)
    if shift:
        assert tight > 0, "the centres never differ: the test shows nothing"


def test_a_whole_run_follows_the_definition() -> None:
    result = run()
    centre = result["candidate"].values[0]
    assert (np.diff(centre) <= 0).all()
    # Nothing here is about the majority vote of an output.
    assert (result["relies_on"] == Basis.LABEL_MAPS).all()
    passed = int(centre.sum())
    assert 4 <= passed <= 5
    # Votes and distances come from the same label maps: Σ distances = Σ disagreements.
    votes = result["votes"].values[0]
    chance = np.where(centre == 1, norm.sf(STEPS, 0, SIGMA), norm.cdf(STEPS, 0, SIGMA))
    assert_binomial(votes, 1500, chance)
    law, rank = step_law(0.0), np.abs(np.arange(10) - passed)
    for budget, certified in zip(
        result["budget"].values, result["certified"].sel(target="ratio").values[0, 0], strict=True
    ):
        share = quantile_share(0.05, 0.05, 1500, budget / SIGMA)
        exact = [3 * r for r in range(10) if law @ (rank <= r) > share + mean_margin(1500)]
        if exact:  # Massart's inequality has the same margin for all shares together
            assert certified >= len(STEPS) - exact[0]
        fewest = [3 * r for r in range(10) if law @ (rank <= r) > share - mean_margin(1500)]
        assert certified <= max(0, len(STEPS) - (fewest[0] if fewest else 99))
    certified = result["certified"].sel(target="ratio").values[0, 0]
    assert certified[0] > 0
    assert certified[-1] == 0
    correct = (centre == result["label"].values[0]).sum()
    wanted = np.maximum(0, certified - (9 - correct))
    np.testing.assert_array_equal(result["certified"].sel(target="accuracy").values[0, 0], wanted)


def test_runs_at_two_inputs_stay_within_the_bound() -> None:
    """The adversary's best input on a line, the smoothed model run there with other seeds."""
    failures = answered = 0
    plan = SamplingPlan(n_candidate=1500, n_bound=1500, chunk_size=500)
    certain = {"alpha": CHECK, "method": CentreSmoothing(0.1)}
    for seed in range(6):
        here = run(0.0, plan=dataclasses.replace(plan, seed=seed), **certain)
        for place, budget in enumerate(here["budget"].values[:5].tolist()):
            there = run(budget, plan=dataclasses.replace(plan, seed=100 + seed), **certain)
            if (here["prediction"].values == ABSTAIN).any() or (there["prediction"].values == ABSTAIN).any():
                continue
            same = int((here["prediction"].values == there["prediction"].values).sum())
            answered += 1
            failures += same < int(here["certified"].sel(target="ratio").values[0, 0, place])
    assert answered > 10
    assert failures == 0


def test_samples_do_not_depend_on_batches_or_interruptions(tmp_path: Path) -> None:
    first = run(out=tmp_path / "whole")
    other = run(options=SamplingOptions(batch_size=7, channels_last=False, check_model=False))
    for name in ("candidate", "votes", "certified", "radius"):
        np.testing.assert_array_equal(first[name].values, other[name].values)

    class Counting(NoProgress):
        def __init__(self, stop: int) -> None:
            self.drawn, self.stop = 0, stop

        def advance(self, samples: int) -> None:
            self.drawn += samples
            if self.drawn >= self.stop:
                raise KeyboardInterrupt

    for stop, left in ((1000, 3100), (2600, 700)):  # while the ball is checked; in the third chunk of distances
        folder, rest = tmp_path / str(stop), Counting(10**9)
        with pytest.raises(KeyboardInterrupt):
            run(out=folder, progress=Counting(stop))
        resumed = run(out=folder, progress=rest)
        assert rest.drawn == left, "something was drawn twice, or not at all"
        for name in ("candidate", "votes", "certified", "radius"):
            np.testing.assert_array_equal(resumed[name].values, first[name].values)


def test_label_maps_serve_other_methods_and_budgets(tmp_path: Path) -> None:
    first = run(out=tmp_path / "run")
    again = recertify(tmp_path / "run", method=CentreSmoothing())
    np.testing.assert_array_equal(first["certified"].values, again["certified"].values)
    xr.testing.assert_equal(load(tmp_path / "run" / "result.nc"), first)
    stricter = recertify(tmp_path / "run", method=CentreSmoothing(), alpha=0.05, budgets=[0.1])
    assert stricter["certified"].values[0, 0, 0, 0] <= first["certified"].values[0, 0, 0, 2]
    cohen = recertify(tmp_path / "run", method=Cohen())
    assert cohen["certified"].values[0, 0, 0, 0] > 0
    assert set(np.unique(cohen["relies_on"]).tolist()) <= {Basis.NOTHING, Basis.VOTES}
    with pytest.raises(InvalidInputError, match="candidates"):
        recertify(tmp_path / "run", method=CentreSmoothing(candidates=4))
    run(out=tmp_path / "votes", method=None)
    with pytest.raises(InvalidInputError, match="no label maps"):
        recertify(tmp_path / "votes", method=CentreSmoothing())
    page = render_report({"centre": first, "cohen": cohen})
    assert "for any fixed perturbation of l2 norm at most ε" in page
    assert "nothing is said" in page


def test_abstention() -> None:
    method = CentreSmoothing()
    slack = hoeffding_slack(method.options, 0.1, 2000)
    share = 0.5 - 0.05 + slack
    assert not method.abstains(Ball(3, math.ceil(2000 * share) + 1, 2000, 32), 0.1)
    assert method.abstains(Ball(3, math.floor(2000 * share) - 1, 2000, 32), 0.1)
    assert method.abstains(Ball(3, 300, 300, 32), 0.1), "too few label maps to know any share"
    # Steps so fine that a ball holds little more than half, and hardly enough samples: the check fails now and then.
    abstaining, steps = 0, np.linspace(-2, 2, 401)
    for seed in range(6):
        plan = SamplingPlan(n_candidate=750, n_bound=300, seed=seed, chunk_size=750)
        result = run(0.0, seed, steps, plan=plan, budgets=[0.0, 0.1])
        prediction = result["prediction"].values
        assert (prediction == ABSTAIN).all() or (prediction != ABSTAIN).all()
        if (prediction == ABSTAIN).all():
            abstaining += 1
            assert (result["certified"].values == 0).all()
            assert (result["radius"].values == 0).all()
    assert 0 < abstaining < 6


def test_what_cannot_work_is_refused_before_sampling() -> None:
    with pytest.raises(InvalidInputError, match="n_candidate"):
        run(plan=SamplingPlan(n_candidate=100, n_bound=1000))
    with pytest.raises(InvalidInputError, match="n_bound"):
        run(plan=SamplingPlan(n_candidate=1000, n_bound=5))
    with pytest.raises(InvalidInputError, match="output groups"):
        run_cells()
    with pytest.raises(InvalidInputError, match="Uniform"):
        run(noise=Uniform())
    with pytest.raises(InvalidInputError, match="stop"):
        run(plan=SamplingPlan(n_candidate=1000, n_bound=1000, stop=StopWhenDecided()))


def run_cells():
    def predict(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > 0).astype(np.int64)

    model = CallableModel(predict, name="signs", bounds=None, classes=2, output=OutputKind.LABELS)
    return certify(
        model,
        [np.zeros((1, 4), np.float32)],
        layout=GridLayout((2,), 1.0, 1.0),
        plan=SamplingPlan(n_candidate=1000, n_bound=1000),
        alpha=0.1,
        budgets=[0.1],
        method=CentreSmoothing(),
    )
