"""What is drawn and counted: subjects, noise on them, predictions, tallies."""

from localsmooth.sampling.arrays import ArraySubject, describe_run
from localsmooth.sampling.calibration import Calibration, calibrate
from localsmooth.sampling.counter import Accumulator, Counter, Counters, CountingScope, LabelCounts, Votes
from localsmooth.sampling.engine import ChunkWorker, FaultyPredictionError, Job
from localsmooth.sampling.options import BatchSize, SamplingOptions
from localsmooth.sampling.predictions import Predictions
from localsmooth.sampling.subject import PreparedGroup, Ready, Subject
from localsmooth.sampling.tally import ItemTally, collect_tallies

__all__ = [
    "Accumulator",
    "ArraySubject",
    "BatchSize",
    "Calibration",
    "ChunkWorker",
    "Counter",
    "Counters",
    "CountingScope",
    "FaultyPredictionError",
    "ItemTally",
    "Job",
    "LabelCounts",
    "Predictions",
    "PreparedGroup",
    "Ready",
    "SamplingOptions",
    "Subject",
    "Votes",
    "calibrate",
    "collect_tallies",
    "describe_run",
]
