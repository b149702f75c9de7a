"""What makes the smoothed classifier of a base classifier: where noise goes, which, and how often it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType

from localsmooth.errors import require_kind
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.noise import Noise
from localsmooth.runs import SamplingPlan

__all__ = ["Smoothing"]


@dataclass(frozen=True, eq=False)
class Smoothing:
    """How a base classifier is smoothed.

    Parameters
    ----------
    layout
        Which output sees how much noise in which input: a layout, or a recipe such as `GridLayout` that makes one for
        each item's size, or a list with one of these for each item.
    plan
        Numbers of samples and the seed; with `stop=StopWhenDecided()`, output groups stop when they are decided.
    noise
        Family of smoothing distributions; the task's own by default, which is Gaussian for arrays.

    Raises
    ------
    InvalidInputError
        If one of them is something else.
    """

    layout: Layout | LayoutRecipe | Sequence[Layout | LayoutRecipe]
    plan: SamplingPlan
    noise: Noise | None = None

    def __post_init__(self) -> None:
        for layout in self.layout if isinstance(self.layout, list | tuple) else (self.layout,):
            require_kind("layout", layout, Layout, LayoutRecipe)
        require_kind("plan", self.plan, SamplingPlan)
        require_kind("noise", self.noise, Noise, NoneType)
