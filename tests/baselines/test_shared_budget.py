"""Certificates from receptive fields against brute-force adversaries, and against localized smoothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from localsmooth.baselines import BudgetSets, ReceptiveFields, most_attacked
from localsmooth.baselines.regions import flip_frontier
from localsmooth.baselines.shared_budget import _Program  # pyright: ignore[reportPrivateUsage]
from localsmooth.certificates import BaseCertificates, ExactVotes, GaussianVotes
from localsmooth.collective import (
    Ball,
    Caps,
    Envelope,
    Exact,
    Integer,
    LinearProgram,
    Naive,
    Problem,
    Rows,
    Threat,
    solve,
)
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout, Partition, atoms_of, window_fields
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Bernoulli, Gaussian, SparseFlips
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import Flips, Kind
from localsmooth.tasks.graphs import strictly_local
from tests.flat import certify

from ..soundness.discrete_spaces import BinarySpace


def standing(sets: BudgetSets, spending: np.ndarray) -> np.ndarray:
    """Whether each output stands under a spending [kinds × columns]: plain loops."""
    stands = np.ones(sets.field.size, bool)
    for owner, corner in zip(sets.owner, sets.corner, strict=True):
        spent = spending[:, sets.seen[sets.field[owner]]].sum(axis=1)
        if (spent >= corner).all():
            stands[owner] = False
    return stands


def most_by_force(sets: BudgetSets, threat: Threat, targets: np.ndarray) -> list[tuple[int, int]]:
    """(attacked one by one, attacked together) over every whole spending within the threat."""
    columns = sets.kinds * sets.seen.shape[1]
    made = threat.constraints(columns)
    found = []
    for budget in made.budgets:
        together, alone = 0, np.zeros(sets.field.size, bool)
        for spending in itertools.product(*(range(int(cap) + 1) for cap in made.caps)):
            if (made.rows @ np.array(spending) <= budget).all():
                fallen = ~standing(sets, np.array(spending).reshape(sets.kinds, -1)) & targets
                together, alone = max(together, int(fallen.sum())), alone | fallen
        found.append((int(alone.sum()), together))
    return found


def random_sets(rng: np.random.Generator, kinds: int) -> BudgetSets:
    columns, fields, outputs = 3, 3, 8
    seen = rng.random((fields, columns)) < 0.6
    owner, corner = [], []
    for output in range(outputs):
        points = {tuple(rng.integers(0, 4, kinds)) for _ in range(rng.integers(0, 4))} - {(0,) * kinds}
        minimal = [
            p for p in points if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)
        ]
        owner += [output] * len(minimal)
        corner += minimal
    return BudgetSets(
        seen,
        rng.integers(0, fields, outputs),
        np.array(owner, dtype=np.int64),
        np.array(corner, dtype=float).reshape(-1, kinds),
    )


@pytest.mark.parametrize("kinds", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_no_adversary_does_better(kinds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sets, targets = random_sets(rng, kinds), rng.random(8) < 0.8
    threat: Threat = Ball([0, 1, 2, 3, 5], 0) & Caps(rng.integers(0, 4, kinds * 3)) & Integer()
    if seed % 3 == 0:  # a budget for each kind
        threat = Rows(np.kron(np.eye(kinds), np.ones(3)), [[1.0] * kinds, [2.0] * kinds]) & Caps(np.full(kinds * 3, 3))
    attacks = most_attacked(sets, threat.constraints(kinds * 3), targets)
    for attack, (alone, together) in zip(attacks, most_by_force(sets, threat, targets), strict=True):
        assert attack.alone >= alone
        assert attack.together >= together
        assert attack.together <= attack.alone, "the collective bound is never below the naive one"
        assert attack.spending.min() >= 0


def test_the_relaxation_is_tight_where_it_should_be() -> None:
    """Two outputs far apart and a budget for one of them: naive loses both, the collective bound one."""
    sets = BudgetSets(np.eye(2, dtype=bool), np.array([0, 1]), np.array([0, 1]), np.array([[3.0], [3.0]]))
    (attack,) = most_attacked(sets, (Ball(3, 0) & Integer()).constraints(2), np.ones(2, bool))
    assert attack.alone == 2
    assert attack.together == pytest.approx(1.0, abs=1e-9)
    assert attack.together >= 1


def test_a_solver_that_lies_makes_the_bound_weaker_only() -> None:
    """Any prices prove an upper bound: the value is never below the optimum."""
    rng = np.random.default_rng(0)
    rows = sp.csr_array(rng.integers(-2, 3, (4, 6)).astype(float))
    program = _Program(rng.integers(0, 3, 6).astype(float), rows, rng.integers(0, 4, 4).astype(float), np.ones(6))
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
    feasible = corners[(corners @ rows.toarray().T <= program.right).all(axis=1)]
    best = (feasible @ program.gain).max()
    for scale in (0.0, 1e-3, 1.0, 1e3):
        for _ in range(50):
            assert program.value(scale * rng.random(4)) >= best
    assert program.bound()[0] >= best


def test_budgets_in_real_numbers_equal_the_linear_program_of_localized_smoothing() -> None:
    """Gaussian noise, weight 0 outside the field: the paper's relaxation by another program and another solver."""
    rng = np.random.default_rng(1)
    fields = (rng.random((12, 5)) < 0.1) | (np.arange(12)[:, None] % 5 == np.arange(5))
    atoms = atoms_of(fields, Partition(np.zeros(5, np.int32)))
    q = np.concatenate([rng.uniform(0.8, 0.99, 11), [0.4]])
    level = np.array([[0.3]])
    weights, eta = GaussianVotes().certificates(Gaussian(), level, q, np.zeros(12, np.int64))
    budgets = np.array([0.0, 0.2, 0.4, 0.6, 1.2])
    corner = np.nextafter(eta / weights[0, 0], 0)
    alive = np.flatnonzero(eta > 0)
    sets = BudgetSets(atoms.seen, atoms.field, alive, corner[alive, None])
    attacks = most_attacked(sets, Ball(budgets).constraints(atoms.inputs.count), eta > 0)
    # Outside of an output's field σ is infinite and W is 0.
    problem = Problem(weights[0, 0] * atoms.seen, eta, atoms.field, Ball(budgets), alive)
    for bound, ours in ((Naive(), [a.alone for a in attacks]), (LinearProgram(), [a.together for a in attacks])):
        np.testing.assert_allclose(len(alive) - solve(problem, bound).lower, ours, atol=1e-6)
    assert (solve(problem, Envelope()).certified >= [len(alive) - np.floor(a.together) for a in attacks]).all()
    assert any(attack.together < attack.alone - 0.5 for attack in attacks)


@pytest.mark.parametrize("kind", [0, 1])
def test_half_outside_the_field_is_this_baseline(kind: int) -> None:
    """θ = 1/2 (or θ⁺ + θ⁻ = 1) outside the fields and one level inside: localized smoothing gives the same counts."""
    rng = np.random.default_rng(2)
    fields = rng.random((10, 6)) < 0.5
    fields[3] = False
    atoms = atoms_of(fields, Partition(np.zeros(6, np.int32)))
    q = np.repeat(rng.uniform(0.8, 0.9999, 5), 2)
    columns = atoms.inputs.count
    caps = np.bincount(atoms.inputs.labels, minlength=columns) * 2
    budgets = [0, 1, 2, 3, 4, 6]
    inside, outside = (0.125, 0.625), (0.5, 0.5)
    frontier = flip_frontier(*inside, float(q.max()), 40 * (kind == 0), 40 * (kind == 1))
    corners = [frontier.corners(one).astype(float) for one in q]
    sets = BudgetSets(
        atoms.seen, atoms.field, np.repeat(np.arange(10), [len(c) for c in corners]), np.concatenate(corners)
    )
    caps2 = np.concatenate([caps * (kind == 0), caps * (kind == 1)]).astype(float)
    threat = Ball(budgets, 0) & Caps(caps2) & Integer()
    attacks = most_attacked(sets, threat.constraints(2 * columns), np.ones(10, bool))
    # The same lower bounds under a localized layout.
    levels = np.where(atoms.seen[..., None], inside, outside)
    weights, eta = ExactVotes(references=(1.0,), orders=()).certificates(SparseFlips(), levels, q, atoms.field)
    ours = Problem(weights, eta, atoms.field, threat)
    localized = solve(ours, Exact())
    force = most_by_force(sets, threat, np.ones(10, bool))
    assert localized.certified.tolist() == [10 - together for _, together in force]
    np.testing.assert_array_equal(solve(ours, Naive()).certified, [10 - a.alone for a in attacks])
    assert [a.alone for a in attacks] == [alone for alone, _ in force]
    lp = solve(ours, LinearProgram())
    np.testing.assert_allclose(10 - lp.lower, [a.together for a in attacks], atol=1e-5)
    assert any(a.together < a.alone - 0.5 for a in attacks)


def test_masks_agree_with_those_of_graph_networks() -> None:
    rng = np.random.default_rng(3)
    fields = rng.random((7, 9)) < 0.4
    inputs = Partition(np.repeat(np.arange(3), 3).astype(np.int32))
    atoms = atoms_of(fields, inputs)
    base = BaseCertificates(np.ones((1, 3)), np.ones(7), np.zeros(7, np.int64), np.zeros(7, np.int64))
    local = strictly_local(base, inputs, sp.csr_array(fields))
    np.testing.assert_array_equal(local.inputs.labels, atoms.inputs.labels)
    np.testing.assert_array_equal(local.base.weights > 0, atoms.seen)
    np.testing.assert_array_equal(local.base.group, atoms.field)
    np.testing.assert_array_equal(atoms.seen[atoms.field][:, atoms.inputs.labels], fields)


def test_window_fields_by_hand() -> None:
    mask = window_fields((4, 4), (2, 2), 1).reshape(2, 2, 4, 4)
    wanted = np.zeros((4, 4), bool)
    wanted[:3, 1:] = True
    np.testing.assert_array_equal(mask[0, 1], wanted)
    with pytest.raises(InvalidInputError, match="multiple"):
        window_fields((5,), (2,), 1)


def shifted_model() -> CallableModel:
    """Output n is the majority of inputs n − 1, n and n + 1: a field of 1."""

    def predict(batch: np.ndarray) -> np.ndarray:
        padded = np.pad(batch[:, 0], ((0, 0), (1, 1)))
        return ((padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) >= 1.5).astype(np.int64)

    return CallableModel(predict, name="shifted", bounds=(0, 1), classes=2, output=OutputKind.LABELS)


def run(method: ReceptiveFields, **changes: object):
    image = np.array([[1, 1, 1, 1, 0, 0, 0, 0]], np.float32)
    arguments = {
        "layout": GridLayout((1,), 0.0625, 0.0625),
        "noise": Bernoulli(),
        "plan": SamplingPlan(n_candidate=50, n_bound=4000, seed=0, chunk_size=500),
        "alpha": 0.05,
        "budgets": [0.0, 1.0, 2.0, 3.0, 4.0],
        "method": method,
        "labels": [np.array([1, 1, 1, 1, 0, 0, 0, 0])],
        "options": SamplingOptions(batch_size=500),
        "progress": NoProgress(),
    }
    return certify(shifted_model(), [image], **(arguments | changes))  # type: ignore[arg-type]


def test_a_whole_run_is_never_beaten_by_any_input() -> None:
    """All 2⁸ perturbed inputs, their smoothed predictions computed exactly."""
    result = run(ReceptiveFields(1))
    space = BinarySpace([0] * 8, [0.0625], [0.0625], 1)
    labels = shifted_model()(np_to_torch(space.points)).numpy()
    chance = np.stack([space.law @ (labels == c) for c in (0, 1)])
    smoothed = chance.argmax(axis=0)
    image = int("11110000", 2)
    kept = (smoothed == result["prediction"].values[0]).sum(axis=1)
    changed = space.flips[image][:, 0]
    for bound in ("naive", "lp"):
        certified = result["certified"].sel(target="ratio", bound=bound).values[0]
        for budget, count in enumerate(certified):
            assert count <= kept[changed <= budget].min()
    lp = result["certified"].sel(target="ratio", bound="lp").values[0]
    naive = result["certified"].sel(target="ratio", bound="naive").values[0]
    assert (lp >= naive).all()
    assert lp[1] > naive[1] or lp[2] > naive[2]
    assert "not checked" in result.attrs["assumptions"]


def np_to_torch(points: np.ndarray):
    import torch

    return torch.tensor(points[:, None], dtype=torch.float32)


def test_sparse_flips_and_gaussian_runs() -> None:
    layout = GridLayout((1,), (0.0625, 0.25), (0.0625, 0.25))
    for kind in Kind:
        result = run(ReceptiveFields(1), noise=SparseFlips(), layout=layout, threat=Flips(kind))
        certified = result["certified"].sel(target="ratio").values[0]
        assert (certified[1] >= certified[0]).all()
        assert certified[1, 0] > 4
    mask = window_fields((8,), (8,), 1)
    by_mask = run(ReceptiveFields(fields=mask), noise=SparseFlips(), layout=layout)
    by_reach = run(ReceptiveFields(1), noise=SparseFlips(), layout=layout)
    np.testing.assert_array_equal(by_mask["certified"].values, by_reach["certified"].values)
    gauss = run(ReceptiveFields(1), noise=Gaussian(), layout=GridLayout((1,), 0.3, 0.3), budgets=[0.0, 0.1, 0.3, 0.5])
    certified = gauss["certified"].sel(target="ratio").values[0]
    assert (certified[1] >= certified[0]).all()
    assert certified[1, 0] > 4


def test_bad_masks_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="both or neither"):
        ReceptiveFields()
    with pytest.raises(InvalidInputError, match="rows"):
        run(ReceptiveFields(fields=np.ones((3, 8), bool)))
    with pytest.raises(InvalidInputError, match="different levels"):
        run(ReceptiveFields(1), layout=GridLayout((2,), 0.1, 0.2))
