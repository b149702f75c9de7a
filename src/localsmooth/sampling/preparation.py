"""What happens once before the first chunk: the model is tried, and the fastest way to run it is found."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from jaxtyping import Integer

from localsmooth.errors import LocalsmoothError
from localsmooth.models import check_batch, check_model
from localsmooth.noise import Randomness
from localsmooth.sampling.calibration import AdjustableModel, Calibration, calibrate
from localsmooth.sampling.engine import Problem
from localsmooth.sampling.memory import is_out_of_memory
from localsmooth.sampling.options import BatchSize, SamplingOptions
from localsmooth.sampling.plan import SamplingPlan
from localsmooth.sampling.predictions import Predictions
from localsmooth.sampling.region import Region
from localsmooth.sampling.store import Store, StoreError

__all__ = [
    "PREDICTIONS",
    "calibrate_run",
    "compare_predictions",
    "keep_calibration",
    "recall_calibration",
    "require_like_predictions",
    "try_batch",
    "try_model",
]

_TRIAL_STREAM = 2  # beside the two stages, so that no sample of a trial is ever counted
_TRIAL_SAMPLES = 5

_CALIBRATION = "calibration"
PREDICTIONS = "trial-predictions"
"""Array with the labels of a few samples that are the same in every run."""
_PREDICTION_STREAM = 3
_PLACES = 4  # output groups whose predictions are kept
_FEWEST_SAMPLES, _MOST_SAMPLES = 2, 8
_ENOUGH_LABELS = 2000
_DIFFERING = 0.01  # share of the labels that another device, batch size or library may round differently


def try_model(problem: Problem) -> None:
    """Refuse a model that is random, mixes the samples of a batch, or returns something else than it declares.

    Raises
    ------
    InvalidInputError
        Saying what the model does wrong.
    """
    crop = Region.of(problem.layouts[0], 0).of_item(problem.items[0].to(problem.model.device)).contiguous()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the range of the item, which a crop may not fill
        check_model(problem.model, crop, samples=_trial_samples(problem, 0, 0))


def try_batch(problem: Problem, batch_size: BatchSize, plan: SamplingPlan) -> None:
    """Refuse a model that mixes samples, or predicts otherwise, in batches as large as those of the run.

    Tried are the largest window and the one with the largest batches, with full batches; sizes in between and the
    smaller batches at the end of chunks are not.

    Parameters
    ----------
    problem
        With the model as it will run.
    batch_size, plan
        Of the run.

    Raises
    ------
    InvalidInputError
        Saying what the model does wrong.
    """
    longest = min(plan.chunk_size, max(plan.n_candidate, plan.n_bound))
    sizes = _group_elements(problem)
    for item, group in {max(sizes, key=lambda place: sizes[place]), min(sizes, key=lambda place: sizes[place])}:
        samples = _trial_samples(problem, item, group)
        size = min(batch_size.of(sizes[item, group]), longest)
        while True:
            try:
                check_batch(problem.model, samples, size)
                break
            except (MemoryError, RuntimeError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
            size //= 2  # as the run will


def compare_predictions(problem: Problem, store: Store, *, keep: bool) -> None:
    """Refuse to add to, or to read, tallies of a model that predicts differently.

    The labels of a few noisy samples that are the same in every run are kept beside the tallies. A fingerprint can
    miss what changes predictions (compiled code, files, services); this misses only what these samples do not show.

    Parameters
    ----------
    problem
        What is drawn.
    store
        Where the labels are kept.
    keep
        Whether to keep the labels if there are none yet.

    Raises
    ------
    StoreError
        If more than one in a hundred labels differ from those that are kept.
    """
    known = PREDICTIONS in store.array_names()
    if not known and not keep:
        return
    labels = _trial_labels(problem)
    if not known:
        store.put_array(PREDICTIONS, labels)
        return
    require_like_predictions(store.get_array(PREDICTIONS), labels)


def require_like_predictions(kept: np.ndarray, labels: np.ndarray) -> None:
    """Refuse labels that differ from those of the same samples that another run kept.

    Raises
    ------
    StoreError
        If more than one in a hundred differ.
    """
    differing = float((kept != labels).mean()) if kept.shape == labels.shape else 1.0
    if not differing <= _DIFFERING:
        raise StoreError(
            f"the model predicts differently from the one that drew the stored chunks: {100 * differing:.3g} % of its "
            "labels for the same noisy samples are others, although its fingerprint is the same. Use another run "
            "directory, or restore the model (its code, its libraries, the files and services that it uses)"
        )


def _trial_labels(problem: Problem) -> Integer[np.ndarray, " labels"]:
    """Labels of a few samples of up to four output groups, spread over the run; the noise is the CPU's everywhere."""
    model = problem.model
    groups = [(item, group) for item, layout in enumerate(problem.layouts) for group in range(layout.outputs.count)]
    chosen = np.unique(np.linspace(0, len(groups) - 1, _PLACES).round().astype(int))
    made: list[np.ndarray] = []
    for item, group in (groups[place] for place in chosen):
        size = int(problem.layouts[item].outputs.sizes[group])
        count = min(max(_ENOUGH_LABELS // (_PLACES * size), _FEWEST_SAMPLES), _MOST_SAMPLES)
        region = Region.of(problem.layouts[item], group, model.device)
        samples = _noisy(problem, item, group, count, _PREDICTION_STREAM, torch.device("cpu"))
        for few in samples.split(_FEWEST_SAMPLES):
            with torch.inference_mode():
                outputs = model(few.to(model.device))
                predictions = Predictions(outputs, region, model.output, model.classes, len(few))
                made.append(predictions.labels.cpu().numpy().astype(np.int32).ravel())
    return np.concatenate(made)


def _trial_samples(problem: Problem, item: int, group: int) -> torch.Tensor:
    return _noisy(problem, item, group, _TRIAL_SAMPLES, _TRIAL_STREAM, problem.model.device)


def _noisy(problem: Problem, item: int, group: int, count: int, stream: int, device: torch.device) -> torch.Tensor:
    model, clean = problem.model, problem.items[item]
    region = Region.of(problem.layouts[item], group)
    crop = region.of_item(clean.to(device)).contiguous()
    noise = problem.noise.prepare(crop, region.level_map, model.bounds, model.hidden_value)
    samples = torch.empty((count, *crop.shape), dtype=clean.dtype, device=device)
    noise.draw(samples, Randomness(problem.seed, (item, group, stream, 0), device))
    return samples


def _group_elements(problem: Problem) -> dict[tuple[int, int], int]:
    """Number of input elements of every window of the run, by an item and output group that has it."""
    return {
        (number, group): int(np.prod(_cropped_shape(tuple(item.shape), layout.view(group).inputs)))
        for number, (item, layout) in enumerate(zip(problem.items, problem.layouts, strict=True))
        for group in range(len(layout.views or (0,)))
    }


def calibrate_run(problem: Problem, plan: SamplingPlan, options: SamplingOptions) -> Calibration:
    """Calibrate for the largest window of the run; smaller ones get batches of as many elements."""
    shapes = {
        _cropped_shape(tuple(item.shape), view.inputs)
        for item, layout in zip(problem.items, problem.layouts, strict=True)
        for view in (layout.views or (layout.view(0),))
    }
    try:
        return calibrate(
            problem.model,
            max(shapes, key=lambda shape: int(np.prod(shape))),
            batch_size=options.batch_size,
            channels_last=options.channels_last,
            largest=min(plan.chunk_size, max(plan.n_candidate, plan.n_bound)),
            dtype=options.item_dtype,
            seconds=options.calibration_seconds,
        )
    except LocalsmoothError:
        raise
    except Exception as error:  # a model may raise anything
        raise LocalsmoothError(
            f"the model raised {type(error).__name__} on random inputs, before any sample was drawn: {error}. Correct "
            "the model; a run directory that holds no samples yet can be deleted"
        ) from error


def recall_calibration(problem: Problem, store: Store, options: SamplingOptions) -> Calibration | None:
    """What an interrupted run had chosen, so that all of its chunks are drawn alike; None if that is not known.

    A batch size or memory order that is fixed by hand now takes precedence.

    Raises
    ------
    StoreError
        If what is kept is none.
    """
    if _CALIBRATION not in store.array_names() or options.batch_size is not None or options.channels_last is not None:
        return None
    kept = store.get_array(_CALIBRATION)
    if kept.shape != (3,) or kept.dtype.kind != "i" or not (kept[0] >= 1 and kept[1] >= 0):
        raise StoreError(
            f"array {_CALIBRATION!r} of the store holds no batch size. Delete its file and start the run again"
        )
    samples, elements, channels_last = (int(value) for value in kept)
    model = problem.model
    if isinstance(model, AdjustableModel):
        model = model.with_options(channels_last=bool(channels_last))
    return Calibration(model, BatchSize(samples, elements or None), {})


def keep_calibration(store: Store, calibration: Calibration) -> None:
    """Keep what was chosen beside the tallies."""
    size, model = calibration.batch_size, calibration.model
    order = isinstance(model, AdjustableModel) and model.channels_last
    store.put_array(_CALIBRATION, np.array([size.samples, size.elements or 0, order], dtype=np.int64))


def _cropped_shape(shape: tuple[int, ...], crop: tuple[slice, ...] | None) -> tuple[int, ...]:
    if crop is None:
        return shape
    leading = len(shape) - len(crop)
    return shape[:leading] + tuple(
        len(range(*part.indices(size))) for part, size in zip(crop, shape[leading:], strict=True)
    )
