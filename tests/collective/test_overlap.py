"""Certified IoU and Dice against every consistent outcome: each output that is not certified takes any label."""

from __future__ import annotations

import inspect
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from localsmooth.collective import (
    AtMostGroups,
    Ball,
    Caps,
    CertificateError,
    Envelope,
    Exact,
    Integer,
    LinearProgram,
    Milp,
    Naive,
    Problem,
    certify_overlap,
)
from localsmooth.collective.kernel.worth import rounded_down
from localsmooth.errors import InvalidInputError

from .problems import build, random_problem, seeds

CLASSES = 3


def _whole_spendings(case):
    """Which targets stand at each spending of whole numbers; one row per set that occurs."""
    limits = [range(int(cap) + 1) for cap in case["caps"]]
    sets = set()
    for spent in itertools.product(*limits):
        b = np.array(spent, float)
        if np.all(case["A"] @ b <= case["c"] + 1e-12):
            feed = case["weights"] @ b
            sets.add(tuple(np.any(feed[:, case["group"]] < case["eta"], axis=0).tolist()))
    return [np.array(one) for one in sets]


def _real_spendings(case):
    """Which targets stand at each spending: each choice of what groups are fed that a linear program can pay for."""
    (weights,), (eta,), group = case["weights"], case["eta"], case["group"]
    grids = [sorted({0.0, *eta[group == i].tolist()}) for i in range(len(weights))]
    sets = set()
    for demand in itertools.product(*grids):
        matrix, right = np.concatenate([-weights, case["A"]]), np.concatenate([-np.array(demand), case["c"]])
        bounds = [(0, cap) for cap in case["caps"]]
        if linprog(np.zeros(matrix.shape[1]), matrix, right, bounds=bounds, method="highs").status == 0:
            sets.add(tuple((np.array(demand)[group] < eta).tolist()))
    return [np.array(one) for one in sets]


def brute_force(stands, predictions, labels):
    """Return the least IoU and Dice per class, and of their means over the classes among the labels, as fractions."""
    present = np.unique(labels)
    least = {("iou", c): Fraction(2) for c in present} | {("dice", c): Fraction(2) for c in present}
    mean = {"iou": Fraction(2), "dice": Fraction(2)}
    for held in stands:
        free = np.flatnonzero(~held)
        outcomes = np.repeat(predictions[None], CLASSES ** len(free), axis=0)
        if len(free):
            outcomes[:, free] = np.array(list(itertools.product(range(CLASSES), repeat=len(free))))
        sums = {"iou": np.zeros(len(outcomes)), "dice": np.zeros(len(outcomes))}
        exact = {"iou": [], "dice": []}
        for c in present:
            tp = ((outcomes == c) & (labels == c)).sum(axis=1)
            fp = ((outcomes == c) & (labels != c)).sum(axis=1)
            fn = ((outcomes != c) & (labels == c)).sum(axis=1)
            for name, top, bottom in (("iou", tp, tp + fp + fn), ("dice", 2 * tp, 2 * tp + fp + fn)):
                at = int(np.argmin(top / bottom))
                least[name, c] = min(least[name, c], Fraction(int(top[at]), int(bottom[at])))
                sums[name] += top / bottom
                exact[name].append((top, bottom))
        for name, total in sums.items():
            at = int(np.argmin(total))
            value = sum((Fraction(int(top[at]), int(bottom[at])) for top, bottom in exact[name]), Fraction(0))
            mean[name] = min(mean[name], value / len(present))
    return least, mean


def _labelled(seed, number):
    r = np.random.default_rng([seed, 7])
    predictions = r.integers(0, CLASSES, number)
    labels = np.where(r.random(number) < 0.7, predictions, r.integers(0, CLASSES, number))
    return predictions, labels


def check(case, stands, seed, bounds):
    """Hold all bounds to the least over all outcomes; return the last one's result."""
    predictions, labels = _labelled(seed, len(case["group"]))
    least, mean = brute_force(stands, predictions, labels)
    found = None
    for bound in bounds:
        found = certify_overlap(build(case), predictions, labels, bound=bound, tolerance=1e-4, verify=True)
        assert found.classes.tolist() == np.unique(labels).tolist()
        for place, c in enumerate(found.classes):
            for name, low, high in (("iou", found.iou, found.iou_upper), ("dice", found.dice, found.dice_upper)):
                assert Fraction(low[place, 0]) <= least[name, c] <= Fraction(high[place, 0])
                if isinstance(bound, Exact):
                    assert float(least[name, c]) - low[place, 0] <= 1e-4
        for name, low, high in (
            ("iou", found.mean_iou, found.mean_iou_upper),
            ("dice", found.mean_dice, found.mean_dice_upper),
        ):
            assert Fraction(low[0]) <= mean[name] <= Fraction(high[0])
    return found, least


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_no_outcome_lies_below_what_is_certified_and_exact_reaches_the_least(seed):
    case = random_problem(seed, integer=True, certificates=1 + seed % 2, rows=1 + seed % 3)
    found, least = check(case, _whole_spendings(case), seed, (Naive(), LinearProgram(), Envelope(), Exact()))
    # Over whole spendings nothing hides: the last bit is proven.
    for place, c in enumerate(found.classes):
        assert found.iou[place, 0] == rounded_down(least["iou", c])
        assert Fraction(found.iou_upper[place, 0]) - Fraction(found.iou[place, 0]) <= Fraction(2.0**-52)


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_no_outcome_of_real_spendings_lies_below_what_is_certified(seed):
    case = random_problem(seed, rows=1 + seed % 2)
    check(case, _real_spendings(case), seed, (Naive(), Envelope(), Exact()))


@pytest.mark.parametrize("seed", range(3))
def test_twelve_outputs_and_three_classes(seed):
    case = random_problem(seed, integer=True, outputs=12, groups=3, columns=3)
    case["eta"] = np.round(case["eta"] * 2 + 0.5, 1)
    stands = _whole_spendings(case)
    assert len(stands) > 1
    check(case, stands, seed, (Envelope(), Exact(), Milp(time_limit=10)))


@given(seed=seeds, discount=st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_no_outcome_lies_below_where_some_certificates_are_wrong(seed, discount):
    """Whichever these are: on top of what falls, any so many outputs take any label."""
    case = random_problem(seed, integer=True, outputs=7, certificates=1)
    stands = {
        tuple(held & ~np.isin(np.arange(len(held)), wrong))
        for held in _whole_spendings(case)
        for wrong in itertools.combinations(range(len(held)), discount)
    }
    predictions, labels = _labelled(seed, len(case["group"]))
    least, mean = brute_force([np.array(one) for one in stands], predictions, labels)
    for bound in (Envelope(), Exact()):
        found = certify_overlap(build(case), predictions, labels, bound=bound, discount=discount, verify=True)
        for place, c in enumerate(found.classes):
            assert Fraction(found.iou[place, 0]) <= least["iou", c] <= Fraction(found.iou_upper[place, 0])
            assert Fraction(found.dice[place, 0]) <= least["dice", c]
            if isinstance(bound, Exact):
                assert float(least["iou", c]) - found.iou[place, 0] <= 1e-3 + 1e-9
        assert Fraction(found.mean_iou[0]) <= mean["iou"]


def _field(seed=0, outputs=400, groups=5):
    r = np.random.default_rng(seed)
    weights = 1 / (0.2 + 0.2 * np.abs(np.arange(groups)[:, None] - np.arange(groups))) ** 2
    eta, group = np.clip(r.normal(3, 1.5, outputs), 0, 8), r.integers(0, groups, outputs)
    labels = r.integers(0, 4, outputs)
    predictions = np.where(r.random(outputs) < 0.9, labels, r.integers(0, 4, outputs))
    return weights, eta, group, predictions, labels


def test_a_curve_falls_encloses_and_begins_with_what_stands():
    weights, eta, group, predictions, labels = _field()
    budgets = np.array([0.6, 0.0, 0.2, 0.4, 5.0])
    problem = Problem(weights, eta, group, Ball(budgets))
    order = np.argsort(budgets)
    strengths = []
    for bound in (Naive(), LinearProgram(), Envelope()):
        found = certify_overlap(problem, predictions, labels, bound=bound)
        for low, high in ((found.iou, found.iou_upper), (found.dice, found.dice_upper)):
            assert np.all(np.diff(low[:, order]) <= 0)
            assert np.all(np.diff(high[:, order]) <= 0)
            assert np.all((low >= 0) & (low <= high) & (high <= 1))
            assert np.all(low[:, 4] == 0)
            assert low[:, 1] == pytest.approx(high[:, 1], abs=1e-12)  # nothing is spent
        assert np.all(found.mean_iou <= found.mean_iou_upper)
        assert np.all(found.mean_dice <= found.mean_dice_upper)
        assert found.mean_iou == pytest.approx(found.iou.mean(axis=0))
        assert found.dice == pytest.approx(2 * found.iou / (1 + found.iou))
        strengths.append(found.iou)
        stands = eta > 0
        for place, c in enumerate(found.classes):
            hit = stands & (labels == c) & (predictions == c)
            spared = stands & (labels != c) & (predictions != c)
            assert found.iou[place, 1] == pytest.approx(hit.sum() / (len(eta) - spared.sum()))
    naive, lp, envelope = strengths
    assert np.all(lp >= naive - 1e-3)
    assert np.all(envelope >= lp - 1e-3)
    assert envelope[:, 2].mean() > naive[:, 2].mean() + 0.05


def test_each_attack_leaves_what_it_is_said_to_leave_and_is_allowed():
    weights, eta, group, predictions, labels = _field(1)
    problem = Problem(weights, eta, group, Ball([0.3, 0.5]))
    found = certify_overlap(problem, predictions, labels, bound=Exact(time_limit=2), tolerance=1e-2)
    for place, c in enumerate(found.classes):
        for budget, size in enumerate((0.3, 0.5)):
            b = found.attack[place, budget]
            assert b.sum() <= size**2 + 1e-12
            stands = (weights @ b)[group] < eta
            tp = (stands & (labels == c) & (predictions == c)).sum()
            spared = (stands & (labels != c) & (predictions != c)).sum()
            assert found.iou_upper[place, budget] == pytest.approx(tp / (len(eta) - spared), abs=1e-9)


def test_threats_of_every_kind_keep_their_parts():
    weights, eta, group, predictions, labels = _field(2, 60, 4)
    threat = Ball([1, 2], 0) & Caps([1, 2, 1, 1]) & Integer() & AtMostGroups(1)
    found = certify_overlap(Problem(weights / 10, eta, group, threat), predictions, labels, bound=Exact(), verify=True)
    for budget, most in enumerate((1, 2)):
        for place, c in enumerate(found.classes):
            least = 2.0
            for column, spent in itertools.product(range(4), range(most + 1)):
                if spent <= [1, 2, 1, 1][column]:
                    stands = (weights[:, column] / 10 * spent)[group] < eta
                    tp = (stands & (labels == c) & (predictions == c)).sum()
                    spared = (stands & (labels != c) & (predictions != c)).sum()
                    least = min(least, tp / (60 - spared))
            assert found.iou[place, budget] == pytest.approx(least, abs=1e-12)


def test_ignored_outputs_and_absent_classes():
    weights, eta, group, predictions, labels = _field(3, 100, 3)
    known = labels != 3
    problem = Problem(weights, eta, group, Ball([0.0, 0.3]), known)
    found = certify_overlap(problem, predictions, labels, classes=[0, 3, 7])
    assert np.all(np.isfinite(found.iou[0]))
    assert np.all(np.isnan(found.iou[1:]))
    assert np.all(np.isnan(found.dice_upper[1:]))
    assert found.mean_iou == pytest.approx(found.iou[0])
    rest = Problem(weights, eta[known], group[known], Ball([0.0, 0.3]))
    alone = certify_overlap(rest, predictions[known], labels[known], classes=[0])
    assert np.array_equal(alone.iou[0], found.iou[0])
    nothing = certify_overlap(problem, predictions, labels, classes=[3])
    assert np.all(np.isnan(nothing.mean_iou))
    assert np.all(np.isnan(nothing.mean_iou_upper))


def test_a_bound_above_an_attack_is_noticed(monkeypatch):
    import importlib

    module = importlib.import_module("localsmooth.collective.overlap")
    honest = module.solve
    weights, eta, group, predictions, labels = _field(4, 60, 3)

    def generous(problem, bound, verify):
        answer = honest(problem, bound, verify)[0]
        object.__setattr__(answer, "certified", answer.upper + 1 + int(answer.total) // 2)
        return [answer]

    monkeypatch.setattr(module, "solve", generous)
    with pytest.raises(CertificateError):
        certify_overlap(Problem(weights, eta, group, Ball(0.5)), predictions, labels)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("predictions", {"predictions": [0, 1]}),
        ("labels", {"labels": [0.5, 1.0, 2.0]}),
        ("classes", {"classes": [0.5]}),
        ("tolerance", {"tolerance": 0.0}),
        ("tolerance", {"tolerance": float("nan")}),
        ("tolerance", {"tolerance": "x"}),
        ("tolerance", {"tolerance": None}),
        ("tolerance", {"tolerance": [0.1]}),
        ("predictions", {"predictions": [[0], [1, 2], 3]}),
        ("predictions", {"predictions": ["a", "b", "c"]}),
        ("labels", {"labels": None}),
        ("classes", {"classes": [[0, 1]]}),
        ("classes", {"classes": [[0], [0, 1]]}),
        ("classes", {"classes": "all"}),
        ("discount", {"discount": -1}),
        ("discount", {"discount": 0.5}),
        ("problem", {"problem": [1.0]}),
        ("bound", {"bound": "best"}),
    ],
)
def test_bad_arguments_name_themselves(field, change):
    problem = Problem([[1.0]], [1.0, 2.0, 3.0], [0, 0, 0], Ball(1.0))
    unchecked = inspect.unwrap(certify_overlap)  # users have no type checker that speaks first
    with pytest.raises(InvalidInputError) as caught:
        unchecked(**{"problem": problem, "predictions": [0, 1, 1], "labels": [0, 1, 0], **change})
    assert caught.value.field == field
    valued = Problem([[1.0]], [1.0, 2.0, 3.0], [0, 0, 0], Ball(1.0), value=[1, 2, 3])
    with pytest.raises(InvalidInputError) as caught:
        certify_overlap(valued, [0, 1, 1], [0, 1, 0])
    assert caught.value.field == "problem"
