"""What is drawn and counted: subjects, noise on them, predictions, tallies."""

from localsmooth.sampling.arrays import ArraySubject, describe_run, prepare_items
from localsmooth.sampling.calibration import Calibration, calibrate
from localsmooth.sampling.counter import (
    Accumulator,
    Counter,
    Counters,
    CountingScope,
    LabelCounts,
    Votes,
    require_votes_only,
)
from localsmooth.sampling.engine import ChunkWorker, FaultyPredictionError, Job
from localsmooth.sampling.options import BatchSize, SamplingOptions
from localsmooth.sampling.predictions import Predictions
from localsmooth.sampling.preparation import compare_predictions, try_out
from localsmooth.sampling.region import Region
from localsmooth.sampling.score_counters import NORMALISED, CandidateScores, LabelsAndScores, ScoreBins, ScorePowers
from localsmooth.sampling.subject import PreparedGroup, Ready, Subject, groups_of
from localsmooth.sampling.tally import (
    ItemTally,
    choose,
    collect_ended,
    collect_tallies,
    require_choice,
    settled,
    unfinished_items,
)

__all__ = [
    "NORMALISED",
    "Accumulator",
    "ArraySubject",
    "BatchSize",
    "Calibration",
    "CandidateScores",
    "ChunkWorker",
    "Counter",
    "Counters",
    "CountingScope",
    "FaultyPredictionError",
    "ItemTally",
    "Job",
    "LabelCounts",
    "LabelsAndScores",
    "Predictions",
    "PreparedGroup",
    "Ready",
    "Region",
    "SamplingOptions",
    "ScoreBins",
    "ScorePowers",
    "Subject",
    "Votes",
    "calibrate",
    "choose",
    "collect_ended",
    "collect_tallies",
    "compare_predictions",
    "describe_run",
    "groups_of",
    "prepare_items",
    "require_choice",
    "require_votes_only",
    "settled",
    "try_out",
    "unfinished_items",
]
