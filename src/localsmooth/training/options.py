"""How long and how fast a network is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from localsmooth.errors import InvalidInputError

__all__ = ["Schedule", "TrainingOptions", "constant", "one_cycle"]

Schedule = Callable[[float], float]
"""Maps the share of the training that is done, in [0, 1), to a factor of the learning rate."""


def constant(done: float) -> float:
    """The same learning rate throughout."""
    del done
    return 1.0


def one_cycle(done: float) -> float:
    """Linear warm-up over the first tenth, then a half cosine down to (nearly) nothing."""
    warm = 0.1
    if done < warm:
        return 0.1 + 0.9 * done / warm
    return max(1e-3, 0.5 * (1 + math.cos(math.pi * (done - warm) / (1 - warm))))


@dataclass(frozen=True)
class TrainingOptions:
    """Settings of the loop.

    Parameters
    ----------
    epochs
        Passes over the training set.
    batch_size
        Images per step; the last step of an epoch has what is left.
    learning_rate, weight_decay
        Of Adam.
    schedule
        Changes the learning rate over time: `constant`, `one_cycle` or a function of one's own.
    validate_every
        Epochs from one validation to the next; the last epoch always ends with one.
    checkpoint_every
        Steps after which the state is kept on disk, where there is a directory.
    seed
        For the order of the images and for dropout; the noise has its own.
    device
        Where the network is trained, such as "cpu" or "cuda".

    Raises
    ------
    InvalidInputError
        If a number is out of range.
    """

    epochs: int
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Schedule = constant
    validate_every: int = 1
    checkpoint_every: int = 100
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for field in ("epochs", "batch_size", "validate_every", "checkpoint_every"):
            if getattr(self, field) < 1:
                raise InvalidInputError(field, f"got {getattr(self, field)}", "Pass a whole number >= 1")
        if not 0 < self.learning_rate < math.inf:
            raise InvalidInputError("learning_rate", f"got {self.learning_rate}", "Pass a positive number")
        if not 0 <= self.weight_decay < math.inf:
            raise InvalidInputError("weight_decay", f"got {self.weight_decay}", "Pass a number >= 0")
        if self.seed < 0:
            raise InvalidInputError("seed", f"got {self.seed}", "Pass a non-negative integer")
