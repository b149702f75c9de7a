"""One item of a result, without its padding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int, Shaped

from localsmooth.results.names import NO_GROUP, NO_LABEL
from localsmooth.results.output_names import NAMES

__all__ = ["ItemView", "item_view"]


@dataclass(frozen=True, eq=False)
class ItemView:
    """Arrays of one item at its own size; the fields are those of `ItemResult`.

    An unlabelled item has no label; `ignored` is always given; results from before it was recorded have no `relies_on`.
    `names` are those of single outputs, such as words, where they have any.
    """

    name: str
    label: Int[np.ndarray, "*out"] | None
    ignored: Bool[np.ndarray, "*out"]
    candidate: Int[np.ndarray, "*out"]
    prediction: Int[np.ndarray, "*out"]
    votes: Int[np.ndarray, "*out"]
    lower_probability: Float[np.ndarray, "*out"]
    eta: Float[np.ndarray, "*out"]
    radius: Float[np.ndarray, "*out"]
    output_group: Int[np.ndarray, "*out"]
    input_group: Int[np.ndarray, "*space"]
    image: Float[np.ndarray, "channels *space"] | None
    relies_on: Int[np.ndarray, "*out"] | None
    names: Shaped[np.ndarray, "*out"] | None = None
    clean: Int[np.ndarray, "*out"] | None = None

    @property
    def counted(self) -> Bool[np.ndarray, "*out"]:
        """Outputs that count: all that are not ignored."""
        return ~self.ignored


def item_view(dataset: xr.Dataset, index: int) -> ItemView:
    """Cut one item of a validated result out of its padding."""
    item = dataset.isel(item=index)

    def array(name: str, where: tuple[slice, ...] = ()) -> np.ndarray:
        return np.asarray(item[name].values[where])

    outputs = _extent(array("output_partition") != NO_GROUP)
    inputs = _extent(array("input_partition") != NO_GROUP)
    label = array("label", outputs)
    clean = array("clean", outputs) if "clean" in item else None
    return ItemView(
        name=str(item["item"].item()),
        label=label if bool(np.any(label != NO_LABEL)) else None,
        ignored=array("ignored", outputs),
        candidate=array("candidate", outputs),
        prediction=array("prediction", outputs),
        votes=array("votes", outputs),
        lower_probability=array("lower_probability", outputs),
        eta=array("eta", outputs),
        radius=array("radius", outputs),
        output_group=array("output_partition", outputs),
        input_group=array("input_partition", inputs),
        image=array("image", (slice(None), *inputs)) if "image" in item else None,
        relies_on=array("relies_on", outputs) if "relies_on" in item else None,
        names=array(NAMES, outputs) if NAMES in item else None,
        clean=clean if clean is not None and bool(np.any(clean != NO_LABEL)) else None,
    )


def _extent(inside: np.ndarray | np.bool_) -> tuple[slice, ...]:
    """Slices of the smallest leading box that holds everything inside."""
    sizes: list[int] = []
    for axis in range(inside.ndim):
        others = tuple(other for other in range(inside.ndim) if other != axis)
        sizes.append(int(np.count_nonzero(np.any(inside, axis=others))))
    return tuple(slice(size) for size in sizes)
