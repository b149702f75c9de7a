"""What localized smoothing is compared with, under the same samples, results and reports.

`Settings(…, method=Cohen())` certifies with a baseline, in `certify` as in `recertify`.
"""

from localsmooth.baselines.centre_smoothing import CentreSmoothing
from localsmooth.baselines.per_output import Cohen, SegCertify
from localsmooth.baselines.receptive_field import ReceptiveFields
from localsmooth.baselines.regions import FlipFrontier, flip_frontier
from localsmooth.baselines.shared_budget import BudgetSets, most_attacked
from localsmooth.baselines.sparse_smooth import SparseSmooth, tolerated_flips, worst_spending

__all__ = [
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
