"""The package's base certificates under the contract suites, and such as are wrong on purpose, which must be caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from localsmooth.certificates import (
    SCORE_CERTIFICATES,
    VOTE_CERTIFICATES,
    BernoulliScores,
    ExactVotes,
    GaussianScores,
    GaussianVotes,
    RenyiVotes,
    ScoreCertificate,
    SparseScores,
    Thresholds,
    UniformVotes,
    VoteCertificate,
)
from localsmooth.noise import Gaussian, Uniform
from localsmooth.testing import (
    BERNOULLI,
    GAUSSIAN,
    SPARSE_FLIPS,
    UNIFORM,
    NoiseCase,
    ScoreCertificateContract,
    VoteCertificateContract,
)

LEVELS = [[4 / 64, 12 / 64], [1 / 64, 30 / 64], [6 / 64, 0.5], [0.0, 8 / 64], [1.0, 8 / 64]]
PAIRS = [
    [(1 / 64, 40 / 64), (4 / 64, 50 / 64)],
    [(2 / 64, 20 / 64), (10 / 64, 10 / 64)],
    [(50 / 64, 40 / 64), (1 / 64, 1 / 64)],
    [(6 / 64, 58 / 64), (3 / 64, 30 / 64)],
    [(0.0, 32 / 64), (3 / 64, 30 / 64)],
    [(0.0, 1.0), (3 / 64, 0.0)],
]
"""Multiples of 1/64, which the sampler attains exactly; the last ones are special cases of the theory."""

ONE_LEVEL = replace(BERNOULLI, levels=np.array([[4 / 64]]))
BIT_CASES = [
    BERNOULLI,
    SPARSE_FLIPS,
    replace(BERNOULLI, levels=np.array(LEVELS)),
    replace(SPARSE_FLIPS, levels=np.array(PAIRS)),
]


class TestGaussianVotes(VoteCertificateContract):
    certificate = GaussianVotes()
    cases = (GAUSSIAN, replace(GAUSSIAN, noise=Gaussian(clamp=True)))


class TestUniformVotes(VoteCertificateContract):
    certificate = UniformVotes()
    cases = (UNIFORM,)


class TestRenyiVotes(VoteCertificateContract):
    certificate = RenyiVotes()
    cases = BIT_CASES


class TestOneOrder(VoteCertificateContract):
    certificate = RenyiVotes((2.0,))
    cases = BIT_CASES


class TestExactVotes(VoteCertificateContract):
    certificate = ExactVotes(vectors=60, atoms=128)
    cases = BIT_CASES


class TestCoarseExactVotes(VoteCertificateContract):
    certificate = ExactVotes(orders=(), classes=2, vectors=4, horizon=2, atoms=16)
    cases = BIT_CASES


class TestGaussianScores(ScoreCertificateContract):
    certificate = GaussianScores()
    cases = (GAUSSIAN,)


class TestBernoulliScores(ScoreCertificateContract):
    certificate = BernoulliScores()
    cases = BIT_CASES[::2]


class TestSparseScores(ScoreCertificateContract):
    certificate = SparseScores()
    cases = BIT_CASES[1::2]


def test_all_are_tested() -> None:
    suites = (VoteCertificateContract, ScoreCertificateContract)
    tested = {
        type(suite.certificate)
        for kind in suites
        for suite in kind.__subclasses__()
        if suite.__module__ == __name__ and suite.__name__[:4] == "Test"
    }
    assert tested == {*VOTE_CERTIFICATES.values(), *SCORE_CERTIFICATES.values()}


def caught(certificate: VoteCertificate | ScoreCertificate, case: NoiseCase) -> list[str]:
    """Names of the tests of the suite that fail."""
    kind = VoteCertificateContract if isinstance(certificate, VoteCertificate) else ScoreCertificateContract
    suite, failed = type("Suite", (kind,), {"certificate": certificate, "cases": [case]})(), []
    for name in (name for name in dir(suite) if name.startswith("test_")):
        try:
            getattr(suite, name)()
        except Exception:
            failed.append(name)
    return failed


class WrongVotes(VoteCertificate):
    """Right but for what is done to its thresholds."""

    name = "wrong"

    def __init__(self, right: VoteCertificate, change) -> None:
        self.right, self.change = right, change

    def certificates(self, noise, levels, lower_probability, group) -> Thresholds:
        return self.change(self.right.certificates(noise, levels, lower_probability, group), lower_probability)


class WrongScores(ScoreCertificate):
    """Right but for what is done to its thresholds, or to what it is given."""

    name = "wrong"

    def __init__(self, right: ScoreCertificate, change) -> None:
        self.right, self.change = right, change

    def certificates(self, noise, levels, lower_mean, upper_second_moment, centre, group) -> Thresholds:
        made = self.right.certificates(noise, levels, lower_mean, upper_second_moment, centre, group)
        return self.change(made, lower_mean, upper_second_moment)


def larger(factor: float):
    return lambda made, *_: Thresholds(made.weights, made.eta * factor)


KEPT = "test_promises_are_kept"


@pytest.mark.parametrize(
    ("certificate", "case", "factor"),
    [
        (GaussianVotes(), GAUSSIAN, 1.05),
        (UniformVotes(), UNIFORM, 1.02),
        (RenyiVotes((2.0,)), BERNOULLI, 1.6),
        (ExactVotes(orders=(), vectors=300, horizon=3), ONE_LEVEL, 1.0001),
    ],
    ids=["gaussian", "uniform", "renyi", "exact"],
)
def test_larger_thresholds_are_caught(certificate: VoteCertificate, case: NoiseCase, factor: float) -> None:
    assert caught(WrongVotes(certificate, larger(1.0)), case) in ([], ["test_other_noises_are_refused"])
    assert KEPT in caught(WrongVotes(certificate, larger(factor)), case)


@pytest.mark.parametrize(
    ("certificate", "case"),
    [(GaussianScores(), GAUSSIAN), (BernoulliScores(), BERNOULLI), (SparseScores(), SPARSE_FLIPS)],
)
def test_larger_thresholds_of_scores_are_caught(certificate: ScoreCertificate, case: NoiseCase) -> None:
    assert caught(WrongScores(certificate, larger(1.0)), case) == []
    assert KEPT in caught(WrongScores(certificate, larger(1.1)), case)


def formula(name: str):
    """Thresholds of the variance-constrained certificate about the mean, as they have been printed or coded."""

    def changed(made: Thresholds, mean: np.ndarray, square: np.ndarray) -> Thresholds:
        with np.errstate(invalid="ignore", divide="ignore"):
            eta = {
                "squared": np.where(mean > 0.5, np.log1p((mean - 0.5) ** 2 / square**2), 0),
                "symmetric": np.log1p((mean - 0.5) ** 2 / square),
                "no square": np.where(mean > 0.5, np.log1p(np.abs(mean - 0.5) / square), 0),
            }[name]
        return Thresholds(
            made.weights, np.where(made.eta == 0, 0.0 if name != "symmetric" else np.nan_to_num(eta), eta)
        )

    return changed


@pytest.mark.parametrize("name", ["squared", "symmetric", "no square"])
def test_wrong_variance_formulas_are_caught(name: str) -> None:
    assert KEPT in caught(WrongScores(BernoulliScores(), formula(name)), BERNOULLI)


class Published(VoteCertificate):
    """Φ⁻¹(q) under uniform noise, as published: beyond the whole support."""

    name = "published"

    def certificates(self, noise, levels, lower_probability, group) -> Thresholds:
        made = UniformVotes().certificates(noise, levels, lower_probability, group)
        gaussian = GaussianVotes().certificates(Gaussian(), np.ones((group.max() + 1, 1)), lower_probability, group)
        return Thresholds(made.weights, np.sqrt(gaussian.eta))


class Anything(VoteCertificate):
    """Certifies whatever noise it gets as if it were Gaussian."""

    name = "anything"

    def certificates(self, noise, levels, lower_probability, group) -> Thresholds:
        if isinstance(noise, Uniform):
            return GaussianVotes().certificates(Gaussian(), levels, lower_probability, group)
        return GaussianVotes().certificates(noise, levels, lower_probability, group)


def swapped_kinds(made: Thresholds, *_: object) -> Thresholds:
    half = made.weights.shape[-1] // 2
    return Thresholds(np.roll(made.weights, half, axis=-1), made.eta)


def swapped_rows(made: Thresholds, *_: object) -> Thresholds:
    return Thresholds(made.weights[..., ::-1, :], made.eta)


FAULTS = {
    "published": (Published(), UNIFORM, KEPT),
    "any noise": (Anything(), GAUSSIAN, "test_other_noises_are_refused"),
    "swapped kinds": (
        WrongVotes(RenyiVotes((2.0,)), swapped_kinds),
        replace(SPARSE_FLIPS, levels=np.array(PAIRS[:1])),
        KEPT,
    ),
    "swapped rows": (WrongVotes(GaussianVotes(), swapped_rows), GAUSSIAN, KEPT),
    "nothing": (WrongVotes(GaussianVotes(), larger(0.0)), GAUSSIAN, "test_something_is_promised"),
    "infinite": (
        WrongVotes(GaussianVotes(), lambda made, q: Thresholds(made.weights, np.where(made.eta > 0, np.inf, 0.0))),
        GAUSSIAN,
        "test_shapes_and_values",
    ),
    "no abstention": (
        WrongVotes(GaussianVotes(), lambda made, q: Thresholds(made.weights, np.maximum(made.eta, 0.01))),
        GAUSSIAN,
        "test_everything_may_abstain",
    ),
    "best of all": (
        WrongVotes(GaussianVotes(), lambda made, q: Thresholds(made.weights, np.full(made.eta.shape, made.eta.max()))),
        GAUSSIAN,
        KEPT,
    ),
    "by place": (
        WrongVotes(
            GaussianVotes(), lambda made, q: Thresholds(made.weights, made.eta / (1 + np.arange(made.eta.size)))
        ),
        GAUSSIAN,
        "test_the_order_of_outputs_and_groups_plays_no_role",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str) -> None:
    certificate, case, expected = FAULTS[name]
    assert expected in caught(certificate, case)
