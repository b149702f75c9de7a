"""Graphs, under the name by which they are imported: `from localsmooth.graphs import GraphTask`."""

from localsmooth.tasks.graphs import *  # noqa: F403
from localsmooth.tasks.graphs import __all__ as __all__
