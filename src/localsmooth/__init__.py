"""Prove how many predictions of a multi-output model one adversarial input can change.

The whole public interface on one page. A model, its inputs, a layout and a noise go into `certify`; a labelled data set
comes out, which `write_report` shows. Certificates from elsewhere go into `Problem` and `solve`.
"""

from importlib.metadata import version

from localsmooth.bounds import Bonferroni, FixedThresholdHolm, KFamilywise, WeightedBonferroni
from localsmooth.certificates import ABSTAIN, GaussianVotes
from localsmooth.collective import (
    AtMostGroups,
    Ball,
    Caps,
    Curve,
    Envelope,
    GroupBudgets,
    Integer,
    LinearProgram,
    Naive,
    Problem,
    Rows,
    solve,
)
from localsmooth.datasets import Item, ItemSet, load_arrays, load_pictures
from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.layout import (
    Grid,
    GridLayout,
    Layout,
    Partition,
    distance_levels,
    grid_layout,
    isotropic_layout,
    masked,
    windowed,
)
from localsmooth.models import CallableModel, Model, OnnxModel, OutputKind, TorchModel
from localsmooth.noise import Gaussian
from localsmooth.pipeline import certify, recertify
from localsmooth.report import write_report
from localsmooth.results import load as load_result
from localsmooth.results import save as save_result
from localsmooth.sampling import SamplingOptions, SamplingPlan

__version__ = version("localsmooth")

__all__ = [
    "ABSTAIN",
    "AtMostGroups",
    "Ball",
    "Bonferroni",
    "CallableModel",
    "Caps",
    "Curve",
    "Envelope",
    "FixedThresholdHolm",
    "Gaussian",
    "GaussianVotes",
    "Grid",
    "GridLayout",
    "GroupBudgets",
    "Integer",
    "InvalidInputError",
    "Item",
    "ItemSet",
    "KFamilywise",
    "Layout",
    "LinearProgram",
    "LocalsmoothError",
    "Model",
    "Naive",
    "OnnxModel",
    "OutputKind",
    "Partition",
    "Problem",
    "Rows",
    "SamplingOptions",
    "SamplingPlan",
    "TorchModel",
    "WeightedBonferroni",
    "certify",
    "distance_levels",
    "grid_layout",
    "isotropic_layout",
    "load_arrays",
    "load_pictures",
    "load_result",
    "masked",
    "recertify",
    "save_result",
    "solve",
    "windowed",
    "write_report",
]
