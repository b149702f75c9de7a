"""The layout: two partitions and one level matrix, read by the sampler and by the certificate alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import EllipsisType

import numpy as np
from jaxtyping import Bool, Float

from localsmooth.errors import InvalidInputError
from localsmooth.layout.origin import origins_of
from localsmooth.layout.partition import Partition
from localsmooth.layout.view import View

__all__ = ["Layout", "isotropic_layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Output groups, input groups and the noise level between each pair.

    Parameters
    ----------
    outputs
        Partition of the model's outputs; outputs of one group share a smoothing distribution.
    inputs
        Partition of the input; inputs of one group share a noise level. Its label map has the shape of the whole
        input or of its trailing (spatial) axes.
    levels
        `levels[i, l]`, the level of the noise that group-i outputs see on group-l inputs, with further trailing axes
        for distributions that have several parameters. `inf` hides the inputs altogether: they are replaced by a
        constant and have certificate weight 0. Levels must not depend on the input that is certified.
    views
        One view per output group for strictly local evaluation; None to show every group the whole input.
    origins
        Digests of what levels or groups were computed from, which may not be certified with this layout. Those that
        the arrays remember (`derived`) are added.
    cells
        The partition of the input whose group i belongs to output group i, where masks and windows have split its
        groups further into those of `inputs`; None where nothing is split.

    Raises
    ------
    InvalidInputError
        If the level matrix does not have one row per output group and one column per input group, or contains NaN;
        or if there is not one view per output group.
    """

    outputs: Partition
    inputs: Partition
    levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    views: tuple[View, ...] | None = None
    origins: frozenset[str] = frozenset()
    cells: Partition | None = None

    def __post_init__(self) -> None:
        wanted = (self.outputs.count, self.inputs.count)
        if self.levels.shape[:2] != wanted:
            raise InvalidInputError(
                "levels",
                f"shape {self.levels.shape} does not match {wanted[0]} output groups and {wanted[1]} input groups",
                "Pass one row per output group and one column per input group",
            )
        if np.isnan(self.levels).any():
            raise InvalidInputError("levels", "the level matrix contains NaN", "Use inf for inputs that are hidden")
        if self.views is not None and len(self.views) != self.outputs.count:
            raise InvalidInputError(
                "views",
                f"{len(self.views)} views for {self.outputs.count} output groups",
                "Pass one view per output group",
            )
        origins = self.origins | origins_of(self.levels, self.outputs, self.inputs)
        object.__setattr__(self, "origins", origins)
        owned = np.array(self.levels, dtype=np.float64)
        owned.flags.writeable = False
        object.__setattr__(self, "levels", owned)

    def require_independent(self, digest: str, what: str, remedy: str) -> None:
        """Refuse to certify what levels or groups were computed from: they would change with every perturbation.

        Parameters
        ----------
        digest
            Of what the adversary perturbs.
        what, remedy
            How to call it, and what to use instead.

        Raises
        ------
        InvalidInputError
            Naming the layout.
        """
        if digest in self.origins:
            raise InvalidInputError(
                "layout",
                f"its levels or groups were computed from {what} that is certified: the smoothed classifier would "
                "change with the perturbation",
                remedy,
            )

    def view(self, group: int) -> View:
        """What the model sees when it predicts one output group."""
        return View() if self.views is None else self.views[group]

    @property
    def shown(self) -> Float[np.ndarray, " output_groups"]:
        """Share of the input that the model is run on for each output group: what a sample of it costs."""
        shape = self.inputs.labels.shape
        made = np.ones(self.outputs.count)
        for group in range(self.outputs.count):
            for axis, crop in enumerate(reversed(self.view(group).inputs or ()), start=1):
                made[group] *= len(range(shape[-axis])[crop]) / shape[-axis]
        return made

    def level_map(self, group: int, crop: tuple[EllipsisType | slice, ...] = ()) -> Float[np.ndarray, "..."]:
        """Noise level of every element of the input label map under one output group's distribution.

        Inputs that the group's view hides have level `inf`. Parameters of the level, if any, are trailing axes.

        Parameters
        ----------
        group
            Which output group.
        crop
            The part of the label map that is wanted, all of it by default.
        """
        levels = self.levels[group][self.inputs.labels[crop]]
        hidden = self.view(group).hidden
        if hidden is not None:
            levels[hidden[crop]] = np.inf
        return levels

    @property
    def visible(self) -> Bool[np.ndarray, "output_groups input_groups"]:
        """Whether inputs of a group can influence outputs of a group at all."""
        hidden = np.isinf(self.levels).reshape(*self.levels.shape[:2], -1)
        return np.asarray(~hidden.all(axis=-1))

    @property
    def view_bytes(self) -> bytes:
        """What `digest` reads of the views; empty where there are none."""
        made = b""
        for view in self.views or ():
            made += repr((view.inputs, view.outputs)).encode()
            if view.hidden is not None:
                made += np.packbits(view.hidden).tobytes()
        return made

    def digest(self, view_bytes: bytes | None = None) -> str:
        """Hexadecimal SHA-256 of everything that determines the smoothing distributions and the weights.

        Parameters
        ----------
        view_bytes
            Stands for the views, in a layout that was kept without them; by default its own.
        """
        state = hashlib.sha256()
        for array in (self.outputs.labels, self.inputs.labels, self.levels):
            state.update(str((array.shape, array.dtype.str)).encode())
            state.update(np.ascontiguousarray(array).data)
        state.update(self.view_bytes if view_bytes is None else view_bytes)
        return state.hexdigest()


def isotropic_layout(level: float, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
    """One output group, one input group, one level: ordinary randomized smoothing (Cohen et al. 2019).

    Parameters
    ----------
    level
        Noise level everywhere.
    input_shape, output_shape
        Shapes of the input's label map and of the outputs.
    """
    return Layout(
        Partition(np.zeros(output_shape, dtype=np.int32)),
        Partition(np.zeros(input_shape, dtype=np.int32)),
        np.array([[float(level)]]),
    )
