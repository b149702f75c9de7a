"""Prove how many predictions of a multi-output model one adversarial input can change.

The whole public interface on one page. A model, its inputs, a layout and a noise go into `certify`; a labelled data set
comes out, which `write_report` shows. Certificates from elsewhere go into `Problem` and `solve`.
"""

from importlib.metadata import version

from localsmooth.baselines import CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth
from localsmooth.bounds import (
    Betting,
    Bonferroni,
    CandidateWeights,
    CdfBand,
    EmpiricalBernstein,
    FixedThresholdHolm,
    KFamilywise,
    WeightedBonferroni,
    pick_k,
)
from localsmooth.certificates import (
    ABSTAIN,
    BernoulliScores,
    ExactVotes,
    GaussianScores,
    GaussianVotes,
    RenyiVotes,
    SparseScores,
    UniformVotes,
)
from localsmooth.collective import (
    AtMostGroups,
    Ball,
    Caps,
    Curve,
    Envelope,
    Exact,
    GroupBudgets,
    Integer,
    LinearProgram,
    Milp,
    Naive,
    Problem,
    Rows,
    Status,
    smallest_budgets,
    solve,
    verify,
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
from localsmooth.noise import Bernoulli, Gaussian, SparseFlips, Uniform
from localsmooth.pipeline import Flips, Kind, StopWhenDecided, certify, recertify
from localsmooth.report import write_report
from localsmooth.results import load as load_result
from localsmooth.results import save as save_result
from localsmooth.sampling import (
    ProcessExecutor,
    RayExecutor,
    SamplingOptions,
    SamplingPlan,
    SerialExecutor,
    ThreadExecutor,
)

__version__ = version("localsmooth")

__all__ = [
    "ABSTAIN",
    "AtMostGroups",
    "Ball",
    "Bernoulli",
    "BernoulliScores",
    "Betting",
    "Bonferroni",
    "CallableModel",
    "CandidateWeights",
    "Caps",
    "CdfBand",
    "CentreSmoothing",
    "Cohen",
    "Curve",
    "EmpiricalBernstein",
    "Envelope",
    "Exact",
    "ExactVotes",
    "FixedThresholdHolm",
    "Flips",
    "Gaussian",
    "GaussianScores",
    "GaussianVotes",
    "Grid",
    "GridLayout",
    "GroupBudgets",
    "Integer",
    "InvalidInputError",
    "Item",
    "ItemSet",
    "KFamilywise",
    "Kind",
    "Layout",
    "LinearProgram",
    "LocalsmoothError",
    "Milp",
    "Model",
    "Naive",
    "OnnxModel",
    "OutputKind",
    "Partition",
    "Problem",
    "ProcessExecutor",
    "RayExecutor",
    "ReceptiveFields",
    "RenyiVotes",
    "Rows",
    "SamplingOptions",
    "SamplingPlan",
    "SegCertify",
    "SerialExecutor",
    "SparseFlips",
    "SparseScores",
    "SparseSmooth",
    "Status",
    "StopWhenDecided",
    "ThreadExecutor",
    "TorchModel",
    "Uniform",
    "UniformVotes",
    "WeightedBonferroni",
    "certify",
    "distance_levels",
    "grid_layout",
    "isotropic_layout",
    "load_arrays",
    "load_pictures",
    "load_result",
    "masked",
    "pick_k",
    "recertify",
    "save_result",
    "smallest_budgets",
    "solve",
    "verify",
    "windowed",
    "write_report",
]
