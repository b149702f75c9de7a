"""Where and when chunks are drawn: schedules, threads, processes, clusters, retries and progress."""

from localsmooth.execution.driver import draw_subject, require_stopping, sample, sample_subject
from localsmooth.execution.executor import Executor, FailedChunkError, SerialExecutor, Session
from localsmooth.execution.failures import PoisonedChunk, PoisonedChunksError, redraw
from localsmooth.execution.json_progress import JsonProgress
from localsmooth.execution.named_executors import EXECUTORS, ExecutorName, named_executor
from localsmooth.execution.pace import Pace
from localsmooth.execution.part import OtherPartsMissingError, Part
from localsmooth.execution.processes import ProcessExecutor, end_now
from localsmooth.execution.progress import (
    CertifiedSoFar,
    CertifyingProgress,
    LiveProgress,
    NoProgress,
    RichProgress,
    SamplingProgress,
    WithinProgress,
    WorkProgress,
    tell_certifying,
)
from localsmooth.execution.ray_cluster import RayExecutor
from localsmooth.execution.replaying import REPLAY_LEVEL, replay_samples
from localsmooth.execution.rounds import Rounds
from localsmooth.execution.scripts import ScriptProgress, default_progress, told_by_default
from localsmooth.execution.threads import ThreadExecutor, default_executor
from localsmooth.execution.until import Until
from localsmooth.execution.usage import SamplingSummary

__all__ = [
    "EXECUTORS",
    "REPLAY_LEVEL",
    "CertifiedSoFar",
    "CertifyingProgress",
    "Executor",
    "ExecutorName",
    "FailedChunkError",
    "JsonProgress",
    "LiveProgress",
    "NoProgress",
    "OtherPartsMissingError",
    "Pace",
    "Part",
    "PoisonedChunk",
    "PoisonedChunksError",
    "ProcessExecutor",
    "RayExecutor",
    "RichProgress",
    "Rounds",
    "SamplingProgress",
    "SamplingSummary",
    "ScriptProgress",
    "SerialExecutor",
    "Session",
    "ThreadExecutor",
    "Until",
    "WithinProgress",
    "WorkProgress",
    "default_executor",
    "default_progress",
    "draw_subject",
    "end_now",
    "named_executor",
    "redraw",
    "replay_samples",
    "require_stopping",
    "sample",
    "sample_subject",
    "tell_certifying",
    "told_by_default",
]
