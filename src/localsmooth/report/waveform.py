"""Signals over time, such as sound, as pictures: what lies between the smallest and the largest value at each place."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, UInt8

from localsmooth.report.palette import rgb
from localsmooth.report.plane import Picturing
from localsmooth.results import ItemView

__all__ = ["LANE", "draws_waveform", "envelope", "waveform"]

LANE = 90
"""Height of one channel in pixels."""
_WIDTH = 1160
_MOST = 4
_LINE, _FAINT = "#0b5394", "#c4cad0"


def draws_waveform(view: ItemView, space: Picturing | None, norm: str) -> bool:
    """Say whether an input is drawn as a waveform: a sequence of a few channels of real numbers.

    Parameters
    ----------
    view
        An item.
    space
        How its input is arranged.
    norm
        Of the perturbation; under "l0" inputs are bits, or other marks.
    """
    return space is not None and space.line and view.image is not None and len(view.image) <= _MOST and norm != "l0"


def envelope(signal: Float[np.ndarray, "length"], columns: int) -> Float[np.ndarray, "2 columns"]:
    """Return the smallest and largest value of a signal in each of so many columns; neighbours touch.

    Parameters
    ----------
    signal
        Values over time; between few of them, straight lines.
    columns
        How many there are.
    """
    if len(signal) < columns:
        # A whole number of steps between any two values, so that each of them is met.
        steps = -(-columns // max(1, len(signal) - 1))
        fine = np.linspace(0, len(signal) - 1, steps * max(1, len(signal) - 1) + 1)
        signal = np.interp(fine, np.arange(len(signal)), signal)
    starts = np.arange(columns) * len(signal) // columns
    low, high = np.minimum.reduceat(signal, starts), np.maximum.reduceat(signal, starts)
    low[1:], high[1:] = np.minimum(low[1:], high[:-1]), np.maximum(high[1:], low[:-1])
    return np.stack([low, high])


def waveform(image: Float[np.ndarray, "channels *space"], faint: bool = False) -> UInt8[np.ndarray, "rows columns 3"]:
    """Draw a sequence from its smallest to its largest value, one channel below the other.

    Parameters
    ----------
    image
        The input, channels first.
    faint
        Whether it is a ground for something else: pale, and all channels in one.
    """
    signals = image.reshape(len(image), -1).astype(np.float64)
    low, high = float(signals.min()), float(signals.max())
    span = high - low if high > low else 1.0
    lanes = [_lane((envelope(signal, _WIDTH) - low) / span) for signal in signals]
    drawn = np.any(lanes, axis=0) if faint else np.concatenate(lanes)
    colors = np.array([(255, 255, 255), rgb(_FAINT if faint else _LINE)], np.uint8)
    return colors[drawn.astype(np.intp)]


def _lane(share: Float[np.ndarray, "2 columns"]) -> Bool[np.ndarray, "rows columns"]:
    """Pixels between the two, from 0 at the bottom to 1 at the top."""
    bottom, top = ((1 - share) * (LANE - 1)).round()
    y = np.arange(LANE)[:, None]
    return (y >= top) & (y <= bottom)
