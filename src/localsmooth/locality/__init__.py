"""Choosing the noise: how local a model is, and the levels that follow from it."""

from localsmooth.layout import item_digest
from localsmooth.locality.levels_file import LevelsFile, read_levels, require_unseen, write_levels
from localsmooth.locality.measure import Measurement, measure_joint, measure_locality
from localsmooth.locality.proposal import Proposal, largest_levels, propose

__all__ = [
    "LevelsFile",
    "Measurement",
    "Proposal",
    "item_digest",
    "largest_levels",
    "measure_joint",
    "measure_locality",
    "propose",
    "read_levels",
    "require_unseen",
    "write_levels",
]
