"""The step functions and their envelopes, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from .problems import all_steps


@pytest.mark.parametrize("number", [1, 7, 400, 30_000])
@pytest.mark.parametrize("seed", range(3))
def test_lowest_is_the_minimum(number, seed):
    r = np.random.default_rng(seed)
    steps = all_steps(r.gamma(2.0, 1.0, number))
    for slope in -(10.0 ** r.uniform(-3, 6, 40)):
        start = int(r.integers(0, len(steps)))
        stop = int(r.integers(start + 1, len(steps) + 1))
        lifted = 0.7 * steps.counts[start:stop] - slope * steps.thresholds[start:stop]
        index, value = steps.lowest(start, stop, float(slope), 0.7)
        assert value == lifted.min()
        assert lifted[index - start] == value


@pytest.mark.parametrize("number", [2, 40, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_edges_are_those_of_the_convex_hull(number, seed):
    r = np.random.default_rng(seed)
    steps = all_steps(np.abs(r.normal(3, 1.5, number)))
    points = np.stack([steps.thresholds, steps.counts], axis=1)
    if len(points) > 2:
        hull = ConvexHull(points)
        lower = np.unique(hull.simplices[hull.equations[:, 1] < -1e-12])
    else:
        lower = np.arange(len(points))
    lower = lower[np.argsort(points[lower, 0])]
    for feed in r.uniform(0, float(steps.thresholds[-1]) * 1.1, 50):
        expected = np.interp(feed, points[lower, 0], points[lower, 1])
        left, right = steps.edge(0, len(steps), float(feed))
        found = np.interp(feed, points[[left, right], 0], points[[left, right], 1])
        assert found == pytest.approx(expected, abs=1e-6)


def test_counts_by_definition():
    eta = np.array([0.0, 1.0, 1.0, 2.5, np.inf])
    steps = all_steps(eta)
    for feed in (0.0, 0.5, 1.0, 2.0, 2.5, 99.0):
        assert steps.count(feed) == np.count_nonzero(eta > feed)
        assert steps.at(np.array([feed]))[0] == np.count_nonzero(eta > feed)
    assert len(all_steps(np.zeros(3))) == 1


@pytest.mark.parametrize("number", [1, 2, 40, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_bulges_are_where_the_function_is_farthest_above_its_edge(number, seed):
    r = np.random.default_rng(seed)
    steps = all_steps(np.round(np.abs(r.normal(3, 1.5, number)), 3) + 0.001)
    for feed in r.uniform(0, float(steps.thresholds[-1]) * 1.1, 30):
        start = int(r.integers(0, len(steps)))
        stop = int(r.integers(start + 1, len(steps) + 1))
        left, right = steps.edge(start, stop, float(feed))
        at, bulge = steps.bulge(start, stop, float(feed))
        if left == right:
            assert (at, bulge) == (0, 0.0)
            continue
        # F is farthest above a falling line just before it falls.
        ends, before = steps.thresholds[left + 1 : right + 1], steps.counts[left:right]
        chord = np.interp(ends, steps.thresholds[[left, right]], steps.counts[[left, right]])
        assert left < at <= right
        assert bulge == pytest.approx(np.max(before - chord))
        assert before[at - left - 1] - chord[at - left - 1] == pytest.approx(bulge)
