"""What every confidence bound must do: be wrong no more often than the level it promises.

Each family of bounds has one suite: bounds on one probability, rules for many outputs, bounds on the moments of scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from localsmooth.bounds import (
    NotSimultaneousWarning,
    ScoreBound,
    ScoreHistogram,
    ScoreMoments,
    Simultaneous,
    VoteBounds,
    even_thresholds,
)
from localsmooth.testing.chance import assert_level_kept

__all__ = [
    "SCORE_LAWS",
    "VOTE_FIELDS",
    "ScoreBoundContract",
    "ScoreLaw",
    "SimultaneousContract",
    "VoteBoundContract",
    "VoteField",
]

VoteBound = Callable[[np.ndarray, int, float], np.ndarray]


class VoteBoundContract:
    """A lower bound on one probability. Its miss probability is computed exactly, over all possible counts."""

    bound: VoteBound
    """Maps (votes, n, level) to lower bounds; a plain function is given as ``staticmethod(function)``."""

    def miss_probability(self, q: float, n: int, level: float) -> float:
        """Exact, by summing over all counts."""
        votes = np.arange(n + 1)
        wrong = self.bound(votes, n, level) > q
        return float(stats.binom.pmf(votes, n, q)[wrong].sum())

    def test_level_holds_for_every_probability(self) -> None:
        """Over many numbers of samples, levels and probabilities."""
        for n in (1, 2, 10, 57, 1000):
            for level in (0.2, 0.01, 1e-5):
                for q in (1e-6, 0.01, 0.3, 0.5, 0.5 + 1e-9, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6):
                    assert self.miss_probability(q, n, level) <= level * (1 + 1e-9), (q, n, level)

    def test_level_holds_just_below_each_bound(self) -> None:
        """The hardest probabilities lie directly below a value that the bound can take."""
        for n in (5, 40):
            for level in (0.2, 0.01):
                for q in self.bound(np.arange(1, n + 1), n, level):
                    assert self.miss_probability(float(q) * (1 - 1e-9), n, level) <= level * (1 + 1e-9)


@dataclass(frozen=True)
class VoteField:
    """Outputs with known label probabilities, and whether they all depend on one random number."""

    probabilities: np.ndarray
    samples: int
    comonotone: bool = False

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Votes, or a tally, at random."""
        if self.comonotone:
            return stats.binom.ppf(rng.random(), self.samples, self.probabilities).astype(np.int64)
        return rng.binomial(self.samples, self.probabilities)


WELL_SEPARATED = VoteField(np.linspace(0.05, 0.95, 20), 1_500)
NEAR_ONE = VoteField(1 - np.geomspace(1e-5, 0.3, 20), 1_000)
ALL_EQUAL = VoteField(np.full(20, 0.8), 300)
COMONOTONE = VoteField(np.linspace(0.4, 0.99, 20), 300, comonotone=True)
BELOW_THRESHOLD = VoteField(np.concatenate([np.full(12, 0.75 - 1e-9), np.full(8, 0.99)]), 400)
VOTE_FIELDS = (WELL_SEPARATED, NEAR_ONE, ALL_EQUAL, COMONOTONE, BELOW_THRESHOLD)


class SimultaneousContract:
    """Lower bounds for many outputs: more wrong ones than the discount only with probability α."""

    strategy: Simultaneous
    """The rule."""
    alpha: float = 0.2
    """Level at which it is tried."""
    repeats: int = 150
    """Draws of every field."""

    def bounds(self, field: VoteField, rng: np.random.Generator) -> VoteBounds:
        """Bound one draw of a field."""
        return self.strategy.lower_bounds(field.draw(rng), field.samples, self.alpha)

    def check(self, field: VoteField, repeats: int | None = None) -> None:
        """Count misses."""
        rng = np.random.default_rng(20_231)
        repeats = repeats or self.repeats
        misses = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotSimultaneousWarning)
            for _ in range(repeats):
                bounds = self.bounds(field, rng)
                misses += int((bounds.lower > field.probabilities).sum()) > bounds.discount
        assert_level_kept(misses, repeats, self.alpha)

    def test_well_separated(self) -> None:
        """Probabilities far from each other, where ranks are right."""
        self.check(WELL_SEPARATED)

    def test_near_one(self) -> None:
        """Probabilities near one."""
        self.check(NEAR_ONE)

    def test_all_equal(self) -> None:
        """Many outputs that fail together or not at all."""
        self.check(ALL_EQUAL)

    def test_comonotone(self) -> None:
        """Outputs that all depend on one random number."""
        self.check(COMONOTONE)

    def test_just_below_a_threshold(self) -> None:
        """Probabilities just below what tests ask for."""
        self.check(BELOW_THRESHOLD)


BINS = 64


@dataclass(frozen=True)
class ScoreLaw:
    """A law of rounded scores: probabilities of the grid points 0, 1/64, …, 1."""

    name: str
    probabilities: np.ndarray
    reference: float

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(self.probabilities @ even_thresholds(BINS))

    @property
    def deviation(self) -> float:
        """Mean squared distance to the reference."""
        return float(self.probabilities @ (even_thresholds(BINS) - self.reference) ** 2)

    def draw(self, rng: np.random.Generator, samples: int, repeats: int) -> ScoreHistogram:
        """Every repeat is an output of one tally."""
        return ScoreHistogram(even_thresholds(BINS), rng.multinomial(samples, self.probabilities, size=repeats))


def moments_of(histogram: ScoreHistogram) -> ScoreMoments:
    """The power sums of what a histogram counts."""
    steps = np.rint(histogram.thresholds * BINS).astype(np.int64)
    return ScoreMoments(histogram.count, np.stack([histogram.counts @ steps**p for p in range(1, 5)]), BINS)


def points(name: str, masses: dict[int, float], reference: float) -> ScoreLaw:
    """Make a law on some points of the grid."""
    probabilities = np.zeros(BINS + 1)
    for point, mass in masses.items():
        probabilities[point] = mass
    return ScoreLaw(name, probabilities, reference)


def beta(a: float, b: float, reference: float) -> ScoreLaw:
    """Make the law of a rounded beta variable."""
    edges = stats.beta.cdf(np.append(even_thresholds(BINS), np.inf), a, b)
    return ScoreLaw(f"beta({a},{b})", np.diff(edges), reference)


SCORE_LAWS = (
    points("fair coin", {0: 0.5, 64: 0.5}, 0.5),
    points("rare zero", {0: 0.02, 64: 0.98}, 1.0),
    points("rare one", {0: 0.98, 64: 0.02}, 0.0),
    points("rare drop", {5: 0.01, 60: 0.99}, 60 / 64),
    points("very rare drop", {0: 0.001, 63: 0.999}, 63 / 64),
    points("constant", {48: 1.0}, 0.75),
    points("constant, wrong reference", {48: 1.0}, 0.0),
    points("ties", {32: 0.3, 33: 0.4, 34: 0.3}, 0.5),
    points("three points", {0: 0.05, 32: 0.05, 64: 0.9}, 0.9),
    beta(90.0, 10.0, 0.9),
    beta(0.3, 0.1, 0.7),
    beta(2.0, 1.0, 0.3),
)


class ScoreBoundContract:
    """Bounds on μ and ζ: either of them wrong only with probability at most the level, for any law."""

    bound: ScoreBound
    """The bound."""
    repeats: int = 300
    """Draws of every law."""

    def miss_count(self, law: ScoreLaw, samples: int, level: float, repeats: int) -> int:
        """Outputs whose bounds are wrong, of so many."""
        histogram = law.draw(np.random.default_rng(7 + samples), samples, repeats)
        tallies = [histogram] if self.bound.needs_histogram else [moments_of(histogram), histogram]
        worst = 0
        for tally in tallies:
            bounds = self.bound.bounds(tally, level, law.reference)
            reference = bounds.reference[0]
            deviation = float(law.probabilities @ (even_thresholds(BINS) - reference) ** 2)
            wrong = (bounds.mean_lower > law.mean) | (bounds.deviation_upper < deviation)
            worst = max(worst, int(wrong.sum()))
        return worst

    def check(self, law: ScoreLaw, repeats: int | None = None) -> None:
        """Count misses."""
        repeats = repeats or self.repeats
        for samples in (20, 300):
            for level in (0.3, 0.02):
                assert_level_kept(self.miss_count(law, samples, level, repeats), repeats, level)

    def test_level_holds_for_hard_laws(self) -> None:
        """Whatever the law, at few samples and at many."""
        for law in SCORE_LAWS:
            self.check(law)

    def test_outputs_with_their_own_levels_and_references(self) -> None:
        """Each output is bounded as if it were alone."""
        histogram = SCORE_LAWS[9].draw(np.random.default_rng(0), 500, 3)
        levels, references = np.array([0.1, 0.01, 1e-6]), np.array([0.25, 0.5, 0.875])
        together = self.bound.bounds(histogram, levels, references)
        for i in range(3):
            single = self.bound.bounds(
                ScoreHistogram(histogram.thresholds, histogram.counts[i : i + 1]),
                float(levels[i]),
                float(references[i]),
            )
            np.testing.assert_allclose(together.mean_lower[i], single.mean_lower[0], rtol=1e-12)
            np.testing.assert_allclose(together.deviation_upper[i], single.deviation_upper[0], rtol=1e-12)

    def test_bounds_enclose_the_estimates_and_tighten(self) -> None:
        """Bounds lie on the right side, and approach the mean."""
        for law in SCORE_LAWS:
            widths = []
            for samples in (50, 5_000, 500_000):
                counts = np.rint(law.probabilities * samples).astype(np.int64)[None]
                tally = ScoreHistogram(even_thresholds(BINS), counts)
                bounds = self.bound.bounds(tally, 0.01, law.reference)
                assert 0 <= bounds.mean_lower[0] <= tally.scores()[0][0]
                assert bounds.deviation_upper[0] >= tally.deviations(bounds.reference)[0][0]
                assert bounds.deviation_upper[0] > 0
                widths.append(law.mean - float(bounds.mean_lower[0]))
            assert widths[2] < 0.02, (law.name, widths)

    def test_smaller_levels_give_wider_bounds(self) -> None:
        """Certainty has its price."""
        tally = SCORE_LAWS[9].draw(np.random.default_rng(1), 1000, 5)
        wide, narrow = self.bound.bounds(tally, 1e-9, 0.9), self.bound.bounds(tally, 1e-2, 0.9)
        assert np.all(wide.mean_lower < narrow.mean_lower)
        assert np.all(wide.deviation_upper > narrow.deviation_upper)
