"""How sampling is executed: nothing here changes what is certified."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from localsmooth.errors import InvalidInputError, require_whole_number
from localsmooth.sampling.counter import Counters

__all__ = ["BatchSize", "SamplingOptions"]


@dataclass(frozen=True)
class BatchSize:
    """Samples per forward pass, for items of any size.

    Parameters
    ----------
    samples
        Samples per forward pass.
    elements
        Number of input elements per sample for which `samples` is meant: smaller inputs get proportionally more of
        them. None to use the same number for all.
    """

    samples: int
    elements: int | None = None

    def of(self, elements: int) -> int:
        """Samples per forward pass for inputs of this many elements."""
        if self.elements is None:
            return self.samples
        return max(1, self.samples * self.elements // max(1, elements))


@dataclass(frozen=True)
class SamplingOptions:
    """How sampling is executed.

    Parameters
    ----------
    batch_size
        Samples per forward pass; None to find it by a short calibration.
    channels_last
        Memory order of the batches, for models that let it be chosen; None to find it by a short calibration.
    calibration_seconds
        Roughly how long a calibration may take.
    item_dtype
        Floating-point type in which items are kept and noise is drawn: float32 or float64.
    counters
        What is counted in each stage.
    keep_candidate_counts
        Whether to return the counts of every class from the candidate stage, outputs × classes in size.
    check_model
        Whether to try the model on a few noisy samples first, and to refuse it if its predictions are random, depend
        on the other samples in a batch, or are not what it declares.
    replay
        How many samples of the bound stage to draw again once all are there, in batches as in the run and one by one on
        one thread; how many get other labels is told, and kept with the result.

    Raises
    ------
    InvalidInputError
        If the number to replay is no whole number of at least 0, the batch size or the calibration's time is not
        positive, or the type is not float32 or float64.
    """

    batch_size: int | None = None
    channels_last: bool | None = None
    calibration_seconds: float = 4.0
    item_dtype: torch.dtype = torch.float32
    counters: Counters = field(default_factory=Counters)
    keep_candidate_counts: bool = False
    check_model: bool = True
    replay: int = 0

    def __post_init__(self) -> None:
        require_whole_number("replay", self.replay, 0, "Pass how many samples to draw again, or leave it out")
        if self.batch_size is not None:
            require_whole_number("batch_size", self.batch_size, 1, "Pass at least 1, or None to calibrate")
        if not self.calibration_seconds > 0:
            raise InvalidInputError("calibration_seconds", f"got {self.calibration_seconds}", "Pass a positive time")
        if self.item_dtype not in (torch.float32, torch.float64):
            raise InvalidInputError("item_dtype", f"got {self.item_dtype}", "Pass torch.float32 or torch.float64")
