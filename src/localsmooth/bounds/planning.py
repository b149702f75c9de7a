"""What a sampling plan can achieve, before a single sample is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from localsmooth.bounds.automatic import Automatic
from localsmooth.bounds.simultaneous import Bonferroni, KFamilywise
from localsmooth.bounds.votes import clopper_pearson_lower
from localsmooth.bounds.weighting import Sharing
from localsmooth.errors import InvalidInputError

__all__ = ["hopeless_words", "pick_k", "require_certifiable", "smallest_sample_count"]


def smallest_sample_count(
    alpha: float, n_outputs: int, threshold: float = 0.5, strategy: Sharing | Automatic | None = None
) -> int:
    """Return the smallest number of votes with which a unanimous output could be bounded above a threshold.

    Parameters
    ----------
    alpha
        Probability with which the whole item's certificate may be wrong.
    n_outputs
        Number of outputs whose bounds must hold together.
    threshold
        The bound must exceed it: 1/2 to certify anything at all, or the probability that a budget of interest needs.
    strategy
        How α is shared among the outputs; Bonferroni unless given.

    Returns
    -------
    int
        Smallest n with ``level ** (1 / n) > threshold``.

    Raises
    ------
    InvalidInputError
        If an argument is out of range.
    """
    if not 0 < threshold < 1:
        raise InvalidInputError("threshold", f"no bound can be compared with {threshold}", "Pass a value in (0, 1)")
    level = (strategy or Bonferroni()).most_lenient_level(n_outputs, alpha)
    n = max(1, math.ceil(math.log(level) / math.log(threshold)))
    while n > 1 and _unanimous_bound(n - 1, level) > threshold:
        n -= 1
    while not _unanimous_bound(n, level) > threshold:
        n += 1
    return n


def require_certifiable(
    n_bound: int,
    alpha: float,
    n_outputs: int,
    *,
    threshold: float = 0.5,
    strategy: Sharing | Automatic | None = None,
    asked: float | None = None,
) -> None:
    """Refuse a sampling plan under which every output would abstain whatever the model answers.

    Parameters
    ----------
    n_bound
        Number of samples that bound the candidate's probability (N₂).
    alpha, n_outputs, threshold, strategy
        As in :func:`smallest_sample_count`.
    asked
        α as the user named it, where some of it is set aside before it comes here.

    Raises
    ------
    InvalidInputError
        If not even unanimous votes could be bounded above the threshold. Names the smallest number that could.
    """
    needed = smallest_sample_count(alpha, n_outputs, threshold, strategy)
    if not n_bound >= needed:
        raise InvalidInputError(
            "n_bound",
            f"{hopeless_words(n_bound, alpha, n_outputs, threshold, asked)}, so nothing could be certified",
            f"Draw at least {needed} of each output group (n_bound), or raise alpha",
        )


def hopeless_words(n_bound: int, alpha: float, n_outputs: int, threshold: float, asked: float | None = None) -> str:
    """Say that a plan can bound nothing above a threshold.

    Parameters
    ----------
    n_bound, alpha, n_outputs, threshold, asked
        As in `require_certifiable`.
    """
    shown = f"{alpha:g}"
    if asked is not None and asked != alpha:
        shown = f"{asked:g} ({alpha:g} of it for bounds, the rest is set aside for drawing noise on a grid)"
    samples = f"N₂ = {n_bound:,} sample{'s' * (n_bound != 1)} of each output group"
    outputs = f"{n_outputs:,} output{'s' * (n_outputs != 1)}"
    return f"with {samples}, alpha = {shown} and {outputs}, not even unanimous votes give a bound above {threshold:g}"


def pick_k(
    n_outputs: int,
    n_bound: int,
    alpha: float,
    *,
    thresholds: Sequence[float] = (0.5, 0.7, 0.9, 0.97, 0.99, 0.995),
    prior: tuple[float, float] = (1.0, 0.1),
) -> KFamilywise:
    """Pick the k of a k-family-wise bound from the sampling plan, before sampling.

    A larger k raises every output's level and costs k − 1 certified outputs. The k returned maximises the expected
    share of outputs whose bound exceeds a threshold, less (k − 1) / outputs, averaged over the thresholds, if the
    label probabilities were drawn from the prior. Any k that is fixed before the votes are seen gives a sound
    certificate; the prior matters for its strength alone.

    Parameters
    ----------
    n_outputs, n_bound, alpha
        The sampling plan: outputs that are bounded together, votes per output, error probability.
    thresholds
        Label probabilities that the budgets of interest ask for, each in (0, 1).
    prior
        Parameters (a, b) of the Beta distribution that label probabilities are expected to follow, from other data.
        The default has most outputs near certain, as segmentation models under moderate noise do.

    Returns
    -------
    KFamilywise
        The strategy with the chosen k.

    Raises
    ------
    InvalidInputError
        If an argument is out of range.
    """
    Bonferroni().levels(n_outputs, alpha)  # refuses what no strategy could use
    if n_bound < 1:
        raise InvalidInputError("n_bound", f"{n_bound} votes bound nothing", "Pass a positive number of votes")
    if not (len(thresholds) > 0 and all(0 < threshold < 1 for threshold in thresholds)):
        raise InvalidInputError("thresholds", "thresholds must lie in (0, 1)", "Pass at least one probability")
    if not (prior[0] > 0 and prior[1] > 0):
        raise InvalidInputError("prior", "Beta parameters must be positive", "Pass two positive numbers")
    best_k, best_share = 1, -math.inf
    for k in _candidates(n_outputs):
        level = KFamilywise(k).levels(n_outputs, alpha)
        # Smallest count whose tail at the threshold is at most the level, that is, whose bound reaches it.
        critical = stats.binom.isf(level, n_bound, np.asarray(thresholds)) + 1
        share = float(np.mean(stats.betabinom.sf(critical - 1, n_bound, *prior))) - (k - 1) / n_outputs
        if share > best_share + 1e-9:
            best_k, best_share = k, share
    return KFamilywise(best_k)


def _candidates(n_outputs: int) -> list[int]:
    """Roughly geometric values of k up to the number of outputs."""
    steps = np.geomspace(1, n_outputs, num=1 + 12 * max(1, math.ceil(math.log10(n_outputs + 1))))
    return sorted({round(float(step)) for step in steps})


def _unanimous_bound(n: int, level: float) -> float:
    return float(clopper_pearson_lower(n, n, level))
