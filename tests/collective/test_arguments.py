"""Arguments that are no numbers, budgets that are none, and proofs that somebody has changed."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsmooth.collective import (
    AtMostGroups,
    Ball,
    Caps,
    CertificateError,
    Envelope,
    Exact,
    GroupBudgets,
    Integer,
    Milp,
    Problem,
    Rows,
    Status,
    Threat,
    read_problems,
    solve,
    verify,
)
from localsmooth.collective.kernel.arrays import plain_numbers
from localsmooth.collective.kernel.dual import DualPoint
from localsmooth.collective.kernel.proof import LARGEST_SPLIT, Leaf, SplitFeed, SplitSpending
from localsmooth.collective.search.adversary import Adversary
from localsmooth.collective.search.setting import setting_at
from localsmooth.errors import InvalidInputError


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2"],
        np.array([b"1"]),
        [True, False],
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1], dtype="timedelta64[s]"),
        [1 + 2j],
        [[1], [1, 2]],
        [None],
        [10**400],
        [2**53 + 1],
        np.array([2**53 + 1]),
        [Fraction(1, 3)],
        np.array([1], dtype=np.longdouble) / 3,
        {"a": 1},
    ],
)
def test_what_is_no_exact_number_is_refused(values: Any) -> None:
    """Nothing is guessed: strings, truth values and numbers that float64 would round name their field."""
    with pytest.raises(InvalidInputError, match="weights"):
        plain_numbers("weights", values)


def test_numbers_are_taken_as_they_are() -> None:
    """Whole numbers, short floats and NaN (which others refuse) pass unchanged; float64 is not copied."""
    array = np.array([1.5, math.nan])
    assert plain_numbers("eta", array) is array
    assert plain_numbers("eta", [2**60, 1, 0]).tolist() == [2.0**60, 1.0, 0.0]
    assert plain_numbers("eta", np.float32([0.1])).tolist() == [float(np.float32(0.1))]
    assert plain_numbers("eta", [Fraction(1, 2), 3]).tolist() == [0.5, 3.0]


@pytest.mark.parametrize("norm", [math.inf, -1, math.nan])
@pytest.mark.parametrize("threat", [Ball, lambda budgets, norm: GroupBudgets([0, 1], budgets, norm)])
def test_norms_are_checked_wherever_they_are_given(threat: Any, norm: Any) -> None:
    """An infinite or negative p would turn a budget into a smaller one."""
    with pytest.raises(InvalidInputError, match="norm"):
        Problem([[1, 1]], [0.25, 0.25], [0, 0], threat(0.5, norm))


@pytest.mark.parametrize(
    ("field", "build"),
    [
        ("budgets", lambda: Problem([[1]], [1], [0], Ball("x"))),
        ("A", lambda: Problem([[1]], [1], [0], Rows("ab", [1]))),
        ("c", lambda: Problem([[1]], [1], [0], Rows([[1]], ["1"]))),
        ("caps", lambda: Problem([[1, 1]], [1], [0], Caps(["1", None]))),
        ("most", lambda: Problem([[1]], [1], [0], AtMostGroups(-1))),
        ("labels", lambda: Problem([[1]], [1], [0], GroupBudgets([-2], 1))),
        ("bins", lambda: Milp(bins=0)),
    ],
)
def test_arguments_name_their_field(field: str, build: Any) -> None:
    """One clear error each."""
    with pytest.raises(InvalidInputError, match=field):
        build()


def test_far_labels_cost_nothing() -> None:
    """Only labels that occur become rows."""
    assert len(GroupBudgets([0, 10**9], 1).constraints(2).rows) == 2


def test_a_list_says_which_problem_is_wrong(tmp_path: Path) -> None:
    """The second problem's field is named with its place; a mark of the byte order does no harm."""
    path = tmp_path / "list.JSON"
    good = '{"weights": [[1]], "eta": [1], "group": [0], "A": [[1]], "c": [1], "integer": null}'
    path.write_text("\ufeff[" + good + ", " + good.replace('"eta": [1]', '"eta": [-1]') + "]", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="problem 1, eta"):
        read_problems(path)
    path.write_text(good.replace('"c": [1]', '"c": [1], "c": [2]'), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="twice"):
        read_problems(path)


def forged(original: Any, **changes: object) -> Any:
    """Return a copy with fields that no constructor would accept."""
    copied = copy.copy(original)
    for name, value in changes.items():
        object.__setattr__(copied, name, value)
    return copied


def test_doctored_answers_are_refused() -> None:
    """Nothing but the proof of this very budget, and an attack that its threat allows, is believed."""
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 5, (2, 3)).astype(float)
    eta, group = rng.integers(1, 12, 40).astype(float), rng.integers(0, 2, 40)
    problem = Problem(weights, eta, group, Ball([0, 2, 4, 6], 0) & Integer() & Caps([3, 3, 3]))
    curve = solve(problem, Exact(), verify=True)
    answer, root = curve[2], Leaf((DualPoint(np.zeros(2), np.ones(2), np.zeros(1)),))
    assert curve.certified[0] > curve.certified[2]
    proof = answer.proof
    doctored = [
        forged(answer, proof=curve[0].proof),
        forged(answer, proof=forged(curve[0].proof, index=2)),
        forged(answer, certified=curve[0].certified, lower=curve[0].lower, proof=curve[0].proof, upper=40),
        forged(answer, index=3),
        forged(answer, index=-1),
        forged(answer, index=9),
        forged(answer, lower=answer.lower + 0.5),
        forged(answer, lower=math.nan),
        forged(answer, attack=np.full(3, 100.0)),
        forged(answer, attack=-answer.attack),
        forged(answer, attack=np.full(3, math.nan)),
        forged(answer, attack=np.zeros(2)),
        forged(answer, certified=0, lower=0.0, status=Status.EXACT),
        forged(answer, proof=forged(proof, index=99)),
        forged(answer, proof=forged(proof, ceilings=proof.ceilings[:1])),
        forged(answer, proof=forged(proof, ceilings=-np.full(2, math.inf))),
        forged(answer, proof=forged(proof, root=None)),
        *(
            forged(answer, proof=forged(proof, root=forged(split(0, 1, root, root), at=at)))
            for split in (SplitSpending, SplitFeed)
            for at in (0.1, 1.5, math.nan, -1, 2**53, LARGEST_SPLIT)
        ),
        *(
            forged(answer, proof=forged(proof, root=forged(split(0, 1, root, root), piece=place, column=place)))
            for split in (SplitSpending, SplitFeed)
            for place in (-1, 7, 0.0)
        ),
        forged(answer, proof=forged(proof, root=Leaf((forged(root.points[0], slopes=np.zeros(1)),)))),
    ]
    for number, false in enumerate(doctored):
        with pytest.raises(CertificateError):
            print(number, verify(problem, false))


def test_a_cut_at_a_fraction_hides_no_spending() -> None:
    """b = 1 breaks everything: cutting at .1 into b ≤ .1 and b ≥ 1.1 would leave it out."""
    problem = Problem([[1.0]], [1.0] * 4, [0] * 4, Rows([[1]], [1]) & Integer())
    answer = solve(problem, Exact())[0]
    leaf = Leaf((DualPoint(np.array([-4.0]), np.array([1.0]), np.array([0.0])),))
    root = forged(SplitSpending(0, 0, leaf, Leaf(())), at=0.1)
    false = forged(answer, certified=4, lower=4.0, upper=4, attack=np.zeros(1), proof=forged(answer.proof, root=root))
    with pytest.raises(CertificateError, match="fraction"):
        verify(problem, false)


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_give_back_bound_their_columns(seed: int) -> None:
    """b_0 ≤ b_1 and b_1 ≤ 1 bound b_0, and so on along a chain: the optimum is found and proven without caps."""
    rng = np.random.default_rng(seed)
    columns = 3
    rows = np.zeros((columns, columns))
    rows[0, 0] = 1.0
    for row in range(1, columns):
        rows[row, row], rows[row, row - 1] = 1.0, -float(rng.integers(1, 3))
    limits = rng.integers(0, 3, columns).astype(float)
    weights, eta = rng.integers(0, 4, (2, columns)).astype(float), rng.integers(1, 9, 8).astype(float)
    group = np.arange(8) % 2
    threat: Threat = Rows(rows, limits) & Integer()
    problem = Problem(weights, eta, group, threat)
    assert np.isfinite(setting_at(problem, 0).region.upper).all()
    answer = solve(problem, Exact(time_limit=None), verify=True)[0]
    spendings = np.array(list(itertools.product(range(20), repeat=columns)))
    spendings = spendings[np.all(spendings @ rows.T <= limits, axis=1)]
    assert spendings.max() < 19
    assert (
        answer.certified
        == answer.upper
        == (spendings @ weights.T < eta[:, None, None])[np.arange(8), :, group].sum(axis=0).min()
    )
    assert solve(problem, Envelope(), verify=True)[0].certified <= answer.certified


def test_what_a_row_gives_back_is_rounded_up() -> None:
    """A product that underflows still gives something back, and one that overflows bounds nothing."""
    small = Rows([[1, -1e-200], [0, 1]], [0, 1e-200])
    assert 0 < setting_at(Problem([[1.0, 1.0]], [1.0], [0], small), 0).region.upper[0] < 1e-300
    large = Rows([[1, -1e200], [0, 1]], [0, 1e200])
    assert setting_at(Problem([[1.0, 1.0]], [1.0], [0], large), 0).region.upper[0] == math.inf
    nothing = Rows([[1, -1], [0, 1]], [0, 0])
    assert setting_at(Problem([[1.0, 1.0]], [1.0], [0], nothing), 0).region.upper.tolist() == [0.0, 0.0]


def test_a_limit_on_groups_counts_without_caps() -> None:
    """One of four columns, as much as one likes: what the other three hold up stands."""
    weights, eta = np.eye(4), np.arange(1.0, 41.0)
    problem = Problem(weights, eta, np.arange(40) % 4, AtMostGroups(1))
    assert solve(problem, Envelope(), verify=True)[0].certified >= 29
    answer = solve(problem, Exact(), verify=True)[0]
    assert answer.certified == answer.upper == 30
    # Where spending gives something back, more than enough may be needed elsewhere: no bound is made up.
    chained = Problem(weights, eta, np.arange(40) % 4, AtMostGroups(2) & Rows([[-1, 1, 0, 0]], [0]))
    answer = solve(chained, Exact(), verify=True)[0]
    assert answer.certified <= answer.upper == 20


def test_an_infinite_threshold_stands_where_the_feed_overflows() -> None:
    """W·b beyond the floating-point range breaks no output that cannot fall."""
    problem = Problem([[[1e300], [1e300]], [[1e300], [1e300]]], [[math.inf, 1.0], [1.0, 1.0]], [0, 1], Ball(1e300, 1))
    answer = solve(problem, Exact())[0]
    assert (answer.certified, answer.upper, answer.broken.tolist()) == (1, 1, [1])


def test_the_local_search_minds_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the deadline no move is looked at."""
    problem = Problem(np.eye(3), [1.0, 1.0, 1.0], [0, 1, 2], Ball(1.0, 1))
    adversary = Adversary(setting_at(problem, 0), deadline=0.0)
    monkeypatch.setattr(adversary, "_moves", None)
    assert adversary.search([np.ones(3)]).shape == (3,)
