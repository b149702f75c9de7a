"""How local a model is, and the levels that follow from it."""

from localsmooth.layout import item_digest
from localsmooth.locality.levels_file import LevelsFile, read_levels, require_unseen, write_levels
from localsmooth.locality.measure import Measurement, measure_locality
from localsmooth.locality.measurement_file import read_measurement, write_measurement
from localsmooth.locality.tolerated import largest_levels

__all__ = [
    "LevelsFile",
    "Measurement",
    "item_digest",
    "largest_levels",
    "measure_locality",
    "read_levels",
    "read_measurement",
    "require_unseen",
    "write_levels",
    "write_measurement",
]
