"""Inputs and labels to certify, from arrays, picture files and the embedded scenes."""

from localsmooth.datasets.arrays import load_arrays
from localsmooth.datasets.items import Item, ItemSet
from localsmooth.datasets.pictures import load_pictures

__all__ = ["Item", "ItemSet", "load_arrays", "load_pictures"]
