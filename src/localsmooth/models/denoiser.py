"""A denoiser in front of a network, which is part of the base classifier (Salman et al. 2020)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.models.changing import changing_attributes, values_text, watching
from localsmooth.models.exported import require_evaluation_mode
from localsmooth.models.fingerprint import describe, describe_module
from localsmooth.models.replica import can_be_copied, replica_of, shared_words, weight_digests

__all__ = ["Denoiser"]


@dataclass(frozen=True)
class Denoiser:
    """A fixed function from noisy inputs to inputs of the same shape and units, before anything else is done to them.

    The network behind it sees nothing else, so that both together are one base classifier g∘d: what is certified is
    what they predict under noise, however good the denoiser is.

    Parameters
    ----------
    function
        A torch module in evaluation mode, or a function: takes a batch of shape (batch, *item), in the units of the
        items, and returns one of the same shape. Each sample by itself: what depends on chance or on the rest of the
        batch is refused before sampling.
    told
        Whether it takes a second argument, the noise level of every element: shape (1, 1, *places), in the units of the
        items, 0 for an input without noise and inf where inputs are hidden.

    Raises
    ------
    InvalidInputError
        Naming `denoiser` if it cannot be called, or a part of it is in training mode.
    """

    function: Callable[..., torch.Tensor]
    told: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.function, torch.export.ExportedProgram):
            object.__setattr__(self, "function", self.function.module())
        if not callable(self.function):  # pyright: ignore[reportUnnecessaryComparison] (callers may not check)
            raise InvalidInputError("denoiser", f"got {self.function!r}", "Pass a module, or a function of a batch")
        self._require_evaluation_mode()

    @property
    def _module(self) -> nn.Module | None:
        return self.function if isinstance(self.function, nn.Module) else None

    def _require_evaluation_mode(self) -> None:
        if self._module is not None:
            require_evaluation_mode(self._module, "denoiser")

    def __call__(
        self, batch: Float[torch.Tensor, "batch *item"], levels: Float[torch.Tensor, "1 1 *places"] | None
    ) -> Float[torch.Tensor, "batch *item"]:
        """Denoise a batch, in the denoiser's own precision and without recording gradients.

        Parameters
        ----------
        batch
            Noisy inputs; not modified.
        levels
            Noise level of every element, for denoisers that are told.

        Raises
        ------
        InvalidInputError
            If it returns something of another shape.
        """
        self._require_evaluation_mode()
        own = next((each.dtype for each in self._tensors() if each.is_floating_point()), batch.dtype)
        with torch.no_grad():
            given = batch.to(own)
            made = self.function(given, levels) if self.told else self.function(given)
        if not isinstance(made, torch.Tensor) or made.shape != batch.shape:  # pyright: ignore[reportUnnecessaryIsInstance]
            shape = tuple(getattr(made, "shape", ())) or type(made).__name__
            problem = f"it returned {shape} for a batch of shape {tuple(batch.shape)}"
            raise InvalidInputError("denoiser", problem, "Return a tensor of the same shape")
        return made.to(batch.dtype)

    def _tensors(self) -> list[torch.Tensor]:
        return [] if self._module is None else [*self._module.parameters(), *self._module.buffers()]

    def to(self, device: torch.device) -> Denoiser:
        """Move a module to where batches are."""
        if self._module is not None:
            self._module.to(device)
        return self

    @property
    def concurrent(self) -> bool:
        """Whether replicas share nothing that a call could change, as far as can be told."""
        return self._module is not None and can_be_copied(self._module)

    def replica(self) -> Denoiser:
        """The same denoiser for another thread."""
        return self if self._module is None else replace(self, function=replica_of(self._module))

    def shared_with_replicas(self) -> str:
        """What replicas share that calls could change, in words."""
        return "" if self._module is None else shared_words(self._module)

    def weight_digests(self) -> dict[str, str]:
        """Digests of a module's weights, by name."""
        return {} if self._module is None else weight_digests(self._module)

    @property
    def types(self) -> list[torch.dtype]:
        """Floating-point types of its weights."""
        return [each.dtype for each in self._tensors() if each.is_floating_point()]

    def watching(self) -> AbstractContextManager[None]:
        """Note which attributes of a module change while it is called."""
        return nullcontext() if self._module is None else watching(self._module)

    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of what it computes, as far as Python can see into it, and of whether it is told."""
        if self._module is None:
            text = describe(self.function)
        else:
            changing = changing_attributes(self._module)
            text = f"{describe_module(self._module, changing)} {values_text(self._module)}"
        return hashlib.sha256(f"{text} told={self.told}".encode()).hexdigest()
