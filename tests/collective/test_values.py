"""Targets that count by value: against enumeration, and against what scaling, splitting and leaving out must give."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from localsmooth.collective import (
    Ball,
    CertificateError,
    Envelope,
    Exact,
    LinearProgram,
    Milp,
    Naive,
    Problem,
    Status,
    answer_record,
    problem_from,
    read_problems,
    solve,
    verify,
)
from localsmooth.collective.kernel.worth import worth_of
from localsmooth.errors import InvalidInputError

from .oracle import brute_force
from .problems import CASES, build, random_problem, seeds, stored
from .test_problem_file import app

BOUNDS = (Naive(), LinearProgram(), Envelope(), Exact(), Milp(time_limit=5))


def _kind(seed):
    integer = seed % 3 == 1
    several = {"certificates": 2, "groups": 2, "outputs": seed % 5 + 1} if seed % 3 == 2 else {}
    return {"integer": integer, "rows": 1 + seed % 2, "valued": True, **several}


@given(seed=seeds)
@settings(max_examples=80, deadline=None)
def test_no_answer_lies_above_the_optimum_and_each_bound_below_the_next(seed):
    case = random_problem(seed, **_kind(seed))
    problem, optimum = build(case), brute_force(**case)
    answers = [solve(problem, bound, verify=True)[0] for bound in BOUNDS]
    for answer in answers:
        assert answer.certified <= optimum <= answer.upper
        assert answer.verified is not None
        assert answer.lower <= answer.verified <= optimum or answer.lower == 0
        left = set(problem.targets.tolist()) - set(answer.broken.tolist())
        worth = sum((Fraction(float(case["value"][n])) for n in left if case["eta"][:, n].max() > 0), Fraction(0))
        assert worth <= answer.upper <= worth + Fraction(1e-12 * answer.total)
    for weaker, stronger in itertools.pairwise(answers[:4]):
        assert weaker.lower <= stronger.lower + 1e-6 * answers[0].total
    exact = answers[3]
    assert optimum - Fraction(exact.certified) <= Fraction(1e-9 * exact.total)
    if exact.status is Status.EXACT:
        assert Fraction(exact.upper) - optimum <= Fraction(4e-16 * exact.total)


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_values_of_one_are_counts(seed):
    case = random_problem(seed, **{**_kind(seed), "valued": False})
    plain, ones = build(case), build({**case, "value": np.ones(len(case["group"]))})
    for bound in BOUNDS[:4]:
        one, other = solve(plain, bound)[0], solve(ones, bound)[0]
        assert (one.certified, one.lower, one.upper, one.status) == (
            other.certified,
            other.lower,
            other.upper,
            other.status,
        )
        assert type(other.certified) is type(other.upper) is int


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_scaled_values_scale_the_answer(seed):
    r = np.random.default_rng(seed)
    case = random_problem(seed, **_kind(seed))
    reference = [solve(build(case), bound)[0] for bound in (Envelope(), Exact())]
    # A power of two changes no bit; other factors round each value.
    for factor, slack in ((2.0 ** int(r.integers(-60, 60)), 0.0), (float(r.uniform(0.1, 10)), 3e-9)):
        scaled = build({**case, "value": case["value"] * factor})
        for bound, known in zip((Envelope(), Exact()), reference, strict=True):
            answer = solve(scaled, bound, verify=True)[0]
            assert abs(answer.certified - known.certified * factor) <= slack * answer.total
            assert abs(answer.lower - known.lower * factor) <= max(slack, 1e-15) * answer.total


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_one_output_of_value_two_is_two_outputs(seed):
    case = random_problem(seed, **{**_kind(seed), "valued": False})
    number = len(case["group"])
    doubled = np.flatnonzero(np.random.default_rng(seed).random(number) < 0.5)
    value = np.ones(number)
    value[doubled] = 2.0
    twice = np.concatenate([np.arange(number), doubled])
    split = {**case, "eta": case["eta"][:, twice], "group": case["group"][twice], "targets": np.arange(len(twice))}
    for bound in BOUNDS[:4]:
        one, other = solve(build({**case, "value": value}), bound, verify=True)[0], solve(build(split), bound)[0]
        assert (one.certified, one.upper, one.status) == (other.certified, other.upper, other.status)
        assert one.lower == pytest.approx(other.lower, abs=1e-9)
        assert type(one.certified) is int


@pytest.mark.parametrize("case", CASES[:16], ids=lambda case: case["id"])
def test_stored_cases_with_equal_values(case):
    plain = stored(case)
    for factor in (3, 0.3):
        value = np.full(plain.outputs, float(factor))
        valued = Problem(plain.weights, plain.eta, plain.group, plain.threat, plain.targets, value)
        answer = solve(valued, Exact(), verify=True)[0]
        assert answer.status is Status.EXACT
        proven = Fraction(factor) * case["expected"]["exact"]
        assert Fraction(answer.certified) <= proven <= Fraction(answer.upper)
        assert proven - Fraction(answer.certified) <= Fraction(1e-15) * proven
        assert isinstance(answer.certified, int) == (factor == 3)


def test_what_is_worth_nothing_and_what_is_no_target_counts_nothing():
    eta, group, value = [1.0, 3.0, 5.0, 9.0], [0, 0, 1, 1], [2.0, 0.0, 3.0, 100.0]
    weights = [[1.0], [1.0]]
    problem = Problem(weights, eta, group, Ball([0.5, 2.0, 7.0, 20.0], 1), [0, 1, 2], value)
    curve = solve(problem, Exact(), verify=True)
    assert curve.certified.tolist() == [5, 3, 0, 0]
    assert curve[0].total == 5
    nothing = solve(Problem(weights, eta, group, Ball(0.5, 1), value=np.zeros(4)), Exact(), verify=True)[0]
    assert (nothing.certified, nothing.upper, nothing.status) == (0, 0, Status.EXACT)
    assert Problem(weights, eta, group, Ball(0.5, 1), value=[5, 5, 0, 5]).pieces.parts is None


def test_fractions_make_curves_of_fractions_that_fall():
    r = np.random.default_rng(0)
    weights, eta, group = r.uniform(0.2, 3, (4, 5)), r.gamma(2.0, 1.0, 300), r.integers(0, 4, 300)
    problem = Problem(weights, eta, group, Ball(np.linspace(0, 2, 9)), value=1 / r.integers(1, 50, 300))
    for bound in (Naive(), LinearProgram(), Envelope(), Exact(gap=0.5, time_limit=20)):
        curve = solve(problem, bound, verify=True)
        assert curve.certified.dtype == curve.upper.dtype == np.float64
        assert np.all(np.diff(curve.certified) <= 0)
        assert np.all(curve.certified <= curve.upper)
    assert np.all(curve.upper - curve.certified <= 0.5 + 1e-9)


def test_values_without_a_common_measure_are_proven_to_a_billionth():
    r = np.random.default_rng(3)
    weights, eta, group = r.uniform(0.2, 3, (3, 3)), r.gamma(2.0, 1.0, 60), r.integers(0, 3, 60)
    answer = solve(Problem(weights, eta, group, Ball(0.8), value=r.uniform(0, 1, 60)), Exact(), verify=True)[0]
    assert answer.status is Status.WITHIN_GAP
    assert 0 <= answer.gap <= 1.0001e-9 * answer.total


def test_a_search_over_large_values_ends_like_one_over_counts():
    # Tolerances in targets would drown in the rounding of large sums.
    r = np.random.default_rng(5)
    weights, eta, group = r.uniform(0.2, 3, (3, 4)), r.gamma(2.0, 1.0, 80), r.integers(0, 3, 80)
    counted = solve(Problem(weights, eta, group, Ball(0.7)), Exact())[0]
    for factor in (1e12, 1e-12, np.pi):
        answer = solve(Problem(weights, eta, group, Ball(0.7), value=np.full(80, factor)), Exact(), verify=True)[0]
        assert answer.status is Status.EXACT
        assert answer.certified == pytest.approx(counted.certified * factor, rel=1e-15)


# ---- units and proofs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_units_enclose_the_values_of_every_set(seed):
    r = np.random.default_rng(seed)
    value = (
        r.uniform(0, 1, 20),
        10.0 ** r.uniform(-320, 290, 20),
        r.integers(0, 1000, 20) * 0.25,
        r.choice([5e-324, 1.0, 2.0**-60, 0.0], 20),
        r.integers(0, 2**52, 20).astype(float),
        r.integers(0, 2, 20) * 1e-310,
    )[seed % 6]
    worth = worth_of(value)
    parts = np.ones(20) if worth.parts is None else worth.parts
    assert np.all(parts == np.floor(parts))
    assert parts.sum() == worth.total < 2**53
    for _ in range(20):
        chosen = r.random(20) < r.random()
        true, units = sum(map(Fraction, value[chosen].tolist()), Fraction(0)), int(parts[chosen].sum())
        assert worth.unit * units <= true <= worth.unit * units + worth.lost
        assert Fraction(worth.least(units)) <= true <= Fraction(worth.most(units))
        assert Fraction(worth.most(units)) - Fraction(worth.least(units)) <= Fraction(
            1e-13 * float(value.sum()) + 5e-324
        )


def test_whole_values_and_equal_values_lose_nothing():
    for value in (np.array([3.0, 5.0, 0.0]), np.array([0.5, 1.5]), np.array([0.1, 0.1]), np.array([2.0**51, 1.0])):
        assert worth_of(value).lost == 0
    assert worth_of(np.array([0.3, 0.3, 0.0])).unit == Fraction(0.3)
    assert worth_of(np.array([6.0, 9.0])).unit == 3


def test_exact_arithmetic_rejects_a_doctored_value():
    r = np.random.default_rng(1)
    weights, eta, group = r.uniform(0.2, 3, (3, 4)), r.gamma(2.0, 1.0, 40), r.integers(0, 3, 40)
    problem = Problem(weights, eta, group, Ball(0.6), value=r.uniform(0, 1, 40))
    answer = solve(problem, Envelope())[0]
    verify(problem, answer)
    for change in (
        {"certified": np.nextafter(answer.certified, 99.0) + 1e-9 * answer.total},
        {"lower": answer.lower + 1e-9 * answer.total},
        {"upper": np.nextafter(answer.upper, 0.0)},
        {"certified": float("nan")},
        {"status": Status.EXACT},
    ):
        with pytest.raises(CertificateError):
            verify(
                problem, replace(answer, **{name: float(v) if name != "status" else v for name, v in change.items()})
            )
    # The same numbers prove nothing about values that are smaller.
    poorer = Problem(weights, eta, group, Ball(0.6), value=problem.value / 2)
    with pytest.raises(CertificateError):
        verify(poorer, answer)


@pytest.mark.parametrize(
    "value", [[1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], [1.0, np.inf, 1.0], ["a", "b", "c"], [1e300, 1e300, 1e300]]
)
def test_bad_values_name_themselves(value):
    with pytest.raises(InvalidInputError) as caught:
        Problem([[1.0]], [1.0, 2.0, 3.0], [0, 0, 0], Ball(1.0), value=value)
    assert caught.value.field == "value"


def test_files_hold_values(tmp_path):
    case = {name: given for name, given in CASES[0].items() if name not in ("id", "expected")}
    value = [0.5, 1.25, 3, 0, 1, 1, 2, 0.75]
    (tmp_path / "p.json").write_text(json.dumps({**case, "value": value}))
    arrays = {name: np.asarray(given) for name, given in case.items() if name != "caps"}
    np.savez(tmp_path / "p.npz", **arrays, value=value)
    for ending in ("json", "npz"):
        result = CliRunner().invoke(app, [str(tmp_path / f"p.{ending}"), "--bound", "exact", "--verify", "--json"])
        answer = json.loads(result.stdout)
        assert answer["certified"] == answer["upper"] == pytest.approx(float(brute_force_of(case, value)))
        assert answer["total"] == 9.5
        assert read_problems(tmp_path / f"p.{ending}").problems[0].value.tolist() == value
    record = answer_record(solve(problem_from({**case, "value": value}))[0])
    assert json.loads(json.dumps(record)) == record


def brute_force_of(case, value):
    return brute_force(
        np.array(case["weights"])[None],
        np.array(case["eta"])[None],
        case["group"],
        case["targets"],
        case["A"],
        case["c"],
        case["caps"],
        value=np.asarray(value),
    )
