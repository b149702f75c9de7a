"""An output that may rely on votes or on scores keeps its class under *one* of the two smoothed classifiers.

All inputs and outcomes of a few bits are enumerated, probabilities are exact, and the tallies hold every outcome as
often as its probability says. Scores are multiples of 1/128 and exact on the grid.
"""

from __future__ import annotations

import numpy as np
import pytest
from discrete_spaces import BinarySpace
from tests.flat import certify

from localsmooth.bounds import Bonferroni, EmpiricalBernstein, ScoreHistogram, even_thresholds
from localsmooth.certificates import (
    BaseCertificates,
    Basis,
    BernoulliScores,
    ExactVotes,
    RenyiVotes,
    SparseScores,
    Thresholds,
    best_of,
    one_basis,
)
from localsmooth.certificates.combined import OutputScores, OutputVotes, certify_outputs
from localsmooth.collective import Ball, Caps, Envelope, Exact, Integer, LinearProgram, Naive, Problem, solve
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import Layout, Partition
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Bernoulli, BinaryNoise, SparseFlips
from localsmooth.runs import SamplingPlan

GROUPS = [0, 0, 1, 1]
STEPS = 128
SAMPLES = 64**4


def two_rules(bits: np.ndarray) -> np.ndarray:
    """Score of class 0: bit 0 annuls it, bit 1 brings it from a clear vote to a narrow miss."""
    return np.where(bits[..., 0] > 0.5, 0.0, np.where(bits[..., 1] < 0.5, 0.78, 0.49))


LEVELS = np.array([[[0.001, 0.7], [0.25, 0.25]]])


@pytest.mark.parametrize("votes", [ExactVotes(), RenyiVotes((1.1, 1.5, 2.0, 4.0))], ids=["exact", "renyi"])
def test_what_neither_votes_nor_scores_keep_is_not_certified_by_both(votes: ExactVotes | RenyiVotes) -> None:
    """At one addition votes change, at another scores do: each rule fails somewhere, and so must the certificate."""

    def predict(batch: np.ndarray) -> np.ndarray:
        score = two_rules(batch[:, 0])
        return np.stack([score, 1 - score], 1)[..., None].astype(np.float32)

    model = CallableModel(predict, name="two-rules", bounds=(0, 1), classes=2, output=OutputKind.PROBABILITIES)
    layout = Layout(Partition(np.zeros(1, np.int32)), Partition(np.array([0, 1], np.int32)), LEVELS)
    result = certify(
        model,
        [np.zeros((1, 2), np.float32)],
        layout=layout,
        noise=SparseFlips(),
        plan=SamplingPlan(200, 20_000, seed=1),
        alpha=0.01,
        budgets=[0.0, 1.0],
        certificates=(votes, SparseScores()),
        bounds={"envelope": Envelope(), "exact": Exact()},
        progress=NoProgress(),
    )
    assert result["certified"].values[0, 0].tolist() == [[1, 0], [1, 0]]
    assert result["relies_on"].values.item() in (Basis.VOTES, Basis.SCORES)


def test_stacking_votes_and_scores_is_caught() -> None:
    """What the chooser replaces: the stacked inequalities hold inputs at which no one rule holds them all."""
    levels = [(0.001, 0.7), (0.25, 0.25)]
    space = BinarySpace([0, 1], [a for a, _ in levels], [d for _, d in levels], 2)
    score, group = two_rules(space.points), np.zeros(1, np.int64)
    votes, scores = exact_thresholds(ExactVotes(), SparseFlips(), LEVELS, space, score[None], group, 0)
    stacked = best_of(votes, scores)
    assert broken(space, stacked, group, None, score[None], 0) > 0
    chosen = one_basis(votes, scores, group)
    assert broken(space, chosen.thresholds, chosen.group, chosen.scored, score[None], 0) == 0


def exact_thresholds(
    certificate: ExactVotes | RenyiVotes,
    noise: BinaryNoise,
    levels: np.ndarray,
    space: BinarySpace,
    scores: np.ndarray,
    group: np.ndarray,
    clean: int,
) -> tuple[Thresholds, Thresholds]:
    """Certificates of both kinds at the exact statistics, outputs of any group smoothed alike."""
    law = space.law[clean]
    q = np.clip((scores > 0.5) @ law - 1e-12, 0, np.nextafter(1, 0))
    mean = np.clip(scores @ law, 0, 1)
    zeta = ((scores - mean[:, None]) ** 2) @ law + 1e-12
    of_scores = BernoulliScores() if isinstance(noise, Bernoulli) else SparseScores()
    return (
        certificate.certificates(noise, levels, q, group),
        of_scores.certificates(noise, levels, np.clip(mean - 1e-12, 0, 1), zeta, mean, group),
    )


def broken(
    space: BinarySpace,
    thresholds: Thresholds,
    group: np.ndarray,
    scored: np.ndarray | None,
    scores: np.ndarray,
    clean: int,
) -> int:
    """Outputs that are promised inputs at which their rule (or, where none is named, either rule) fails."""
    weights = thresholds.weights.reshape(-1, *thresholds.weights.shape[-2:])
    eta = thresholds.eta.reshape(len(weights), -1)
    feeds = (weights @ space.flips[clean].T)[:, group]  # certificates × outputs × inputs
    promised = (feeds < eta[..., None]).any(axis=0)
    kept = np.stack([(scores > 0.5) @ space.law.T > 0.5, scores @ space.law.T > 0.5])
    fails = (promised & ~kept).any(axis=-1)
    return int((fails.all(axis=0) if scored is None else fails[scored.astype(int), np.arange(len(scores))]).sum())


def random_scores(space: BinarySpace, rng: np.random.Generator, n: int) -> np.ndarray:
    """Scores on the grid: sure ones, narrow ones whose votes are better, and lukewarm ones whose scores are."""
    points = len(space.points)
    wanted = rng.random((n, points)) < rng.random((n, 1)) ** 0.2
    high = np.choose(rng.integers(0, 3, n), [np.full(n, 1.0), rng.uniform(0.52, 0.7, n), rng.uniform(0.7, 1.0, n)])
    low = np.choose(rng.integers(0, 3, n), [np.zeros(n), rng.uniform(0.4, 0.5, n), rng.uniform(0.0, 0.5, n)])
    return np.floor(np.where(wanted, high[:, None], low[:, None]) * STEPS) / STEPS


CASES = [
    (Bernoulli(), [(4 / 64, 4 / 64), (12 / 64, 12 / 64)]),
    (Bernoulli(), [(1 / 64, 1 / 64), (30 / 64, 30 / 64)]),
    (SparseFlips(), [(1 / 64, 40 / 64), (4 / 64, 50 / 64)]),
    (SparseFlips(), [(1 / 64, 44 / 64), (16 / 64, 16 / 64)]),
    (SparseFlips(), [(3 / 64, 30 / 64), (0.0, 32 / 64)]),
]


def space_of(noise: BinaryNoise, pairs: list[tuple[float, float]]) -> tuple[np.ndarray, BinarySpace]:
    kinds = 1 if isinstance(noise, Bernoulli) else 2
    space = BinarySpace(GROUPS, [a for a, _ in pairs], [d for _, d in pairs], kinds)
    level = np.array(pairs)
    return (level[:, 0] if kinds == 1 else level)[None], space


def hunt(seed: int, case: tuple[BinaryNoise, list[tuple[float, float]]], n: int, clean: list[int]) -> np.ndarray:
    """Broken promises, outputs that rely on votes, and outputs that rely on scores."""
    noise, pairs = case
    levels, space = space_of(noise, pairs)
    rng, group = np.random.default_rng(seed), np.zeros(n, np.int64)
    found = np.zeros(3, np.int64)
    for x in clean:
        scores = random_scores(space, rng, n)
        for certificate in (RenyiVotes((1.2, 2.0, 6.0)), ExactVotes(vectors=60, atoms=128)):
            votes, by_scores = exact_thresholds(certificate, noise, levels, space, scores, group, x)
            chosen = one_basis(votes, by_scores, group)
            alive = (chosen.thresholds.eta.reshape(-1, n) > 0).any(axis=0)
            found += [
                broken(space, chosen.thresholds, chosen.group, chosen.scored, scores, x),
                (alive & ~chosen.scored).sum(),
                (alive & chosen.scored).sum(),
            ]
    return found


def test_the_rule_that_an_output_relies_on_keeps_its_class() -> None:
    found = np.sum([hunt(seed, case, 60, [0, 5, 15]) for seed, case in enumerate(CASES)], axis=0)
    assert found[0] == 0
    # Both kinds are chosen often: the promise is not about one of them in disguise.
    assert (found[1:] > 100).all()


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_rule_that_an_output_relies_on_keeps_its_class_everywhere(
    case: tuple[BinaryNoise, list[tuple[float, float]]],
) -> None:
    assert hunt(100, case, 400, list(range(16)))[0] == 0


def certified_outputs(
    seed: int, case: tuple[BinaryNoise, list[tuple[float, float]]], clean: int
) -> tuple[BaseCertificates, np.ndarray, BinarySpace]:
    """From tallies that hold every outcome exactly as often as it is probable, through the package's own way."""
    noise, pairs = case
    levels, space = space_of(noise, pairs)
    scores = random_scores(space, np.random.default_rng(seed), 12)
    times = np.rint(space.law[clean] * SAMPLES).astype(np.int64)
    assert times.sum() == SAMPLES
    bins = np.rint(scores * STEPS).astype(int)
    counts = np.stack([np.bincount(row, times, STEPS + 1) for row in bins]).astype(np.int64)
    votes = ((scores > 0.5) @ times).astype(np.int64)
    tally = OutputScores(ScoreHistogram(even_thresholds(STEPS), counts), scores @ space.law[clean])
    group = np.arange(12) % 2
    certified = certify_outputs(
        OutputVotes(np.zeros(12, np.int64), votes, SAMPLES, tally),
        noise,
        np.concatenate([levels, levels]),
        group,
        alpha=0.01,
        certificates=(RenyiVotes((1.2, 3.0)), BernoulliScores() if isinstance(noise, Bernoulli) else SparseScores()),
        simultaneous=Bonferroni(),
        score_bound=EmpiricalBernstein(),
    )
    return certified.base, scores, space


BOUNDS = (Naive(), LinearProgram(), Envelope(), Exact())


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_counts_hold_for_the_rule_of_each_output(case: tuple[BinaryNoise, list[tuple[float, float]]]) -> None:
    mixed = 0
    for seed, clean in ((0, 0), (1, 5), (2, 12)):
        base, scores, space = certified_outputs(seed, case, clean)
        alive = base.prediction >= 0
        assert base.relies_on is not None
        np.testing.assert_array_equal(base.relies_on == Basis.NOTHING, ~alive)
        mixed += len(set(base.relies_on[alive].tolist())) == 2
        kept = np.where(
            (base.relies_on == Basis.SCORES)[:, None], scores @ space.law.T > 0.5, (scores > 0.5) @ space.law.T > 0.5
        )
        spent = space.flips[clean].sum(axis=1)
        survivors = (kept & alive[:, None]).sum(axis=0)
        budgets = (0.0, 1.0, 2.0, 4.0)
        worst = [survivors[spent <= budget].min() for budget in budgets]
        threat = Ball(budgets, 0) & Caps(space.flips[clean].max(axis=0).astype(float)) & Integer()
        problem = Problem(base.weights, base.eta, base.group, threat, alive)
        counts = np.array([solve(problem, bound).certified for bound in BOUNDS])
        assert (counts <= worst).all()
        assert (np.diff(counts, axis=0) >= 0).all()
        # Nothing is lost where nothing is spent, whatever the outputs of a group rely on.
        assert (counts[:, 0] == alive.sum()).all()
    assert mixed > 0


def test_outputs_of_one_group_add_up_whatever_they_rely_on() -> None:
    """Half of the group falls to one column and half to the other: a count of the sum, not of the larger half."""
    votes = Thresholds(np.array([[1.0, 0.0]]), np.array([2.0, 2.0, 0.0, 0.0]))
    scores = Thresholds(np.array([[0.0, 1.0]]), np.array([0.0, 0.0, 2.0, 2.0]))
    made = one_basis(votes, scores, np.zeros(4, np.int64))
    assert made.scored.tolist() == [False, False, True, True]
    problem = Problem(*made.thresholds, made.group, Ball([2.0], 1))
    assert solve(problem, Envelope()).certified.tolist() == [2]
    assert solve(problem, Exact()).certified.tolist() == [2]


def test_one_kind_alone_and_equal_weights_need_no_rows_of_their_own() -> None:
    group = np.array([0, 1, 1])
    strong = Thresholds(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([3.0, 2.0, 0.0]))
    weak = Thresholds(strong.weights, np.array([1.0, 1.0, 0.0]))
    for votes, scores, scored in ((strong, weak, False), (weak, strong, True)):
        made = one_basis(votes, scores, group)
        assert made.scored[:2].tolist() == [scored] * 2
        np.testing.assert_array_equal(made.thresholds.eta, strong.eta)
        np.testing.assert_array_equal(made.group, group)
    mixed = one_basis(strong, Thresholds(strong.weights, np.array([1.0, 5.0, 0.0])), group)
    np.testing.assert_array_equal(mixed.thresholds.eta, [3.0, 5.0, 0.0])
    np.testing.assert_array_equal(mixed.thresholds.weights, strong.weights)
    with pytest.raises(InvalidInputError, match="different groups"):
        one_basis(strong, Thresholds(np.ones((2, 3)), np.ones(3)), group)
