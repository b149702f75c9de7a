"""Inputs and labels to certify, from arrays, picture files, known data sets and the embedded scenes."""

from localsmooth.datasets.arrays import load_array, load_arrays, load_sequences, read_arrays
from localsmooth.datasets.cityscapes import Cityscapes, CityscapesSplit
from localsmooth.datasets.folder import SegmentationFolder
from localsmooth.datasets.items import Item, ItemSet
from localsmooth.datasets.pascal_voc import PascalVoc, VocSplit
from localsmooth.datasets.pictures import load_pictures

__all__ = [
    "Cityscapes",
    "CityscapesSplit",
    "Item",
    "ItemSet",
    "PascalVoc",
    "SegmentationFolder",
    "VocSplit",
    "load_array",
    "load_arrays",
    "load_pictures",
    "load_sequences",
    "read_arrays",
]
