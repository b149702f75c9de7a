"""The collective problem by enumeration: slow, simple, and sharing no code with the package."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog


def brute_force(weights, eta, group, targets, A, c, caps=None, integer=False):
    """Return the least number of targets left; weights [K × groups × columns], eta [K × outputs]."""
    weights, eta = np.atleast_3d(np.asarray(weights, float)), np.atleast_2d(np.asarray(eta, float))
    if np.asarray(weights).ndim == 3 and weights.shape[-1] == 1 and eta.shape[0] != weights.shape[0]:
        weights = weights[..., 0][None]
    targets = [n for n in targets if np.any(eta[:, n] > 0)]
    columns = weights.shape[2]
    caps = [None] * columns if caps is None else list(caps)
    if integer:
        return _integers(weights, eta, group, targets, np.asarray(A, float), np.asarray(c, float), caps)
    groups = sorted({group[n] for n in targets})
    options = []
    for i in groups:
        own = [n for n in targets if group[n] == i]
        grids = [sorted({0.0, *(eta[k, n] for n in own if np.isfinite(eta[k, n]))}) for k in range(len(weights))]
        choices = []
        for demand in itertools.product(*grids):
            left = sum(any(eta[k, n] > demand[k] for k in range(len(weights))) for n in own)
            choices.append((left, demand))
        # Keep, for each count, only the demands that no other one undercuts.
        kept = [
            (left, demand)
            for left, demand in choices
            if not any(
                other <= left and all(a <= b for a, b in zip(d, demand, strict=True)) and (other, d) != (left, demand)
                for other, d in choices
            )
        ]
        options.append(sorted(kept))
    best = len(targets)
    for plan in itertools.product(*options):
        left = sum(count for count, _ in plan)
        if left >= best:
            continue
        needs = np.array([demand for _, demand in plan]).reshape(len(groups), -1)
        matrix = np.concatenate([-weights[k][groups] for k in range(len(weights))] + [np.asarray(A, float)])
        bound = np.concatenate([-needs[:, k] for k in range(len(weights))] + [np.asarray(c, float)])
        bounds = [(0, cap) for cap in caps]
        finite = np.isfinite(bound)
        if linprog(np.zeros(columns), matrix[finite], bound[finite], bounds=bounds, method="highs").status == 0:
            best = left
    return best


def _integers(weights, eta, group, targets, A, c, caps):
    limits = []
    for column, cap in enumerate(caps):
        rows = [limit / row[column] for row, limit in zip(A, c, strict=True) if row[column] > 0]
        limits.append(int(np.floor(min([*rows, np.inf if cap is None else cap]) + 1e-12)))
    best = len(targets)
    for spent in itertools.product(*(range(limit + 1) for limit in limits)):
        b = np.array(spent, float)
        if np.all(A @ b <= c + 1e-12):
            feed = weights @ b
            left = sum(any(feed[k, group[n]] < eta[k, n] for k in range(len(weights))) for n in targets)
            best = min(best, left)
    return best
