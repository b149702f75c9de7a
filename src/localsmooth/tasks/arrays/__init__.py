"""Arrays: images, volumes, sequences, tables of features."""

from localsmooth.tasks.arrays.item import SampledItem, target_kinds, target_masks
from localsmooth.tasks.arrays.settings import Drawn, ItemMethod, Settings, equally_spaced
from localsmooth.tasks.arrays.task import ArrayTask
from localsmooth.tasks.arrays.threat import Flips, ItemThreat, Kind, NormBall, PerPosition

__all__ = [
    "ArrayTask",
    "Drawn",
    "Flips",
    "ItemMethod",
    "ItemThreat",
    "Kind",
    "NormBall",
    "PerPosition",
    "SampledItem",
    "Settings",
    "equally_spaced",
    "target_kinds",
    "target_masks",
]
