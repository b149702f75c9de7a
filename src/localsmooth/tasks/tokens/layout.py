"""Windows of consecutive tokens: which tokens share a distribution, and how noise grows with distance."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.errors import require_whole_number
from localsmooth.layout import GridLayout, Layout

__all__ = ["WindowLayout"]


@dataclass(frozen=True)
class WindowLayout:
    """A rule for sequences of any length: consecutive windows, with levels that grow with their distance.

    Parameters
    ----------
    windows
        Number of windows; a sequence with fewer tokens has one for each. 1 is isotropic smoothing.
    minimum, maximum
        Level in a window itself, and in the window that is farthest from any other.
    mask_beyond
        Hide tokens farther than this many from the window; None to hide nothing.

    Raises
    ------
    InvalidInputError
        If there is no window.
    """

    windows: int
    minimum: float
    maximum: float
    mask_beyond: int | None = None

    def __post_init__(self) -> None:
        require_whole_number("windows", self.windows, 1, "Pass at least one window")

    def layout(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
        """Make the layout for one sequence, features × tokens."""
        cells = (min(self.windows, input_shape[-1], *output_shape),)
        grid = GridLayout(cells, self.minimum, self.maximum, mask_beyond=self.mask_beyond)
        return grid.layout(input_shape, output_shape)
