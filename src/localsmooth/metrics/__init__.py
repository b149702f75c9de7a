"""Numbers that summarise certificates and predictions: certified curves, ACR, accuracy, mIoU, Pareto fronts."""

from localsmooth.metrics.agreement import CleanAgreement, Kept, clean_agreement
from localsmooth.metrics.comparison import Domination, OperatingPoint, dominates, dominations, front
from localsmooth.metrics.curves import AverageRadius, average_certifiable_radius, certified_fractions, mean_curve
from localsmooth.metrics.numbering import numbering_words
from localsmooth.metrics.predictions import (
    ABSTAIN,
    abstention_rate,
    accuracy,
    class_iou,
    confusion_matrix,
    mean_iou,
)
from localsmooth.metrics.scale import scale_words
from localsmooth.metrics.sweeps import pareto_front
from localsmooth.metrics.weakest import Weakest, keeps_alone, weakest_part

__all__ = [
    "ABSTAIN",
    "AverageRadius",
    "CleanAgreement",
    "Domination",
    "Kept",
    "OperatingPoint",
    "Weakest",
    "abstention_rate",
    "accuracy",
    "average_certifiable_radius",
    "certified_fractions",
    "class_iou",
    "clean_agreement",
    "confusion_matrix",
    "dominates",
    "dominations",
    "front",
    "keeps_alone",
    "mean_curve",
    "mean_iou",
    "numbering_words",
    "pareto_front",
    "scale_words",
    "weakest_part",
]
