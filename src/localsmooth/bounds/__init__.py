"""Confidence bounds on the tallies, for all outputs at once."""

from localsmooth.bounds.planning import pick_k, require_certifiable, smallest_sample_count
from localsmooth.bounds.simultaneous import (
    SIMULTANEOUS,
    Bonferroni,
    FixedThresholdHolm,
    KFamilywise,
    LevelStrategy,
    NotSimultaneousWarning,
    PaperHolm,
    Simultaneous,
    VoteBounds,
    WeightedBonferroni,
)
from localsmooth.bounds.votes import NumericalError, clopper_pearson_lower, clopper_pearson_upper

__all__ = [
    "SIMULTANEOUS",
    "Bonferroni",
    "FixedThresholdHolm",
    "KFamilywise",
    "LevelStrategy",
    "NotSimultaneousWarning",
    "NumericalError",
    "PaperHolm",
    "Simultaneous",
    "VoteBounds",
    "WeightedBonferroni",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "pick_k",
    "require_certifiable",
    "smallest_sample_count",
]
