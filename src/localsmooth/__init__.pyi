"""The public interface, for type checkers and for the lazy loader: what is named here is imported on first use."""

from . import (
    baselines,
    bounds,
    certificates,
    collective,
    execution,
    graphs,
    layout,
    locality,
    noise,
    plot,
    tasks,
    training,
    tuning,
)
from .bounds import Bonferroni
from .collective import Ball, Caps, Envelope, Exact, Problem, solve, verify
from .datasets import Item, ItemSet, load_arrays, load_pictures
from .errors import InvalidInputError, LocalsmoothError
from .evidence import export_certificate, verify_run
from .execution import NoProgress, ProcessExecutor, RayExecutor, SerialExecutor, ThreadExecutor, Until
from .extension import register
from .layout import GridLayout, Layout
from .models import CallableModel, Denoiser, HuggingFaceModel, Model, OnnxModel, OutputKind, Preprocessing, TorchModel
from .noise import Bernoulli, Gaussian, SparseFlips, Uniform
from .pipeline import Run, certified_overlap, certify, plan, recertify, settings_of
from .report import write_pdf, write_report
from .results import load_result, save_result
from .runs import SamplingPlan
from .sampling import SamplingOptions
from .tasks import Smoothing, StopWhenDecided
from .tasks.arrays import ArrayTask, Settings
from .tuning import Aim, Candidate, grid_candidates, tune

__all__ = [
    "Aim",
    "ArrayTask",
    "Ball",
    "Bernoulli",
    "Bonferroni",
    "CallableModel",
    "Candidate",
    "Caps",
    "Denoiser",
    "Envelope",
    "Exact",
    "Gaussian",
    "GridLayout",
    "HuggingFaceModel",
    "InvalidInputError",
    "Item",
    "ItemSet",
    "Layout",
    "LocalsmoothError",
    "Model",
    "NoProgress",
    "OnnxModel",
    "OutputKind",
    "Preprocessing",
    "Problem",
    "ProcessExecutor",
    "RayExecutor",
    "Run",
    "SamplingOptions",
    "SamplingPlan",
    "SerialExecutor",
    "Settings",
    "Smoothing",
    "SparseFlips",
    "StopWhenDecided",
    "ThreadExecutor",
    "TorchModel",
    "Uniform",
    "Until",
    "__version__",
    "baselines",
    "bounds",
    "certificates",
    "certified_overlap",
    "certify",
    "collective",
    "execution",
    "export_certificate",
    "graphs",
    "grid_candidates",
    "layout",
    "load_arrays",
    "load_pictures",
    "load_result",
    "locality",
    "noise",
    "plan",
    "plot",
    "recertify",
    "register",
    "save_result",
    "settings_of",
    "solve",
    "tasks",
    "training",
    "tune",
    "tuning",
    "verify",
    "verify_run",
    "write_pdf",
    "write_report",
]

__version__: str
