"""The exact checks against brute force and closed forms; each must be able to say no."""

from __future__ import annotations

import ast
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localsmooth
from localsmooth.bounds import CandidateVotes, JointCount, broad_mixture, candidate_prior, clopper_pearson_lower
from localsmooth.certificates import gaussian_vote_eta
from localsmooth.evidence.exact import (
    Ballot,
    CountClaim,
    Kind,
    big,
    count_claim_fails,
    gaussian_threshold_holds,
    power_covers,
    radius_holds,
    refuted_alone,
    tail_is_at_most,
    uniform_threshold_holds,
    weight_covers,
)

EXACT = Path(localsmooth.__file__).parent / "evidence" / "exact"


def test_the_checks_share_nothing_with_what_they_check():
    """They import arrays and the standard library, and each other."""
    for path in EXACT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                known = name.split(".")[0] in {*sys.stdlib_module_names, "numpy", "jaxtyping"}
                assert known or name.startswith("localsmooth.evidence.exact"), f"{path.name} imports {name}"


numbers = st.tuples(st.integers(1, 2**300), st.integers(-400, 100))


def value(a: big.Big) -> Fraction:
    return Fraction(a[0]) * Fraction(2) ** a[1]


@given(numbers, numbers, st.integers(0, 60))
def test_rounding_goes_the_way_that_is_said(a: big.Big, b: big.Big, power: int):
    close = 1 + Fraction(2) ** -150
    for exact, up, down in (
        (value(a) * value(b), big.times_up(a, b), big.times_down(a, b)),
        (value(a) / value(b), big.divided_up(a, b), big.divided_down(a, b)),
        (value(a) + value(b), big.sum_up(a, b), big.sum_down(a, b)),
    ):
        assert exact / close <= value(down) <= exact <= value(up) <= exact * close
    assert value(a) ** power <= value(big.power_up(a, power)) <= value(a) ** power * close
    assert big.at_most(a, b) == (value(a) <= value(b))
    below = Fraction(big.float_below(a))
    assert below <= value(a)
    assert below == 1e200 or value(a) < Fraction(2) ** -800 or below * (1 + Fraction(2) ** -50) >= value(a)


def exact_tail(k: int, n: int, q: float) -> Fraction:
    p = Fraction(q)
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))


def float_at_least(exact: Fraction) -> float:
    made = float(exact)
    return made if Fraction(made) >= exact else math.nextafter(made, math.inf)


@given(st.integers(1, 40), st.data())
def test_a_tail_is_confirmed_to_the_last_bit(n: int, data: st.DataObject):
    k = data.draw(st.integers(1, n))
    q = data.draw(st.floats(1e-6, 1 - 1e-6))
    exact = exact_tail(k, n, q)
    level = float_at_least(exact * (1 + Fraction(1, 2**100)))
    assert tail_is_at_most(k, n, q, level)
    below = math.nextafter(level, 0.0)
    assert tail_is_at_most(k, n, q, below) <= (Fraction(below) >= exact)
    assert not tail_is_at_most(k, n, q, math.nextafter(below, 0.0))


@pytest.mark.parametrize("n", [1000, 20000])
def test_bounds_hold_and_the_slightest_change_does_not(n: int):
    level = 0.01 / 6144
    for k in (1, n // 3, n // 2, 9 * n // 10, n - 1, n):
        q = float(clopper_pearson_lower(k, n, level))
        assert tail_is_at_most(k, n, q, level)
        assert not tail_is_at_most(k, n, q * (1 + 1e-9), level)
        assert not tail_is_at_most(k - 1, n, q, level)
        assert not tail_is_at_most(k, n + 1, q, level) or k == 1
        assert not tail_is_at_most(k, n, q, level * (1 - 1e-6))
    assert not tail_is_at_most(0, n, 1e-300, level)
    assert not tail_is_at_most(n, n, 1.0, level)


def test_thresholds_of_gaussian_noise_against_high_precision():
    q = np.concatenate([np.linspace(0.5001, 0.9999, 40), 1 - np.logspace(-5, -12, 15)])
    for probability, eta in zip(q.tolist(), gaussian_vote_eta(q).tolist(), strict=True):
        assert gaussian_threshold_holds(probability, eta)
        with mpmath.workdps(60):
            root = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(probability) - 1)
            true = float(root**2)
        assert gaussian_threshold_holds(probability, true * (1 - 1e-15))
        assert not gaussian_threshold_holds(probability, true * (1 + 1e-15))
    assert not gaussian_threshold_holds(0.5, 1e-12)
    assert gaussian_threshold_holds(0.2, 0.0)


@given(st.floats(1e-3, 1e3), st.integers(1, 2))
def test_weights_radii_and_budgets_are_compared_exactly(level: float, power: int):
    weight = float_at_least(1 / Fraction(level) ** power)
    assert weight_covers(weight, level, power)
    assert not weight_covers(weight * (1 - 1e-15), level, power)
    assert weight_covers(0.0, math.inf, power)
    assert not weight_covers(0.0, 1e300, power)
    assert radius_holds(level * (1 - 1e-15), 1.0, level**power, power)
    assert not radius_holds(level * (1 + 1e-14), 1.0, level**power, power)
    limit = float_at_least(Fraction(level) ** power)
    assert power_covers(limit, level, power)
    assert not power_covers(limit * (1 - 1e-15), level, power)
    assert uniform_threshold_holds(0.75, 0.5)
    assert not uniform_threshold_holds(0.75, 0.5000000000000001)


def kinds(candidates: CandidateVotes | None, outputs: int) -> tuple[list[Kind], np.ndarray]:
    prior, kind = (broad_mixture(), np.zeros(outputs, int)) if candidates is None else candidate_prior(candidates)
    parts = map(prior.components, range(len(prior.log_weights)))
    return [Kind(never, tuple(betas)) for never, betas in parts], kind.astype(np.int64)


def mixture(kind: Kind, errors: int, n: int, u: float) -> Fraction:
    """M(u) from its definition, in rational numbers."""

    def beta(a: int, b: int) -> Fraction:
        return Fraction(math.factorial(a - 1) * math.factorial(b - 1), math.factorial(a + b - 1))

    total = Fraction(kind.never) * (errors == 0)
    for weight, a, b in kind.betas:
        total += Fraction(weight) * beta(a + errors, b + n - errors) / beta(a, b)
    return total / (Fraction(u) ** errors * (1 - Fraction(u)) ** (n - errors))


def test_evidence_is_that_of_the_definition_and_rounded_down():
    some = Kind(0.25, ((0.25, 1, 4), (0.25, 2, 3), (0.2, 4, 64)))
    errors, trials = np.array([0, 1, 3, 3, 9, 0]), np.array([9, 9, 9, 12, 9, 12])
    ballot = Ballot(errors, trials, np.zeros(6, int), [some])
    for u in (0.01, 0.3, 0.5, 0.999):
        made = ballot.against(u)[ballot.case]
        for x, n, found in zip(errors.tolist(), trials.tolist(), made.tolist(), strict=True):
            exact = mixture(some, x, n, u) if Fraction(x, n) <= Fraction(u) else Fraction(0)
            assert exact * (1 - Fraction(1, 2**50)) <= Fraction(found) <= exact
    with pytest.raises(ValueError, match="prior"):
        Ballot(errors, trials, np.zeros(6, int), [Kind(0.5, ((0.51, 1, 4),))])
    with pytest.raises(ValueError, match="more errors"):
        Ballot(errors + 4, trials, np.zeros(6, int), [some])


def claim_of(seed: int, outputs: int, n: int, spare: int | None, worth: bool, alpha: float = 0.05) -> CountClaim:
    """What the joint count says of some votes."""
    generator = np.random.default_rng(seed)
    u = generator.beta(0.3, 4, outputs)
    first = CandidateVotes(generator.binomial(30, 1 - u), 30)
    votes = generator.binomial(n, 1 - u)
    stratum = generator.integers(-1, 3, outputs)
    values = np.array([0.5, 1.0, 3.0])[np.maximum(stratum, 0)] if worth else None
    made = JointCount(spare=spare).count_bounds(votes, n, alpha, stratum, first, values)
    priors, kind = kinds(first, outputs)
    ballot = Ballot(n - votes, np.full(outputs, n), kind, priors)
    assert made.alone is not None
    assert refuted_alone(ballot, made.alone, alpha).all()
    assert not refuted_alone(ballot, made.alone, alpha / 1.5).all()
    return CountClaim(ballot, stratum, made.lower, alpha, float(made.discount) or made.spare, values)


@pytest.mark.parametrize("worth", [False, True])
@pytest.mark.parametrize("spare", [None, 0, 3])
def test_claims_of_the_joint_count_hold_and_stronger_ones_do_not(spare: int | None, worth: bool):
    claim = claim_of(1, 400, 200, spare, worth)
    assert count_claim_fails(claim) == ""
    mutated = {
        "alpha": claim.alpha * 0.7,
        "given": claim.given - 1 if claim.given > 1 else None,
        "lower": np.where(claim.lower > 0.6, claim.lower + (1 - claim.lower) * 0.1, claim.lower),
        "stratum": np.maximum(claim.stratum, 0) if not worth else None,
    }
    for field, changed in mutated.items():
        if changed is not None:
            parts = {name: getattr(claim, name) for name in ("ballot", "stratum", "lower", "alpha", "given", "worth")}
            assert count_claim_fails(CountClaim(**parts | {field: changed})), field


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2, None]))
def test_no_error_probabilities_on_the_event_break_a_confirmed_claim(seed: int, spare: int | None):
    """Wherever Σ M_n(u_n) < T/α, every adversary breaks as many outputs as the bounds say, at most."""
    claim = claim_of(seed, 12, 40, spare, worth=False, alpha=0.3)
    assert count_claim_fails(claim) == ""
    generator = np.random.default_rng(seed)
    taking = claim.stratum >= 0
    total = int(taking.sum())
    levels = np.unique(np.concatenate([[0.5], 1 - claim.lower[claim.lower > 0]]))
    for _ in range(60):
        # Worst cases lie just above the error probabilities at which the counts change.
        u = np.nextafter(generator.choice(levels, 12), 1.0)
        against = [float(claim.ballot.against(each)[claim.ballot.case[n]]) for n, each in enumerate(u.tolist())]
        if sum(np.array(against)[taking]) >= total / claim.alpha:
            continue
        asked = itertools.product(levels.tolist(), repeat=len(np.unique(claim.stratum[taking])))
        for limits in itertools.islice(asked, 200):
            limit = dict(zip(np.unique(claim.stratum[taking]).tolist(), limits, strict=True))
            edge = np.array([limit.get(s, 2.0) for s in claim.stratum.tolist()])
            failing = int(np.count_nonzero(taking & (u >= edge)))
            said = int(np.count_nonzero(taking & (claim.lower <= 1 - edge)))
            assert failing <= said + claim.given
