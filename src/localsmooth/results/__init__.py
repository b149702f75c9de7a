"""The result of a certification: one labelled data set, in memory and on disk."""

from localsmooth.results.accessor import ResultAccessor
from localsmooth.results.build import build_dataset
from localsmooth.results.curves import budget_kinds, kind_curve
from localsmooth.results.files import load, save, set_aside
from localsmooth.results.files import load as load_result
from localsmooth.results.files import save as save_result
from localsmooth.results.item import CertifiedCurve, ItemResult, Stake, consistent, without_empty
from localsmooth.results.measure import budget_measure, budget_units
from localsmooth.results.names import (
    ACCURACY,
    AGREEMENT,
    BUDGET,
    FORMAT_VERSION,
    NO_GROUP,
    NO_LABEL,
    OUTSIDE,
    RATIO,
    axis_names,
    counts_outputs,
    marks_wrong,
    symbol,
    target_promise,
    target_title,
)
from localsmooth.results.output_names import attach_names
from localsmooth.results.overlap import ItemOverlap, build_overlaps, load_overlaps, save_overlaps
from localsmooth.results.reach import certifies_beyond, finite_reach, reach_words, rounded_down
from localsmooth.results.run import RunInfo, Saving, run_info
from localsmooth.results.smoothed_classifier import SmoothedClassifier
from localsmooth.results.validate import by_method, validate
from localsmooth.results.view import ItemView, item_view

__all__ = [
    "ACCURACY",
    "AGREEMENT",
    "BUDGET",
    "FORMAT_VERSION",
    "NO_GROUP",
    "NO_LABEL",
    "OUTSIDE",
    "RATIO",
    "CertifiedCurve",
    "ItemOverlap",
    "ItemResult",
    "ItemView",
    "ResultAccessor",
    "RunInfo",
    "Saving",
    "SmoothedClassifier",
    "Stake",
    "attach_names",
    "axis_names",
    "budget_kinds",
    "budget_measure",
    "budget_units",
    "build_dataset",
    "build_overlaps",
    "by_method",
    "certifies_beyond",
    "consistent",
    "counts_outputs",
    "finite_reach",
    "item_view",
    "kind_curve",
    "load",
    "load_overlaps",
    "load_result",
    "marks_wrong",
    "reach_words",
    "rounded_down",
    "run_info",
    "save",
    "save_overlaps",
    "save_result",
    "set_aside",
    "symbol",
    "target_promise",
    "target_title",
    "validate",
    "without_empty",
]
