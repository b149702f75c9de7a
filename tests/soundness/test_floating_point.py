"""Models that read the low bits of noisy inputs: floating point noise certifies what is false.

The attack is that of Jin et al. 2022 ("Getting a-Round Guarantees") and Voráček and Hein 2023 ("Sound Randomized
Smoothing in Floating-Point Arithmetics") in one dimension: a model asks whether its input can be a certain clean
input plus single precision noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.special import ndtr, ndtri
from tests.flat import certify

from localsmooth.bounds import Bonferroni
from localsmooth.certificates import GaussianVotes, UniformVotes
from localsmooth.execution import NoProgress
from localsmooth.layout import isotropic_layout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Gaussian, Noise, Randomness, Uniform
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions

CLEAN, MOVED, SIGMA = 1.0, 0.0, 0.4


def seen_around(clean: float) -> Callable[[np.ndarray], np.ndarray]:
    """A model that says 0 where its input is the clean one plus σ times a single precision number, and 1 elsewhere."""

    def predict(batch: np.ndarray) -> np.ndarray:
        z, sigma = batch.astype(np.float32).reshape(len(batch), -1), np.float32(SIGMA)
        guess = ((z.astype(np.float64) - clean) / np.float64(sigma)).astype(np.float32)
        found = np.zeros(z.shape, bool)
        for s in (guess, np.nextafter(guess, np.float32(-9)), np.nextafter(guess, np.float32(9))):
            fused = (clean + s.astype(np.float64) * np.float64(sigma)).astype(np.float32)
            found |= (fused == z) | ((np.float32(clean) + s * sigma) == z)
        return (~found).astype(np.int64)

    return predict


def certified(predict: Callable[[np.ndarray], np.ndarray], noise: Noise) -> xr.Dataset:
    return certify(
        CallableModel(predict, name="reader", bounds=(0.0, 1.0), classes=2, output=OutputKind.LABELS),
        [np.full((1, 1), CLEAN, np.float32)],
        layout=isotropic_layout(SIGMA, (1,), (1,)),
        noise=noise,
        plan=SamplingPlan(100, 20_000, seed=1, chunk_size=10_000),
        alpha=0.001,
        budgets=[0.0, 0.25, 0.5, 0.75, 1.0],
        bounds=["naive"],
        simultaneous=Bonferroni(),
        options=SamplingOptions(batch_size=2000, channels_last=False),
        progress=NoProgress(),
    )


def test_floating_point_noise_certifies_what_is_false() -> None:
    """What is assumed of noise without a grid is needed: certified up to 1, and lost at 1."""
    predict = seen_around(CLEAN)
    result = certified(predict, Gaussian())
    assert result["prediction"].item() == 0
    assert result["radius"].item() > CLEAN - MOVED
    assert result["certified"].sel(target="ratio", bound="naive", budget=1.0).item() == 1
    out = torch.empty(40_000, 1, 1)
    Gaussian().prepare(torch.full((1, 1), MOVED), np.full(1, SIGMA), None, 0.0).draw(out, Randomness(5, (0,)))
    assert predict(out.numpy()).mean() > 0.55  # and 1 at the perturbed input, far beyond chance


def share_of_ones(predict: Callable[[np.ndarray], np.ndarray], grid: float, at: np.ndarray) -> np.ndarray:
    """Probability of the class 1 at real inputs, of the model that rounds its input to the grid: in closed form."""
    k = np.arange(round(-5 / grid), round(5 / grid) + 1)
    labels = predict((k.astype(np.float32) * np.float32(grid))[:, None]).ravel()
    edges = (k[1:] - 0.5) * grid
    below = ndtr((edges - at[:, None]) / SIGMA)
    ends = np.zeros((at.size, 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1) @ labels


@pytest.mark.parametrize("grid", [1 / 255, 1 / 1020, 2.0**-12])
def test_nothing_false_is_certified_on_a_grid(grid: float) -> None:
    """At every real input within the radius the smoothed model keeps its class, however it reads low bits."""
    for clean in (CLEAN, 0.3, MOVED):
        predict = seen_around(clean)
        result = certified(predict, Gaussian(grid=grid))
        radius, prediction = result["radius"].item(), result["prediction"].item()
        if prediction < 0:
            continue
        at = CLEAN + np.concatenate(
            [np.linspace(-radius, radius, 101), np.random.default_rng(0).uniform(-1, 1, 40) * radius]
        )
        ones = share_of_ones(predict, grid, at)
        assert ((ones > 0.5) == (prediction == 1)).all()
    assert result["certified"].sel(target="ratio", bound="naive").values[0, 0] == 1  # it is not always silent


RULES = {
    "gaussian": (Gaussian, GaussianVotes(), lambda z, sigma: ndtr(z / sigma)),
    "uniform": (Uniform, UniformVotes(), lambda z, width: np.clip((z / width + 1) / 2, 0, 1)),
}


def lost(name: str, at_step: float = 0.0, inflated: float = 1.0) -> tuple[int, float]:
    """Promises broken by random functions of rounded inputs at real x', and how close the closest came to its radius.

    at_step
        Where on its step the clean input really is: only 0 is on the grid.
    """
    family, certificate, law = RULES[name]
    rng, broken, closest = np.random.default_rng(4), 0, 0.0
    for trial in range(60):
        grid, level = rng.choice([0.02, 0.1, 0.5, 1.5]), rng.uniform(0.2, 1.5)
        k = np.arange(-int(15 / grid) - 2, int(15 / grid) + 3)
        labels = (k > rng.integers(0, max(2, int(2.5 * level / grid)))).astype(float)
        if trial % 2:
            labels = np.where(rng.random(k.size) < 0.15, 1 - labels, labels)

        def ones(at: np.ndarray, k=k, grid=grid, level=level, labels=labels) -> np.ndarray:
            below = law((k[1:] - 0.5) * grid - at[:, None], level)
            ends = np.zeros((at.size, 1))
            return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1) @ labels

        table = family(grid=grid).table(level)
        counts = np.diff([-(2.0**63), *table.thresholds.astype(float)]) / 2.0**64
        start = table.first + np.arange(counts.size) - k[0]
        q = 1 - float(counts @ labels[start])  # what is drawn
        if q <= 0.5:
            continue
        made = certificate.certificates(
            family(grid=grid), np.full((1, 1), level), np.array([q - 1e-12]), np.zeros(1, int)
        )
        radius = inflated * (made.eta[0] / made.weights[0, 0]) ** (1 / family.norm)
        inside = ones(at_step * grid + np.linspace(-radius, radius, 401)[1:-1])
        broken += int((inside > 0.5 + 1e-9).sum())
        closest = max(closest, float(inside.max()))
    return broken, closest


@pytest.mark.parametrize("name", RULES)
def test_random_functions_of_rounded_inputs_keep_their_class(name: str) -> None:
    broken, closest = lost(name)
    assert broken == 0
    assert closest > 0.49  # half-lines are the worst, and come as close as it gets


@pytest.mark.parametrize("name", RULES)
def test_inputs_off_the_grid_and_larger_radii_are_caught(name: str) -> None:
    assert lost(name, at_step=0.4)[0] > 0
    assert lost(name, inflated=1.02)[0] > 0


def test_the_worst_is_attained_at_a_step() -> None:
    """For Gaussian noise and a half-line that ends between two steps, the radius is the distance to that place."""
    grid, sigma, last = 0.5, 0.7, 2
    q = ndtr((last + 0.5) * grid / sigma)
    table = Gaussian(grid=grid).table(sigma)
    drawn = (int(table.thresholds[last - table.first]) + 2**63 + 1) / 2**64
    assert drawn == pytest.approx(q, abs=1e-15)
    assert sigma * ndtri(drawn) == pytest.approx((last + 0.5) * grid, abs=1e-12)
