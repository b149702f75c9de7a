"""The mixed-integer program of Schuchardt et al. 2023 (Theorem 4.2), written out and handed to HiGHS."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.dual import padded
from localsmooth.collective.search.adversary import Adversary
from localsmooth.collective.search.linear_program import LinearModel, sparse_rows
from localsmooth.collective.search.setting import Setting

__all__ = ["Claim", "ask", "polished"]


@dataclass(frozen=True, eq=False)
class Claim:
    """What the solver says about a budget; nothing of it is proven.

    Parameters
    ----------
    bound
        Its dual bound on the units left, −∞ for none.
    spending
        Its attack, if it found one.
    finished
        Whether it calls that bound the optimum.
    """

    bound: float
    spending: Float[np.ndarray, "columns"] | None
    finished: bool


@dataclass(frozen=True, eq=False)
class _Falls:
    """Targets that fall together: how many units, and what each inequality (by position) must be fed first.

    ``after`` is the position of the targets of the same inequality that fall before these, if any.
    """

    targets: float
    demands: tuple[tuple[int, float], ...]
    after: int | None = None


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


def _falls(setting: Setting, bins: int | None) -> tuple[list[_Falls], float]:
    """Return what can fall: the steps of each inequality, or, with several certificates, targets that are alike.

    The number beside it counts units that fall for nothing: the adversary can feed their inequalities without bound.
    """
    pieces, ceiling = setting.pieces, setting.cell.ceiling
    parts = np.ones(len(pieces.place)) if pieces.parts is None else pieces.parts
    falls: list[_Falls] = []
    lost = 0.0
    if len(pieces.eta) == 1:
        for piece in range(len(pieces)):
            if not np.isfinite(ceiling[piece]):
                lost += float(parts[(pieces.place == piece) & np.isfinite(pieces.eta[0])].sum())
                continue
            for position, (threshold, fallen) in enumerate(zip(*_steps(setting, piece, bins), strict=True)):
                before = len(falls) - 1 if position else None
                falls.append(_Falls(float(fallen), ((piece, float(threshold)),), before))
        return falls, lost
    most = ceiling.reshape(len(pieces.eta), -1)
    within = np.all((pieces.eta <= most[:, pieces.place]) & np.isfinite(pieces.eta), axis=0)
    alike = np.concatenate([pieces.place[None], pieces.eta])[:, within]
    kinds, kind_of = np.unique(alike, axis=1, return_inverse=True)
    numbers = np.bincount(kind_of.ravel(), parts[within], kinds.shape[1])
    for kind, number in zip(kinds.T, numbers.tolist(), strict=True):
        group = int(kind[0])
        demands = tuple(
            (certificate * pieces.groups + group, float(eta))
            for certificate, eta in enumerate(kind[1:])
            if eta > 0 and np.isfinite(most[certificate, group])
        )
        if demands:
            falls.append(_Falls(float(number), demands))
        else:
            lost += float(number)
    return falls, lost


def ask(setting: Setting, bins: int | None, deadline: float | None) -> Claim:
    """Let HiGHS solve the program of one budget.

    Parameters
    ----------
    setting
        The budget.
    bins
        Steps into which each inequality's thresholds are quantised down, None for all of them.
    deadline
        Value of ``time.perf_counter`` at which to stop.
    """
    region, cell = setting.region, setting.cell
    columns = np.flatnonzero(np.isfinite(cell.upper) & (cell.upper > 0))
    scale = cell.upper[columns]
    weights = padded(setting.pieces, region)[:, columns] * scale
    falls, lost = _falls(setting, bins)
    parts = setting.pieces.parts
    left = float(len(setting.pieces.place) if parts is None else parts.sum()) - lost
    unit = setting.grain
    total, n = len(falls), len(columns)
    if total == 0 or n == 0:
        return Claim(left, None, True)
    entries: list[tuple[np.ndarray, np.ndarray]] = []
    for position, fall in enumerate(falls):
        # z ≤ W·b / η lets targets fall; steps of one inequality fall in order.
        for piece, threshold in fall.demands:
            used = np.flatnonzero(weights[piece] > 0)
            index = np.append(used, n + position)
            entries.append((index, np.append(weights[piece, used] / threshold, -1.0)))
        if fall.after is not None:
            entries.append((np.array([n + fall.after, n + position]), np.array([1.0, -1.0])))
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
        left / unit,
        np.concatenate([np.zeros(n), [-fall.targets / unit for fall in falls]]),
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
        return Claim(-math.inf, None, False)  # numbers out of the solver's range
    info = solver.getInfo()
    finished = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    spending = None
    if info.primal_solution_status == 2:
        spending = np.zeros(len(region.upper))
        spending[columns] = np.array(solver.getSolution().col_value)[:n] * scale
        spending = np.where(region.integer, np.round(spending), spending)[: region.real]
    return Claim(float(info.mip_dual_bound) * unit, spending, finished)


def polished(setting: Setting, spending: Float[np.ndarray, "columns"]) -> Float[np.ndarray, "columns"]:
    """Feed for certain what the solver fed up to its tolerance, where the threat has room for it."""
    feeds = setting.pieces.weights @ spending
    demands = [
        float(steps.thresholds[max(steps.reached(float(feed) * (1 + 1e-5)), 1) - 1])
        for steps, feed in zip(setting.pieces.steps, feeds, strict=True)
    ]
    reached = Adversary(setting).reach(np.array(demands))
    return spending if reached is None else reached
