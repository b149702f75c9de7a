"""Confidence bounds on the tallies, for all outputs at once."""

from collections.abc import Callable

from localsmooth.bounds.automatic import Automatic, JointAndBonferroni
from localsmooth.bounds.bernstein import EmpiricalBernstein
from localsmooth.bounds.beta_mixture import BetaMixture, broad_mixture, candidate_prior
from localsmooth.bounds.betting import Betting
from localsmooth.bounds.cdf_band import CdfBand
from localsmooth.bounds.joint_count import JointCount
from localsmooth.bounds.planning import hopeless_words, pick_k, require_certifiable, smallest_sample_count
from localsmooth.bounds.scores import (
    ScoreBound,
    ScoreBounds,
    ScoreHistogram,
    ScoreMoments,
    even_thresholds,
)
from localsmooth.bounds.sequence import VoteConfidenceSequence, sequential_lower_bounds
from localsmooth.bounds.simultaneous import (
    SMALLEST_LEVEL,
    Bonferroni,
    FixedThresholdHolm,
    KFamilywise,
    LevelStrategy,
    NotSimultaneousWarning,
    PaperHolm,
    Simultaneous,
    VoteBounds,
    WeightedBonferroni,
    require_level_strategy,
)
from localsmooth.bounds.votes import NumericalError, clopper_pearson_lower
from localsmooth.bounds.weighting import CandidateRule, CandidateVotes, CandidateWeights, CountRule, Sharing, complete

# One line per rule for many outputs that a configuration can name.
SIMULTANEOUS: dict[str, Callable[..., Simultaneous | CountRule | Automatic]] = {
    rule.name: rule
    for rule in (
        Automatic,
        JointCount,
        JointAndBonferroni,
        Bonferroni,
        KFamilywise,
        WeightedBonferroni,
        FixedThresholdHolm,
        PaperHolm,
    )
}

# One line per bound on scores that a configuration can name.
SCORE_BOUNDS: dict[str, Callable[..., ScoreBound]] = {
    bound.name: bound for bound in (EmpiricalBernstein, CdfBand, Betting)
}

__all__ = [
    "SCORE_BOUNDS",
    "SIMULTANEOUS",
    "SMALLEST_LEVEL",
    "Automatic",
    "BetaMixture",
    "Betting",
    "Bonferroni",
    "CandidateRule",
    "CandidateVotes",
    "CandidateWeights",
    "CdfBand",
    "CountRule",
    "EmpiricalBernstein",
    "FixedThresholdHolm",
    "JointAndBonferroni",
    "JointCount",
    "KFamilywise",
    "LevelStrategy",
    "NotSimultaneousWarning",
    "NumericalError",
    "PaperHolm",
    "ScoreBound",
    "ScoreBounds",
    "ScoreHistogram",
    "ScoreMoments",
    "Sharing",
    "Simultaneous",
    "VoteBounds",
    "VoteConfidenceSequence",
    "WeightedBonferroni",
    "broad_mixture",
    "candidate_prior",
    "clopper_pearson_lower",
    "complete",
    "even_thresholds",
    "hopeless_words",
    "pick_k",
    "require_certifiable",
    "require_level_strategy",
    "sequential_lower_bounds",
    "smallest_sample_count",
]
