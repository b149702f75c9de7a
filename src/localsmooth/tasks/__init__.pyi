"""What users and the pipeline need of the room; each is imported on first use."""

from . import arrays, graphs, points, tokens
from .anytime import holds_anytime, require_anytime
from .asked_targets import as_targets, require_classes, stakes_of
from .base import Asked, Assignment, Task
from .description import CHOSEN, sampled_at
from .folders import TASKS, import_from_folders, task_of
from .record import (
    FINISHED,
    Facts,
    RunRecord,
    RunRecordError,
    interrupted_extension,
    load_record,
    require_normalised_scores,
    require_same_run,
    save_record,
)
from .registry import default_certificate, noise_from_configuration
from .scores import ScoreCounting
from .smoothing import Smoothing, work_of
from .stakes import Alike, Predicted, Stakes, alike
from .stopping import StopWhenDecided
from .strategies import MOST_BUDGETS, FixedNumberError, Strategies, require_few_budgets
from .targets import (
    TARGETS,
    Accuracy,
    Agreement,
    Balanced,
    Foreground,
    OfClass,
    Ratio,
    Target,
    Weighted,
)
from .tunable import Foreseen, Trial, Tunable
from .ways import certified_ways

__all__ = [
    "CHOSEN",
    "FINISHED",
    "MOST_BUDGETS",
    "TARGETS",
    "TASKS",
    "Accuracy",
    "Agreement",
    "Alike",
    "Asked",
    "Assignment",
    "Balanced",
    "Facts",
    "FixedNumberError",
    "Foreground",
    "Foreseen",
    "OfClass",
    "Predicted",
    "Ratio",
    "RunRecord",
    "RunRecordError",
    "ScoreCounting",
    "Smoothing",
    "Stakes",
    "StopWhenDecided",
    "Strategies",
    "Target",
    "Task",
    "Trial",
    "Tunable",
    "Weighted",
    "alike",
    "arrays",
    "as_targets",
    "certified_ways",
    "default_certificate",
    "graphs",
    "holds_anytime",
    "import_from_folders",
    "interrupted_extension",
    "load_record",
    "noise_from_configuration",
    "points",
    "require_anytime",
    "require_classes",
    "require_few_budgets",
    "require_normalised_scores",
    "require_same_run",
    "sampled_at",
    "save_record",
    "stakes_of",
    "task_of",
    "tokens",
    "work_of",
]
