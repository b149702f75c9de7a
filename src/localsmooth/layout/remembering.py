"""Rules that were chosen by looking at items: their layouts do not certify these."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.layout.grid import LayoutRecipe
from localsmooth.layout.layout import Layout

__all__ = ["Remembering"]


@dataclass(frozen=True, eq=False)
class Remembering:
    """A layout, or a rule, that was chosen by looking at some items: its layouts remember them.

    Parameters
    ----------
    of
        The layout or rule.
    origins
        `item_digest` of the items.
    """

    of: Layout | LayoutRecipe
    origins: frozenset[str]

    def layout(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
        """Make the layout for one item, which must be none of those."""
        made = self.of if isinstance(self.of, Layout) else self.of.layout(input_shape, output_shape)
        return Layout(made.outputs, made.inputs, made.levels, made.views, made.origins | self.origins)
