"""What one output group's model call is allowed to see."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType

import numpy as np
from jaxtyping import Bool

__all__ = ["View"]


@dataclass(frozen=True, eq=False)
class View:
    """The part of the input that reaches the model for one output group.

    The view is part of the base classifier: inputs outside it cannot influence the group's outputs, whatever the
    model does, which is what makes the group *strictly local* (Schuchardt et al. 2021).

    Parameters
    ----------
    inputs
        Crop of the input's trailing (spatial) axes that the model is run on; None for the whole input.
    outputs
        Where the outputs of the cropped call lie in the full output; None for the whole output.
    hidden
        Where inputs are replaced by a constant, in the shape of the input label map (before cropping); None for
        nowhere.
    """

    inputs: tuple[slice, ...] | None = None
    outputs: tuple[slice, ...] | None = None
    hidden: Bool[np.ndarray, "..."] | None = None

    @property
    def window(self) -> tuple[EllipsisType | slice, ...]:
        """Index of what the model is run on, in an array of which the input's trailing axes are the last."""
        return (..., *(self.inputs or ()))
