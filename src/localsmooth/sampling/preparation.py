"""What happens once before the first chunk: the model is tried, and the fastest way to run it is found."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from localsmooth.models import check_model
from localsmooth.noise import Randomness
from localsmooth.sampling.calibration import Calibration, calibrate
from localsmooth.sampling.engine import Problem
from localsmooth.sampling.options import SamplingOptions
from localsmooth.sampling.plan import SamplingPlan
from localsmooth.sampling.region import Region

__all__ = ["calibrate_run", "try_model"]

_TRIAL_STREAM = 2  # beside the two stages, so that no sample of a trial is ever counted
_TRIAL_SAMPLES = 5


def try_model(problem: Problem) -> None:
    """Refuse a model that is random, mixes the samples of a batch, or returns something else than it declares.

    Raises
    ------
    InvalidInputError
        Saying what the model does wrong.
    """
    model, item = problem.model, problem.items[0]
    region = Region.of(problem.layouts[0], 0)
    crop = region.of_item(item.to(model.device)).contiguous()
    noise = problem.noise.prepare(crop, region.level_map, model.bounds, model.hidden_value)
    samples = torch.empty((_TRIAL_SAMPLES, *crop.shape), dtype=item.dtype, device=model.device)
    noise.draw(samples, Randomness(problem.seed, (0, 0, _TRIAL_STREAM, 0), model.device))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the range of the item, which a crop may not fill
        check_model(model, crop, samples=samples)


def calibrate_run(problem: Problem, plan: SamplingPlan, options: SamplingOptions) -> Calibration:
    """Calibrate for the largest window of the run; smaller ones get batches of as many elements."""
    shapes = {
        _cropped_shape(tuple(item.shape), view.inputs)
        for item, layout in zip(problem.items, problem.layouts, strict=True)
        for view in (layout.views or (layout.view(0),))
    }
    return calibrate(
        problem.model,
        max(shapes, key=lambda shape: int(np.prod(shape))),
        batch_size=options.batch_size,
        channels_last=options.channels_last,
        largest=min(plan.chunk_size, max(plan.n_candidate, plan.n_bound)),
        dtype=options.item_dtype,
        seconds=options.calibration_seconds,
    )


def _cropped_shape(shape: tuple[int, ...], crop: tuple[slice, ...] | None) -> tuple[int, ...]:
    if crop is None:
        return shape
    leading = len(shape) - len(crop)
    return shape[:leading] + tuple(
        len(range(*part.indices(size))) for part, size in zip(crop, shape[leading:], strict=True)
    )
