"""Scores, uniform noise and flips of bits, through the whole pipeline and again from stored tallies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localsmooth.bounds import Betting, CdfBand, EmpiricalBernstein, FixedThresholdHolm, KFamilywise
from localsmooth.certificates import (
    ABSTAIN,
    Basis,
    BernoulliScores,
    GaussianScores,
    GaussianVotes,
    RenyiVotes,
    SparseScores,
    UniformVotes,
)
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Bernoulli, Noise, SparseFlips, Uniform
from localsmooth.results import RATIO, load, run_info
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import Flips, Kind, NormBall
from localsmooth.testing.chance import CHECK
from tests.flat import certify, recertify

SHAPE = (4, 6)


def soft_model(sharpness: float = 6.0) -> CallableModel:
    """Each pixel's probability of class 1 is a logistic function of its own value."""

    def predict(batch: np.ndarray) -> np.ndarray:
        positive = 1 / (1 + np.exp(-sharpness * (batch[:, 0] - 0.5)))
        return np.stack([1 - positive, positive], axis=1)

    return CallableModel(predict, name="soft", bounds=(0, 1), classes=2, output=OutputKind.PROBABILITIES)


def neighbourhood_model() -> CallableModel:
    """Each pixel is class 1 if most of its row's bits are ones."""

    def predict(batch: np.ndarray) -> np.ndarray:
        share = batch[:, 0].mean(axis=2, keepdims=True)
        positive = np.broadcast_to(share, batch[:, 0].shape)
        return np.stack([1 - positive, positive], axis=1)

    return CallableModel(predict, name="rows", bounds=(0, 1), classes=2, output=OutputKind.PROBABILITIES)


def run(model: CallableModel, image: np.ndarray, layout: GridLayout, **changes: object):
    arguments = {
        "plan": SamplingPlan(n_candidate=64, n_bound=2000, seed=1, chunk_size=500),
        "alpha": 0.05,
        "budgets": [0.0, 0.1, 0.2, 0.4],
        "options": SamplingOptions(batch_size=250),
        "progress": NoProgress(),
    }
    return certify(model, [image.astype(np.float32)], layout=layout, **(arguments | changes))  # type: ignore[arg-type]


def counts(result, bound: str = "envelope") -> np.ndarray:
    return result["certified"].sel(target=RATIO, bound=bound).values[0]


def test_scores_votes_and_both_on_the_same_samples(tmp_path: Path) -> None:
    image = np.linspace(0.1, 0.9, 24).reshape(1, *SHAPE)
    layout = GridLayout((2, 3), 0.15, 0.4)
    both = (GaussianVotes(), GaussianScores())
    first = run(soft_model(), image, layout, certificates=both, score_bound=Betting(), out=tmp_path / "run")
    votes = run(soft_model(), image, layout)
    # Counting scores beside votes draws the same noise.
    np.testing.assert_array_equal(first["votes"].values, votes["votes"].values)
    assert recertify(tmp_path / "run", certificates=both, score_bound=Betting()).identical(first)
    alone = recertify(tmp_path / "run", certificates=(GaussianScores(),), score_bound=EmpiricalBernstein())
    band = recertify(tmp_path / "run", certificates=(GaussianScores(),), score_bound=CdfBand())
    assert (alone["prediction"].values != ABSTAIN).sum() > 10
    assert (alone["eta"].values >= band["eta"].values).mean() > 0.8
    # Sharing α between two certificates never gains an output more than the better one at full α.
    better = np.maximum(
        recertify(tmp_path / "run")["eta"].values,
        recertify(tmp_path / "run", certificates=(GaussianScores(),), score_bound=Betting())["eta"].values,
    )
    assert (first["eta"].values <= better * (1 + 1e-9)).all()
    with pytest.raises(InvalidInputError, match="fixed_threshold_holm"):
        recertify(tmp_path / "run", certificates=both, simultaneous=FixedThresholdHolm(0.9))


def test_every_output_says_what_it_relies_on(tmp_path: Path) -> None:
    """Votes are better where the model is sure and right, scores where it is lukewarm and steady."""
    image = np.zeros((1, *SHAPE))
    image[0, :2] = 1.0

    def predict(batch: np.ndarray) -> np.ndarray:
        share = batch[:, 0].mean(axis=2, keepdims=True)
        positive = np.broadcast_to(share > 0.5, batch[:, 0].shape).astype(np.float64)
        narrow = np.where(batch[:, 0] > 0.5, 0.95, 0.46)
        positive[:, :, 3:] = np.where(image[0] > 0.5, narrow, 1 - narrow)[:, :, 3:]
        return np.stack([1 - positive, positive], axis=1)

    model = CallableModel(predict, name="mixed", bounds=(0, 1), classes=2, output=OutputKind.PROBABILITIES)
    both = (RenyiVotes((1.5, 4.0)), BernoulliScores())
    arguments = {"noise": Bernoulli(), "budgets": [0.0, 1.0, 2.0], "score_bound": Betting()}
    result = run(model, image, GridLayout((2, 1), 0.1, 0.2), certificates=both, out=tmp_path / "run", **arguments)
    basis, prediction = result["relies_on"].values, result["prediction"].values
    assert {Basis.VOTES, Basis.SCORES} <= set(basis.ravel().tolist())
    np.testing.assert_array_equal(basis == Basis.NOTHING, prediction == ABSTAIN)
    assert "largest mean" in result["relies_on"].attrs["meaning"]
    assert "relies_on" in " ".join(run_info(result).assumptions)
    # Each output has the bound and the threshold of what it relies on, at half of α.
    alone = {
        Basis.VOTES: recertify(tmp_path / "run", alpha=0.025, certificates=both[:1]),
        Basis.SCORES: recertify(tmp_path / "run", alpha=0.025, certificates=both[1:], score_bound=Betting()),
    }
    for kind, single in alone.items():
        assert set(np.unique(single["relies_on"]).tolist()) <= {Basis.NOTHING, kind}
        for name in ("eta", "lower_probability", "radius"):
            np.testing.assert_allclose(
                result[name].values[basis == kind], single[name].values[basis == kind], rtol=1e-9
            )
    # Nothing is spent, nothing falls, whatever the outputs of a group rely on.
    zero = result["certified"].sel(budget=0.0, target=RATIO).values
    assert (zero == (prediction != ABSTAIN).sum()).all()
    assert recertify(tmp_path / "run", certificates=both, score_bound=Betting()).identical(result)
    assert load(tmp_path / "run" / "result.nc")["relies_on"].identical(result["relies_on"])


def test_scores_cannot_be_certified_from_votes(tmp_path: Path) -> None:
    run(soft_model(), np.full((1, *SHAPE), 0.8), GridLayout((1, 1), 0.2, 0.2), out=tmp_path / "run")
    with pytest.raises(InvalidInputError, match="only votes were counted"):
        recertify(tmp_path / "run", certificates=(GaussianScores(),))
    with pytest.raises(InvalidInputError, match="does not hold for Gaussian"):
        recertify(tmp_path / "run", certificates=(UniformVotes(),))


def test_moments_refuse_a_bound_that_needs_a_histogram(tmp_path: Path) -> None:
    run(
        soft_model(),
        np.full((1, *SHAPE), 0.8),
        GridLayout((1, 1), 0.2, 0.2),
        certificates=(GaussianScores(),),
        out=tmp_path / "run",
    )
    with pytest.raises(InvalidInputError, match="needs a histogram"):
        recertify(tmp_path / "run", certificates=(GaussianScores(),), score_bound=Betting())


def test_k_familywise_subtracts_its_discount() -> None:
    image = np.linspace(0.1, 0.9, 24).reshape(1, *SHAPE)
    layout = GridLayout((2, 3), 0.15, 0.4)
    plain, generous = run(soft_model(), image, layout), run(soft_model(), image, layout, simultaneous=KFamilywise(3))
    kept = int((generous["prediction"].values != ABSTAIN).sum())
    assert kept >= int((plain["prediction"].values != ABSTAIN).sum())
    assert counts(generous)[0] == kept - 2


def test_uniform_noise_never_certifies_beyond_its_width() -> None:
    image = np.linspace(0.0, 1.0, 24).reshape(1, *SHAPE)
    result = run(
        soft_model(50.0),
        image,
        GridLayout((2, 3), 0.3, 0.6),
        noise=Uniform(),
        budgets=[0.0, 0.1, 0.29, 0.31],
        alpha=CHECK,
    )
    radius = result["radius"].values[0]
    assert result.attrs["norm"] == "l1"
    assert 0.2 < radius.max() < 0.3
    # The true radius of a threshold at ½ is the distance to it.
    assert (radius <= np.abs(image[0] - 0.5) + 1e-6).all()


@pytest.mark.parametrize(
    ("noise", "layout", "threat", "scores"),
    [
        (Bernoulli(), GridLayout((2, 2), 0.05, 0.2), None, BernoulliScores()),
        (SparseFlips(), GridLayout((2, 2), (0.02, 0.2), (0.1, 0.3)), Flips(Kind.ADDITIONS), SparseScores()),
        (SparseFlips(), GridLayout((2, 2), (0.02, 0.2), (0.1, 0.3)), Flips(Kind.DELETIONS), SparseScores()),
        (SparseFlips(), GridLayout((2, 2), (0.02, 0.2), (0.1, 0.3)), None, SparseScores()),
    ],
)
def test_flips_of_bits(noise: Noise, layout: GridLayout, threat: Flips | None, scores: object) -> None:
    image = np.zeros((1, *SHAPE))
    image[0, :2] = 1.0
    image[0, 0, 0] = 0.0
    budgets = [0.0, 1.0, 2.0, 3.0, 6.0, 24.0]
    renyi = run(neighbourhood_model(), image, layout, noise=noise, threat=threat, budgets=budgets)
    soft = run(
        neighbourhood_model(), image, layout, noise=noise, threat=threat, budgets=budgets, certificates=(scores,)
    )
    both = run(
        neighbourhood_model(),
        image,
        layout,
        noise=noise,
        threat=threat,
        budgets=budgets,
        certificates=(RenyiVotes((2.0, 6.0)), scores),
    )
    for result in (renyi, soft, both):
        assert result.attrs["norm"] == "l0"
        certified = result["certified"].sel(target=RATIO).transpose("bound", ...).values[:, 0]
        assert (np.diff(certified, axis=0) >= 0).all()
        assert (np.diff(certified, axis=1) <= 0).all()
        # Rewriting the whole image must be able to change every row that is not protected by caps alone.
        if threat is None:
            assert certified[-1, -1] == 0
    assert counts(renyi)[0] > 0
    assert counts(soft)[0] > 0


@pytest.mark.parametrize(("kind", "bit"), [(Kind.ADDITIONS, 1.0), (Kind.DELETIONS, 0.0)])
def test_flips_that_the_item_has_no_bits_for_change_nothing(kind: Kind, bit: float) -> None:
    """Nothing can be added to ones, nor deleted from zeros: the largest budget certifies what no budget does."""
    layout, budgets = GridLayout((2, 2), (0.02, 0.2), (0.1, 0.3)), [0.0, 24.0]
    image = np.full((1, *SHAPE), bit)
    capped = run(neighbourhood_model(), image, layout, noise=SparseFlips(), threat=Flips(kind), budgets=budgets)
    free = run(neighbourhood_model(), image, layout, noise=SparseFlips(), threat=Flips(), budgets=budgets)
    assert counts(capped).tolist() == [24, 24]
    assert counts(free).tolist() == [24, 0]


def test_an_adversary_has_no_more_flips_than_bits() -> None:
    """One group's outputs are attacked through one other cell of 6 bits only: what those cannot buy is certified."""
    image = np.zeros((1, *SHAPE))
    image[0, :2] = 1.0
    layout = GridLayout((2, 2), 0.1, 0.1)
    made = layout.layout((1, *SHAPE), SHAPE)
    threat = NormBall().threat((1.0, 24.0), image, made, Bernoulli()).constraints(4)
    np.testing.assert_array_equal(threat.caps, np.full(4, 6.0))
    both = Flips().threat((1.0, 24.0), image, made, SparseFlips()).constraints(8)
    np.testing.assert_array_equal(both.caps, [0, 0, 6, 6, 6, 6, 0, 0])


def test_binary_noise_refuses_grey_values() -> None:
    with pytest.raises(InvalidInputError, match=r"0 and 1|binary"):
        run(soft_model(), np.full((1, *SHAPE), 0.3), GridLayout((1, 1), 0.1, 0.1), noise=Bernoulli())
