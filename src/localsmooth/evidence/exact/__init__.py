"""Confidence bounds and thresholds checked in integers, by code that shares nothing with what proposed them."""

from localsmooth.evidence.exact.evidence import Ballot, Kind
from localsmooth.evidence.exact.flips import (
    drawn_probability,
    flips_cover,
    renyi_threshold_holds,
    renyi_weight_covers,
)
from localsmooth.evidence.exact.joint import CountClaim, count_claim_fails, refuted_alone
from localsmooth.evidence.exact.tails import tail_is_at_most
from localsmooth.evidence.exact.thresholds import (
    gaussian_threshold_holds,
    power_covers,
    radius_holds,
    uniform_threshold_holds,
    weight_covers,
)

__all__ = [
    "Ballot",
    "CountClaim",
    "Kind",
    "count_claim_fails",
    "drawn_probability",
    "flips_cover",
    "gaussian_threshold_holds",
    "power_covers",
    "radius_holds",
    "refuted_alone",
    "renyi_threshold_holds",
    "renyi_weight_covers",
    "tail_is_at_most",
    "uniform_threshold_holds",
    "weight_covers",
]
