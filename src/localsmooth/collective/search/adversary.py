"""Local search for strong attacks. Whatever it finds is an upper bound on the optimum, never a certificate."""

from __future__ import annotations

import time

import numpy as np
from jaxtyping import Bool, Float

from localsmooth.collective.search.candidates import estimates
from localsmooth.collective.search.linear_program import LinearModel
from localsmooth.collective.search.setting import Setting

__all__ = ["Adversary"]

_SHARES = np.array([1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.003])
_MOST_MOVES = 200_000


class Adversary:
    """Improves attacks by moving spending from one column to another, until a deadline (of ``time.perf_counter``)."""

    def __init__(self, setting: Setting, seed: int = 0, deadline: float | None = None) -> None:
        self._setting, self._deadline = setting, deadline
        region, constraints = setting.region, setting.problem.constraints
        self._real = region.real
        self._upper = region.upper[: self._real]
        keep = region.kept
        self._rows, self._limits = constraints.rows[keep], constraints.budgets[setting.index][keep]
        self._integer = constraints.integer
        self._usable = np.flatnonzero(np.isfinite(self._upper) & (self._upper > 0))
        self._random = np.random.default_rng(seed)

    def improve(self, spending: Float[np.ndarray, "columns"], rounds: int = 60) -> Float[np.ndarray, "columns"]:
        """Return the end of a descent: every round takes the best move of budget between two columns."""
        current = self._fill(spending)
        best = self._count(current)
        for _ in range(rounds):
            if self._late:
                break
            trials = self._moves(current)
            if len(trials) == 0:
                break
            counts = estimates(self._setting, trials)
            index = int(np.argmin(counts))
            if counts[index] >= best:
                break
            current, best = trials[index], float(counts[index])
        return current

    def search(self, starts: list[Float[np.ndarray, "columns"]], restarts: int = 10) -> Float[np.ndarray, "columns"]:
        """Return the best of several descents, some of them from random spendings."""
        candidates = [self.improve(start) for start in starts]
        for _ in range(restarts if len(self._usable) else 0):
            if self._late:
                break
            chosen = self._random.permutation(self._usable)[: self._random.integers(1, len(self._usable) + 1)]
            start = np.zeros(self._real)
            start[chosen] = self._upper[chosen] * self._random.dirichlet(np.ones(len(chosen)))
            candidates.append(self.improve(start, 20))
        counts = estimates(self._setting, np.array(candidates))
        return candidates[int(np.argmin(counts))]

    def reach(self, demands: Float[np.ndarray, "pieces"]) -> Float[np.ndarray, "columns"] | None:
        """Return a spending that feeds every inequality its demand as cheaply as possible, None if there is none.

        The cheapest attack keeps away from the edge of the threat, where rounding would spoil it.
        """
        weights, number = self._setting.pieces.weights, self._real
        needed = demands > 0
        size = np.where(self._upper[self._usable] > 0, self._upper[self._usable], 1.0)
        feeds = weights[np.ix_(np.flatnonzero(needed), self._usable)] * size
        if feeds.size == 0:
            return None
        scale = demands[needed] * (1 + 1e-13)
        rows = self._rows[:, self._usable] * size
        row_scale = np.where(self._limits > 0, self._limits, 1.0)
        matrix = np.concatenate([feeds / scale[:, None], rows / row_scale[:, None]])
        extra = np.concatenate([np.zeros(len(feeds)), -self._limits / row_scale])
        model = LinearModel()
        width = len(self._usable)
        model.load(
            np.append(np.zeros(width), 1.0),
            np.zeros(width + 1),
            np.append(np.ones(width), 1.0),
            np.concatenate([matrix, extra[:, None]], axis=1),
            np.concatenate([np.ones(len(feeds)), np.full(len(rows), -np.inf)]),
            np.concatenate([np.full(len(feeds), np.inf), np.zeros(len(rows))]),
        )
        solution = model.solve()
        if not solution.feasible:
            return None
        spending = np.zeros(number)
        spending[self._usable] = np.clip(solution.columns[:width], 0, 1) * size
        used = rows @ np.clip(solution.columns[:width], 0, 1)
        share = float(np.max(np.divide(used, self._limits, out=np.zeros(len(used)), where=self._limits > 0), initial=0))
        # Half of what is left over goes into a margin on every demand.
        return np.minimum(spending * (1 + 0.5 * max(0.0, 1 / share - 1)) if share > 0 else spending, self._upper)

    @property
    def _late(self) -> bool:
        return self._deadline is not None and time.perf_counter() > self._deadline

    def _count(self, spending: Float[np.ndarray, "columns"]) -> float:
        return float(estimates(self._setting, spending[None])[0])

    def _fill(self, spending: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "columns"]:
        """Scale a spending up to the edge of the threat, or down into it."""
        current = np.where(np.isfinite(self._upper), np.minimum(np.maximum(spending, 0.0), self._upper), 0.0)
        used = self._rows @ current
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = float(np.min(np.where(used > 0, self._limits / used, np.inf), initial=np.inf))
        if np.isfinite(factor) and (factor < 1 or not bool(np.any(self._integer))):
            current = np.minimum(current * factor, self._upper)
        return np.where(self._integer, np.floor(current + 1e-9), current)

    def _moves(self, current: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "moves columns"]:
        """Return all spendings that take a share from one column and give another as much as the threat then allows."""
        sources = np.flatnonzero(current > 0)
        targets = self._usable
        if len(sources) * len(targets) * len(_SHARES) * self._real > _MOST_MOVES * 32:
            sources = self._random.permutation(sources)[:16]
            targets = self._random.permutation(targets)[:64]
        taken = current[sources][:, None] * _SHARES
        taken = np.where(self._integer[sources][:, None], np.ceil(taken - 1e-9), taken)
        lowered = np.repeat(current[None], taken.size, axis=0)
        lowered[np.arange(taken.size), np.repeat(sources, len(_SHARES))] -= taken.ravel()
        lowered = np.concatenate([current[None], np.maximum(lowered, 0.0)])
        room = np.maximum(self._limits - lowered @ self._rows.T, 0.0)
        coefficients = self._rows[:, targets]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(coefficients[None] > 0, room[:, :, None] / coefficients[None], np.inf)
        given = np.minimum(ratio.min(axis=1, initial=np.inf), (self._upper - lowered)[:, targets])
        given = np.where(self._integer[targets], np.floor(given + 1e-9), given)
        trials = np.repeat(lowered, len(targets), axis=0)
        trials[np.arange(len(trials)), np.tile(targets, len(lowered))] += np.maximum(given, 0.0).ravel()
        return trials[self._permitted(trials)]

    def _permitted(self, trials: Float[np.ndarray, "moves columns"]) -> Bool[np.ndarray, "moves"]:
        permitted = np.ones(len(trials), dtype=np.bool_)
        for most, labels in self._setting.problem.constraints.limits:
            names = np.unique(labels[labels >= 0])
            used = np.array([np.any(trials[:, labels == name] > 0, axis=1) for name in names])
            permitted &= used.sum(axis=0) <= most
        return permitted
