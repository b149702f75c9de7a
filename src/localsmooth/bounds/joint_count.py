"""The joint count bound: how many outputs can have a large error probability, whichever they are.

A certificate promises a count, so that bounds on all outputs need not hold at once. Let u_n be the error probability of
output n (that a vote is not for its candidate) and T the number of outputs that take part, fixed before the votes. Let
M_n be the e-value of :mod:`localsmooth.bounds.beta_mixture`, and m_n(u) its lower bound M_n(u) for u ≥ x_n / N_n, else
0. It does not fall with u, and m_n(u) ≤ M_n(u_n) for every u ≤ u_n.

**The event.** E = (1/T) Σ_n M_n(u_n) has mean at most 1 whatever the dependence between outputs, also where the number
of votes of each output is a stopping time (each M_n, a non-negative martingale, is then stopped on its own; means add
up). By Markov's inequality E < 1/α with probability at least 1 − α; by Ville's after every number r of rounds at once,
where each round adds to the votes of every output, or to those of all that have not stopped. A run that is ended or
looked at is cut to whole rounds: then it is of no matter how long each chunk took, which no filtration of votes knows.
Everything below holds on this one event, so that it may be chosen after looking.

**Counting.** Let the adversary's perturbation ask of output n an error probability below υ_n, the same for all outputs
of one stratum. The outputs F that fail have u_n ≥ υ_n, so Σ_F m_n(υ_n) < T/α. For every δ > 0, with λ = δα/T,

    |F| = Σ_F (1 − λ m_n(υ_n)) + λ Σ_F m_n(υ_n) < Σ_n max(0, 1 − min(1, λ m_n(υ_n))) + δ.

The sum may run over any set of outputs that contains F, so that it serves every set of targets that is fixed beforehand
(all outputs, the correct ones). With R_s(υ) for the part of stratum s there are two ways to use it:

* *apart*: |F_s| < R_s(υ) + δ, for the best δ at every υ and s, and nothing else is subtracted;
* *shared*: |F| < Σ_s R_s(υ_s) + δ, one δ for all strata, which is subtracted from every count once. That costs what a
  single stratum could lose, and not every stratum at once.

**Handing on.** With whole numbers B_s(υ) ≥ R_s(υ) + δ − 1 or, shared, B_s ≥ R_s − 1/strata (both sides of the
inequality are whole, and it is strict), the output with the k-th most errors of the stratum gets the bound 1 − inf{υ :
B_s(υ) < k}. Counts made of these bounds hold for any targets that are unions of strata, less `discount`; the bound of a
single output need not. Bounds on single outputs at level α each are handed out beside them, as a description: they come
from the same m_n ≥ 1/α, so that counts never exceed the outputs that have such a bound.

**Outputs of various worth.** Where output n is worth v_n ≥ 0, the same in all of a stratum, what fails is worth

    Σ_F v_n = Σ_F (v_n − λ m_n(υ_n)) + λ Σ_F m_n(υ_n) < Σ_n v_n max(0, 1 − min(1, (λ/v_n) m_n(υ_n))) + λT/α,

on the same event: a stratum is counted with δ_s = δ/w_s, w_s its worth in units of the mean, and `spare`, δ mean
worths, is subtracted from every sum. Nothing is lost by rounding B_s up, since R_s ≤ B_s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Integer

from localsmooth.blocks import look_up
from localsmooth.bounds.beta_mixture import broad_mixture, candidate_prior
from localsmooth.bounds.cases import distinct_cases
from localsmooth.bounds.evidence import Cases, Evidence, gathered
from localsmooth.bounds.simultaneous import Bonferroni, VoteBounds
from localsmooth.bounds.votes import Count
from localsmooth.bounds.weighting import EVEN_BUDGETS, CandidateVotes
from localsmooth.errors import InvalidInputError, require_whole_number

__all__ = ["JointCount"]

_EPSILON = float(np.finfo(np.float64).eps)
# Steps of the grid of error probabilities, in standard deviations of a share of votes.
_STEP = 0.07
# Width of a bin of error counts, likewise: the bin's output with the least evidence stands for all.
_BIN = 0.25
_RATIO = 1.7
_LARGEST_SHARE = 1 / 16
_TABLE = 1 << 24
_WANTED = 1 - np.array(EVEN_BUDGETS)


@dataclass(frozen=True)
class JointCount:
    """Count the outputs that may fail, rather than bound every output (a *count rule*).

    What is promised is every certified count, with probability 1 − α; not any single output. There is hardly a price
    for many outputs. The bounds hold at numbers of samples that depend on the votes, too.

    Parameters
    ----------
    fit
        Fit the prior to the votes of the candidate stage, where these were kept. It matters for strength alone.
    spare
        Outputs to subtract from every count, which all strata share; 0 for none. By default what promises the most
        where budgets of all sizes are asked for; runs then look at strata apart, too, and keep the better of the two.

    Raises
    ------
    InvalidInputError
        If `spare` is no whole number of at least 0.
    """

    fit: bool = True
    spare: int | None = None
    name: ClassVar[str] = "joint_count"
    simultaneous: ClassVar[bool] = True
    anytime: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.spare is not None:
            require_whole_number("spare", self.spare, 0, "Pass a number of outputs, or leave it out")

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        """Return α: where all votes are unanimous some output is bounded at most as if it were alone."""
        Bonferroni().levels(n_outputs, alpha)  # refuses what no rule could use
        return alpha

    def count_bounds(
        self,
        votes: Integer[np.ndarray, " outputs"],
        n: Count,
        alpha: float,
        stratum: Integer[np.ndarray, " outputs"],
        candidates: CandidateVotes | None = None,
        worth: Float[np.ndarray, " outputs"] | None = None,
    ) -> VoteBounds:
        """Bound how many outputs of each stratum have an error probability above any value.

        Parameters
        ----------
        votes
            Votes for each output's candidate.
        n
            All its votes: one number, or one per output, which may be stopping times.
        alpha
            Probability with which any count may be wrong.
        stratum
            Stratum of each output, from 0: outputs that the adversary's perturbations ask the same of, and that are
            targets together. Negative for outputs that take no part. Fixed before the votes.
        candidates
            What the candidate stage saw.
        worth
            What each output is worth, the same within a stratum; 1 by default. The bounds are then for sums of worth.

        Returns
        -------
        VoteBounds
            Bounds for counts of unions of strata, 0 for outputs that take no part; bounds of each output alone beside.

        Raises
        ------
        InvalidInputError
            If a count, number of votes, α or stratum is out of range, or a stratum holds outputs of various worth.
        """
        trials = _checked(votes, n, alpha, stratum)
        known = candidates if self.fit else None
        prior, kind = (broad_mixture(), np.zeros(votes.size, np.int8)) if known is None else candidate_prior(known)
        number, edges = _bins(trials - votes)
        outside = np.maximum(stratum, -1) + 1
        first, row = distinct_cases(number, trials, kind, outside)
        members = np.bincount(row, minlength=first.size) * (outside[first] > 0)
        head, case = distinct_cases(*(column[first].astype(np.int64) for column in (number, trials, kind)))
        cases = Cases(
            edges[number[first][head]], edges[number[first][head] + 1], trials[first][head], kind[first][head]
        )
        total, grid = int(members.sum()), _grid(int(trials.max()))
        deltas = _ladder(max(total, 1))
        place = np.unique(outside[first] * (members > 0), return_inverse=True)[1]
        place -= int(bool(np.any(members == 0)))  # -1 where no part is taken
        per = np.zeros((int(place.max(initial=-1)) + 1, head.size))
        np.add.at(per, (place[place >= 0], case[place >= 0]), members[place >= 0])
        weight, scale = _weights(worth, look_up(place, row), per.sum(axis=1))
        least = deltas[0] / max(1.0, float(weight.max(initial=0.0)))
        evidence = gathered(cases, grid, prior, math.log(max(total, 1) / (alpha * least)))
        alone = look_up(_alone(evidence, head.size, alpha, grid)[case], row)
        if total == 0 or scale == 0:
            return VoteBounds(np.zeros(votes.size), 0, alone=alone)
        losses = _Losses(evidence, grid.size, alpha / total * (1 - 16 * _EPSILON))
        discount = _chosen(losses, per, weight, deltas, grid) if self.spare is None else min(self.spare, total)
        order = _ranked(place, (cases.most / cases.trials)[case], row)
        lower = np.zeros(votes.size)
        failing = _failing(losses, per, weight, deltas, discount, whole=worth is None)
        lower[order[votes.size - total :]] = _handed_on(failing, per, grid)
        if worth is None:
            return VoteBounds(lower, discount, alone=alone)
        return VoteBounds(lower, 0, alone=alone, spare=discount * scale * (1 + 16 * _EPSILON))


def _weights(
    worth: Float[np.ndarray, " outputs"] | None,
    place: Integer[np.ndarray, " outputs"],
    members: Float[np.ndarray, " strata"],
) -> tuple[Float[np.ndarray, " strata"], float]:
    """Worth of each stratum in units of the mean, and the mean."""
    if worth is None:
        return np.ones(members.size), 1.0
    if worth.shape != place.shape or not (np.isfinite(worth).all() and bool((worth >= 0).all())):
        raise InvalidInputError("worth", "it is negative, infinite or NaN, or not one for each output", "Pass values")
    taking = place >= 0
    each = np.zeros(members.size)
    each[place[taking]] = worth[taking]
    if not np.array_equal(each[place[taking]], worth[taking]):
        raise InvalidInputError("worth", "it differs within a stratum", "Put outputs of different worth into strata")
    scale = float(each @ members) / max(float(members.sum()), 1.0)
    return (each / scale if scale > 0 else each), scale


def _checked(
    votes: Integer[np.ndarray, " outputs"], n: Count, alpha: float, stratum: Integer[np.ndarray, " outputs"]
) -> Integer[np.ndarray, " outputs"]:
    Bonferroni().levels(votes.size, alpha)
    trials = np.broadcast_to(np.asarray(n, dtype=np.int64), votes.shape)
    if stratum.shape != votes.shape:
        raise InvalidInputError("stratum", f"{stratum.size} for {votes.size} outputs", "Pass one per output")
    if not np.issubdtype(votes.dtype, np.integer):
        raise InvalidInputError("votes", f"counts have type {votes.dtype}", "Pass integer counts")
    if int(trials.min()) < 1 or int(trials.max()) >= 1 << 50:
        raise InvalidInputError("n", "the number of votes must be at least 1", "Draw samples before bounding")
    if int(votes.min()) < 0 or bool(np.any(votes > trials)):
        raise InvalidInputError("votes", "a count lies outside 0 … n", "Pass the number of successes among n samples")
    return trials


def _bins(
    errors: Integer[np.ndarray, " outputs"],
) -> tuple[Integer[np.ndarray, " outputs"], Integer[np.ndarray, " edges"]]:
    """Put like numbers of errors into one bin: bin b holds edges[b] + 1 to edges[b + 1]."""
    edges, largest = [-1, 0], int(errors.max())
    while edges[-1] < largest:
        edges.append(edges[-1] + max(1, int(_BIN * math.sqrt(edges[-1]))))
    where = np.asarray(edges)
    if edges[-1] >= _TABLE:
        return np.searchsorted(where, errors) - 1, where
    table = np.repeat(np.arange(where.size - 1), np.diff(where)).astype(np.int32)
    return look_up(table, errors), where


def _grid(trials: int) -> Float[np.ndarray, " grid"]:
    """Error probabilities below 1/2, about equally many standard deviations apart, and 1/2."""
    steps = math.ceil(math.sqrt(2 * trials) / _STEP)
    return 0.5 * (np.arange(1, steps + 1) / steps) ** 2


def _ladder(total: int) -> Float[np.ndarray, " deltas"]:
    """Values of δ: two below 1 and some whole ones."""
    largest = max(1.0, total * _LARGEST_SHARE)
    steps = 1 + math.ceil(math.log(largest) / math.log(_RATIO))
    return np.concatenate([[0.25, 0.5], np.unique(np.round(np.geomspace(1.0, largest, steps)))])


def _alone(
    evidence: Evidence, cases: int, alpha: float, grid: Float[np.ndarray, " grid"]
) -> Float[np.ndarray, " cases"]:
    """Bound of an output by itself: 1 − u for the first u that its evidence refutes at level α."""
    refuted = evidence.log >= -math.log(alpha) * (1 + 4 * _EPSILON)
    first = np.full(cases, grid.size)
    np.minimum.at(first, evidence.case[refuted], evidence.at[refuted])
    return np.append(_complement(grid), 0.0)[first]


class _Losses:
    """For each δ, what each case adds to R along the grid: 1 − min(1, λm), by its differences."""

    def __init__(self, evidence: Evidence, grid: int, rate: float) -> None:
        self.evidence, self.grid, self.rate = evidence, grid, rate
        self.new = np.flatnonzero(np.diff(evidence.case, prepend=-1))

    def change(self, delta: float) -> Float[np.ndarray, " entries"]:
        """How the loss changes at each entry, from 1 before the first of a case."""
        loss = -np.expm1(np.minimum(self.evidence.log + math.log(delta * self.rate), 0.0))
        change = np.diff(loss, prepend=1.0)
        change[self.new] = loss[self.new] - 1.0
        return change

    def along(
        self, change: Float[np.ndarray, " entries"], outputs: Float[np.ndarray, " cases"]
    ) -> Float[np.ndarray, " grid"]:
        """R along the grid, where each case has so many outputs."""
        each = change * outputs[self.evidence.case]
        falling = outputs.sum() + np.cumsum(np.bincount(self.evidence.at, each, self.grid))
        return np.minimum.accumulate(np.maximum(falling, 0.0))


def _chosen(
    losses: _Losses,
    members: Float[np.ndarray, "strata cases"],
    weight: Float[np.ndarray, " strata"],
    deltas: Float[np.ndarray, " deltas"],
    grid: Float[np.ndarray, " grid"],
) -> int:
    """Choose what all strata share: the δ that leaves the most where all strata are asked the same; 0 for none."""
    at = np.searchsorted(grid, _WANTED) - 1
    at = at[at >= 0]
    levels, kind = np.unique(weight, return_inverse=True)
    outputs = np.zeros((levels.size, members.shape[1]))
    np.add.at(outputs, kind, members)
    total = float(levels @ outputs.sum(axis=1))
    along = np.stack(
        [
            sum(
                (
                    level * losses.along(losses.change(delta / level), own)[at]
                    for level, own in zip(levels.tolist(), outputs, strict=True)
                    if level > 0
                ),
                np.zeros(at.size),
            )
            for delta in deltas.tolist()
        ]
    )
    strata = float(np.count_nonzero(weight))
    apart = np.maximum(total - (along + strata * deltas[:, None]).min(axis=0), 0.0).mean()
    whole = np.flatnonzero(deltas >= 1)
    shared = np.maximum(total - along[whole] - deltas[whole][:, None], 0.0).mean(axis=1)
    best = int(shared.argmax())
    return int(deltas[whole[best]]) if shared[best] > apart else 0


def _failing(
    losses: _Losses,
    members: Float[np.ndarray, "strata cases"],
    weight: Float[np.ndarray, " strata"],
    deltas: Float[np.ndarray, " deltas"],
    discount: int,
    whole: bool,
) -> Integer[np.ndarray, "strata grid"]:
    """B of each stratum along the grid; all of it where it is worth nothing."""
    # More than what rounding does to all sums together.
    slack = 1e-6 + 4 * _EPSILON * members.sum() * (losses.grid + members.size)
    if discount:
        # Counts are whole and the inequality is strict, which leaves almost one output to share among the strata.
        left = (1 - 2 * slack) / len(members) if whole else -slack
        changes = {level: losses.change(discount / level) for level in set(weight.tolist()) if level > 0}
        made = np.stack(
            [
                losses.along(changes[level], own) - left if level > 0 else np.full(losses.grid, np.inf)
                for level, own in zip(weight.tolist(), members, strict=True)
            ]
        )
    else:
        # Each stratum by itself: its count is whole whatever its outputs are worth.
        made = np.full((len(members), losses.grid), np.inf)
        for delta in deltas.tolist():
            change = losses.change(delta)
            made = np.minimum(made, np.stack([losses.along(change, own) for own in members]) + delta)
        made += slack - 1
    most = members.sum(axis=1)[:, None]
    return np.ceil(np.clip(made, 0, most)).astype(np.int64)


def _ranked(
    place: Integer[np.ndarray, " rows"], share: Float[np.ndarray, " rows"], row: Integer[np.ndarray, " outputs"]
) -> Integer[np.ndarray, " outputs"]:
    """Outputs that take no part, then stratum by stratum, those with the largest share of errors first."""
    rank = np.empty(place.size, dtype=np.int64)
    rank[np.lexsort([-share, place])] = np.arange(place.size)
    small = np.uint16 if place.size < 1 << 16 else np.int64  # the former sorts in linear time
    return np.argsort(look_up(rank.astype(small), row), kind="stable")


def _handed_on(
    failing: Integer[np.ndarray, "strata grid"],
    members: Float[np.ndarray, "strata cases"],
    grid: Float[np.ndarray, " grid"],
) -> Float[np.ndarray, " outputs"]:
    """Bounds of the outputs, stratum by stratum, the smallest first."""
    lower = np.concatenate([[0.0], _complement(grid)[::-1]])
    made: list[np.ndarray] = []
    for falls, size in zip(failing, members.sum(axis=1).astype(np.int64).tolist(), strict=True):
        gone = np.concatenate([[falls[-1]], -np.diff(falls, prepend=size)[::-1]])
        made.append(np.repeat(lower, gone))
    return np.concatenate(made)


def _complement(grid: Float[np.ndarray, " grid"]) -> Float[np.ndarray, " grid"]:
    """1 − u, rounded down."""
    return np.nextafter(1.0 - grid, 0.0)
