"""The package's noises under the contract suite, and noises that are wrong on purpose, which it must catch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tests.seeding import seeded

from localsmooth.noise import NOISES, Bernoulli, Gaussian, Noise, PreparedNoise, Randomness
from localsmooth.testing import (
    BERNOULLI,
    GAUSSIAN,
    GAUSSIAN_GRID,
    KNOWN_NOISES,
    SPARSE_FLIPS,
    UNIFORM,
    UNIFORM_GRID,
    NoiseCase,
    NoiseContract,
)


class TestGaussian(NoiseContract):
    case = GAUSSIAN


class TestUniform(NoiseContract):
    case = UNIFORM


class TestGaussianOnAGrid(NoiseContract):
    case = GAUSSIAN_GRID


class TestUniformOnAGrid(NoiseContract):
    case = UNIFORM_GRID


class TestBernoulli(NoiseContract):
    case = BERNOULLI


class TestSparseFlips(NoiseContract):
    case = SPARSE_FLIPS


def test_all_are_tested() -> None:
    assert KNOWN_NOISES.keys() == NOISES.keys()


class Drawn(PreparedNoise):
    def __init__(self, honest: PreparedNoise, how: str, item: torch.Tensor) -> None:
        self.honest, self.how, self.item = honest, how, item

    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        if self.how == "adds to the buffer":
            before = out.clone()
            self.honest.draw(out, randomness)
            out.add_(before)
        elif self.how == "has a stream of its own":
            self.honest.draw(out, Randomness(0, ()))
        elif self.how == "draws one more a batch":
            self.honest.draw(out, randomness)
            self.honest.draw(torch.empty_like(out[:1]), randomness)
        elif self.how == "repeats a sample":
            self.honest.draw(out, randomness)
            out[:] = out[0].clone()
        elif self.how == "couples elements":
            self.honest.draw(out, randomness)
            out -= self.item
            out[:, 1] = out[:, 0]
            out += self.item
        elif self.how == "changes the item":
            self.honest.draw(out, randomness)
            self.item += 1
        elif self.how == "shows hidden inputs":
            self.honest.draw(out, randomness)
            still = (out == out[:1]).all(dim=0)
            out[:, still] = self.item[still]
        elif self.how == "uses the global generator":
            self.honest.draw(out, randomness)
            torch.rand(1)
        elif self.how == "leaves an element out":
            kept = out[:, 0, 0].clone()
            self.honest.draw(out, randomness)
            out[:, 0, 0] = kept
        else:
            self.honest.draw(out, randomness)


@dataclass(frozen=True)
class Wrong(Noise):
    """Gaussian noise but for one fault."""

    how: str = ""
    distribution = "wrong"
    norm = 2

    def validate(self, levels: np.ndarray) -> None:
        if self.how != "takes any level":
            Gaussian().validate(levels)

    def weights(self, levels: np.ndarray) -> np.ndarray:
        self.validate(levels)
        if self.how == "takes any level":
            return np.nan_to_num(1 / levels**2)
        weights = Gaussian().weights(levels)
        if self.how == "weighs hidden inputs":
            return np.maximum(weights, 0.1)
        if self.how == "weighs rows together":
            return np.broadcast_to(weights.max(axis=0), weights.shape).copy()
        if self.how == "numbers columns backwards":
            return weights[:, np.argsort(levels[0])[::-1]]
        return weights[:, :1] if self.how == "forgets columns" else weights

    def prepare(
        self, item: torch.Tensor, level_map: np.ndarray, bounds: tuple[float, float] | None, hidden_value: float
    ) -> PreparedNoise:
        if self.how == "reads levels backwards":
            level_map = level_map[..., ::-1].copy()
        if self.how == "is a little quieter":
            level_map = 0.95 * level_map
        return Drawn(Gaussian().prepare(item, level_map, bounds, hidden_value), self.how, item)

    def configuration(self) -> dict[str, object]:
        return (
            {"distribution": "wrong"}
            if self.how == "forgets a parameter"
            else {"distribution": "wrong", "how": self.how}
        )


def caught(case: NoiseCase) -> list[str]:
    """Names of the tests of the suite that fail."""
    suite, failed = type("Suite", (NoiseContract,), {"case": case})(), []
    for name in (name for name in dir(suite) if name.startswith("test_")):
        try:
            getattr(suite, name)()
        except Exception:
            failed.append(name)
    return failed


FAULTS = {
    "adds to the buffer": "test_everything_is_overwritten_and_nothing_else",
    "leaves an element out": "test_everything_is_overwritten_and_nothing_else",
    "changes the item": "test_everything_is_overwritten_and_nothing_else",
    "uses the global generator": "test_everything_is_overwritten_and_nothing_else",
    "has a stream of its own": "test_streams_and_samples_differ",
    "repeats a sample": "test_streams_and_samples_differ",
    "draws one more a batch": "test_the_stream_does_not_depend_on_the_batch",
    "couples elements": "test_elements_and_samples_are_independent",
    "shows hidden inputs": "test_hidden_inputs_are_the_constant",
    "reads levels backwards": "test_samples_have_the_law",
    "is a little quieter": "test_samples_have_the_law",
    "takes any level": "test_levels_are_validated",
    "weighs hidden inputs": "test_weights_have_their_shape_and_are_no_gift",
    "forgets columns": "test_weights_have_their_shape_and_are_no_gift",
    "weighs rows together": "test_weights_depend_on_their_own_level_only",
    "numbers columns backwards": "test_weights_depend_on_their_own_level_only",
    "forgets a parameter": "test_configuration_makes_the_same_noise_again",
}


@pytest.fixture
def registered():
    yield NOISES.register(Wrong)
    NOISES.withdraw("wrong")


def test_without_a_fault_nothing_fails(registered) -> None:
    assert caught(replace(GAUSSIAN, noise=Wrong())) == []
    NOISES.withdraw("wrong")
    assert caught(replace(GAUSSIAN, noise=Wrong())) == ["test_configuration_makes_the_same_noise_again"]


@pytest.mark.parametrize("how", FAULTS)
def test_faults_are_caught(how: str, registered) -> None:
    with seeded(0):  # one of them draws from the global generator
        assert FAULTS[how] in caught(replace(GAUSSIAN, noise=Wrong(how)))


class Mixed(Bernoulli):
    """Flips with a probability that is slightly off."""

    distribution = "mixed"

    def prepare(self, item, level_map, bounds, hidden_value):
        return super().prepare(item, np.minimum(level_map + 0.03, np.inf), bounds, hidden_value)


def test_wrong_flips_are_caught() -> None:
    levels = np.minimum(BERNOULLI.levels, 0.9)
    assert "test_samples_have_the_law" in caught(replace(BERNOULLI, noise=Mixed(), levels=levels))
