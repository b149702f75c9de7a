"""Which part of the input a group's model call sees, and where the group's outputs lie in what comes back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout

__all__ = ["Region"]


@dataclass(frozen=True, eq=False)
class Region:
    """The window of one output group on the input and on the outputs, resolved to indices.

    Parameters
    ----------
    crop
        Crop of the trailing axes of the input label map; None for the whole input.
    level_map
        Noise level of each element of the cropped label map (then parameters of the level, if any).
    output_shape
        Shape of the outputs of the cropped call, batch and classes left out.
    box
        The group's outputs among those, where they form a box.
    index
        Their flat positions, ascending, where they do not.
    """

    crop: tuple[slice, ...] | None
    level_map: Float[np.ndarray, "..."]
    output_shape: tuple[int, ...]
    box: tuple[slice, ...] | None
    index: Int[torch.Tensor, " members"] | None

    @classmethod
    def of(cls, layout: Layout, group: int, device: torch.device | str = "cpu") -> Region:
        """Resolve one output group of a layout, for outputs on a device.

        Raises
        ------
        InvalidInputError
            If the group's view crops some of the group's own outputs away.
        """
        view = layout.view(group)
        levels = layout.level_map(group, view.window)
        mask = layout.outputs.labels[view.outputs or ()] == group
        if int(mask.sum()) != int(layout.outputs.sizes[group]):
            raise InvalidInputError(
                "views",
                f"the view of output group {group} does not contain all outputs of the group",
                "Widen its `outputs` until it does",
            )
        box = _box(np.asarray(mask))
        index = torch.as_tensor(np.flatnonzero(mask), device=device) if box is None else None
        return cls(view.inputs, levels, np.asarray(mask).shape, box, index)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape in which `select` returns the group's outputs; its flat order is the order of their positions."""
        if self.box is not None:
            return tuple(s.stop - s.start for s in self.box)
        assert self.index is not None
        return (self.index.numel(),)

    def of_item(self, item: torch.Tensor) -> torch.Tensor:
        """Crop an item of shape (*channels, *label map)."""
        return item if self.crop is None else item[(..., *self.crop)]

    def select(self, outputs: torch.Tensor) -> torch.Tensor:
        """Pick the group's outputs from the trailing axes of a tensor: a view where they form a box.

        Parameters
        ----------
        outputs
            Shape (…, *output_shape).

        Returns
        -------
        torch.Tensor
            Shape (…, *shape).
        """
        if self.box is not None:
            return outputs[(..., *self.box)]
        leading = outputs.shape[: outputs.ndim - len(self.output_shape)]
        assert self.index is not None
        return outputs.reshape(*leading, -1).index_select(-1, self.index)


def _box(mask: Bool[np.ndarray, "..."]) -> tuple[slice, ...] | None:
    """The box that the true elements fill, or None if they do not form one."""
    if mask.ndim == 0:
        return ()
    box = tuple(slice(int(axis.min()), int(axis.max()) + 1) for axis in np.nonzero(mask))
    return box if bool(mask[box].all()) else None
