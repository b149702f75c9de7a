"""What is set aside of α for noise that is drawn almost, but not quite, from the law that is certified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import AdditiveNoise, Noise
from localsmooth.tasks.arrays.settings import Settings

__all__ = ["RESERVED", "drawing_charge", "drawing_words", "less_reserve", "noise_of_run"]

RESERVED = 0.01
"""Share of α that is set aside."""


_FLOATING = (
    "Noise is drawn in floating point and taken for real noise, which models made to read its last digits can tell "
    "apart; inputs on a grid, as images of 8 bits are, need no such assumption."
)


def drawing_charge(noise: Noise, layout: Layout, shape: tuple[int, ...], samples: int) -> float | None:
    """Bound on the total variation distance between all samples that bound an item, as drawn, and as certified.

    Samples, output groups and elements are independent, so that their distances add up at most. None where draws are
    taken for what they stand for.

    Parameters
    ----------
    noise, layout
        Of the item; inputs that are hidden from a group count nothing.
    shape
        Of the item, channels included.
    samples
        Planned for each output group, those that stopping early leaves out included.
    """
    channels = math.prod(shape) // layout.inputs.labels.size
    error = noise.drawing_error(layout.levels, layout.inputs.sizes * channels)
    return None if error is None else math.nextafter(samples * error, math.inf)


def noise_of_run(
    noise: Noise, items: Sequence[torch.Tensor], layouts: Sequence[Layout], samples: int, settings: Settings
) -> Noise:
    """Noise with nothing left to settle: on a grid where it may be, all items lie on one, and α pays for it.

    Parameters
    ----------
    noise
        As it was asked for.
    items, layouts
        Of the run, as the model gets them.
    samples
        Planned for each output group.
    settings
        What is proven.
    """
    suited = noise.suited(items, [layout.levels for layout in layouts])
    if suited is noise:
        return noise
    floating = noise.suited([], [])
    if settings.method is not None and not settings.method.rounds:
        return floating
    try:
        for shape, layout in {
            (item.shape, id(layout)): (item.shape, layout) for item, layout in zip(items, layouts, strict=True)
        }.values():
            less_reserve(settings, drawing_charge(suited, layout, tuple(shape), samples))
    except InvalidInputError:
        return floating
    return suited


def drawing_words(noise: Noise, charge: float | None) -> tuple[str, ...]:
    """What a promise says of how noise is drawn; nothing of flips.

    Parameters
    ----------
    noise
        Of the run.
    charge
        The largest of the items' charges.
    """
    if charge is None:
        return (_FLOATING,) if isinstance(noise, AdditiveNoise) else ()
    grid = noise.configuration().get("grid")
    return (
        f"The base classifier rounds its input to whole steps of {grid:.9g}, on which the certified inputs lie. Noise "
        "is drawn as whole steps, so that the promise holds for real noise and real perturbed inputs; "
        f"{RESERVED:.0%} of α is set aside for what drawing leaves open (at most {charge:.1e}).",
    )


def less_reserve(settings: Settings, charge: float | None) -> Settings:
    """Settings whose bounds share what is left of α.

    Events change their probability by the distance at most, so that bounds at level 0.99α fail with probability
    0.99α + `charge` ≤ α. What is set aside does not depend on the number of samples: where bounds hold at every number,
    and a run goes on after looking, they still do.

    Parameters
    ----------
    settings
        What to prove.
    charge
        From `drawing_charge`.

    Raises
    ------
    InvalidInputError
        If the charge is more than what is set aside.
    """
    if charge is None:
        return settings
    if not charge < RESERVED * settings.alpha * (1 - 1e-9):
        raise InvalidInputError(
            "grid",
            f"drawing from tables of 64 bits leaves a distance of {charge:.2g} for all samples of an item, more than "
            f"{RESERVED:.0%} of alpha = {settings.alpha:g}",
            "Use a coarser grid, fewer samples, a larger alpha, or grid=None",
        )
    return replace(settings, alpha=math.nextafter((1 - RESERVED) * settings.alpha, 0.0))
