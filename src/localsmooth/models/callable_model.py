"""Any function from arrays to arrays: JAX, TensorFlow, scikit-learn, a remote service."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from localsmooth.errors import InvalidInputError
from localsmooth.models.adapter import Adapter, Bounds, ClassAxis, Upsample
from localsmooth.models.base import OutputKind
from localsmooth.models.denoiser import Denoiser
from localsmooth.models.fingerprint import describe
from localsmooth.models.preprocessing import Number, Preprocessing

__all__ = ["CallableModel"]


class CallableModel(Adapter):
    """A function of a numpy batch as a base classifier.

    Parameters
    ----------
    function
        Takes a read-only array of shape (batch, *item) and returns predictions that numpy can read. Stored runs know
        it by its code and by the variables that it uses: one that counts its calls in such a variable is another
        function afterwards.
    name
        Stands in stored runs for what Python cannot see of the function (a service, a file, compiled code): use
        another name whenever its predictions change.
    bounds
        Smallest and largest value of a clean input, in the units of σ and ε; None if unbounded.
    classes
        Number of classes; not needed with a threshold.
    output
        What the function returns.
    preprocessing
        What happens to the input after the noise: normalisation, and padding to sizes that the network takes.
    threshold
        For functions with one output channel: label 1 where its value exceeds this, else 0.
    upsample
        True: interpolate the scores to the size of the input. A shape: to that shape (not for windows).
    class_axis
        Axis of the output that holds the classes, the batch being axis 0: −1 where they lie last; see `Adapter`.
    told
        Whether the function takes a channel of noise levels behind the input's own; see `Adapter`.
    denoiser
        Applied to noisy inputs, as torch tensors, before anything else; see `Denoiser`.

    Raises
    ------
    InvalidInputError
        Naming the argument at fault.
    """

    def __init__(
        self,
        function: Callable[[np.ndarray], Any],
        *,
        name: str,
        bounds: Bounds | None,
        classes: int | None = None,
        output: OutputKind = OutputKind.LOGITS,
        preprocessing: Preprocessing | None = None,
        threshold: Number | None = None,
        upsample: Upsample | None = None,
        class_axis: ClassAxis | None = None,
        told: bool = False,
        denoiser: Denoiser | Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        if not name:
            raise InvalidInputError("name", "empty", "Pass a name that changes whenever the predictions do")
        super().__init__(
            bounds=bounds,
            classes=classes,
            output=output,
            preprocessing=preprocessing,
            threshold=threshold,
            upsample=upsample,
            class_axis=class_axis,
            device=torch.device("cpu"),
            told=told,
            denoiser=denoiser,
        )
        self._function = function
        self._name = name

    def _predict(self, batch: Float[torch.Tensor, "batch *item"]) -> tuple[Shaped[torch.Tensor, "..."], bool]:
        values = batch.cpu().numpy()
        values.flags.writeable = False
        made = np.require(self._function(values), requirements=["C", "W"])
        if made.dtype.kind not in "biuf":
            raise InvalidInputError("function", f"it returned {made.dtype} values", "Return numbers")
        if made.dtype.kind == "u" and made.dtype.itemsize > 1:
            made = made.astype(np.int64)  # torch hardly computes with wider unsigned integers
        return torch.from_numpy(made), False

    @property
    def evaluated_in(self) -> str:
        """Single precision, or the denoiser's where that is coarser; what the function does is not looked at."""
        return self._coarsest("float32")

    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the name, the options, and the function as far as Python can see into it."""
        options = repr(sorted(self._configuration().items()))
        return hashlib.sha256(f"{self._name}\n{options}\n{describe(self._function)}".encode()).hexdigest()
