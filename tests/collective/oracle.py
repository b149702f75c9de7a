"""The collective problem by enumeration, for problems given as plain arrays."""

from __future__ import annotations

import numpy as np

from localsmooth.testing.collective import SmallProblem


def brute_force(weights, eta, group, targets, A, c, caps=None, integer=False, value=None):
    """Return the least number (or value) of targets left; weights [K × groups × columns], eta [K × outputs]."""
    weights, eta = np.asarray(weights, float), np.asarray(eta, float)
    caps = [None] * weights.shape[2] if caps is None else list(caps)
    arrays = (weights, eta, np.asarray(group), np.asarray(A, float), np.asarray(c, float))
    return SmallProblem(*arrays, caps, integer, np.asarray(targets), value).optimum
