"""What a test may conclude from samples, with a false alarm as improbable as a fault of the machine.

Seeds make tests repeatable; they must not make them right. So every check of sampled numbers compares a p-value with
`CHECK`: under the law that is claimed, with any other seed, a check fails with probability at most 1e-8, and since no
test makes more than a hundred of them, a test does with at most 1e-6. A check of many numbers is one check: each of
them gets an equal share (Bonferroni). P-values are exact but for those that `likely` is given from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

__all__ = [
    "CHECK",
    "assert_binomial",
    "assert_level_kept",
    "binomial_p_values",
    "likely",
    "mean_margin",
    "normal_margin",
]

Numbers = np.ndarray | np.generic | Sequence[float] | float | int

CHECK = 1e-8
"""The probability of a false alarm, per check."""


def likely(p_values: Numbers) -> bool:
    """Whether none of these p-values is too small for chance; they may depend on each other in any way."""
    p_values = np.asarray(p_values)
    return bool(p_values.min() * p_values.size >= CHECK)


def binomial_p_values(counts: Numbers, trials: Numbers, chance: Numbers) -> np.ndarray:
    """Exact and two-sided: twice the smaller tail."""
    counts = np.asarray(counts)
    smaller = np.minimum(stats.binom.cdf(counts, trials, chance), stats.binom.sf(counts - 1, trials, chance))
    return np.asarray(np.minimum(1, 2 * smaller))


def assert_binomial(counts: Numbers, trials: Numbers, chance: Numbers) -> None:
    """Each count must be one of Binomial(trials, chance)."""
    p_values = binomial_p_values(counts, trials, chance)
    assert likely(p_values), f"a count of {trials} trials has p-value {p_values.min()}: {counts} at {chance}"


def assert_level_kept(misses: int | np.integer, trials: int, level: float) -> None:
    """The misses must be compatible with a miss probability of at most the level."""
    p_value = stats.binom.sf(misses - 1, trials, level)
    assert likely(p_value), f"{misses} misses in {trials} trials at level {level}"


def mean_margin(samples: int, width: float | int = 1.0, numbers: int = 1) -> float:
    """How far means of independent values from an interval of this width may be from their expectations (Hoeffding)."""
    return width * float(np.sqrt(np.log(2 * numbers / CHECK) / (2 * samples)))


def normal_margin(numbers: int = 1) -> float:
    """How many standard deviations normal variables may be off; for sums of thousands of terms of like size."""
    return float(stats.norm.isf(CHECK / (2 * numbers)))
