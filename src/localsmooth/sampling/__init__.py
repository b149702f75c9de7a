"""Draw, predict, tally: chunk by chunk, seeded and resumable."""

from localsmooth.sampling.arrays import ArraySubject
from localsmooth.sampling.calibration import Calibration, calibrate
from localsmooth.sampling.configuration import RunConfiguration, describe_run
from localsmooth.sampling.counter import Accumulator, Counter, Counters, CountingScope, LabelCounts, Votes
from localsmooth.sampling.directory import DirectoryStore, open_store
from localsmooth.sampling.engine import ChunkWorker, FaultyPredictionError, Job
from localsmooth.sampling.executor import Executor, FailedChunkError, SerialExecutor, Session
from localsmooth.sampling.failures import PoisonedChunk, PoisonedChunksError, redraw
from localsmooth.sampling.file_store import FileStore
from localsmooth.sampling.joining import Joined, join
from localsmooth.sampling.json_progress import JsonProgress
from localsmooth.sampling.named_executors import EXECUTORS, ExecutorName, named_executor
from localsmooth.sampling.options import BatchSize, SamplingOptions
from localsmooth.sampling.overview import RunOverview, find_runs, survey
from localsmooth.sampling.part import OtherPartsMissingError, Part
from localsmooth.sampling.plan import Chunk, SamplingPlan, Stage
from localsmooth.sampling.predictions import Predictions
from localsmooth.sampling.processes import ProcessExecutor
from localsmooth.sampling.progress import (
    CertifyingProgress,
    NoProgress,
    RichProgress,
    SamplingProgress,
    default_progress,
    tell_certifying,
)
from localsmooth.sampling.ray_cluster import RayExecutor
from localsmooth.sampling.record import ChunkRecord, CorruptRecordError
from localsmooth.sampling.sample import sample, sample_subject
from localsmooth.sampling.stopping import StoppingRule
from localsmooth.sampling.store import MemoryStore, MergedCounts, OtherRunError, Store, StoreError
from localsmooth.sampling.subject import PreparedGroup, Ready, Subject
from localsmooth.sampling.tally import ItemTally, collect_tallies
from localsmooth.sampling.threads import ThreadExecutor, default_executor
from localsmooth.sampling.usage import SamplingSummary

__all__ = [
    "EXECUTORS",
    "Accumulator",
    "ArraySubject",
    "BatchSize",
    "Calibration",
    "CertifyingProgress",
    "Chunk",
    "ChunkRecord",
    "ChunkWorker",
    "CorruptRecordError",
    "Counter",
    "Counters",
    "CountingScope",
    "DirectoryStore",
    "Executor",
    "ExecutorName",
    "FailedChunkError",
    "FaultyPredictionError",
    "FileStore",
    "ItemTally",
    "Job",
    "Joined",
    "JsonProgress",
    "LabelCounts",
    "MemoryStore",
    "MergedCounts",
    "NoProgress",
    "OtherPartsMissingError",
    "OtherRunError",
    "Part",
    "PoisonedChunk",
    "PoisonedChunksError",
    "Predictions",
    "PreparedGroup",
    "ProcessExecutor",
    "RayExecutor",
    "Ready",
    "RichProgress",
    "RunConfiguration",
    "RunOverview",
    "SamplingOptions",
    "SamplingPlan",
    "SamplingProgress",
    "SamplingSummary",
    "SerialExecutor",
    "Session",
    "Stage",
    "StoppingRule",
    "Store",
    "StoreError",
    "Subject",
    "ThreadExecutor",
    "Votes",
    "calibrate",
    "collect_tallies",
    "default_executor",
    "default_progress",
    "describe_run",
    "find_runs",
    "join",
    "named_executor",
    "open_store",
    "redraw",
    "sample",
    "sample_subject",
    "survey",
    "tell_certifying",
]
