"""The embedded default: scenes of real handwritten digits and a network that segments them."""

from localsmooth.scenes.digits import BACKGROUND, CLASS_NAMES, SCENE_SHAPE, DigitScenes, Scene, Split, digit_indices
from localsmooth.scenes.unet import CHECKPOINT, DEFAULT_WIDTH, TOLD_CHECKPOINT, UNet, load_unet

__all__ = [
    "BACKGROUND",
    "CHECKPOINT",
    "CLASS_NAMES",
    "DEFAULT_WIDTH",
    "SCENE_SHAPE",
    "TOLD_CHECKPOINT",
    "DigitScenes",
    "Scene",
    "Split",
    "UNet",
    "digit_indices",
    "load_unet",
]
