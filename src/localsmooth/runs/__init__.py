"""What is on disk: plans, chunks, stores, and how runs are joined and surveyed."""

from localsmooth.runs.address import is_address
from localsmooth.runs.directory import DirectoryStore, open_store
from localsmooth.runs.file_store import FileStore
from localsmooth.runs.identity import RunIdentity, chosen_digest, digest
from localsmooth.runs.joining import CANDIDATES_FROM, PREDICTIONS, Joined, join, require_like_predictions
from localsmooth.runs.overview import OUTPUT_GROUPS, Survey, find_runs, poisoned_name, survey
from localsmooth.runs.plan import Chunk, PassPlan, SamplingPlan, Stage
from localsmooth.runs.record import ChunkRecord, CorruptRecordError
from localsmooth.runs.stopping import StoppingRule
from localsmooth.runs.store import (
    ChunkKey,
    FewerSamplesError,
    MemoryStore,
    MergedCounts,
    OtherRunError,
    Store,
    StoreError,
    interrupted_words,
)

__all__ = [
    "CANDIDATES_FROM",
    "OUTPUT_GROUPS",
    "PREDICTIONS",
    "Chunk",
    "ChunkKey",
    "ChunkRecord",
    "CorruptRecordError",
    "DirectoryStore",
    "FewerSamplesError",
    "FileStore",
    "Joined",
    "MemoryStore",
    "MergedCounts",
    "OtherRunError",
    "PassPlan",
    "RunIdentity",
    "SamplingPlan",
    "Stage",
    "StoppingRule",
    "Store",
    "StoreError",
    "Survey",
    "chosen_digest",
    "digest",
    "find_runs",
    "interrupted_words",
    "is_address",
    "join",
    "open_store",
    "poisoned_name",
    "require_like_predictions",
    "survey",
]
