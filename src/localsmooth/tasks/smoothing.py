"""What makes the smoothed classifier of a base classifier: where noise goes, which, and how often it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType

from localsmooth.errors import require_kind
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.noise import Noise
from localsmooth.runs import PassPlan, SamplingPlan, StoppingRule

__all__ = ["Smoothing", "work_of"]


@dataclass(frozen=True, eq=False)
class Smoothing:
    """How a base classifier is smoothed.

    Parameters
    ----------
    layout
        Which output sees how much noise in which input: a layout, or a recipe such as `GridLayout` that makes one for
        each item's size, or a list with one of these for each item.
    plan
        Numbers of samples and the seed, or the work from which they follow (`for_passes`); with
        `stop=StopWhenDecided()`, output groups stop when they are decided.
    noise
        Family of smoothing distributions; the task's own by default, which is Gaussian for arrays.

    Raises
    ------
    InvalidInputError
        If one of them is something else.
    """

    layout: Layout | LayoutRecipe | Sequence[Layout | LayoutRecipe]
    plan: SamplingPlan | PassPlan
    noise: Noise | None = None

    def __post_init__(self) -> None:
        for layout in self.layout if isinstance(self.layout, list | tuple) else (self.layout,):
            require_kind("layout", layout, Layout, LayoutRecipe)
        require_kind("plan", self.plan, SamplingPlan, PassPlan)
        require_kind("noise", self.noise, Noise, NoneType)

    @classmethod
    def for_passes(
        cls,
        layout: Layout | LayoutRecipe | Sequence[Layout | LayoutRecipe],
        passes: float | int,
        noise: Noise | None = None,
        *,
        split: float = 1 / 9,
        seed: int = 0,
        chunk_size: int = 128,
        stop: StoppingRule | None = None,
    ) -> Smoothing:
        """As many samples as a budget of work affords: N₁ and N₂ follow from what a sample of the layout takes.

        Parameters
        ----------
        layout, noise
            As for `Smoothing`.
        passes
            Passes over one item, both stages and all output groups together; a window counts by its share of the
            item. Of a graph, every pass is over the whole of it, and a sample takes one for each cluster.
        split
            Share of the samples that choose candidates (N₁).
        seed, chunk_size, stop
            As in `SamplingPlan`.

        Raises
        ------
        InvalidInputError
            As `PassPlan`.
        """
        return cls(layout, PassPlan(passes, split, seed, chunk_size, stop), noise)

    def planned(self, layouts: Sequence[Layout]) -> SamplingPlan:
        """The numbers of samples.

        Parameters
        ----------
        layouts
            Of each item.

        Raises
        ------
        InvalidInputError
            If the work affords too few.
        """
        return self.plan if isinstance(self.plan, SamplingPlan) else self.plan.plan(work_of(layouts))


def work_of(layouts: Sequence[Layout]) -> float:
    """Passes over one item that one sample of every output group takes: mean over items.

    Parameters
    ----------
    layouts
        Of each item.
    """
    return sum(float(layout.shown.sum()) for layout in layouts) / len(layouts)
