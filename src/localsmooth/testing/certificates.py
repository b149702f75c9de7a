"""What every base certificate must do: keep its promises against the worst classifiers there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from localsmooth.certificates import ScoreCertificate, Thresholds, VoteCertificate
from localsmooth.noise import Noise
from localsmooth.testing.laws import KNOWN_NOISES, NoiseCase, Perturbation
from localsmooth.testing.refusals import refused

__all__ = ["ScoreCertificateContract", "VoteCertificateContract"]

_HALF = 0.5 - 1e-9  # just no majority
_SLOPES = (0.003, 0.03, 0.1, 0.3, 1.0)
_Q = np.array([np.nan, 0.0, 0.3, 0.5, 0.500001, 0.6, 0.9, 0.99, 1 - 1e-9])
_GROUP = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])


def _two_groups(case: NoiseCase) -> np.ndarray:
    """The levels, with a second output group where the case has one only."""
    return case.levels if len(case.levels) > 1 else np.repeat(case.levels, 2, axis=0)


def _require_shapes(made: Thresholds, case: NoiseCase, levels: np.ndarray, outputs: int) -> None:
    assert made.weights.shape[-2:] == (len(levels), levels.shape[1] * len(case.noise.kinds)), (
        "weights have no such shape"
    )
    assert made.eta.shape[-1] == outputs
    assert made.weights.shape[:-2] == made.eta.shape[:-1]
    for values in made:
        assert np.isfinite(values).all(), "weights and thresholds must be finite"
        assert (values >= 0).all()
    hidden = np.isinf(levels).reshape(*levels.shape[:2], -1).all(axis=-1)
    assert (made.weights[..., np.tile(hidden, len(case.noise.kinds))] == 0).all(), "hidden inputs weigh something"


def _promised(made: Thresholds, group: np.ndarray, spent: np.ndarray) -> np.ndarray:
    """Whether each output is promised to withstand its own perturbation: where any of its inequalities holds."""
    weights = made.weights if made.weights.ndim == 3 else made.weights[None]
    cost = np.einsum("knc,nc->kn", weights[:, group], spent)
    return (cost < np.atleast_2d(made.eta)).any(axis=0)


def _ratio(pair: Perturbation) -> np.ndarray:
    return np.divide(pair.perturbed, pair.clean, out=np.full(pair.clean.shape, np.inf), where=pair.clean > 0)


def _worst_vote(pair: Perturbation) -> float:
    """Largest clean probability of a classifier that the perturbation brings just below one half (Neyman–Pearson)."""
    order = np.argsort(_ratio(pair), kind="stable")
    after = pair.perturbed[order]
    before = np.cumsum(after) - after
    share = np.divide(_HALF - before, after, out=np.ones_like(after), where=after > 0)
    return float(pair.clean[order] @ np.clip(share, 0, 1))


def _worst_scores(pair: Perturbation, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Scores of the outcomes whose mean the perturbation brings just below one half; the clean variance is small."""
    ratio = np.minimum(_ratio(pair), 1e12)
    for slope in _SLOPES:
        low, high = 0.0, 1.0 + slope * 1e12
        for _ in range(90):
            level = (low + high) / 2
            scores = np.clip(level - slope * ratio, 0, 1)
            low, high = (level, high) if scores @ pair.perturbed < _HALF else (low, level)
        yield np.clip(low - slope * ratio, 0, 1)
    scores = rng.random(ratio.size) ** 0.2
    after = float(scores @ pair.perturbed)
    yield scores if after < _HALF else scores * _HALF / after


class _CertificateContract:
    cases: Sequence[NoiseCase]
    """Every noise that the certificate takes, with levels; `KNOWN_NOISES` has the package's own."""

    def _thresholds(self, noise: Noise, levels: np.ndarray, q: np.ndarray, group: np.ndarray) -> Thresholds:
        """For outputs with these bounds, and very little variance where that matters."""
        raise NotImplementedError

    @property
    def _name(self) -> str:
        raise NotImplementedError

    def test_name(self) -> None:
        """Configuration files name certificates."""
        assert self._name
        assert self._name == self._name.strip().lower()

    def test_shapes_and_values(self) -> None:
        """Thresholds are finite, abstain without a majority, and do not fall as the bound rises."""
        for case in self.cases:
            levels = _two_groups(case)
            made = self._thresholds(case.noise, levels, _Q, _GROUP)
            _require_shapes(made, case, levels, _Q.size)
            eta = np.atleast_2d(made.eta)
            assert (eta[:, ~(_Q > 0.5)] == 0).all(), "outputs without a majority must abstain"
            assert (eta[:, _Q >= 0.9] > 0).any(axis=0).all(), "nothing is promised"
            assert (np.diff(eta[:, _GROUP == 1], axis=1) >= 0).all(), "a larger bound must not tolerate less"

    def test_everything_may_abstain(self) -> None:
        """Also where no output of a group has a majority."""
        for case in self.cases:
            made = self._thresholds(case.noise, _two_groups(case), np.array([0.4, np.nan]), np.array([0, 1]))
            _require_shapes(made, case, _two_groups(case), 2)
            assert (made.eta == 0).all()

    def test_the_order_of_outputs_and_groups_plays_no_role(self) -> None:
        """Outputs permuted, or output groups renumbered, are certified as before."""
        for case in self.cases:
            levels, order = _two_groups(case), np.random.default_rng(0).permutation(_Q.size)
            one = self._thresholds(case.noise, levels, _Q, _GROUP)
            other = self._thresholds(case.noise, levels, _Q[order], _GROUP[order])
            np.testing.assert_array_equal(one.eta[..., order], other.eta)
            np.testing.assert_array_equal(one.weights, other.weights)
            turned = self._thresholds(case.noise, levels[::-1].copy(), _Q, len(levels) - 1 - _GROUP)
            np.testing.assert_array_equal(one.eta, turned.eta)
            np.testing.assert_array_equal(one.weights, turned.weights[..., ::-1, :])

    def test_other_noises_are_refused(self) -> None:
        """A noise that no case attacks must not be certified."""
        attacked = tuple(type(case.noise) for case in self.cases)
        q, group = np.array([0.9]), np.array([0])
        for case in KNOWN_NOISES.values():
            if not isinstance(case.noise, attacked):
                with refused(f"{type(case.noise).__name__} noise, of which no case is given"):
                    self._thresholds(case.noise, case.levels[:1], q, group)


class VoteCertificateContract(_CertificateContract):
    """Tests of a base certificate from votes.

    Promises are checked against the best classifier that each perturbation brings to a tie (Neyman and Pearson's lemma,
    on the noise's law in closed form), so that a threshold a few percent too large is noticed.
    """

    certificate: VoteCertificate
    """The certificate."""

    @property
    def _name(self) -> str:
        return self.certificate.name

    def _thresholds(self, noise: Noise, levels: np.ndarray, q: np.ndarray, group: np.ndarray) -> Thresholds:
        return self.certificate.certificates(noise, levels, q, group)

    def test_frequencies_are_refused(self) -> None:
        """No finite sample bounds a probability by 1."""
        for case in self.cases:
            for bad in (1.0, 1.1, -0.1, np.inf):
                with refused(f"a bound of {bad}", field="lower_probability"):
                    self._thresholds(case.noise, case.levels, np.array([0.9, bad]), np.array([0, 0]))

    def test_promises_are_kept(self) -> None:
        """No perturbation that takes away the majority of some classifier is promised to be harmless to it."""
        for case in self.cases:
            pairs = case.perturbations
            group = np.array([pair.group for pair in pairs])
            spent = np.array([pair.spent for pair in pairs])
            worst = np.clip([_worst_vote(pair) - 1e-12 for pair in pairs], 0, np.nextafter(1, 0))
            for q in (worst, 0.5 + (worst - 0.5) * 0.9, np.minimum(worst, 0.5 + 1e-6)):
                q = np.clip(q, 0, worst)
                broken = _promised(self._thresholds(case.noise, case.levels, q, group), group, spent)
                assert not broken.any(), _complaint(case, pairs, broken, f"probability {q[broken][:1]}")

    def test_something_is_promised(self) -> None:
        """An empty promise is never broken."""
        for case in self.cases:
            pairs = case.perturbations
            group, spent = np.array([pair.group for pair in pairs]), np.array([pair.spent for pair in pairs])
            sure = np.full(len(pairs), 1 - 1e-9)
            assert _promised(self._thresholds(case.noise, case.levels, sure, group), group, spent).any()


class ScoreCertificateContract(_CertificateContract):
    """Tests of a base certificate from bounds on the moments of scores.

    Promises are checked at the exact moments of scores that fall with the likelihood ratio, the worst of their
    variance, about several centres.
    """

    certificate: ScoreCertificate
    """The certificate."""

    @property
    def _name(self) -> str:
        return self.certificate.name

    def _thresholds(self, noise: Noise, levels: np.ndarray, q: np.ndarray, group: np.ndarray) -> Thresholds:
        return self.certificate.certificates(noise, levels, q, np.full(q.shape, 0.01), q, group)

    def test_missing_and_impossible_bounds(self) -> None:
        """NaN abstains; what is no bound on a score is refused."""
        one, group = np.array([0.9]), np.array([0])
        for case in self.cases:
            for missing in range(2):
                mean, square = (np.array([np.nan if place == missing else b]) for place, b in enumerate((0.9, 0.01)))
                made = self.certificate.certificates(case.noise, case.levels, mean, square, one, group)
                assert (made.eta == 0).all(), "a missing bound must abstain"
            for field, bad in (
                ("lower_mean", (1.1, 0.1, 0.5)),
                ("upper_second_moment", (0.9, -0.1, 0.5)),
                ("centre", (0.9, 0.1, -0.5)),
            ):
                mean, square, centre = (np.array([value]) for value in bad)
                with refused(f"{field} of {bad}", field=field):
                    self.certificate.certificates(case.noise, case.levels, mean, square, centre, group)

    def test_promises_are_kept(self) -> None:
        """No perturbation that takes away the majority of some score is promised to be harmless to it."""
        rng = np.random.default_rng(0)
        for case in self.cases:
            pairs = [pair for pair in case.perturbations for _ in range(len(_SLOPES) + 1)]
            scores = [s for pair in pairs[:: len(_SLOPES) + 1] for s in _worst_scores(pair, rng)]
            group = np.array([pair.group for pair in pairs])
            spent = np.array([pair.spent for pair in pairs])
            mean = np.array([pair.clean @ s for pair, s in zip(pairs, scores, strict=True)])
            for centre in (mean, np.zeros(mean.size), rng.random(mean.size), np.maximum(mean - 0.1, 0)):
                centre = np.clip(centre, 0, 1)
                square = np.array([p.clean @ (s - c) ** 2 for p, s, c in zip(pairs, scores, centre, strict=True)])
                made = self.certificate.certificates(
                    case.noise, case.levels, np.clip(mean - 1e-12, 0, 1), square + 1e-12, centre, group
                )
                broken = _promised(made, group, spent)
                assert not broken.any(), _complaint(case, pairs, broken, f"mean {mean[broken][:1]}")

    def test_something_is_promised(self) -> None:
        """An empty promise is never broken."""
        for case in self.cases:
            pairs = case.perturbations
            group, spent = np.array([pair.group for pair in pairs]), np.array([pair.spent for pair in pairs])
            sure = np.full(len(pairs), 1 - 1e-9)
            made = self.certificate.certificates(case.noise, case.levels, sure, np.full(sure.shape, 1e-6), sure, group)
            assert _promised(made, group, spent).any()


def _complaint(case: NoiseCase, pairs: Sequence[Perturbation], broken: np.ndarray, bound: str) -> str:
    first = pairs[int(np.flatnonzero(broken)[0])]
    return (
        f"{int(broken.sum())} promises are broken under {type(case.noise).__name__} noise: spending {first.spent} "
        f"under the levels {case.levels[first.group].tolist()} takes the majority of a classifier with {bound}"
    )
