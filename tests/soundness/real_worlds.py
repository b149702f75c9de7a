"""Items of two or three real inputs, whose smoothed classifiers have a closed form."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from bit_worlds import GRID, World, label_item
from ledger import Truth
from scipy.special import ndtr

from localsmooth.layout import Layout, Partition
from localsmooth.noise import Noise, Uniform

__all__ = ["RealWorld", "cells", "gaussian_world", "uniform_world"]


@dataclass(frozen=True, eq=False)
class RealWorld(World):
    """Two or three real inputs; each output looks at projections of them and is constant between edges.

    Parameters
    ----------
    direction
        What an output looks at: outputs × looks × inputs. Under uniform noise each look is at one input.
    edge
        Edges along each look, ascending: outputs × looks × edges.
    height
        Score of each class between the edges: outputs × classes × (edges + 1) for each look.
    """

    direction: np.ndarray
    edge: np.ndarray
    height: np.ndarray
    rays: np.ndarray

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        made = np.empty((len(self.height), self.classes, len(inputs)))
        for n, height in enumerate(self.height):
            places = tuple(
                np.searchsorted(edge, inputs @ look, side="right")
                for look, edge in zip(self.direction[n], self.edge[n], strict=True)
            )
            made[n] = height[(slice(None), *places)]
        return made

    def felt(self, edge: np.ndarray) -> np.ndarray:
        """Where inputs begin to be rounded to multiples of the grid at or above an edge, if there is a grid."""
        step = getattr(self.noise, "step", None)
        return edge if step is None else (np.ceil(edge / step) - 0.5) * step

    def chances(self, n: int, points: np.ndarray) -> list[np.ndarray]:
        """Probability of each cell along each look: points × cells."""
        level = self.layout.levels[self.layout.outputs.labels.ravel()[n]][self.layout.inputs.labels.ravel()]
        hidden = np.isinf(level)
        found = []
        for look, exact in zip(self.direction[n], self.edge[n], strict=True):
            edge = self.felt(exact)
            centre = np.where(hidden, 0.0, points) @ look
            if isinstance(self.noise, Uniform):
                spread = np.where(hidden, 0.0, level) @ np.abs(look)
                below = (edge - centre[:, None] >= 0).astype(float)
                if spread > 0:
                    below = np.clip((edge - centre[:, None] + spread) / (2 * spread), 0, 1)
            else:
                spread = np.linalg.norm(np.where(hidden, 0.0, level) * look)
                with np.errstate(divide="ignore"):
                    below = ndtr((edge - centre[:, None]) / spread) if spread else (edge >= centre[:, None]) * 1.0
            ends = np.zeros((len(points), 1))
            found.append(np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1))
        return found

    def expectation(self, heights: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Means of functions of the cells: points × outputs × classes."""
        made = np.empty((len(points), len(heights), self.classes))
        for n, height in enumerate(heights):
            chances = self.chances(n, points)
            made[:, n] = (
                np.einsum("pi,pj,cij->pc", *chances, height)
                if len(chances) == 2
                else np.einsum("pi,ci->pc", chances[0], height)
            )
        return made

    def votes_height(self) -> np.ndarray:
        return _ragged([(h == h.max(axis=0, keepdims=True)).astype(float) for h in self.height])

    def law_at(self, points: np.ndarray) -> Truth:
        votes, scores = (self.expectation(height, points) for height in (self.votes_height(), self.height))
        size = np.linalg.norm(points - self.image.ravel(), ord=self.noise.norm, axis=1)
        return Truth(votes, scores, size, 1e-11)

    def law(self) -> Truth:
        return self.law_at(self.points)

    def squares(self, candidate: np.ndarray) -> np.ndarray:
        return self.expectation(_ragged([h**2 for h in self.height]), self.image.reshape(1, -1))[0][
            np.arange(candidate.size), candidate
        ]

    @property
    def points(self) -> np.ndarray:
        return self._found[0]

    @property
    def budgets(self) -> tuple[float, ...]:
        return self._found[1]

    def explore(self) -> None:
        """Find where outputs lose their class along every ray; these are points, and their distances budgets."""
        centre = self.image.ravel().astype(np.float64)
        rays = self.rays / np.linalg.norm(self.rays, ord=self.noise.norm, axis=1, keepdims=True)
        finite = self.layout.levels[np.isfinite(self.layout.levels)]
        most = 4.0 * float(finite.max())
        at = np.concatenate([np.geomspace(most * 1e-4, most, 60)])
        walks = (centre + rays[:, None] * at[:, None]).reshape(-1, centre.size)
        start = self.law_at(centre[None])
        lost: list[np.ndarray] = []
        for basis in (False, True):
            prediction = (start.scores if basis else start.votes)[0].argmax(axis=1)
            by_scores = np.full(prediction.size, basis)
            kept = self.law_at(walks).kept(prediction, by_scores).reshape(len(rays), at.size, -1)
            ray, output = np.nonzero(~kept.all(axis=1))
            first = np.argmin(kept[ray, :, output], axis=1)
            low, high = np.where(first > 0, at[first - 1], 0.0), at[first]
            for _ in range(50):
                middle = (low + high) / 2
                held = self.law_at(centre + rays[ray] * middle[:, None]).kept(prediction, by_scores)
                held = held[np.arange(ray.size), output]
                low, high = np.where(held, middle, low), np.where(held, high, middle)
            lost += [np.stack([ray, high, output], axis=1)]
        found = np.concatenate(lost)
        nearest = [found[found[:, 2] == n][:, 1].min() for n in np.unique(found[:, 2])] or [most / 8]
        some = np.unique(np.concatenate([nearest, np.quantile(found[:, 1], [0.2, 0.5])]) if len(found) else nearest)
        budgets = np.unique(np.concatenate([[0.0], some * (1 - 1e-7), some * (1 + 1e-7), some * 0.6, some * 1.5]))
        steps = np.concatenate([budgets[1:] * (1 - 1e-12), at[::6]])
        walks = (centre + rays[:, None] * steps[:, None]).reshape(-1, centre.size)
        breaks = centre + rays[found[:, 0].astype(int)] * (found[:, 1] * (1 + 1e-9))[:, None]
        points = np.concatenate([centre[None], walks, breaks])
        object.__setattr__(self, "_found", (points, tuple(budgets.tolist())))

    _found = (np.zeros((0, 0)), ())


def cells(rng: np.random.Generator, classes: int, shape: tuple[int, ...]) -> np.ndarray:
    """Scores of every class in every cell: mostly one class, often sure of it."""
    favourite = int(rng.integers(classes))
    wanted = rng.random(shape) < 0.75
    high, low = rng.choice([1.0, 1.0, 0.52, 0.8]), rng.choice([0.0, 0.0, 0.48, 0.3])
    own = np.where(wanted, high, low)
    if rng.random() < 0.3:
        own = np.clip(own + rng.uniform(-0.3, 0.3, shape), 0.001, 0.999)
    own = np.floor(own * GRID) / GRID
    own = np.where(own == 0.5, 0.5 + 1 / GRID, own)
    made = np.zeros((classes, *shape))
    made[favourite] = own
    rest = (favourite + 1 + (rng.integers(0, classes - 1, shape) if classes > 2 else np.zeros(shape, int))) % classes
    np.put_along_axis(made, rest[None], np.take_along_axis(made, rest[None], 0) + 1 - own, 0)
    return made


def _real_frame(noise: Noise, rng: np.random.Generator, isotropic: bool) -> tuple[Layout, np.ndarray, np.ndarray]:
    width = int(rng.integers(2, 4))
    ins = 1 if isotropic else int(rng.integers(2, width + 1))
    outputs = int(rng.integers(4, 7))
    outs = 1 if isotropic else int(rng.integers(1, 4))
    levels = rng.choice([0.25, 0.5, 1.0, 2.0], (outs, ins)) * rng.uniform(0.8, 1.2, (outs, ins))
    if rng.random() < 0.4:
        levels[rng.integers(outs), rng.integers(ins)] = rng.choice([1e-3, 1e3] if isotropic else [np.inf, 1e-3, 1e3])
    layout = Layout(
        Partition(rng.permutation(np.arange(outputs) % outs).astype(np.int32)),
        Partition(rng.permutation(np.arange(width) % ins).astype(np.int32)),
        levels,
    )
    signs = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=width)))
    rays = np.concatenate([signs[np.abs(signs).sum(axis=1) > 0], rng.standard_normal((16, width))])
    return layout, rays, (rng.integers(-8, 9, (1, width)) / 8).astype(np.float32)


def _finish(rng: np.random.Generator, world: RealWorld) -> RealWorld:
    world.explore()
    label_item(rng, world)
    return world


def gaussian_world(noise: Noise, seed: int, isotropic: bool = False) -> RealWorld:
    """Half-spaces, which are the worst classifiers, and steps along projections."""
    rng = np.random.default_rng([seed, 1])
    layout, rays, image = _real_frame(noise, rng, isotropic)
    groups, width = layout.outputs.labels, image.size
    classes = 2 if rng.random() < 0.6 else 3
    direction, edge, height = [], [], []
    for n in range(groups.size):
        level = layout.levels[groups[n]][layout.inputs.labels]
        visible = np.isfinite(level)
        look = rng.standard_normal(width) * visible
        if rng.random() < 0.3:
            look = look * (np.arange(width) == rng.integers(width))
        if not look.any():
            look = visible * 1.0
        spread = max(float(np.linalg.norm(np.where(visible, level, 0) * look)), 1e-9)
        steps = 1 if rng.random() < 0.6 else 3
        edge.append((np.sort(rng.uniform(-1, 3.2, steps) * spread) + image.ravel() @ look)[None])
        direction.append(look[None])
        made = cells(rng, classes, (steps + 1,))
        if steps == 1:
            made = np.zeros((classes, 2))
            high, low = rng.choice([1.0, 0.8, 65 / 128]), rng.choice([0.0, 0.25, 63 / 128])
            own = int(rng.integers(classes))
            made[own], made[(own + 1) % classes] = (high, low), (1 - high, 1 - low)
        height.append(made)
        rays = np.concatenate([rays, [np.where(visible, look * np.where(visible, level, 1) ** 2, 0) + 1e-12]])
    outputs = groups.size
    world = RealWorld(
        noise,
        layout,
        image,
        np.zeros(outputs, np.int64),
        classes,
        _ragged(direction),
        _ragged(edge),
        _ragged(height),
        rays,
    )
    return _finish(rng, world)


def uniform_world(noise: Noise, seed: int, isotropic: bool = False) -> RealWorld:
    """Steps at the edge of the support, which are the worst classifiers, and boxes."""
    rng = np.random.default_rng([seed, 2])
    layout, rays, image = _real_frame(noise, rng, isotropic)
    groups, width = layout.outputs.labels, image.size
    classes = 2 if rng.random() < 0.6 else 3
    direction, edge, height = [], [], []
    for n in range(groups.size):
        level = layout.levels[groups[n]][layout.inputs.labels]
        scale = np.where(np.isfinite(level), level, 1.0)
        looked = rng.choice(width, 1 if rng.random() < 0.6 else 2, replace=False)
        centre = np.where(np.isfinite(level), image.ravel(), 0.0)[looked][:, None]
        direction.append(np.eye(width)[looked])
        if looked.size == 1:
            q = rng.choice([0.5, 0.55, 0.75, 0.9, 0.99, 1.0])
            edge.append(np.array([[scale[looked[0]] * (2 * q - 1)]]) * rng.choice([1, 1, 1.2]) + centre)
            made = np.zeros((classes, 2))
            own = int(rng.integers(classes))
            made[own, 0] = made[(own + 1) % classes, 1] = 1.0
        else:
            edge.append(np.sort(rng.uniform(-1, 1.3, (2, 2)), axis=1) * scale[looked][:, None] + centre)
            made = cells(rng, classes, (3, 3))
        height.append(made)
    outputs = groups.size
    world = RealWorld(
        noise,
        layout,
        image,
        np.zeros(outputs, np.int64),
        classes,
        _ragged(direction),
        _ragged(edge),
        _ragged(height),
        rays,
    )
    return _finish(rng, world)


def _ragged(parts: list[np.ndarray]) -> np.ndarray:
    made = np.empty(len(parts), dtype=object)
    for place, part in enumerate(parts):
        made[place] = part
    return made
