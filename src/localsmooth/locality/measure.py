"""How much noise in one part of the input disturbs the predictions of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, isotropic_layout, item_digest
from localsmooth.models import Model
from localsmooth.noise import Noise, Randomness
from localsmooth.sampling import Predictions, Region

__all__ = ["Measurement", "measure_locality"]

_SINGLE = 201  # first entry of the keys of streams, apart from those of sampling and training

Advance = Callable[[int], None]
"""Told how many samples were drawn."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Vote agreement of output groups with noise in one input group at a time, the rest of the input clean.

    Parameters
    ----------
    levels
        Noise levels that were tried, ascending.
    agreement
        Share of votes that are the clean prediction, in [0, 1]: by level, output group and input group. A mean over
        items, outputs of the group and samples.
    items, samples
        How many items, and how many samples of each at each level and input group.
    origins
        `item_digest` of the items: levels that follow from the measurement remember them, and do not certify them.
    """

    levels: Float[np.ndarray, "levels"]
    agreement: Float[np.ndarray, "levels output_groups input_groups"]
    items: int
    samples: int
    origins: frozenset[str] = frozenset()


def measure_locality(
    model: Model,
    items: Sequence[Float[np.ndarray, "channels *spatial"]],
    layouts: Sequence[Layout],
    noise: Noise,
    levels: Sequence[float],
    *,
    samples: int = 16,
    seed: int = 0,
    batch_size: int = 32,
    advance: Advance | None = None,
) -> Measurement:
    """Measure how local a model is, on items that are not certified.

    Parameters
    ----------
    model
        The base classifier.
    items
        Calibration items, in the model's input space. Levels that are chosen by what is measured here depend on these
        items: they must not be certified with them.
    layouts
        One layout per item, for its partitions; all with the same numbers of groups, and without views.
    noise
        Family of distributions with one level.
    levels
        Levels to try.
    samples
        Samples per item, input group and level.
    seed
        Seed of the noise, whose streams no certification uses.
    batch_size
        Samples per call of the model.
    advance
        Told about every batch.

    Raises
    ------
    InvalidInputError
        If there are no items, levels or samples, or a layout does not fit.
    """
    tried = np.unique(np.asarray(levels, dtype=np.float64))
    if not items or not tried.size:
        raise InvalidInputError("items, levels", "are empty", "Pass at least one item and one level")
    if len(layouts) != len(items):
        raise InvalidInputError("layouts", f"{len(layouts)} for {len(items)} items", "Pass one layout per item")
    for name, value in (("samples", samples), ("batch_size", batch_size)):
        if value < 1:
            raise InvalidInputError(name, f"got {value}", "Pass at least 1")
    shapes = {layout.levels.shape[:2] for layout in layouts}
    if len(shapes) > 1:
        raise InvalidInputError("layouts", f"they differ in groups: {shapes}", "Use one grid for all items")
    if any(layout.views is not None for layout in layouts):
        raise InvalidInputError(
            "layouts", "a window or a mask already hides what could disturb", "Leave windows and masks out"
        )
    noise.validate(tried[None])
    outputs, inputs = next(iter(shapes))
    counts = np.zeros((len(tried), outputs, inputs))
    sizes = np.zeros(outputs)
    for number, (item, layout) in enumerate(zip(items, layouts, strict=True)):
        clean, whole = _clean(model, item, layout)
        sizes += layout.outputs.sizes
        for place, level in enumerate(tried):
            everywhere = np.full(layout.inputs.shape, level)
            prepared = noise.prepare(clean.image, everywhere, model.bounds, model.hidden_value)
            for group in range(inputs):
                mask = torch.as_tensor(layout.inputs.mask(group), device=model.device)
                stream = Randomness(seed, (_SINGLE, number, place, group), model.device)
                told = model.under(np.where(layout.inputs.mask(group), level, 0.0))
                for size in _batches(samples, batch_size):
                    noisy = torch.empty((size, *clean.image.shape), device=model.device)
                    prepared.draw(noisy, stream)
                    noisy = torch.where(mask, noisy, clean.image)
                    agrees = _labels(told, noisy, whole) == clean.labels
                    counts[place, :, group] += _by_group(agrees, layout)
                    if advance is not None:
                        advance(size)
    seen = frozenset(item_digest(item) for item in items)
    return Measurement(tried, counts / (sizes[:, None] * samples), len(items), samples, seen)


@dataclass(frozen=True, eq=False)
class _Clean:
    image: torch.Tensor
    labels: torch.Tensor


def _clean(model: Model, item: np.ndarray, layout: Layout) -> tuple[_Clean, Region]:
    """The item and the model's clean prediction of it, and the region of all outputs."""
    image = torch.tensor(item, dtype=torch.float32, device=model.device)
    whole = Region.of(isotropic_layout(1.0, layout.inputs.shape, layout.outputs.shape), 0, model.device)
    return _Clean(image, _labels(model.under(0.0), image[None], whole)[0]), whole


def _labels(model: Model, batch: torch.Tensor, region: Region) -> torch.Tensor:
    with torch.inference_mode():
        predictions = Predictions(model(batch), region, model.output, model.classes, len(batch))
        if bool(predictions.faulty):
            raise InvalidInputError("model", "it returned scores that are NaN or infinite", "Check it on noisy inputs")
        return predictions.labels


def _by_group(agrees: torch.Tensor, layout: Layout) -> np.ndarray:
    """Number of agreements in each output group, over a batch."""
    per_output = agrees.sum(dim=0).flatten().cpu().numpy()
    return np.bincount(layout.outputs.labels.ravel(), weights=per_output, minlength=layout.outputs.count)


def _batches(samples: int, batch_size: int) -> list[int]:
    return [min(batch_size, samples - start) for start in range(0, samples, batch_size)]
