"""Train a network under the noise with which it will be certified."""

from localsmooth.training.loop import LabelledData, TrainingProgress, TrainingReport, train, validation_miou
from localsmooth.training.losses import IGNORED, CrossEntropy, Dice, Loss
from localsmooth.training.noise import AllGroups, Augmentation, GroupNoise, NoisyBatch, OneGroup
from localsmooth.training.options import Schedule, TrainingOptions, constant, one_cycle
from localsmooth.training.state import History, TrainingStoreError
from localsmooth.training.varied import LayoutDraw, RandomGrids, VariedLayouts
from localsmooth.training.widening import widened

__all__ = [
    "IGNORED",
    "AllGroups",
    "Augmentation",
    "CrossEntropy",
    "Dice",
    "GroupNoise",
    "History",
    "LabelledData",
    "LayoutDraw",
    "Loss",
    "NoisyBatch",
    "OneGroup",
    "RandomGrids",
    "Schedule",
    "TrainingOptions",
    "TrainingProgress",
    "TrainingReport",
    "TrainingStoreError",
    "VariedLayouts",
    "constant",
    "one_cycle",
    "train",
    "validation_miou",
    "widened",
]
