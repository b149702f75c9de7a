"""The contract of a base classifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from enum import Enum

import numpy as np
import torch
from jaxtyping import Float

__all__ = ["Model", "OutputKind"]


class OutputKind(Enum):
    """What a model's output tensor holds."""

    LOGITS = "unnormalised scores: (batch, classes, *outputs), the largest is the prediction"
    PROBABILITIES = "probabilities: (batch, classes, *outputs), non-negative and summing to about one over the classes"
    LABELS = "integer labels: (batch, *outputs)"


class Model(ABC):
    """A base classifier g: a batch of noisy inputs in the declared input space goes in, predictions come out.

    Normalisation, padding to a stride and resizing of low-resolution outputs belong to the model, so that noise,
    budgets and radii always live in the declared input space.
    """

    bounds: tuple[float, float] | None
    """Smallest and largest value of a clean input, in the units of σ and ε; None if unbounded."""

    output: OutputKind
    """What `__call__` returns."""

    classes: int
    """Number of classes."""

    class_names: tuple[str, ...] | None = None
    """Name of every class where the model knows them; items that have names of their own come first."""

    device: torch.device
    """Where `__call__` wants its batches."""

    concurrent: bool = False
    """Whether several threads may run the model at once, each on a replica of its own."""

    told: bool = False
    """Whether the model is told the noise, so that it must be asked `under` levels."""

    @abstractmethod
    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        """Predict a batch.

        Parameters
        ----------
        batch
            Floating point, shape (batch, *item), on `device`. Must not be modified.

        Returns
        -------
        torch.Tensor
            Scores (batch, classes, *outputs) or labels (batch, *outputs), according to `output`.
        """

    def under(self, levels: Float[np.ndarray, "..."] | float) -> Model:
        """The base classifier of an output group whose samples have these noise levels: the model, told about them.

        Levels come from the layout and from nothing else, so that no base classifier depends on what is perturbed. A
        model that is not told the noise is the same under any levels.

        Parameters
        ----------
        levels
            Level of each element of the (cropped) input's trailing axes, inf where hidden; 0 for no noise.

        Returns
        -------
        Model
            Another one, which may share everything with this one; with the same fingerprint.
        """
        del levels
        return self

    def replica(self) -> Model:
        """The same model for another thread: nothing that a call changes may be shared with it."""
        return self

    def shared_with_replicas(self) -> str:
        """What calls could change, and replicas share, in words; empty where nothing is known to be."""
        return ""

    def weight_digests(self) -> dict[str, str]:
        """Digests of the weights, by name: trials refuse a model that changes one while it predicts."""
        return {}

    def watching(self) -> AbstractContextManager[None]:
        """A context of trial calls, in which a model may find out what of itself they change."""
        return nullcontext()

    @abstractmethod
    def fingerprint(self) -> str:
        """Text that changes whenever the model's predictions could: a stored run refuses to mix two of them."""

    @property
    def evaluated_in(self) -> str:
        """Floating-point type in which the network computes, as "float32" or "bfloat16"; the coarsest of several."""
        return "float32"

    @property
    def hidden_value(self) -> float:
        """Constant that replaces inputs which a layout hides: the middle of the bounds, or 0."""
        return 0.0 if self.bounds is None else (self.bounds[0] + self.bounds[1]) / 2
