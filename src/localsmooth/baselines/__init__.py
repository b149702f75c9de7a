"""What localized smoothing is compared with, under the same samples, results and reports.

`certify(..., method=Cohen())` certifies with a baseline, and `recertify(run, method=...)` from stored tallies.
"""

from localsmooth.baselines.centre_smoothing import CentreSmoothing
from localsmooth.baselines.per_output import Cohen, SegCertify
from localsmooth.baselines.receptive_field import ReceptiveFields
from localsmooth.baselines.regions import certified_flips
from localsmooth.baselines.shared_budget import BudgetSets, most_attacked
from localsmooth.baselines.sparse_smooth import SparseSmooth

__all__ = [
    "BudgetSets",
    "CentreSmoothing",
    "Cohen",
    "ReceptiveFields",
    "SegCertify",
    "SparseSmooth",
    "certified_flips",
    "most_attacked",
]
