"""Noise that is shaped to a model: candidates, pilots, what they foretell, and the choice."""

from localsmooth.tuning.candidates import Candidate, grid_candidates, isotropic_candidates
from localsmooth.tuning.clusters import cluster_candidates
from localsmooth.tuning.files import MADE_BY, Contest, contest_of, file_candidates, require_beside, write_tuned
from localsmooth.tuning.forecast import Aim, Forecast, foretell
from localsmooth.tuning.halving import Tried, halved, planned, ranked
from localsmooth.tuning.pilot import Entry, Pilots, pilot_seed, require_plain_seed
from localsmooth.tuning.predictive import draw_errors, foretold
from localsmooth.tuning.search import Tuning, tune

__all__ = [
    "MADE_BY",
    "Aim",
    "Candidate",
    "Contest",
    "Entry",
    "Forecast",
    "Pilots",
    "Tried",
    "Tuning",
    "cluster_candidates",
    "contest_of",
    "draw_errors",
    "file_candidates",
    "foretell",
    "foretold",
    "grid_candidates",
    "halved",
    "isotropic_candidates",
    "pilot_seed",
    "planned",
    "ranked",
    "require_beside",
    "require_plain_seed",
    "tune",
    "write_tuned",
]
