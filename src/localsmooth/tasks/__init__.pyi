"""What users and the pipeline need of the room; each is imported on first use."""

from . import arrays, graphs
from .base import Assignment, Task
from .folders import TASKS, task_of
from .record import Facts, RunRecord
from .smoothing import Smoothing
from .stopping import StopWhenDecided

__all__ = [
    "TASKS",
    "Assignment",
    "Facts",
    "RunRecord",
    "Smoothing",
    "StopWhenDecided",
    "Task",
    "arrays",
    "graphs",
    "task_of",
]
