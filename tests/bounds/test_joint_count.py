"""The joint count bound: exact miss probabilities, simulated ones, and what makes it go wrong."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from localsmooth.bounds import Bonferroni, CandidateVotes, JointCount, VoteBounds
from localsmooth.bounds.beta_mixture import BetaMixture, Evidence, broad_mixture, fitted_mixture
from localsmooth.errors import InvalidInputError
from localsmooth.testing.chance import assert_level_kept

RULES = [JointCount(), JointCount(spare=0), JointCount(spare=2), JointCount(fit=False)]


def overcount(bounds: VoteBounds, probability: np.ndarray, stratum: np.ndarray) -> int:
    """Most outputs by which a count exceeds what survives, over all that any strata can be asked (before discount)."""
    worst = 0
    for one in range(stratum.max() + 1):
        handed, true = bounds.lower[stratum == one], probability[stratum == one]
        asked = np.unique(handed[handed > 0])
        # Just below one of the bounds: an output survives if its probability exceeds what is asked.
        excess = [int((handed >= x).sum() - (true >= x).sum()) for x in asked]
        worst += max([0, *excess])
    return worst


def misses(bounds: VoteBounds, probability: np.ndarray, stratum: np.ndarray) -> bool:
    return overcount(bounds, probability, stratum) > bounds.discount


# --- exact ------------------------------------------------------------------------------------------------------------


PROBABILITIES = np.array([(0.9, 0.4, 0.7), (0.97, 0.97, 0.97), (0.3, 0.3, 0.99), (0.05, 0.5, 0.55), (0.6, 0.6, 0.6)])


@pytest.mark.parametrize("rule", [JointCount(), JointCount(spare=0)], ids=str)
@pytest.mark.parametrize("stratum", [(0, 0, 0), (0, 0, 1)])
def test_exact_miss_probability_of_independent_outputs(rule: JointCount, stratum: tuple[int, ...]) -> None:
    n, alpha, place = 5, 0.3, np.array(stratum)
    total = np.zeros(len(PROBABILITIES))
    for votes in itertools.product(range(n + 1), repeat=3):
        made = rule.count_bounds(np.array(votes), n, alpha, place)
        missed = np.array([misses(made, q, place) for q in PROBABILITIES])
        total += missed * stats.binom.pmf(votes, n, PROBABILITIES).prod(axis=1)
    assert (total <= alpha).all()
    assert rule.spare is None or total.max() > 0.01  # some are missed: the test can tell


@pytest.mark.parametrize("rule", [JointCount(), JointCount(spare=0)], ids=str)
def test_exact_miss_probability_of_disjoint_errors(rule: JointCount) -> None:
    """Every draw is an error of at most one output: the votes are multinomial."""
    n, alpha, u, place = 7, 0.3, np.array([0.35, 0.3, 0.3]), np.zeros(3, np.int64)
    total = 0.0
    for errors in itertools.product(range(n + 1), repeat=3):
        if sum(errors) <= n and misses(rule.count_bounds(n - np.array(errors), n, alpha, place), 1 - u, place):
            total += float(stats.multinomial.pmf([*errors, n - sum(errors)], n, [*u, 1 - u.sum()]))
    assert total <= alpha


def test_exact_level_where_sampling_stops_by_the_votes() -> None:
    """One output that stops at its best moment: the probability of ever overrating it keeps the level."""
    most, alpha = 14, 0.3
    for q in (0.55, 0.7, 0.9):
        alive = {0: 1.0}
        missed = 0.0
        for n in range(1, most + 1):
            after: dict[int, float] = {}
            for votes, chance in alive.items():
                for right, factor in ((1, q), (0, 1 - q)):
                    after[votes + right] = after.get(votes + right, 0.0) + chance * factor
            for votes in list(after):
                made = JointCount(spare=0).count_bounds(np.array([votes]), n, alpha, np.zeros(1, np.int64))
                if made.lower[0] > q:
                    missed += after.pop(votes)
            alive = after
        assert missed <= alpha


# --- simulated --------------------------------------------------------------------------------------------------------


def independent(rng: np.random.Generator, u: np.ndarray, n: int) -> np.ndarray:
    return rng.binomial(n, u)


def common(rng: np.random.Generator, u: np.ndarray, n: int) -> np.ndarray:
    return (rng.random(n)[:, None] < u).sum(axis=0)


def blockwise(rng: np.random.Generator, u: np.ndarray, n: int) -> np.ndarray:
    block = np.arange(u.size) // 10
    return (rng.random((n, block.max() + 1))[:, block] < u).sum(axis=0)


def disjoint(rng: np.random.Generator, u: np.ndarray, n: int) -> np.ndarray:
    """As few errors at once as the probabilities allow: intervals side by side on a circle."""
    start = np.concatenate([[0.0], np.cumsum(u)[:-1]]) % 1
    return (((rng.random(n)[:, None] - start) % 1) < u).sum(axis=0)


DEPENDENCES = {"independent": independent, "common": common, "blockwise": blockwise, "disjoint": disjoint}
CHANCES = np.concatenate([np.full(15, 0.03), np.geomspace(2e-3, 0.6, 25), np.full(8, 0.4)])
PLACE = np.arange(CHANCES.size) % 3
Draw = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]


def simulated(rule: JointCount, u: np.ndarray, draw: Draw, alpha: float, repeats: int) -> int:
    rng, n, n_first = np.random.default_rng(14), 80, 30
    missed = 0
    for _ in range(repeats):
        first = CandidateVotes(n_first - draw(rng, u, n_first), n_first)
        missed += misses(rule.count_bounds(n - draw(rng, u, n), n, alpha, PLACE, first), 1 - u, PLACE)
    return missed


@pytest.mark.parametrize("repeats", [200, pytest.param(2_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("rule", [JointCount(), JointCount(spare=0)], ids=str)
@pytest.mark.parametrize("dependence", DEPENDENCES)
def test_miss_rate_is_kept(rule: JointCount, dependence: str, repeats: int) -> None:
    missed = simulated(rule, CHANCES, DEPENDENCES[dependence], 0.1, repeats)
    assert_level_kept(missed, repeats, 0.1)


VALUES = np.array([1.0, 0.25, 6.0, 0.0])


def overvalued(bounds: VoteBounds, probability: np.ndarray, stratum: np.ndarray, value: np.ndarray) -> float:
    """Most by which a sum of values exceeds what survives, over all that any strata can be asked (before `spare`)."""
    return sum(
        float(value[one])
        * overcount(VoteBounds(bounds.lower[stratum == one], 0), probability[stratum == one], np.zeros(n, np.int64))
        for one in range(stratum.max() + 1)
        for n in [int(np.count_nonzero(stratum == one))]
    )


def missed_values(repeats: int, draw: Draw, spare: int | None) -> int:
    """Runs with 48 outputs in four strata of different worth in which some sum is promised too much."""
    rng, n, n_first, missed = np.random.default_rng(15), 80, 30, 0
    place = np.arange(CHANCES.size) % 4
    for _ in range(repeats):
        first = CandidateVotes(n_first - draw(rng, CHANCES, n_first), n_first)
        votes = n - draw(rng, CHANCES, n)
        made = JointCount(spare=spare).count_bounds(votes, n, 0.1, place, first, VALUES[place])
        missed += overvalued(made, 1 - CHANCES, place, VALUES) > made.spare
    return missed


@pytest.mark.parametrize("repeats", [200, pytest.param(2_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("spare", [None, 0, 3])
@pytest.mark.parametrize("dependence", DEPENDENCES)
def test_miss_rate_of_values_is_kept(dependence: str, spare: int | None, repeats: int) -> None:
    assert_level_kept(missed_values(repeats, DEPENDENCES[dependence], spare), repeats, 0.1)


def test_values_not_charged_for_are_caught() -> None:
    u, rng, missed, place = np.full(3_000, 0.03), np.random.default_rng(1), 0, np.arange(3_000) % 3
    for _ in range(60):
        votes = 300 - independent(rng, u, 300)
        made = JointCount(spare=1_000).count_bounds(votes, 300, 0.1, place, None, VALUES[place])
        over = overvalued(made, 1 - u, place, VALUES)
        assert over <= made.spare
        missed += over > 0
    with pytest.raises(AssertionError):
        assert_level_kept(missed, 60, 0.1)


def test_equal_values_are_counts_but_for_rounding() -> None:
    votes = np.random.default_rng(3).binomial(80, 1 - CHANCES)
    for spare in (0, 2):
        count = JointCount(spare=spare).count_bounds(votes, 80, 0.1, PLACE)
        value = JointCount(spare=spare).count_bounds(votes, 80, 0.1, PLACE, None, np.full(CHANCES.size, 2.5))
        assert value.discount == 0
        assert value.spare == pytest.approx(2.5 * spare, rel=1e-12)
        assert (value.lower <= count.lower).all()
        assert (count.lower - value.lower).mean() < 0.05


def test_values_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="differs within a stratum"):
        JointCount().count_bounds(np.array([8, 9]), 10, 0.1, np.zeros(2, np.int64), None, np.array([1.0, 2.0]))
    with pytest.raises(InvalidInputError, match="negative"):
        JointCount().count_bounds(np.array([8, 9]), 10, 0.1, np.zeros(2, np.int64), None, np.array([1.0, -2.0]))


def test_a_wrong_sign_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logarithm of the evidence, the wrong way round."""
    right = BetaMixture.evidence

    def wrong(self: BetaMixture, errors: np.ndarray, trials: np.ndarray, kind: np.ndarray) -> Evidence:
        made = right(self, errors, trials, kind)
        return Evidence(-made.log, made.error)

    monkeypatch.setattr(BetaMixture, "evidence", wrong)
    missed = simulated(JointCount(spare=0), CHANCES, common, 0.1, 300)
    with pytest.raises(AssertionError):
        assert_level_kept(missed, 300, 0.1)


def test_a_forgotten_discount_is_caught() -> None:
    """Of many outputs some are overrated, and that is what the strata share."""
    u, rng, missed, place = np.full(3_000, 0.03), np.random.default_rng(1), 0, np.arange(3_000) % 3
    for _ in range(60):
        made = JointCount(spare=1_000).count_bounds(300 - independent(rng, u, 300), 300, 0.1, place)
        assert not misses(made, 1 - u, place)
        missed += misses(VoteBounds(made.lower, 0), 1 - u, place)
    with pytest.raises(AssertionError):
        assert_level_kept(missed, 60, 0.1)


# --- properties -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(RULES), st.booleans())
def test_order_within_strata_does_not_matter(seed: int, rule: JointCount, variable: bool) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60, 30) if variable else np.full(30, 50)
    votes, place = rng.binomial(n, rng.beta(5, 0.5, 30)), rng.integers(-1, 3, 30)
    order = rng.permutation(30)
    made = rule.count_bounds(votes, n, 0.05, place)
    again = rule.count_bounds(votes[order], n[order], 0.05, place[order])
    for one in range(3):
        np.testing.assert_array_equal(np.sort(made.lower[place == one]), np.sort(again.lower[place[order] == one]))
    assert (made.lower[place == -1] == 0).all()
    np.testing.assert_array_equal(made.shown[order], again.shown)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4))
def test_better_votes_never_count_less(seed: int, spare: int) -> None:
    """Errors of nearly unanimous outputs taken away, with the prior left as it is."""
    rng = np.random.default_rng(seed)
    errors, place, rule = rng.poisson(1.0, 40), np.arange(40) % 2, JointCount(fit=False, spare=spare)
    fewer = np.maximum(errors - rng.integers(0, 2, 40), 0)
    before = rule.count_bounds(400 - errors, 400, 0.05, place).lower
    after = rule.count_bounds(400 - fewer, 400, 0.05, place).lower
    for one in (0, 1):
        assert (np.sort(after[place == one]) >= np.sort(before[place == one])).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(RULES))
def test_counts_never_exceed_the_outputs_bounded_alone(seed: int, rule: JointCount) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 2000))
    votes, place = rng.binomial(n, rng.beta(4, 0.3, 50)), rng.integers(0, 4, 50)
    made = rule.count_bounds(votes, n, float(rng.uniform(0.01, 0.6)), place)
    for chosen in ([0, 1, 2, 3], [0], [1, 3]):
        mask = np.isin(place, chosen)
        for asked in (0.5, 0.8, 0.95):
            counted = (made.lower[mask] > asked).sum() - made.discount
            assert counted <= (made.shown[mask] > asked).sum()


@pytest.mark.parametrize("n", [3, 40])
def test_evidence_is_what_it_says(n: int) -> None:
    """Against exact rational arithmetic."""
    for prior, updates in (
        (broad_mixture(), [(0, 0)]),
        (fitted_mixture(np.array([0, 2]), 9, np.array([5, 1])), [(0, 9), (2, 7)]),
    ):
        for kind, (wrong, right) in enumerate(updates):
            for x in range(n + 1):
                made = prior.evidence(np.array([float(x)]), np.array([float(n)]), np.array([kind]))
                exact = Fraction(float(np.exp(prior.log_weights[kind, 0]))) if x == 0 else Fraction(0)
                for log_weight, a, b in zip(
                    prior.log_weights[kind, 1:].tolist(),
                    [1] * 10 + [4] * 10,
                    [4**i for i in range(10)] * 2,
                    strict=True,
                ):
                    exact += Fraction(math.exp(log_weight)) * rising(a + wrong, b + right, x, n)
                assert made.log[0] == pytest.approx(math.log(exact), abs=made.error[0] + 1e-14)
                assert made.error[0] < 1e-6
            assert np.exp(prior.log_weights[kind]).sum() <= 1


def rising(a: int, b: int, x: int, n: int) -> Fraction:
    """B(a + x, b + n − x) / B(a, b)."""
    made = Fraction(1)
    for i in range(x):
        made *= a + i
    for i in range(n - x):
        made *= b + i
    for i in range(n):
        made /= a + b + i
    return made


def test_hardly_a_price_for_many_outputs() -> None:
    """A hundred unanimous outputs or a million: all but one in a hundred are counted at nearly the same bound."""
    reached = []
    for size in (10**2, 10**4, 10**6):
        votes = np.full(size, 1024)
        made = JointCount().count_bounds(votes, 1024, 0.01, np.arange(size) % 12)
        reached.append(np.quantile(made.lower, 0.01 + made.discount / size))
    equal = Bonferroni().lower_bounds(votes[:1], 1024, 0.01 / 10**6).lower[0]
    assert reached[0] > equal
    assert abs(reached[2] - reached[1]) < 1e-3
    assert 1 - reached[2] < 0.75 * (1 - equal)


def test_large_bins_hold_for_every_count_inside() -> None:
    """What stands for a bin of error counts is at most what each of its counts gives by itself."""
    n = 20_000
    errors = np.arange(3_000, 3_400)
    made = JointCount().count_bounds(n - errors, n, 0.01, np.zeros(errors.size, np.int64)).shown
    alone = [
        JointCount().count_bounds(np.array([n - x]), n, 0.01, np.zeros(1, np.int64)).shown[0] for x in errors[::37]
    ]
    assert (np.diff(made) <= 0).all()
    exact = stats.beta.ppf(0.01, n - errors, errors + 1)
    assert (made < exact).all()
    assert (made > exact - 0.01).all()
    np.testing.assert_allclose(made[::37], alone, atol=1e-3)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("votes", (np.array([5, 11]), 10, 0.1, np.zeros(2, np.int64))),
        ("n", (np.array([0, 0]), 0, 0.1, np.zeros(2, np.int64))),
        ("alpha", (np.array([5, 5]), 10, 0.0, np.zeros(2, np.int64))),
        ("n_outputs", (np.zeros(0, np.int64), 10, 0.1, np.zeros(0, np.int64))),
    ],
)
def test_refusals(field: str, arguments: tuple[np.ndarray, int, float, np.ndarray]) -> None:
    with pytest.raises(InvalidInputError, match=field):
        JointCount().count_bounds(*arguments)
    with pytest.raises(InvalidInputError, match="spare"):
        JointCount(spare=-1)


def test_nothing_takes_part() -> None:
    made = JointCount().count_bounds(np.array([40, 39]), 40, 0.1, np.full(2, -1))
    assert (made.lower == 0).all()
    assert made.discount == 0
    assert (made.shown > 0).all()
