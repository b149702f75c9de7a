"""What is on disk: plans, chunks, stores, and how runs are joined and surveyed."""

from localsmooth.runs.configuration import RunConfiguration
from localsmooth.runs.directory import DirectoryStore, open_store
from localsmooth.runs.file_store import FileStore
from localsmooth.runs.joining import Joined, join
from localsmooth.runs.plan import Chunk, SamplingPlan, Stage
from localsmooth.runs.record import ChunkRecord, CorruptRecordError
from localsmooth.runs.stopping import StoppingRule
from localsmooth.runs.store import MemoryStore, MergedCounts, OtherRunError, Store, StoreError
from localsmooth.runs.survey import Survey, find_runs, survey

__all__ = [
    "Chunk",
    "ChunkRecord",
    "CorruptRecordError",
    "DirectoryStore",
    "FileStore",
    "Joined",
    "MemoryStore",
    "MergedCounts",
    "OtherRunError",
    "RunConfiguration",
    "SamplingPlan",
    "Stage",
    "StoppingRule",
    "Store",
    "StoreError",
    "Survey",
    "find_runs",
    "join",
    "open_store",
    "survey",
]
