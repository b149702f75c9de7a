"""Several certificates about one smoothed classifier, each output using whichever certifies more."""

from __future__ import annotations

import numpy as np

from localsmooth.certificates.contract import Thresholds
from localsmooth.errors import InvalidInputError

__all__ = ["best_of"]


def best_of(*thresholds: Thresholds) -> Thresholds:
    """Combine certificates that all hold at once and are about one smoothed classifier.

    The statistics behind them must hold *together* with probability 1 − α. Certificates from votes and from scores are
    about two classifiers and must not be stacked: see `one_basis`.

    Parameters
    ----------
    thresholds
        Certificates of the same outputs, groups and columns.

    Returns
    -------
    Thresholds
        The larger η per output where the weights are the same for all; otherwise all certificates along a leading
        axis, so that an output is only attacked where every one of its inequalities is broken.

    Raises
    ------
    InvalidInputError
        If there is nothing to combine, or shapes differ.
    """
    if not thresholds:
        raise InvalidInputError("thresholds", "there is no certificate to combine", "Pass at least one")
    weights = [w.reshape(-1, *w.shape[-2:]) for w, _ in thresholds]
    etas = [e.reshape(-1, e.shape[-1]) for _, e in thresholds]
    if len({w.shape[1:] for w in weights}) > 1 or len({e.shape[1:] for e in etas}) > 1:
        raise InvalidInputError(
            "thresholds", "the certificates speak of different groups or outputs", "Combine those of one layout"
        )
    stacked, eta = np.concatenate(weights), np.concatenate(etas)
    if (stacked == stacked[0]).all():
        return Thresholds(stacked[0], eta.max(axis=0))
    return Thresholds(stacked, eta)
