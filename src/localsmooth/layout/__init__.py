"""Which outputs share a smoothing distribution, which inputs share a noise level, and the matrix of levels."""

from localsmooth.layout.fields import SeenAtoms, atoms_of, window_fields
from localsmooth.layout.grid import Grid, GridLayout, LayoutRecipe, grid_layout
from localsmooth.layout.layout import Layout, isotropic_layout
from localsmooth.layout.levels import (
    Interpolation,
    Reach,
    chebyshev,
    distance_levels,
    euclidean,
    farthest_of_each_cell,
    farthest_of_grid,
    linear,
    linear_in_variance,
)
from localsmooth.layout.locality import masked, windowed
from localsmooth.layout.origin import derived, item_digest, origins_of
from localsmooth.layout.partition import Partition
from localsmooth.layout.remembering import Remembering
from localsmooth.layout.view import View

__all__ = [
    "Grid",
    "GridLayout",
    "Interpolation",
    "Layout",
    "LayoutRecipe",
    "Partition",
    "Reach",
    "Remembering",
    "SeenAtoms",
    "View",
    "atoms_of",
    "chebyshev",
    "derived",
    "distance_levels",
    "euclidean",
    "farthest_of_each_cell",
    "farthest_of_grid",
    "grid_layout",
    "isotropic_layout",
    "item_digest",
    "linear",
    "linear_in_variance",
    "masked",
    "origins_of",
    "window_fields",
    "windowed",
]
