"""Arrays: images, volumes, sequences, tables of features."""

from localsmooth.tasks.arrays.settings import ItemMethod, Settings
from localsmooth.tasks.arrays.task import ArrayTask
from localsmooth.tasks.arrays.threat import Flips, ItemThreat, Kind, NormBall, PerPosition

__all__ = ["ArrayTask", "Flips", "ItemMethod", "ItemThreat", "Kind", "NormBall", "PerPosition", "Settings"]
