"""Items so small that their smoothed classifiers are known exactly, everywhere an adversary can go."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from ledger import Truth

from localsmooth.layout import Layout, Partition
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Bernoulli, BinaryNoise, Noise

__all__ = ["GRID", "BitWorld", "World", "all_bits", "bit_world", "flip_law", "label_item", "one_hot"]

GRID = 128


@dataclass(frozen=True, eq=False)
class World(ABC):
    """One item with its noise, its layout and a base classifier.

    Parameters
    ----------
    noise, layout, image, label
        As `certify` takes them; ignored outputs have label 255.
    classes
        Number of classes.
    """

    noise: Noise
    layout: Layout
    image: np.ndarray
    label: np.ndarray
    classes: int

    @abstractmethod
    def scores(self, inputs: np.ndarray) -> np.ndarray:
        """Scores of the base classifier: outputs × classes × inputs; inputs are rows."""

    @property
    @abstractmethod
    def points(self) -> np.ndarray:
        """Where the adversary goes, the item itself first."""

    @abstractmethod
    def law(self) -> Truth:
        """The smoothed classifiers at `points`."""

    @property
    @abstractmethod
    def budgets(self) -> tuple[float, ...]:
        """Budgets of interest, thresholds among them."""

    def squares(self, candidate: np.ndarray) -> np.ndarray:
        """Mean squared score of the candidates at the item."""
        raise NotImplementedError

    @property
    def model(self) -> CallableModel:
        """The base classifier as the package sees it."""

        def predict(batch: np.ndarray) -> np.ndarray:
            flat = batch.reshape(len(batch), -1).astype(np.float64)
            return np.ascontiguousarray(self.scores(flat).transpose(2, 1, 0)).astype(np.float32)

        bounds = (0.0, 1.0) if isinstance(self.noise, BinaryNoise) else None
        return CallableModel(
            predict, name="world", bounds=bounds, classes=self.classes, output=OutputKind.PROBABILITIES
        )

    def spending(self) -> np.ndarray:
        """What leads to each point, Σ|δ|^p in every column: points × columns."""
        delta = self.points - self.points[0]
        member = np.eye(self.layout.inputs.count)[self.layout.inputs.labels.ravel()]
        if len(self.noise.kinds) == 2:
            return np.concatenate([np.maximum(delta, 0) @ member, np.maximum(-delta, 0) @ member], axis=1)
        return (np.abs(delta) ** max(self.noise.norm, 1)) @ member

    def moments(self, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probability, mean score and mean squared score of the candidates at the item."""
        law, index = self.law(), (np.arange(candidate.size), candidate)
        return law.votes[0][index], law.scores[0][index], self.squares(candidate)


def one_hot(scores: np.ndarray) -> np.ndarray:
    """Votes from scores, outputs × classes × inputs."""
    return (scores == scores.max(axis=1, keepdims=True)).astype(float)


@dataclass(frozen=True, eq=False)
class BitWorld(World):
    """All inputs of a few bits, by enumeration; probabilities are multiples of a power of two, and exact.

    Parameters
    ----------
    table
        Score of each class at every input: outputs × classes × 2^bits.
    """

    table: np.ndarray

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        code = (np.rint(inputs).astype(int) @ (1 << np.arange(inputs.shape[1]))[::-1]).astype(int)
        return self.table[..., code]

    @property
    def points(self) -> np.ndarray:
        every = all_bits(self.image.size)
        away = (every != self.image.ravel()).sum(axis=1)
        return every[np.argsort(away, kind="stable")].astype(float)

    def outcomes(self, group: int) -> np.ndarray:
        """Probability of each noisy input around each point, for an output group."""
        return flip_law(self.points, all_bits(self.image.size), self.flip_chances(group))

    def flip_chances(self, group: int) -> np.ndarray:
        """θ⁺ and θ⁻ of each bit, inf where it is hidden: bits × 2."""
        level = self.layout.levels[group][self.layout.inputs.labels.ravel()]
        return level if level.ndim == 2 else np.stack([level, level], axis=1)

    def law(self) -> Truth:
        groups = self.layout.outputs.labels.ravel()
        laws = [self.outcomes(group) for group in range(self.layout.outputs.count)]
        votes = one_hot(self.table)
        made = [
            np.stack([table[n] @ laws[group].T for n, group in enumerate(groups)]).transpose(2, 0, 1)
            for table in (votes, self.table)
        ]
        return Truth(*made, size=self.spending().sum(axis=1), tolerance=0.0)

    def squares(self, candidate: np.ndarray) -> np.ndarray:
        groups = self.layout.outputs.labels.ravel()
        return np.array([self.table[n, c] ** 2 @ self.outcomes(groups[n])[0] for n, c in enumerate(candidate.tolist())])

    @property
    def budgets(self) -> tuple[float, ...]:
        return (0.0, 0.5, *map(float, range(1, self.image.size + 2)), 1.5, 2.5)


def all_bits(count: int) -> np.ndarray:
    """All inputs of so many bits, in the order of their numbers."""
    return np.array(list(itertools.product((0, 1), repeat=count)))


def flip_law(points: np.ndarray, outcomes: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Probability of each outcome around each point; hidden bits come out as 0."""
    hidden = np.isinf(chances).any(axis=1)
    flip = np.where(points == 1, chances[:, 1], chances[:, 0])
    flip = np.where(hidden, points, flip)  # every 1 becomes a 0, and no 0 a 1
    different = points[:, None] != outcomes[None]
    return np.where(different, flip[:, None], 1 - flip[:, None]).prod(axis=2)


def worst_table(rng: np.random.Generator, world: BitWorld) -> None:
    """Make classifiers at random, and some that are sure at the item and just lose their majority elsewhere."""
    outputs, classes, outcomes = world.table.shape
    groups, points = world.layout.outputs.labels.ravel(), len(world.points)
    for n in range(outputs):
        kind, favourite = rng.integers(0, 5), int(rng.integers(classes))
        law = world.outcomes(int(groups[n]))
        wanted = rng.random(outcomes) < rng.random() ** 0.15
        if kind >= 2:
            # Neyman and Pearson: give the likeliest outcomes of the item away last.
            clean, other = law[0], law[rng.integers(1, min(points, 1 + 2 * world.image.size))]
            order = np.argsort(np.where(clean > 0, other / np.where(clean > 0, clean, 1), np.inf), kind="stable")
            mass = np.cumsum(other[order])
            wanted = np.zeros(outcomes, bool)
            wanted[order[mass <= 0.5]] = True
        high = int(rng.choice([127, 127, 65, 67, rng.integers(33, 64) * 2 + 1]))
        low = int(rng.choice([1, 1, 63, 61, rng.integers(0, 32) * 2 + 1]))
        own = np.where(wanted, high, low)
        if kind == 1:
            own = np.clip(own + 2 * rng.integers(-16, 17, outcomes), 1, 127)
        world.table[n] = 0.0
        world.table[n, favourite] = own / GRID
        rest = (favourite + 1 + (rng.integers(0, classes - 1, outcomes) if classes > 2 else 0)) % classes
        world.table[n, rest, np.arange(outcomes)] += (GRID - own) / GRID


def bit_world(noise: BinaryNoise, seed: int, isotropic: bool = False, bits: int = 5, outputs: int = 6) -> BitWorld:
    """A world of bits at random: groups, levels (special ones included), classifiers, labels, ignored outputs."""
    rng = np.random.default_rng([seed, bits, outputs])
    ins, outs = (1, 1) if isotropic else (int(rng.integers(2, 4)), int(rng.integers(1, 4)))
    inputs = rng.permutation(np.arange(bits) % ins).astype(np.int32)
    groups = rng.permutation(np.arange(outputs) % outs).astype(np.int32)
    if isinstance(noise, Bernoulli):
        levels = rng.choice([1, 2, 4, 6, 8, 12, 16, 20, 28], (outs, ins)) / 64
        special = [np.inf, 0.5, 0.0, 1.0, 50 / 64]
        if not isotropic and rng.random() < 0.5:
            levels[rng.integers(outs), rng.integers(ins)] = special[rng.integers(len(special))]
    else:
        add, delete = rng.choice([1, 2, 3, 6, 10, 20], (outs, ins)), rng.choice([6, 10, 20, 30, 40, 50], (outs, ins))
        levels = np.stack([add, delete], axis=-1) / 64
        special = np.array(
            [[np.inf, np.inf], [16 / 64, 48 / 64], [0.0, 30 / 64], [3 / 64, 0.0], [0.0, 1.0], [50 / 64, 40 / 64]]
        )
        if rng.random() < 0.5:
            levels[rng.integers(outs), rng.integers(ins)] = special[rng.integers(isotropic, len(special))]
    classes = 2 if rng.random() < 0.6 else 3
    layout = Layout(Partition(groups), Partition(inputs), levels)
    image = (rng.random((1, bits)) < rng.random()).astype(np.float32)
    world = BitWorld(
        noise, layout, image, np.zeros(outputs, np.int64), classes, np.zeros((outputs, classes, 1 << bits))
    )
    worst_table(rng, world)
    label_item(rng, world)
    return world


def label_item(rng: np.random.Generator, world: World) -> None:
    """Mostly right labels; one output in six is ignored."""
    top = world.law().votes[0].argmax(axis=1)
    world.label[:] = np.where(rng.random(top.size) < 0.75, top, (top + 1) % world.classes)
    world.label[rng.random(top.size) < 1 / 6] = 255
