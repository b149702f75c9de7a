"""What localized smoothing is compared with, under the same samples, results and reports.

`Settings(…, method=Cohen())` certifies with a baseline, in `certify` as in `recertify`.
"""

from collections.abc import Mapping

from localsmooth.baselines.centre_smoothing import CentreSmoothing
from localsmooth.baselines.per_output import Cohen, SegCertify
from localsmooth.baselines.receptive_field import ReceptiveFields
from localsmooth.baselines.regions import FlipFrontier, flip_frontier
from localsmooth.baselines.shared_budget import BudgetSets, most_attacked
from localsmooth.baselines.sparse_smooth import SparseSmooth, tolerated_flips, worst_spending
from localsmooth.tasks.arrays import ItemMethod

BASELINES: Mapping[str, type[ItemMethod]] = {
    method.name: method for method in (CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth)
}
"""Baselines by the names that configuration files call them by."""

__all__ = [
    "BASELINES",
    "BudgetSets",
    "CentreSmoothing",
    "Cohen",
    "FlipFrontier",
    "ReceptiveFields",
    "SegCertify",
    "SparseSmooth",
    "flip_frontier",
    "most_attacked",
    "tolerated_flips",
    "worst_spending",
]
