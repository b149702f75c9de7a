"""PyTorch modules, torchvision and Hugging Face segmenters included."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from types import EllipsisType, NoneType
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import nn

from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.memory import is_out_of_memory
from localsmooth.models.adapter import Adapter, Bounds, ClassAxis, Upsample
from localsmooth.models.base import OutputKind
from localsmooth.models.changing import changing_attributes, values_text, watching
from localsmooth.models.denoiser import Denoiser
from localsmooth.models.exported import input_shape, require_evaluation_mode
from localsmooth.models.fingerprint import describe, describe_module
from localsmooth.models.outputs import named_output, output_tensor
from localsmooth.models.preprocessing import Number, Preprocessing
from localsmooth.models.replica import can_be_copied, replica_of, shared_words, weight_digests

__all__ = ["TorchModel", "working_precision"]


class TorchModel(Adapter):
    """A torch module as a base classifier.

    The module may return a tensor, a mapping with "out" (torchvision), an object with low-resolution `.logits`
    (Hugging Face; they are interpolated to the size of the input), or anything else with `select`. A program of
    torch.export may have a fixed batch: samples then go through in pieces of that size.

    Parameters
    ----------
    module
        In evaluation mode, taking a batch of shape (batch, *item). It is moved to `device` and not changed otherwise.
        Or a program of torch.export, as `torch.export.load` returns it.
    bounds
        Smallest and largest value of a clean input, in the units of σ and ε: (0, 1) for images in [0, 1]. None if
        unbounded.
    classes
        Number of classes; taken from `module.config.num_labels` where there is such a thing.
    output
        What the module returns.
    preprocessing
        What happens to the input after the noise: normalisation, and padding to sizes that the network takes.
    threshold
        For modules with one output channel: label 1 where its value exceeds this (0.5 for a probability, 0 for a
        logit).
    upsample
        True: interpolate the scores to the size of the input. A shape: to that shape (not for windows). False: never.
        None: `.logits` with spatial axes only.
    class_axis
        Axis of the output that holds the classes, the batch being axis 0: −1 where they lie last; see `Adapter`.
    select
        Which tensor of what the module returns is the prediction: the key or attribute, the position, or a function
        that takes it out.
    device
        Where to run.
    precision
        `torch.float16` or `torch.bfloat16` to run under autocast; None for the module's own precision.
    channels_last
        Hand images and volumes over in channels-last memory order, which many CPUs and GPUs prefer.
    compile
        Run through `torch.compile`.
    told
        Whether the module takes a channel of noise levels behind the input's own; see `Adapter`.
    denoiser
        Applied to noisy inputs before anything else; see `Denoiser`.
    reset
        Name of a method of the module, called before every batch: for modules that keep a state between calls.

    Raises
    ------
    InvalidInputError
        Naming the argument at fault; `module` if it, or a part of it, is in training mode.
    """

    def __init__(
        self,
        module: nn.Module | torch.export.ExportedProgram,
        *,
        bounds: Bounds | None,
        classes: int | None = None,
        output: OutputKind = OutputKind.LOGITS,
        preprocessing: Preprocessing | None = None,
        threshold: Number | None = None,
        upsample: Upsample | None = None,
        class_axis: ClassAxis | None = None,
        select: Callable[[Any], torch.Tensor] | str | int | None = None,
        device: torch.device | str = "cpu",
        precision: torch.dtype | None = None,
        channels_last: bool = False,
        compile: bool = False,
        told: bool = False,
        denoiser: Denoiser | Callable[[torch.Tensor], torch.Tensor] | None = None,
        reset: str | None = None,
    ) -> None:
        if isinstance(module, torch.export.ExportedProgram):
            module = module.module()
        require_kind("module", module, nn.Module)
        require_kind("reset", reset, str, NoneType)
        if reset is not None and not callable(getattr(module, reset, None)):
            problem = f"{type(module).__name__} has no method {reset!r}"
            raise InvalidInputError("reset", problem, "Name a method of the module that takes no arguments")
        if classes is None and threshold is None:
            classes = getattr(getattr(module, "config", None), "num_labels", None)
        super().__init__(
            bounds=bounds,
            classes=classes,
            output=output,
            preprocessing=preprocessing,
            threshold=threshold,
            upsample=upsample,
            class_axis=class_axis,
            device=_device(device),
            told=told,
            denoiser=denoiser,
        )
        if not callable(select):
            require_kind("select", select, str, int, NoneType)
        self._select = select
        self._reset = reset
        self._input_shape = input_shape(module)
        self._set_options(precision, channels_last, compile)
        self.module = module
        require_evaluation_mode(self.module, "module")
        self.module = _moved(module, self.device)
        self._denoiser = None if self._denoiser is None else self._denoiser.to(self.device)
        self._dtype = _working_dtype(module)

    def _set_options(self, precision: torch.dtype | None, channels_last: bool, compile: bool) -> None:
        if precision not in (None, torch.float16, torch.bfloat16):
            raise InvalidInputError("precision", f"got {precision}", "Pass torch.float16, torch.bfloat16 or None")
        self.precision = precision
        self.channels_last = channels_last
        self.compile = compile
        self._compiled: Callable[[torch.Tensor], Any] | None = None

    def with_options(
        self,
        *,
        precision: torch.dtype | EllipsisType | None = ...,
        channels_last: bool | None = None,
        compile: bool | None = None,
    ) -> TorchModel:
        """Make the same model with other settings for speed; the module is shared, what is left out stays.

        Parameters
        ----------
        precision, channels_last, compile
            As for the class.
        """
        made = copy.copy(self)
        made._set_options(
            self.precision if isinstance(precision, EllipsisType) else precision,
            self.channels_last if channels_last is None else channels_last,
            self.compile if compile is None else compile,
        )
        return made

    def _forward(self, batch: torch.Tensor) -> Any:
        if self._reset is not None:
            getattr(self.module, self._reset)()
        if not self.compile:
            return self.module(batch)
        if self._compiled is None:
            self._compiled = torch.compile(self.module)
        return self._compiled(batch)

    def _predict(self, batch: Float[torch.Tensor, "batch *item"]) -> tuple[Shaped[torch.Tensor, "..."], bool]:
        require_evaluation_mode(self.module, "module")
        batch = batch.to(self._dtype or batch.dtype)
        if self.channels_last and batch.ndim in (4, 5):
            order = torch.channels_last if batch.ndim == 4 else torch.channels_last_3d
            batch = batch.contiguous(memory_format=order)
        kind, dtype = self.device.type, self.precision
        with torch.autocast(kind, dtype=dtype, enabled=dtype is not None):
            pieces = self._pieces(batch)
            made = [self._chosen(self._forward(piece)) for piece in pieces]
        whole = made[0][0] if len(made) == 1 else torch.cat([tensor for tensor, _ in made])
        complete = whole.ndim > 0 and len(whole) == sum(map(len, pieces))
        return whole[: len(batch)] if complete else whole, made[0][1]  # what is not is refused

    def _chosen(self, returned: Any) -> tuple[torch.Tensor, bool]:
        if self._select is None:
            return output_tensor(returned)
        if isinstance(self._select, str | int):
            return named_output(returned, self._select), self._select == "logits"
        return self._select(returned), False

    @property
    def _fixed_batch(self) -> int | None:
        return self._input_shape[0] if self._input_shape else None

    def _pieces(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """The batch in pieces of the size that a program was exported for; the last one filled with copies."""
        wanted = self._input_shape
        if wanted is not None and (
            len(wanted) != batch.ndim
            or any(size not in (None, given) for size, given in zip(wanted[1:], batch.shape[1:], strict=True))
        ):
            fixed = tuple("any" if size is None else size for size in wanted[1:])
            raise InvalidInputError(
                "batch",
                f"items of shape {tuple(batch.shape[1:])} (after padding) for a program that was exported for {fixed}",
                "Resize the items, export it with dynamic_shapes, or leave windows out",
            )
        size = self._fixed_batch
        if size is None or size == len(batch):
            return [batch]
        missing = -len(batch) % size
        filled = torch.cat([batch, batch[-1:].expand(missing, *batch.shape[1:])]) if missing else batch
        return list(filled.split(size))

    def __call__(self, batch: Float[torch.Tensor, "batch *item"]) -> Shaped[torch.Tensor, "batch *prediction"]:
        """Predict a batch of shape (batch, *item) without recording gradients; see `Model`."""
        with torch.inference_mode():
            return super().__call__(batch)

    @property
    def concurrent(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether replicas share nothing that a call could change, as far as can be told."""
        alone = self._denoiser is None or self._denoiser.concurrent
        return alone and not (self.compile or callable(self._select) or not can_be_copied(self.module))

    def replica(self) -> TorchModel:
        """The same model for another thread: a copy of every part, on the same weights."""
        made = copy.copy(self)
        made.module = replica_of(self.module)
        made._denoiser = None if self._denoiser is None else self._denoiser.replica()
        return made

    def shared_with_replicas(self) -> str:
        """What replicas share that calls could change: hooks, the module's own and a denoiser's."""
        return super().shared_with_replicas() or shared_words(self.module)

    def weight_digests(self) -> dict[str, str]:
        """Digests of the module's weights, and of a denoiser's."""
        return super().weight_digests() | weight_digests(self.module)

    @property
    def evaluated_in(self) -> str:
        """Floating-point type of the arithmetic: that of autocast, else the coarsest among the module's weights."""
        if self.precision is not None:
            return self._coarsest(str(self.precision).removeprefix("torch."))
        return self._coarsest(working_precision(self.module))

    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled code behind, which cannot travel to another process."""
        return {**self.__dict__, "_compiled": None}

    def watching(self) -> AbstractContextManager[None]:
        """Note which of the module's attributes change while it predicts; `fingerprint` leaves them out."""
        return self._watching()

    @contextmanager
    def _watching(self) -> Generator[None]:
        with super().watching(), watching(self.module):
            yield

    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the classes, the structure, the weights and every option that changes predictions.

        Also of attributes that are no weights, of forward hooks, and of the source of classes outside torch. Device,
        memory order and compilation only change rounding and are left out, and so are attributes that trial calls were
        seen to change.
        """
        options = {
            **self._configuration(),
            "precision": str(self.precision),
            "select": None if self._select is None else describe(self._select),
            **({} if self._reset is None else {"reset": self._reset}),
        }
        kind = type(self.module)
        state = hashlib.sha256(f"{kind.__module__}.{kind.__qualname__}".encode())
        changing = changing_attributes(self.module)
        state.update(describe_module(self.module, changing).encode())
        state.update(repr(sorted(options.items())).encode())
        state.update(values_text(self.module).encode())
        return state.hexdigest()


def working_precision(module: nn.Module) -> str:
    """Coarsest floating-point type among a module's weights, such as "float32", which is also that of none."""
    types = {value.dtype for value in (*module.parameters(), *module.buffers()) if value.is_floating_point()}
    return str(max(types, key=lambda t: torch.finfo(t).eps, default=torch.float32)).removeprefix("torch.")


def _device(device: torch.device | str) -> torch.device:
    try:
        return torch.device(device)
    except RuntimeError as error:
        problem = f"{device!r} is none that torch knows"
        raise InvalidInputError("device", problem, 'Pass "cpu", "cuda" or "mps"') from error


def _moved(module: nn.Module, device: torch.device) -> nn.Module:
    try:
        # Tried on its own, since a module without weights moves anywhere.
        torch.empty(0, device=device)
        return module.to(device)
    except Exception as error:  # torch raises AssertionError, RuntimeError and others, by backend and build
        if is_out_of_memory(error):
            raise
        raise InvalidInputError(
            "device", f"{device} cannot be used: {error}", 'Pass "cpu", or install torch with support for it'
        ) from error


def _working_dtype(module: nn.Module) -> torch.dtype | None:
    """Precision of the module's first floating-point weight; None if it has none."""
    for group in (module.parameters(), module.buffers()):
        for value in group:
            if value.is_floating_point():
                return value.dtype
    return None
