"""Noises whose law is known in closed form, and the worst that an adversary can make of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform

__all__ = [
    "BERNOULLI",
    "GAUSSIAN",
    "GAUSSIAN_GRID",
    "KNOWN_NOISES",
    "SPARSE_FLIPS",
    "UNIFORM",
    "UNIFORM_GRID",
    "NoiseCase",
    "Perturbation",
]

Law = Callable[[np.ndarray, float, np.ndarray], np.ndarray]
"""Maps (z, value, level) to Pr[noisy element ≤ z] where the clean element has that value, for levels that are finite;
`z` has any shape, `level` none, or one axis of parameters."""

_STEPS = (0.1, 0.3, 0.6, 1.0, 1.5, 2.2, 3.5)
_CELLS = {1: 400, 2: 48, 3: 14}


@dataclass(frozen=True, eq=False)
class Perturbation:
    """What an output sees before and after one perturbation.

    Parameters
    ----------
    group
        The output's group.
    clean, perturbed
        Probability of each outcome.
    spent
        What the perturbation costs in every column of W.
    """

    group: int
    clean: Float[np.ndarray, "outcomes"]
    perturbed: Float[np.ndarray, "outcomes"]
    spent: Float[np.ndarray, "columns"]


@dataclass(frozen=True, eq=False)
class NoiseCase:
    """A noise with levels to try it on, and its law: independent elements, each with the level of its group.

    Parameters
    ----------
    noise
        The noise.
    levels
        A level matrix; let it be neither square nor symmetric, and hide an input (inf) where that is possible.
    cdf
        Maps (z, value, level) to Pr[noisy element ≤ z] where the clean element has that value and the level is finite;
        `z` has any shape, `level` is an array without axes, or with one of parameters.
    values
        What an element can be, before and after noise, such as (0.0, 1.0) for bits; None for real numbers.
    refused
        Levels that `validate` must refuse.
    """

    noise: Noise
    levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    cdf: Law
    values: tuple[float, ...] | None = None
    refused: tuple[float, ...] = (np.nan,)

    @property
    def hidden(self) -> np.ndarray:
        """Which inputs are hidden from which outputs: output groups × input groups."""
        return np.asarray(np.isinf(self.levels).reshape(*self.levels.shape[:2], -1).all(axis=-1))

    def level(self, output_group: int, input_group: int) -> np.ndarray:
        """The level of an input group, as the law takes it."""
        return np.asarray(self.levels[output_group, input_group])

    def spent(self, clean: np.ndarray, perturbed: np.ndarray, group: np.ndarray) -> Float[np.ndarray, "columns"]:
        """What leads from one input to another costs in each column of W.

        Parameters
        ----------
        clean, perturbed
            Values of the elements.
        group
            Input group of each element.
        """
        delta, member = perturbed - clean, np.eye(self.levels.shape[1])[group]
        if len(self.noise.kinds) == 2:
            return np.concatenate([np.maximum(delta, 0) @ member, np.maximum(-delta, 0) @ member])
        return (np.abs(delta) ** self.noise.norm if self.noise.norm else (delta != 0) * 1.0) @ member

    @cached_property
    def perturbations(self) -> tuple[Perturbation, ...]:
        """Perturbations of a few elements, under the levels of every output group."""
        rows = range(len(self.levels))
        made = (self._real(row) if self.values is None else self._discrete(row, self.values) for row in rows)
        return tuple(itertools.chain.from_iterable(made))

    def _discrete(self, row: int, values: tuple[float, ...]) -> Iterator[Perturbation]:
        """From some inputs to all others, two elements in each group."""
        groups = np.repeat(np.arange(self.levels.shape[1]), 2 if self.levels.shape[1] < 4 else 1)
        every = np.array(list(itertools.product(values, repeat=groups.size)))
        edges = np.array(values[:-1])
        law = {
            (group, value): np.array([1.0])
            if self.hidden[row, group]
            else _probabilities(self.cdf(edges, value, self.level(row, group)))
            for group in range(self.levels.shape[1])
            for value in values
        }
        laws = [_product([law[g, v] for g, v in zip(groups.tolist(), x.tolist(), strict=True)]) for x in every]
        for clean in sorted({0, len(every) // 3, len(every) // 2 + 1, len(every) - 1}):
            for other in range(len(every)):
                if other != clean:
                    yield Perturbation(row, laws[clean], laws[other], self.spent(every[clean], every[other], groups))

    def _real(self, row: int) -> Iterator[Perturbation]:
        """Shifts along axes and diagonals, as long as the noise is wide."""
        groups = np.arange(min(self.levels.shape[1], 3))
        clean = np.full(groups.size, 0.25)
        wide = np.array([1.0 if self.hidden[row, g] else self._width(row, g) for g in groups.tolist()])
        directions = [np.array(d) for d in itertools.product((0.0, 1.0, -0.7), repeat=groups.size) if np.any(d)]
        for direction, step in itertools.product(directions, _STEPS):
            shift = step * direction * wide
            moved = [g for g in groups.tolist() if shift[g] and not self.hidden[row, g]]
            before, after = [np.ones(1)], [np.ones(1)]
            for g in moved:
                edges = self._edges(row, g, float(clean[g]), float(clean[g] + shift[g]), _CELLS[len(moved)])
                before.append(_probabilities(self.cdf(edges, float(clean[g]), self.level(row, g))))
                after.append(_probabilities(self.cdf(edges, float(clean[g] + shift[g]), self.level(row, g))))
            spent = np.zeros(self.levels.shape[1] * len(self.noise.kinds))
            found = self.spent(clean, clean + shift, groups)
            spent[: found.size] = found
            yield Perturbation(row, _product(before), _product(after), spent)

    def _edges(self, row: int, group: int, clean: float, perturbed: float, cells: int) -> np.ndarray:
        """Quantiles of both laws, between which outcomes are not told apart."""
        inner = np.linspace(0, 1, cells // 2 + 1)[1:-1]
        asked = np.concatenate([[1e-12, 1e-6, 1e-3], inner, [1 - 1e-3, 1 - 1e-6, 1 - 1e-12]]) if cells > 20 else inner
        level = self.level(row, group)
        return np.unique(np.concatenate([_quantiles(self.cdf, asked, value, level) for value in (clean, perturbed)]))

    def _width(self, row: int, group: int) -> float:
        ends = _quantiles(self.cdf, np.array([0.16, 0.84]), 0.25, self.level(row, group))
        return float(ends[1] - ends[0]) / 2


def _quantiles(cdf: Law, asked: np.ndarray, value: float, level: np.ndarray) -> np.ndarray:
    low, high = np.full(asked.shape, value - 1.0), np.full(asked.shape, value + 1.0)
    for _ in range(60):
        low = np.where(cdf(low, float(value), level) > asked, value - 2 * (value - low), low)
        high = np.where(cdf(high, float(value), level) < asked, value + 2 * (high - value), high)
    for _ in range(80):
        middle = (low + high) / 2
        below = cdf(middle, float(value), level) < asked
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def _probabilities(at_edges: np.ndarray) -> np.ndarray:
    return np.diff(np.concatenate([[0.0], at_edges, [1.0]]))


def _product(laws: list[np.ndarray]) -> np.ndarray:
    whole = np.ones(1)
    for law in laws:
        whole = (whole[:, None] * law).ravel()
    return whole


_POSITIVE = np.array([[0.25, 1.0, np.inf], [2.0, 0.5, 0.7]])
_BITS = np.array([[4 / 64, 16 / 64, np.inf], [0.5, 12 / 64, 0.0]])
_PAIRS = np.stack([_BITS, np.where(np.isinf(_BITS), np.inf, 0.75 * _BITS + 0.1875)], axis=-1)


def _gaussian(z: np.ndarray, value: float, level: np.ndarray) -> np.ndarray:
    return ndtr((z - value) / level)


def _uniform(z: np.ndarray, value: float, level: np.ndarray) -> np.ndarray:
    return np.clip((z - value + level) / (2 * level), 0, 1)


def _flips(z: np.ndarray, value: float, level: np.ndarray) -> np.ndarray:
    """Levels are the probability of a flip, or those of an addition and of a deletion."""
    flip = float(np.broadcast_to(level, (2,))[int(value)])
    zero = 1 - flip if value == 0 else flip
    return np.where(z < 0, 0.0, np.where(z < 1, zero, 1.0))


GAUSSIAN = NoiseCase(Gaussian(), _POSITIVE, _gaussian, refused=(np.nan, 0.0, -1.0, 1e-50))
UNIFORM = NoiseCase(Uniform(), _POSITIVE, _uniform, refused=(np.nan, 0.0, -1.0, 1e-50))
_STEP = 1 / 2000
GAUSSIAN_GRID = NoiseCase(
    Gaussian(grid=_STEP),
    _POSITIVE,
    lambda z, value, level: _gaussian(z + _STEP / 2, value, level),
    refused=(np.nan, -1.0, 20.0),
)
UNIFORM_GRID = NoiseCase(
    Uniform(grid=_STEP),
    _POSITIVE,
    lambda z, value, level: _uniform(z + _STEP / 2, value, level),
    refused=(np.nan, -1.0, 20.0),
)
BERNOULLI = NoiseCase(Bernoulli(), _BITS, _flips, (0.0, 1.0), refused=(np.nan, -0.1, 1.1, 1e-9, -np.inf))
SPARSE_FLIPS = NoiseCase(SparseFlips(), _PAIRS, _flips, (0.0, 1.0), refused=(np.nan, -0.1, 1.1, 1e-9, -np.inf))

KNOWN_NOISES: Mapping[str, NoiseCase] = {
    case.noise.distribution: case for case in (GAUSSIAN, UNIFORM, BERNOULLI, SPARSE_FLIPS)
}
"""The package's own noises by distribution, for suites of certificates."""
