"""Kinds of input: what differs between them, and the contract that the pipeline knows them by."""

from localsmooth.tasks.base import Assignment, Task
from localsmooth.tasks.record import Facts, RunRecord
from localsmooth.tasks.registry import TASKS, task_of
from localsmooth.tasks.smoothing import Smoothing
from localsmooth.tasks.stopping import StopWhenDecided

__all__ = ["TASKS", "Assignment", "Facts", "RunRecord", "Smoothing", "StopWhenDecided", "Task", "task_of"]
