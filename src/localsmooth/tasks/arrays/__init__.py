"""Arrays: images, volumes, sequences, tables of features."""

from localsmooth.tasks.arrays.calibration import everywhere, subjects_by_level
from localsmooth.tasks.arrays.inputs import class_names_of, layouts_of, require_one_each
from localsmooth.tasks.arrays.item import (
    SampledItem,
    bounded_outputs,
    certify_item,
    certify_overlaps,
    counted_outputs,
    counting_groups,
    item_stakes,
    target_kinds,
)
from localsmooth.tasks.arrays.reserve import drawing_charge
from localsmooth.tasks.arrays.settings import Drawn, ItemMethod, Settings, equally_spaced
from localsmooth.tasks.arrays.task import ArrayTask
from localsmooth.tasks.arrays.threat import THREATS, Flips, ItemThreat, Kind, NormBall, PerPosition
from localsmooth.tasks.arrays.tunable import ArrayTrial

__all__ = [
    "THREATS",
    "ArrayTask",
    "ArrayTrial",
    "Drawn",
    "Flips",
    "ItemMethod",
    "ItemThreat",
    "Kind",
    "NormBall",
    "PerPosition",
    "SampledItem",
    "Settings",
    "bounded_outputs",
    "certify_item",
    "certify_overlaps",
    "class_names_of",
    "counted_outputs",
    "counting_groups",
    "drawing_charge",
    "equally_spaced",
    "everywhere",
    "item_stakes",
    "layouts_of",
    "require_one_each",
    "subjects_by_level",
    "target_kinds",
]
