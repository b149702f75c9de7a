"""From a task to a labelled result, whatever the kind of input: sampling, keeping, certifying, certifying again."""

from localsmooth.pipeline.again import certified_overlap, recertify, settings_of
from localsmooth.pipeline.estimate import Estimate
from localsmooth.pipeline.keeping import interruption, open_tallies, remembered_store
from localsmooth.pipeline.looks import Sight
from localsmooth.pipeline.planning import plan
from localsmooth.pipeline.run import Run
from localsmooth.pipeline.transferring import candidates_from
from localsmooth.pipeline.walk import NothingDrawnError, certify

__all__ = [
    "Estimate",
    "NothingDrawnError",
    "Run",
    "Sight",
    "candidates_from",
    "certified_overlap",
    "certify",
    "interruption",
    "open_tallies",
    "plan",
    "recertify",
    "remembered_store",
    "settings_of",
]
