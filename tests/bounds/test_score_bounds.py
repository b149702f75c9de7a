"""Tallies of scores and the formulas of their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import optimize

from localsmooth.bounds import (
    SCORE_BOUNDS,
    Betting,
    CdfBand,
    EmpiricalBernstein,
    NumericalError,
    ScoreBound,
    ScoreHistogram,
    ScoreMoments,
    VoteConfidenceSequence,
    clopper_pearson_lower,
    even_thresholds,
)
from localsmooth.bounds.rounding import finish
from localsmooth.errors import InvalidInputError
from localsmooth.testing.confidence import BINS, SCORE_LAWS, moments_of

GRID = even_thresholds(BINS)
scores_arrays = npst.arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 3)), elements=st.floats(0, 1))
MAKERS: list[Callable] = [ScoreMoments.of, lambda scores: ScoreHistogram.of(scores, GRID)]


def numbers(tally: ScoreMoments | ScoreHistogram) -> np.ndarray:
    return tally.sums if isinstance(tally, ScoreMoments) else tally.counts


@pytest.mark.parametrize("make", MAKERS, ids=["moments", "histogram"])
class TestTallyContract:
    @given(scores=scores_arrays, cut=st.integers(1, 29), seed=st.integers(0, 2**31))
    @settings(max_examples=40, deadline=None)
    def test_any_split_and_order_gives_the_same_tally(
        self, make: Callable, scores: np.ndarray, cut: int, seed: int
    ) -> None:
        whole = make(scores)
        shuffled = np.random.default_rng(seed).permutation(scores)
        cut = min(cut, len(scores) - 1)
        parts = make(shuffled[cut:]) + make(shuffled[:cut])
        assert parts.count == whole.count == len(scores)
        np.testing.assert_array_equal(numbers(parts), numbers(whole))

    @given(scores=scores_arrays, reference=st.floats(0, 1))
    @settings(max_examples=40, deadline=None)
    def test_statistics_are_those_of_the_rounded_scores(
        self, make: Callable, scores: np.ndarray, reference: float
    ) -> None:
        tally = make(scores)
        steps = 1024 if isinstance(tally, ScoreMoments) else BINS
        rounded = np.floor(scores * steps) / steps
        assert np.all(rounded <= scores)
        centre = tally.snap(reference)
        assert np.all(np.abs(centre - reference) <= 0.5 / steps)
        mean, variance = tally.scores()
        deviation, spread = tally.deviations(centre)
        squares = (rounded - centre) ** 2
        np.testing.assert_allclose(mean, rounded.mean(axis=0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(variance, rounded.var(axis=0, ddof=1), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(deviation, squares.mean(axis=0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(spread, squares.var(axis=0, ddof=1), rtol=1e-9, atol=1e-14)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
    def test_what_is_no_score_is_refused(self, make: Callable, value: float) -> None:
        with pytest.raises(InvalidInputError) as caught:
            make(np.array([[0.5, value]]))
        assert caught.value.field == "scores"

    def test_single_precision_scores_and_their_excess_over_one(self, make: Callable) -> None:
        tally = make(np.array([[1.0000001, -1e-8], [1.0, 0.0]], dtype=np.float32))
        np.testing.assert_array_equal(tally.scores()[0], [1.0, 0.0])

    def test_no_sample_and_other_outputs_are_refused(self, make: Callable) -> None:
        with pytest.raises(InvalidInputError):
            make(np.empty((0, 2)))
        with pytest.raises(InvalidInputError):
            make(np.ones((3, 2))) + make(np.ones((3, 1)))


def test_moments_are_exact_at_the_largest_count() -> None:
    count, step, reference = 2**23 - 1, 1023, 1
    tally = ScoreMoments(count, np.array([[count * step**p] for p in range(1, 5)]))
    deviation, spread = tally.deviations(np.array([reference / 1024]))
    assert deviation[0] == pytest.approx(((step - reference) / 1024) ** 2, rel=1e-14)
    assert 0 <= spread[0] < 1e-14
    far = tally.deviations(np.array([1.0]))[0][0]
    assert far == pytest.approx(float(Fraction(1, 1024**2)), rel=1e-14)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("count", lambda: ScoreMoments(2**23, np.zeros((4, 1), dtype=np.int64))),
        ("count", lambda: ScoreMoments(0, np.zeros((4, 1), dtype=np.int64))),
        ("sums", lambda: ScoreMoments(2, np.array([[5], [3], [9], [9]]))),
        ("sums", lambda: ScoreMoments(2, np.array([[5000], [5000], [5000], [5000]]))),
        ("thresholds", lambda: ScoreHistogram(np.array([0.1, 0.5]), np.ones((1, 2), dtype=np.int64))),
        ("thresholds", lambda: ScoreHistogram(np.array([0.0, 0.5, 0.5]), np.ones((1, 3), dtype=np.int64))),
        ("thresholds", lambda: ScoreHistogram(np.array([0.0, math.nan]), np.ones((1, 2), dtype=np.int64))),
        ("counts", lambda: ScoreHistogram(np.array([0.0, 0.5]), np.array([[1, 2], [1, 1]]))),
        ("counts", lambda: ScoreHistogram(np.array([0.0, 0.5]), np.array([[-1, 2]]))),
        ("counts", lambda: ScoreHistogram(np.array([0.0, 0.5]), np.array([[0, 0]]))),
        ("bins", lambda: even_thresholds(0)),
        ("stakes", lambda: Betting(stakes=1)),
        ("scale", lambda: ScoreMoments.of(np.ones((2, 1)), 4) + ScoreMoments.of(np.ones((2, 1)), 8)),
        ("tally", lambda: CdfBand().bounds(ScoreMoments.of(np.ones((2, 1))), 0.1, 0.5)),
        ("tally", lambda: Betting().bounds(ScoreMoments.of(np.ones((2, 1))), 0.1, 0.5)),
        ("count", lambda: EmpiricalBernstein().bounds(ScoreMoments.of(np.ones((1, 1))), 0.1, 0.5)),
    ],
)
def test_bad_tallies_name_their_field(field: str, make: Callable) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize("bound", [make() for make in SCORE_BOUNDS.values()], ids=list(SCORE_BOUNDS))
class TestEveryBound:
    @pytest.mark.parametrize(
        ("field", "level", "reference"),
        [("level", 0.0, 0.5), ("level", math.nan, 0.5), ("reference", 0.1, 1.5), ("reference", 0.1, math.nan)],
    )
    def test_bad_arguments_name_their_field(
        self, bound: ScoreBound, field: str, level: float, reference: float
    ) -> None:
        tally = ScoreHistogram.of(np.full((4, 2), 0.7), GRID)
        with pytest.raises(InvalidInputError) as caught:
            bound.bounds(tally, level, reference)
        assert caught.value.field == field

    def test_is_a_registered_bound(self, bound: ScoreBound) -> None:
        assert isinstance(bound, ScoreBound)
        assert SCORE_BOUNDS[bound.name] is type(bound)

    def test_scores_that_never_vary_divide_by_nothing(self, bound: ScoreBound) -> None:
        for value in (0.0, 0.75, 1.0):
            tally = ScoreHistogram(GRID, np.where(value == GRID, 10**9, 0)[None])
            bounds = bound.bounds(tally, 1e-9, value)
            assert bounds.deviation_upper[0] >= tally.resolution
            assert bounds.mean_lower[0] <= value

    def test_a_tiny_sample_gives_trivial_bounds(self, bound: ScoreBound) -> None:
        bounds = bound.bounds(ScoreHistogram.of(np.full((2, 1), 0.9), GRID), 1e-9, 0.5)
        assert bounds.mean_lower[0] < 1e-3
        assert bounds.deviation_upper[0] == pytest.approx(0.25, rel=1e-3)


def test_bernstein_is_the_published_formula() -> None:
    scores = np.random.default_rng(0).beta(9, 2, size=(500, 1))
    rounded = np.floor(scores[:, 0] * 1024) / 1024
    bounds = EmpiricalBernstein().bounds(ScoreMoments.of(scores), 0.02, 0.75)
    log = math.log(2 / 0.01)
    squares = (rounded - 0.75) ** 2
    mean = rounded.mean() - math.sqrt(2 * rounded.var(ddof=1) * log / 500) - 7 * log / (3 * 499)
    # (s − ν)² is at most 0.75² here.
    scaled = squares / 0.5625
    zeta = 0.5625 * (scaled.mean() + math.sqrt(2 * scaled.var(ddof=1) * log / 500) + 7 * log / (3 * 499))
    assert bounds.mean_lower[0] == pytest.approx(mean, rel=1e-9)
    assert bounds.deviation_upper[0] == pytest.approx(zeta, rel=1e-9)


@pytest.mark.parametrize("law", SCORE_LAWS, ids=lambda law: law.name)
def test_the_band_is_the_worst_law_inside_it(law) -> None:
    """Oracle: the extreme means over all distribution functions in the band are linear programs."""
    tally = law.draw(np.random.default_rng(3), 200, 1)
    bounds = CdfBand().bounds(tally, 0.05, law.reference)
    band = math.sqrt(math.log(2 / 0.05) / 400)
    empirical = np.cumsum(tally.counts[0]) / 200
    cumulate = np.tril(np.ones((BINS + 1, BINS + 1)))
    rows = np.concatenate([cumulate, -cumulate])
    limits = np.concatenate([empirical + band, band - empirical])

    def minimise(cost: np.ndarray) -> float:
        return optimize.linprog(cost, rows, limits, np.ones((1, BINS + 1)), [1.0], bounds=(0, 1)).fun

    assert bounds.mean_lower[0] == pytest.approx(minimise(GRID), abs=1e-7)
    # Both ends of the band are used at once for ζ, which no single law may be able to do.
    worst = -minimise(-((GRID - law.reference) ** 2))
    assert worst - 1e-7 <= bounds.deviation_upper[0] <= 1.03 * worst + 1e-7


@pytest.mark.parametrize("law", SCORE_LAWS, ids=lambda law: law.name)
def test_betting_refutes_its_bound_and_hardly_more(law) -> None:
    """Oracle: the mixed capital in high precision, at the bound and a little above it."""
    betting, level = Betting(stakes=6), 0.01
    tally = law.draw(np.random.default_rng(4), 150, 1)
    bounds = betting.bounds(tally, level, law.reference)
    threshold = np.array([math.log(2 / level)])
    largest = max(law.reference, 1 - law.reference) ** 2
    squares = np.minimum((GRID - law.reference) ** 2 / largest, 1)

    def capital(values: np.ndarray, guess: float, mean: float) -> float:
        stakes, log_weights = betting._stakes(threshold, np.array([guess]), 150.0)
        with mpmath.workdps(40):
            total = mpmath.mpf(0)
            for stake, log_weight in zip(stakes[0], log_weights[0], strict=True):
                product = mpmath.exp(mpmath.mpf(log_weight))
                for value, count in zip(values, tally.counts[0], strict=True):
                    factor = 1 - mpmath.mpf(stake) + mpmath.mpf(stake) * mpmath.mpf(value) / mpmath.mpf(mean)
                    product *= factor ** int(count)
                total += product
            return float(total)

    mean = float(bounds.mean_lower[0])
    estimate = float(tally.scores()[0][0])
    if mean > 1e-6:
        assert capital(GRID, law.reference, mean) >= 2 / level * (1 - 1e-6)
    if estimate > mean > 1e-6:
        assert capital(GRID, law.reference, mean + 0.004 * (estimate - mean)) < 2 / level
    complement = 1 - float(bounds.deviation_upper[0]) / largest
    if complement > 1e-6:
        widest = 1 - law.reference * (1 - law.reference) / largest
        assert capital(1 - squares, widest, complement) >= 2 / level * (1 - 1e-6)


def test_weights_of_the_stakes_sum_to_one() -> None:
    stakes, log_weights = Betting()._stakes(np.array([13.0, 3.0]), np.array([0.9, 0.0]), 1e5)
    np.testing.assert_allclose(np.exp(log_weights).sum(axis=1), 1.0, rtol=1e-14)
    assert np.all((stakes > 0) & (stakes < 1))


def test_reference_figures() -> None:
    """η at N = 10⁵, level .01/2110, as computed independently: 3.08 and 4.92 of 5.20; 3.39 and 6.48 of 8.51."""
    rng = np.random.default_rng(0)
    for (a, b), band, bernstein in (((90, 10), 3.08, 4.92), ((400, 8), 3.39, 6.48)):
        scores = rng.beta(a, b, size=(100_000, 2))
        histogram = ScoreHistogram.of(scores, even_thresholds(1024))
        etas = []
        for bound, tally in ((CdfBand(), histogram), (EmpiricalBernstein(), ScoreMoments.of(scores))):
            result = bound.bounds(tally, 0.01 / 2110, a / (a + b))
            etas.append(np.mean(np.log1p((result.mean_lower - 0.5) ** 2 / result.deviation_upper)))
        assert etas[0] == pytest.approx(band, abs=0.03)
        assert etas[1] == pytest.approx(bernstein, abs=0.02)
        assert etas[1] >= 1.5 * etas[0]


def test_moments_and_histogram_agree() -> None:
    tally = SCORE_LAWS[9].draw(np.random.default_rng(2), 1000, 20)
    from_moments = EmpiricalBernstein().bounds(moments_of(tally), 1e-4, 0.890625)
    from_histogram = EmpiricalBernstein().bounds(tally, 1e-4, 0.890625)
    np.testing.assert_allclose(from_moments.mean_lower, from_histogram.mean_lower, rtol=1e-9)
    np.testing.assert_allclose(from_moments.deviation_upper, from_histogram.deviation_upper, rtol=1e-9)


def test_what_is_not_a_number_stops_the_run() -> None:
    with pytest.raises(NumericalError):
        finish(np.array([math.nan]), np.array([0.1]), np.array([0.5]), 1e-6)
    with pytest.raises(NumericalError):
        finish(np.array([0.1]), np.array([math.nan]), np.array([0.5]), 1e-6)


# --- sequences --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 2000), st.data(), st.floats(1e-9, 0.5))
@settings(max_examples=60, deadline=None)
def test_sequence_bounds_solve_the_mixture_equation(n: int, data: st.DataObject, level: float) -> None:
    k = data.draw(st.integers(1, n))
    lower = float(VoteConfidenceSequence().lower(np.array([k]), n, level)[0])
    assert lower < k / n

    def refuted_by(p: float) -> float:
        with mpmath.workdps(40):
            mixture = mpmath.beta(k + 1, n - k + mpmath.mpf(0.1)) / mpmath.beta(1, mpmath.mpf(0.1))
            return float(mpmath.log(mixture * level) - k * mpmath.log(p) - (n - k) * mpmath.log1p(-mpmath.mpf(p)))

    assert refuted_by(lower) >= 0
    assert refuted_by(lower + 1e-6 * (k / n - lower)) < 1e-3 * (n + 1)
    assert refuted_by(lower + 0.01 * (k / n - lower)) < 0


def test_sequences_cost_little_on_unanimous_votes() -> None:
    votes = np.array([0, 9_000, 10_240])
    lower, upper = (getattr(VoteConfidenceSequence(), side)(votes, 10_240, 1e-6) for side in ("lower", "upper"))
    assert lower[0] == 0
    assert upper[2] == 1
    assert np.all(lower < clopper_pearson_lower(votes, 10_240, 1e-6) + 1e-12)
    assert lower[2] > float(clopper_pearson_lower(10_240, 10_240, 1e-7))


def test_decisions() -> None:
    sequence = VoteConfidenceSequence()
    decided = sequence.decided(np.array([990, 500, 905]), 1000, 1e-4, threshold=0.9)
    assert decided.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("a", lambda: VoteConfidenceSequence(a=0.0)),
        ("b", lambda: VoteConfidenceSequence(b=math.nan)),
        ("votes", lambda: VoteConfidenceSequence().lower(np.array([11]), 10, 0.1)),
        ("votes", lambda: VoteConfidenceSequence().upper(np.array([11]), 10, 0.1)),
        ("level", lambda: VoteConfidenceSequence().lower(np.array([1]), 10, math.nan)),
    ],
)
def test_bad_sequences_name_their_field(field: str, make: Callable) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.field == field
