"""From the tallies of many outputs to base certificates that hold together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from localsmooth.bounds import (
    SMALLEST_LEVEL,
    CandidateRule,
    CandidateVotes,
    CountRule,
    ScoreBound,
    ScoreHistogram,
    ScoreMoments,
    Sharing,
    Simultaneous,
    VoteBounds,
    VoteConfidenceSequence,
    complete,
    require_level_strategy,
    sequential_lower_bounds,
)
from localsmooth.certificates.base import ABSTAIN, BaseCertificates, Basis
from localsmooth.certificates.basis import OneBasis, one_basis
from localsmooth.certificates.best import best_of
from localsmooth.certificates.contract import ScoreCertificate, Thresholds, VoteCertificate
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Noise

__all__ = ["CertifiedOutputs", "OutputScores", "OutputVotes", "certify_outputs", "strata"]


@dataclass(frozen=True, eq=False)
class OutputScores:
    """Tallied scores of each output's candidate.

    Parameters
    ----------
    tally
        The scores of the N₂ samples.
    reference
        ν, from the candidate stage.
    """

    tally: ScoreMoments | ScoreHistogram
    reference: Float[np.ndarray, "outputs"]


@dataclass(frozen=True, eq=False)
class OutputVotes:
    """What sampling left behind for the outputs of one item.

    Parameters
    ----------
    candidate
        Candidate class of each output, from the N₁ samples.
    votes
        How many of the N₂ samples predicted it.
    n
        N₂, as counted: one number, or one per output where it depended on the votes.
    scores
        Tallied scores of the candidates, if they were counted.
    sequence
        Confidence sequence to bound the votes with: needed where `n` depended on them; None for a fixed number.
    candidate_votes
        Votes of the candidate stage, for rules that take weights from it; None if they were not kept.
    planned
        N₂ as it was planned, for rules that look at it: where `n` depended on the votes, nothing that feeds a bound
        may depend on `n`. None where `n` is one number, which is then the plan's.
    clean
        What the base classifier predicts without noise; None if it was not asked. No bound looks at it.
    ended
        Whether sampling was ended when somebody wished it: rules that do not hold at every number of samples at once
        are refused, where there is no sequence.

    Raises
    ------
    InvalidInputError
        If there is a number of samples per output and no sequence or no plan, or scores where sampling ended early.
    """

    candidate: Int[np.ndarray, "outputs"]
    votes: Int[np.ndarray, "outputs"]
    n: int | Int[np.ndarray, "outputs"]
    scores: OutputScores | None = None
    sequence: VoteConfidenceSequence | None = None
    candidate_votes: CandidateVotes | None = None
    planned: int | None = None
    clean: Int[np.ndarray, "outputs"] | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        if self.sequence is None and not isinstance(self.n, int) and not self.ended:
            raise InvalidInputError(
                "n", "there is one for each output", "Pass a confidence sequence to bound them with"
            )
        if (self.sequence is not None or self.ended) and self.scores is not None:
            raise InvalidInputError(
                "scores", "their bounds do not hold at numbers of samples that depend on them", "Leave the scores out"
            )
        if self.planned is None and not isinstance(self.n, int):
            raise InvalidInputError("planned", "the numbers of samples depend on the votes", "Pass N₂ as planned")

    def part(self, outputs: Int[np.ndarray, "some"]) -> OutputVotes:
        """Tallies of some of the outputs.

        Parameters
        ----------
        outputs
            Their numbers.
        """
        first, scores = self.candidate_votes, self.scores
        return replace(
            self,
            candidate=self.candidate[outputs],
            votes=self.votes[outputs],
            n=self.n if isinstance(self.n, int) else self.n[outputs],
            scores=scores and OutputScores(scores.tally.part(outputs), scores.reference[outputs]),
            candidate_votes=first and CandidateVotes(first.votes[outputs], first.n),
            clean=None if self.clean is None else self.clean[outputs],
        )

    @property
    def n_planned(self) -> int:
        """N₂ as it was planned."""
        planned = self.n if self.planned is None else self.planned
        assert isinstance(planned, int)
        return planned

    def rule(self, simultaneous: Simultaneous | CandidateRule, alpha: float) -> Simultaneous:
        """Complete a rule that waits for the candidate stage."""
        return complete(simultaneous, self.candidate_votes, self.n_planned, alpha)

    def bounds(
        self,
        sharing: Sharing,
        alpha: float,
        stratum: Int[np.ndarray, "outputs"] | None,
        worth: Float[np.ndarray, "outputs"] | None = None,
    ) -> VoteBounds:
        """Bound the candidates' probabilities from below, all at once.

        Parameters
        ----------
        sharing
            How the outputs share α.
        alpha
            Probability with which the bounds may fail (beyond their discount).
        stratum
            From `strata`, for rules that bound counts; None where it is not known which outputs are targets together.
        worth
            What each output is worth, for rules that bound counts; 1 by default.

        Raises
        ------
        InvalidInputError
            If the rule bounds counts and there are no strata, or it cannot be used with these votes.
        """
        votes = self.votes.astype(np.int64)
        follows = self.sequence is not None and not isinstance(sharing, CountRule)  # then it bounds the votes
        early = self.ended or self.sequence is not None
        if early and not follows and not getattr(sharing, "anytime", False):
            ends = "sampling was ended before" if self.ended else "votes end sampling early"
            raise InvalidInputError(
                "simultaneous",
                f"{sharing.name} needs a number of samples that is fixed beforehand, and {ends}",
                "Use JointCount (joint_count), or let sampling go on to its end",
            )
        if isinstance(sharing, CountRule):
            if stratum is None:
                raise InvalidInputError(
                    "simultaneous",
                    f"{sharing.name} counts outputs of which the same is asked, and these are not known here",
                    "Use Bonferroni or CandidateWeights",
                )
            return sharing.count_bounds(votes, self.n, alpha, stratum, self.candidate_votes, worth)
        rule = self.rule(sharing, alpha)
        if self.sequence is None:
            return rule.lower_bounds(votes, self.n, alpha)
        return sequential_lower_bounds(self.sequence, rule, votes, self.n, alpha)


@dataclass(frozen=True, eq=False)
class CertifiedOutputs:
    """Base certificates, and the bounds behind them.

    Parameters
    ----------
    base
        The certificates, with what each output relies on.
    lower
        Lower bound on the candidate's probability, or on its mean score where the output relies on scores.
    alone
        Where these are true of counts only: what holds for each output by itself with probability 1 − α.
    """

    base: BaseCertificates
    lower: Float[np.ndarray, "outputs"]
    alone: CertifiedOutputs | None = None

    @property
    def shown(self) -> CertifiedOutputs:
        """What may be said of single outputs."""
        return self if self.alone is None else self.alone


def strata(group: Int[np.ndarray, "outputs"], kind: Int[np.ndarray, "outputs"]) -> Int[np.ndarray, "outputs"]:
    """Number the outputs by their group and kind, for rules that bound counts.

    Parameters
    ----------
    group
        Output group: outputs of one group are asked the same by every perturbation.
    kind
        Outputs of one kind are targets together; negative for outputs that never are.
    """
    number = group.astype(np.int64) * (int(kind.max(initial=0)) + 1) + kind
    return np.where(kind < 0, -1, number)


def certify_outputs(
    observed: OutputVotes,
    noise: Noise,
    levels: Float[np.ndarray, "output_groups input_groups *parameters"],
    group: Int[np.ndarray, "outputs"],
    *,
    alpha: float,
    certificates: Sequence[VoteCertificate | ScoreCertificate],
    simultaneous: Sharing,
    score_bound: ScoreBound,
    kind: Int[np.ndarray, "outputs"] | None = None,
    worth: Float[np.ndarray, "outputs"] | None = None,
) -> CertifiedOutputs:
    """Bound the tallies of all outputs at once and turn them into base certificates.

    Several certificates from votes hold at once, since they are about one classifier. Where both votes and scores are
    bounded, each output relies on one of the two, whichever reaches farther. The bounds of either kind then get half
    of α: all hold together, so that looking at them before the choice is allowed, and the expected number of bounds
    that fail is what it is for one kind at α, so that the rule's discount is paid once.

    Parameters
    ----------
    observed
        The tallies.
    noise
        The distribution that was sampled.
    levels
        The layout's level matrix.
    group
        Output group of each output.
    alpha
        Probability with which the bounds may fail (beyond the rule's discount).
    certificates
        At least one; chosen without looking at the tallies.
    simultaneous
        How the outputs share α.
    score_bound
        Bound on scores, for certificates that need it.
    kind
        Which outputs are targets together, as in `strata`; needed by rules that bound counts.
    worth
        What each output is worth, the same for those of one kind, where these rules are to bound sums of that; 1 by
        default.

    Raises
    ------
    InvalidInputError
        If there is no certificate, scores or votes of the candidate stage are needed and were not kept, or the rule
        cannot be used with scores or with numbers of samples that depended on the votes.
    """
    if not certificates:
        raise InvalidInputError("certificates", "there is none", "Pass at least one base certificate")
    # Certificates from votes share one set of bounds, those from scores another: only the two kinds divide α.
    kinds = len({isinstance(certificate, VoteCertificate) for certificate in certificates})
    share = alpha if kinds == 1 else math.nextafter(alpha / kinds, 0.0)
    stratum = None if kind is None else strata(group, kind)
    voted: VoteBounds | None = None
    bounds: dict[Basis, Float[np.ndarray, "outputs"]] = {}
    parts: dict[Basis, list[Thresholds]] = {}
    by_votes = [certificate for certificate in certificates if isinstance(certificate, VoteCertificate)]
    if by_votes:
        voted = observed.bounds(simultaneous, share, stratum, worth)
        bounds[Basis.VOTES] = voted.lower
        parts[Basis.VOTES] = [each.certificates(noise, levels, voted.lower, group) for each in by_votes]
    for certificate in certificates:
        if not isinstance(certificate, VoteCertificate):
            made = _score_part(certificate, observed, noise, levels, group, share, simultaneous, score_bound)
            bounds[Basis.SCORES] = made[1]
            parts.setdefault(Basis.SCORES, []).append(made[0])
    if voted is not None and voted.alone is not None:
        alone = [each.certificates(noise, levels, voted.alone, group) for each in by_votes]
        shown = _chosen({Basis.VOTES: alone}, {Basis.VOTES: voted.alone}, observed, group)
        made = _chosen(parts, bounds, observed, group, voted.discount, stratum)
        return replace(made, base=replace(made.base, spare=voted.spare), alone=shown)
    discount = simultaneous.discount if voted is None and not isinstance(simultaneous, CountRule) else 0
    return _chosen(parts, bounds, observed, group, discount if voted is None else voted.discount)


def _chosen(
    parts: dict[Basis, list[Thresholds]],
    bounds: dict[Basis, Float[np.ndarray, "outputs"]],
    observed: OutputVotes,
    group: Int[np.ndarray, "outputs"],
    discount: int = 0,
    stratum: Int[np.ndarray, "outputs"] | None = None,
) -> CertifiedOutputs:
    """Let each output rely on votes or on scores."""
    stacked = {basis: some[0] if len(some) == 1 else best_of(*some) for basis, some in parts.items()}
    if len(stacked) > 1:
        chosen = one_basis(stacked[Basis.VOTES], stacked[Basis.SCORES], group)
        lower = np.where(chosen.scored, bounds[Basis.SCORES], bounds[Basis.VOTES])
    else:
        ((basis, thresholds),) = stacked.items()
        chosen = OneBasis(thresholds, group, np.full(group.size, basis is Basis.SCORES))
        lower = bounds[basis]
    weights, eta = chosen.thresholds
    reached = eta if eta.ndim == 1 else eta.max(axis=0)
    candidate = observed.candidate if observed.candidate.dtype.kind == "i" else observed.candidate.astype(np.int64)
    prediction = np.where(reached > 0, candidate, ABSTAIN)
    relies_on = np.where(reached > 0, chosen.scored.astype(np.int8), np.int8(Basis.NOTHING))
    return CertifiedOutputs(
        BaseCertificates(weights, eta, chosen.group, prediction, discount, relies_on, stratum), lower
    )


def _score_part(
    certificate: ScoreCertificate,
    observed: OutputVotes,
    noise: Noise,
    levels: Float[np.ndarray, "output_groups input_groups *parameters"],
    group: Int[np.ndarray, "outputs"],
    alpha: float,
    simultaneous: Sharing,
    score_bound: ScoreBound,
) -> tuple[Thresholds, Float[np.ndarray, "outputs"]]:
    if observed.scores is None:
        raise InvalidInputError(
            "certificates", f"{certificate.name} needs scores, and only votes were counted", "Sample with scores"
        )
    if score_bound.needs_histogram and not isinstance(observed.scores.tally, ScoreHistogram):
        raise InvalidInputError(
            "score_bound",
            f"{score_bound.name} needs a histogram of scores, and power sums were counted",
            "Sample with a histogram, or use the empirical Bernstein bound",
        )
    rule = simultaneous if isinstance(simultaneous, CountRule) else observed.rule(simultaneous, alpha)
    level = np.broadcast_to(require_level_strategy(rule).levels(group.size, alpha), group.shape)
    # As for votes: an output without a level gives up.
    playing = level > SMALLEST_LEVEL
    bounds = score_bound.bounds(observed.scores.tally, np.where(playing, level, 0.5), observed.scores.reference)
    mean_lower = np.where(playing, bounds.mean_lower, 0.0)
    made = certificate.certificates(noise, levels, mean_lower, bounds.deviation_upper, bounds.reference, group)
    return made, mean_lower
