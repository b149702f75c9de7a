"""The mixed-integer program of Schuchardt et al. 2023 (Theorem 4.2), solved by HiGHS: a reference for `Exact`."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from jaxtyping import Float

from localsmooth.collective.adversary import Adversary
from localsmooth.collective.answer import Status
from localsmooth.collective.arrays import Number
from localsmooth.collective.bound import Bound, Outcome, Worker
from localsmooth.collective.dual import DualPoint, padded
from localsmooth.collective.envelope import Envelope
from localsmooth.collective.linear_program import LinearModel, sparse_rows
from localsmooth.collective.problem import Problem
from localsmooth.collective.proof import Leaf
from localsmooth.collective.setting import Setting
from localsmooth.errors import InvalidInputError

__all__ = ["Milp"]


@dataclass(frozen=True)
class Milp(Bound):
    """The direct program: a binary variable per step, which may fall only once its inequality has been fed enough.

    What is certified is HiGHS's *dual bound*, less a margin for its tolerances, and never less than the envelope. The
    solver is trusted here, so a proof covers the envelope's part alone: use `Exact` for certificates. One certificate
    per output only.

    Parameters
    ----------
    bins
        Quantise each inequality's thresholds down into so many steps (the paper's N_bins), None for all thresholds.
    time_limit
        Seconds for all budgets together, None for no limit.
    """

    provable = False
    bins: int | None = None
    time_limit: Number | None = 60.0

    def __post_init__(self) -> None:
        if self.bins is not None and self.bins < 1:
            raise InvalidInputError("bins", f"is {self.bins}", "give at least one, or None for all thresholds")
        if self.time_limit is not None and not self.time_limit >= 0:
            raise InvalidInputError("time_limit", f"is {self.time_limit}", "give seconds ≥ 0, or None")

    def worker(self, problem: Problem) -> Worker:
        """Return a worker."""
        return _MilpWorker(self.bins, Envelope().worker(problem))


class _MilpWorker(Worker):
    def __init__(self, bins: int | None, envelope: Worker) -> None:
        self._bins, self._envelope = bins, envelope

    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        relaxed = self._envelope.solve(setting, deadline)
        bound, spending, finished = _solve(setting, self._bins, deadline)
        attacks = relaxed.attacks if spending is None else [*relaxed.attacks, spending, _polished(setting, spending)]
        status = Status.RELAXED if finished else Status.TIME_LIMIT
        # Counts are whole: less than half a target off, the solver's bound still rounds up to the same number.
        trusted = math.ceil(bound - 1e-3 * max(1.0, abs(bound)) ** 0.5) if math.isfinite(bound) else -math.inf
        if trusted <= math.ceil(relaxed.lower):
            return Outcome(relaxed.lower, relaxed.root, attacks, relaxed.prices, status)
        idle = DualPoint.idle(setting.pieces, setting.region, setting.cell)
        root = relaxed.root if isinstance(relaxed.root, Leaf) else Leaf((idle,))
        return Outcome(float(trusted), root, attacks, relaxed.prices, status)


def _steps(setting: Setting, piece: int, bins: int | None) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
    """Return the thresholds within reach and the targets that fall at each, quantised down."""
    steps, stop = setting.pieces.steps[piece], int(setting.cell.stop[piece])
    thresholds, fallen = steps.thresholds[1:stop], -np.diff(steps.counts[:stop])
    if bins is None or len(thresholds) <= bins:
        return thresholds, fallen
    cumulated = np.cumsum(fallen)
    label = np.minimum((cumulated - fallen) * bins // cumulated[-1], bins - 1).astype(np.int64)
    first = np.unique(label, return_index=True)[1]
    return thresholds[first], np.add.reduceat(fallen, first)


def _solve(
    setting: Setting, bins: int | None, deadline: float | None
) -> tuple[float, Float[np.ndarray, "columns"] | None, bool]:
    """Return HiGHS's dual bound, its attack, and whether it finished."""
    pieces, region, cell = setting.pieces, setting.region, setting.cell
    columns = np.flatnonzero(np.isfinite(cell.upper) & (cell.upper > 0))
    scale = cell.upper[columns]
    weights = padded(pieces, region)[:, columns] * scale
    standing = pieces.standing(np.where(np.isfinite(cell.ceiling), cell.ceiling, np.inf))
    certificates = len(pieces) // max(1, pieces.groups)
    if certificates != 1:
        raise InvalidInputError("bound", "is the direct program, which takes one certificate per output", "use Exact")
    gains: list[float] = []
    parts: list[tuple[int, Float[np.ndarray, "k"], Float[np.ndarray, "k"]]] = []
    for piece in range(len(pieces)):
        if not np.isfinite(cell.ceiling[piece]):
            continue
        thresholds, fallen = _steps(setting, piece, bins)
        parts.append((piece, thresholds, fallen))
        gains.extend(fallen.tolist())
    total, n = len(gains), len(columns)
    if total == 0 or n == 0:
        return float(standing.sum()), None, True
    entries: list[tuple[np.ndarray, np.ndarray]] = []
    offset = n
    for piece, thresholds, _ in parts:
        # z_j ≤ W·b / η_j lets step j fall; steps fall in order, z_{j+1} ≤ z_j.
        for position, threshold in enumerate(thresholds):
            used = np.flatnonzero(weights[piece] > 0)
            index = np.append(used, offset + position)
            entries.append((index, np.append(weights[piece, used] / threshold, -1.0)))
            if position:
                entries.append((np.array([offset + position - 1, offset + position]), np.array([1.0, -1.0])))
        offset += len(thresholds)
    threat = region.rows[:, columns] * scale
    size = np.where(region.limits > 0, region.limits, np.maximum(np.abs(threat).max(axis=1, initial=0.0), 1e-300))
    limits = region.limits / size
    solver: Any = LinearModel.quiet()
    if deadline is not None:
        solver.setOptionValue("time_limit", max(0.01, deadline - time.perf_counter()))
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.5)
    starts, index, value = sparse_rows([*entries, *((np.arange(n), row) for row in threat / size[:, None])])
    whole = region.integer[columns]
    if bool(np.any(whole)):
        # Whole spendings are not scaled: integrality is a matter of units.
        value = np.where(index < n, value / scale[np.minimum(index, n - 1)], value)
        scale = np.ones(n)
    refused = solver.passModel(
        n + total,
        len(entries) + len(threat),
        len(value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        float(standing.sum() + sum(gains)),
        np.concatenate([np.zeros(n), -np.array(gains)]),
        np.zeros(n + total),
        np.concatenate([cell.upper[columns] / scale, np.ones(total)]),
        np.concatenate([np.zeros(len(entries)), np.full(len(threat), -np.inf)]),
        np.concatenate([np.full(len(entries), np.inf), limits]),
        starts,
        index,
        value,
        np.concatenate([whole, np.ones(total)]).astype(np.int32),
    )
    error = highspy.HighsStatus.kError
    if refused == error or solver.run() == error:
        return -math.inf, None, False  # numbers out of the solver's range
    info = solver.getInfo()
    finished = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    spending = None
    if info.primal_solution_status == 2:
        spending = np.zeros(len(region.upper))
        spending[columns] = np.array(solver.getSolution().col_value)[:n] * scale
        spending = np.where(region.integer, np.round(spending), spending)[: region.real]
    return float(info.mip_dual_bound), spending, finished


def _polished(setting: Setting, spending: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "columns"]:
    """Feed for certain what the solver fed up to its tolerance, where the threat has room for it."""
    feeds = setting.pieces.weights @ spending
    demands = [
        float(steps.thresholds[max(steps.reached(float(feed) * (1 + 1e-5)), 1) - 1])
        for steps, feed in zip(setting.pieces.steps, feeds, strict=True)
    ]
    reached = Adversary(setting).reach(np.array(demands))
    return spending if reached is None else reached
