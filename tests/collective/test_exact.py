"""Branch and bound and the direct program: the optimum, or a proven bound and an honest status."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from localsmooth.collective import (
    AtMostGroups,
    Ball,
    Caps,
    CertificateError,
    Envelope,
    Exact,
    GroupBudgets,
    Integer,
    LinearProgram,
    Milp,
    Naive,
    Problem,
    Rows,
    Status,
    solve,
    verify,
)
from localsmooth.collective.kernel.proof import SplitFeed, Tighten
from localsmooth.collective.search.adversary import Adversary
from localsmooth.collective.search.direct import Claim
from localsmooth.collective.search.linear_program import LinearModel
from localsmooth.errors import InvalidInputError

from .oracle import brute_force
from .problems import CASES, build, random_problem, seeds, stored

milp = importlib.import_module("localsmooth.collective.search.milp")
exact_module = importlib.import_module("localsmooth.collective.search.exact")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_stored_cases(case):
    exact = solve(stored(case), Exact(), verify=True)[0]
    assert exact.certified == case["expected"]["exact"] == exact.upper
    assert exact.status is Status.EXACT
    direct = solve(stored(case), Milp(), verify=True)[0]
    assert direct.certified == case["expected"]["exact"] == direct.upper
    assert direct.claimed == pytest.approx(direct.certified, abs=0.51)
    assert direct.status is Status.EXACT
    quantised = solve(stored(case), Milp(bins=2), verify=True)[0]
    assert case["expected"]["envelope"] - 1e-4 <= quantised.certified <= case["expected"]["exact"]
    assert quantised.claimed <= case["expected"]["exact"] + 0.01
    assert quantised.certified >= quantised.claimed - 0.01


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_exact_finds_the_optimum(seed):
    case = random_problem(seed, rows=1 + seed % 3)
    optimum = brute_force(**case)
    answer = solve(build(case), Exact(), verify=True)[0]
    assert answer.certified == optimum
    assert answer.upper - answer.certified <= (answer.status is Status.TIED)
    assert solve(build(case), Milp())[0].certified <= optimum


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_exact_finds_the_optimum_in_whole_numbers(seed):
    case = random_problem(seed, integer=True, rows=1 + seed % 2)
    optimum = brute_force(**case)
    answer = solve(build(case), Exact(), verify=True)[0]
    assert answer.certified == answer.upper == optimum
    assert solve(build(case), Milp())[0].certified <= optimum


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_exact_finds_the_optimum_of_several_certificates(seed):
    case = random_problem(seed, certificates=2 + seed % 2, outputs=int(seed % 5) + 1, groups=2)
    optimum = brute_force(**case)
    answer = solve(build(case), Exact(), verify=True)[0]
    assert answer.certified == optimum
    assert solve(build(case), Envelope(), verify=True)[0].lower <= answer.certified + 1e-9
    direct = solve(build(case), Milp(), verify=True)[0]
    assert direct.certified == optimum
    # A simple attack that breaks everything leaves nothing to ask.
    assert optimum == 0 or direct.claimed == pytest.approx(optimum, abs=0.51)


def _field(seed=0, outputs=3000, groups=6):
    r = np.random.default_rng(seed)
    distance = np.abs(np.arange(groups)[:, None] - np.arange(groups))
    weights = 1 / (0.15 + 0.17 * distance) ** 2
    eta = np.clip(r.normal(3.0, 1.2, outputs), 0, 8)
    return weights, eta, r.integers(0, groups, outputs)


def test_a_time_limit_returns_a_valid_certificate():
    problem = Problem(*_field(), Ball([0.4, 0.5, 0.6]))
    envelope = solve(problem, Envelope())
    for limit in (0.0, 0.3):
        hurried = solve(problem, Exact(time_limit=limit), verify=True)
        assert np.all(hurried.certified >= envelope.certified)
        assert np.all(hurried.certified <= hurried.upper)
        assert any(answer.status is Status.TIME_LIMIT for answer in hurried)
    patient = solve(problem, Exact(gap=40, time_limit=60.0))
    assert np.all(patient.certified >= envelope.certified)
    assert np.all(patient.upper - patient.certified <= 40)
    assert np.all(hurried.certified <= patient.upper)


def test_a_search_for_attacks_that_never_ends_leaves_time_to_split(monkeypatch):
    def endless(self, starts, restarts=10):
        while not self._late:
            time.sleep(0.01)
        return starts[0]

    monkeypatch.setattr(Adversary, "search", endless)
    problem = Problem(*_field(), Ball(0.5))
    assert solve(problem, Exact(time_limit=2.0))[0].certified > solve(problem, Envelope())[0].certified


def test_the_time_limit_is_for_the_whole_curve_and_shared(monkeypatch):
    problem = Problem(*_field(), Ball([0.35, 0.4, 0.45, 0.5, 0.55, 0.6]))
    envelope = solve(problem, Envelope())
    start = time.perf_counter()
    ends: list[tuple[float, float]] = []
    honest = exact_module._ExactSolver.solve

    def spy(self, setting, deadline):
        ends.append((time.perf_counter() - start, deadline - start))
        return honest(self, setting, deadline)

    monkeypatch.setattr(exact_module._ExactSolver, "solve", spy)
    curve = solve(problem, Exact(time_limit=3.0))
    assert time.perf_counter() - start < 3.0 + 6.0  # what was begun is finished, on a busy machine
    assert len(ends) == 6
    for position, (begin, end) in enumerate(ends):
        assert end == pytest.approx(begin + max(0.0, 3.0 - begin) / (6 - position), abs=0.3)
    assert np.all(curve.certified >= envelope.certified)
    assert all(answer.status in (Status.TIME_LIMIT, Status.EXACT) for answer in curve)
    for answer in curve:
        verify(problem, answer)


def test_budgets_beyond_the_first_that_leaves_nothing_are_not_solved(monkeypatch):
    solved: list[int] = []
    honest = exact_module._ExactSolver.solve

    def spy(self, setting, deadline):
        solved.append(setting.index)
        return honest(self, setting, deadline)

    monkeypatch.setattr(exact_module._ExactSolver, "solve", spy)
    curve = solve(Problem(*_field(2, 200, 4), Ball([5.0, 0.3, 50.0, 4.0, np.inf])), Exact(gap=3), verify=True)
    assert curve.certified.tolist()[2:] == [0, 0, 0]
    assert curve.certified[0] == 0
    assert solved == [1]


def test_lines_and_bases_are_carried_from_budget_to_budget(monkeypatch):
    started: list[int] = []
    honest = LinearModel.start_from

    def spy(self, basis):
        started.append(len(basis.rows))
        honest(self, basis)

    monkeypatch.setattr(LinearModel, "start_from", spy)
    problem = Problem(*_field(), Ball([0.4, 0.5, 0.6]))
    curve = solve(problem, Envelope())
    assert len(started) == 2
    assert min(started) > 6 + 1  # links, one threat row, and the lines of the budget before
    monkeypatch.setattr(LinearModel, "start_from", lambda self, basis: None)
    assert solve(problem, Envelope()).lower == pytest.approx(curve.lower, abs=1e-6)


def test_a_gap_is_kept_and_said():
    answer = solve(Problem(*_field(), Ball(0.5)), Exact(gap=60, time_limit=60.0), verify=True)[0]
    assert answer.gap <= 60
    assert answer.status in (Status.WITHIN_GAP, Status.EXACT)


def test_exact_arithmetic_rejects_a_doctored_tree():
    problem = Problem(*_field(outputs=600, groups=8), Ball(0.5))
    answer = solve(problem, Exact(gap=12, time_limit=60.0))[0]
    verify(problem, answer)
    root = answer.proof.root
    assert isinstance(root, SplitFeed)
    for side in ("below", "above"):
        other = "above" if side == "below" else "below"
        forged = replace(root, **{side: getattr(root, other)})
        with pytest.raises(CertificateError):
            verify(problem, replace(answer, proof=replace(answer.proof, root=forged)))
    with pytest.raises(CertificateError):
        verify(problem, replace(answer, proof=replace(answer.proof, root=replace(root, at=0))))
    changed, lies = _with_lower_ceilings(root)
    assert lies > 0
    with pytest.raises(CertificateError):
        verify(problem, replace(answer, proof=replace(answer.proof, root=changed)))


def _with_lower_ceilings(node):
    """Return a proof tree in which every ceiling is a little lower than what is proven, and how many there are."""
    if isinstance(node, Tighten):
        child, lies = _with_lower_ceilings(node.child)
        ceilings = tuple(replace(ceiling, value=ceiling.value * 0.99) for ceiling in node.ceilings)
        return replace(node, ceilings=ceilings, child=child), lies + len(ceilings)
    if isinstance(node, SplitFeed):
        below, above = _with_lower_ceilings(node.below), _with_lower_ceilings(node.above)
        return replace(node, below=below[0], above=above[0]), below[1] + above[1]
    return node, 0


@pytest.mark.parametrize("claim", [None, 1e9, np.nan, np.inf, -np.inf])
def test_what_the_direct_programs_solver_claims_is_never_certified_unproven(monkeypatch, claim):
    problem = Problem(*_field(outputs=600, groups=6), Ball([0.4, 0.5]))
    envelope, exact = solve(problem, Envelope()), solve(problem, Exact(gap=2))
    too_many = [float(upper) + 1 if claim is None else claim for upper in exact.upper]
    monkeypatch.setattr(milp, "ask", lambda setting, bins, deadline: Claim(too_many[setting.index], None, True))
    answers = solve(problem, Milp(time_limit=2.0), verify=True)
    assert np.all(answers.certified >= envelope.certified)
    assert np.all(answers.certified <= exact.upper)
    if np.isfinite(too_many[0]):
        assert all(answer.status in (Status.UNPROVEN, Status.EXACT) for answer in answers)
        assert [answer.claimed for answer in answers] == too_many


def test_a_claim_that_holds_is_proven_and_no_more_is_searched(monkeypatch):
    problem = Problem(*_field(outputs=600, groups=6), Ball(0.5))
    envelope, exact = solve(problem, Envelope())[0], solve(problem, Exact(gap=2))[0]
    claim = (envelope.certified + exact.certified) // 2
    assert envelope.certified + 3 < claim < exact.certified - 3
    monkeypatch.setattr(milp, "ask", lambda setting, bins, deadline: Claim(claim - 0.2, None, True))
    answer = solve(problem, Milp(time_limit=60.0), verify=True)[0]
    assert claim <= answer.certified < exact.certified
    assert answer.status is Status.RELAXED


def test_quantised_thresholds_are_for_one_certificate():
    problem = Problem(np.ones((2, 1, 1)), np.ones((2, 3)), [0, 0, 0], Ball(0.5))
    with pytest.raises(InvalidInputError) as caught:
        solve(problem, Milp(bins=4))
    assert caught.value.field == "bins"


def test_answers_do_not_depend_on_order_or_scale():
    r = np.random.default_rng(1)
    weights, eta, group = _field(1, 120, 4)
    reference = solve(Problem(weights, eta, group, Ball(0.5)), Exact())[0]
    outputs, groups, columns = r.permutation(120), r.permutation(4), r.permutation(4)
    shuffled = weights[groups][:, columns]
    relabelled = np.argsort(groups)[group[outputs]]
    again = solve(Problem(shuffled, eta[outputs], relabelled, Ball(0.5)), Exact())[0]
    assert again.certified == reference.certified == again.upper
    scaled = solve(Problem(weights * 1e9, eta * 1e9, group, Ball(0.5)), Exact())[0]
    assert scaled.certified == reference.certified == scaled.upper
    spent = solve(Problem(weights * 1e-6, eta, group, Rows(np.ones((1, 4)), [0.25e6])), Exact())[0]
    assert spent.certified == reference.certified == spent.upper


# ---- threats ---------------------------------------------------------------------------------------------------------


def _small(seed, outputs=12, groups=3, columns=4):
    r = np.random.default_rng(seed)
    return r.uniform(0.2, 3, (groups, columns)), r.gamma(2.0, 1.0, outputs), r.integers(0, groups, outputs)


@pytest.mark.parametrize("seed", range(6))
def test_two_kinds_of_perturbation(seed):
    weights, eta, group = _small(seed)
    threat = Ball(2, 0, columns=[0, 1]) & Ball(1, 0, columns=[2, 3]) & Caps([1, 2, 2, 1]) & Integer()
    A = [[1, 1, 0, 0], [0, 0, 1, 1]]
    expected = brute_force(weights[None], eta[None], group, range(12), A, [2, 1], [1, 2, 2, 1], integer=True)
    answer = solve(Problem(weights, eta, group, threat), Exact(), verify=True)[0]
    assert answer.certified == answer.upper == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("integer", [False, True])
def test_at_most_so_many_groups(seed, integer):
    weights, eta, group = _small(seed)
    budget, most = 3.0, 2
    threat = Ball(budget, 1) & AtMostGroups(most)
    threat = threat & Integer() if integer else threat
    problem = Problem(weights, eta, group, threat)
    expected = min(
        brute_force(
            weights[None], eta[None], group, range(12), np.ones((1, 4)), [budget],
            [None if column in pair else 0 for column in range(4)], integer=integer,
        )
        for pair in ((a, b) for a in range(4) for b in range(a))
    )  # fmt: skip
    exact = solve(problem, Exact(), verify=True)[0]
    assert exact.certified == exact.upper == expected
    assert np.count_nonzero(exact.attack) <= most
    bounds = [solve(problem, bound, verify=True)[0] for bound in (Naive(), LinearProgram(), Envelope())]
    lowers = [bound.lower for bound in bounds]
    assert lowers[0] <= lowers[1] + 1e-6
    assert lowers[1] <= lowers[2] + 1e-6
    assert bounds[2].certified <= expected
    unlimited = solve(Problem(weights, eta, group, Ball(budget, 1)), Exact())[0]
    assert unlimited.certified <= expected or integer


def test_groups_of_columns_share_a_switch():
    weights, eta, group = _small(3)
    labels = [0, 1, 0, 1]
    problem = Problem(weights, eta, group, Ball(2.0, 1) & AtMostGroups(1, labels))
    answer = solve(problem, Exact(), verify=True)[0]
    expected = min(
        brute_force(weights[None], eta[None], group, range(12), np.ones((1, 4)), [2.0], caps)
        for caps in ([None, 0, None, 0], [0, None, 0, None])
    )
    assert answer.certified == answer.upper == expected


def test_budgets_of_nodes():
    weights, eta, group = _small(4)
    problem = Problem(weights, eta, group, Ball(3.0, 1) & GroupBudgets([0, 0, 1, -1], [1.0, 0.5], norm=1))
    rows = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]]
    expected = brute_force(weights[None], eta[None], group, range(12), rows, [3.0, 1.0, 0.5])
    answer = solve(problem, Exact(), verify=True)[0]
    assert answer.certified == answer.upper == expected


def test_several_certificates_are_stronger_than_either():
    r = np.random.default_rng(0)
    weights, eta, group = r.uniform(0.2, 2, (2, 3, 3)), r.gamma(2.0, 1.0, (2, 30)), r.integers(0, 3, 30)
    both = solve(Problem(weights, eta, group, Ball(1.0)), Exact(), verify=True)[0].certified
    alone = [solve(Problem(weights[k], eta[k], group, Ball(1.0)), Exact())[0].certified for k in range(2)]
    assert both > max(alone)


def test_exact_curve_is_monotone():
    weights, eta, group = _field(2, 200, 4)
    curve = solve(Problem(weights, eta, group, Ball([0.6, 0.2, 0.0, 0.4, 5.0])), Exact(gap=1), verify=True)
    order = [2, 1, 3, 0, 4]
    assert np.all(np.diff(curve.certified[order]) <= 0)
    assert curve[4].certified == 0
    assert curve[2].certified == np.count_nonzero(eta > 0)


@pytest.mark.parametrize("change", [{"gap": -1}, {"gap": float("nan")}, {"time_limit": -1.0}])
def test_bad_options_name_themselves(change):
    with pytest.raises(InvalidInputError) as caught:
        Exact(**change)
    assert caught.value.field == next(iter(change))
    with pytest.raises(InvalidInputError):
        Milp(bins=0)
