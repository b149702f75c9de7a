"""ONNX files, run by ONNX Runtime."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, ModelFailedError
from localsmooth.memory import is_out_of_memory
from localsmooth.models.adapter import Adapter, Bounds, ClassAxis, Upsample
from localsmooth.models.base import OutputKind
from localsmooth.models.denoiser import Denoiser
from localsmooth.models.preprocessing import Number, Preprocessing

__all__ = ["OnnxModel"]

_PRECISIONS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


_CONSTANTS = {
    **_PRECISIONS,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


class OnnxModel(Adapter):
    """A segmenter or classifier stored as an ONNX file with one input of shape (batch, channels, *spatial).

    Further inputs, such as a sampling rate or the state of a recurrent network, are constants: every call begins anew.
    Fixed and free axes both work: where the file fixes the batch, samples go through in pieces of that size (one by one
    where it declares a free axis and yet takes single samples only).

    Parameters
    ----------
    path
        The file.
    bounds
        Smallest and largest value of a clean input, in the units of σ and ε; None if unbounded.
    classes
        Number of classes; taken from the file where it fixes that axis.
    output
        What the network returns.
    preprocessing
        What happens to the input after the noise: normalisation, and padding to sizes that the network takes.
    threshold
        For networks with one output channel: label 1 where its value exceeds this (0.5 for a probability, 0 for a
        logit).
    upsample
        True: interpolate the scores to the size of the input. A shape: to that shape (not for windows).
    class_axis
        Axis of the output that holds the classes, the batch being axis 0: −1 where they lie last; see `Adapter`.
    output_name
        Which output to read; needed where there are several.
    inputs
        Values of all further inputs, by name. An axis of size 1 that the file calls like the batch axis of the item's
        input is repeated for every sample.
    threads
        Threads within an operator; None for ONNX Runtime's own choice.
    providers
        ONNX Runtime's execution providers, the preferred one first.
    told
        Whether the network takes a channel of noise levels behind the input's own; see `Adapter`.
    denoiser
        Applied to noisy inputs, as torch tensors, before anything else; see `Denoiser`.

    Raises
    ------
    ImportError
        If ONNX Runtime is not installed.
    InvalidInputError
        Naming the argument at fault.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        bounds: Bounds | None,
        classes: int | None = None,
        output: OutputKind = OutputKind.LOGITS,
        preprocessing: Preprocessing | None = None,
        threshold: Number | None = None,
        upsample: Upsample | None = None,
        class_axis: ClassAxis | None = None,
        output_name: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        threads: int | None = None,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        told: bool = False,
        denoiser: Denoiser | Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        # Absolute: the working directory may change, and workers have others.
        self._path = Path(os.path.abspath(expanded(path)))
        if not self._path.is_file():
            raise InvalidInputError("path", f"there is no file {self._path}", "Pass the path of an ONNX file")
        if threads is not None and threads < 1:
            raise InvalidInputError("threads", f"got {threads}", "Pass at least 1, or None")
        self._threads = threads
        self._providers = tuple(providers)
        self._constants = {name: np.array(value) for name, value in (inputs or {}).items()}
        self._open()
        self._output_name = self._choose_output(output_name)
        if classes is None and threshold is None and output is not OutputKind.LABELS:
            classes = self._fixed_classes(1 if class_axis is None else class_axis)
            self._classes_inferred = True
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

    def _open(self) -> None:
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        # Idle threads that spin would take the cores from the noise that is drawn between two calls.
        options.log_severity_level = 4  # what goes wrong is said once, by the error
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = runtime.InferenceSession(
                str(self._path), sess_options=options, providers=list(self._providers)
            )
        except Exception as error:  # ONNX Runtime's own errors share no base class of their own
            raise InvalidInputError(
                "path", f"ONNX Runtime cannot load {self._path}: {error}", "Check the file"
            ) from error
        declared = {one.name: one for one in self._session.get_inputs()}
        if strange := sorted(self._constants.keys() - declared.keys()):
            raise InvalidInputError("inputs", f"the network has no input {strange[0]!r}", f"It has {list(declared)}")
        left = [one for one in declared.values() if one.name not in self._constants]
        if len(left) != 1:
            raise InvalidInputError(
                "inputs",
                f"the network has the inputs {list(declared)}, of which one must be left for the item",
                "Pass the values of all others, such as inputs={'sr': 16000, 'state': np.zeros((2, 1, 128))}",
            )
        item = left[0]
        if item.type not in _PRECISIONS:
            raise InvalidInputError("path", f"the network takes {item.type}", "Export it with a floating-point input")
        self._input_name: str = item.name
        self._precision = _PRECISIONS[item.type]
        self._input_shape: tuple[int | None, ...] = tuple(_fixed(size) for size in item.shape)
        self._batch_size: int | None = self._input_shape[0] if self._input_shape else None
        batch_axis = item.shape[0] if item.shape else None
        self._repeated: dict[str, int] = {}
        for name, value in self._constants.items():
            self._constants[name] = _constant(name, value, declared[name].type)
            axes = [
                axis for axis, size in enumerate(declared[name].shape) if isinstance(size, str) and size == batch_axis
            ]
            if axes and self._constants[name].ndim > axes[0] and self._constants[name].shape[axes[0]] == 1:
                self._repeated[name] = axes[0]

    def _choose_output(self, wanted: str | None) -> str:
        names: list[str] = [o.name for o in self._session.get_outputs()]
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted not in names:
            problem = "not given" if wanted is None else f"there is no output {wanted!r}"
            raise InvalidInputError("output_name", problem, f"Pass one of {names}")
        return wanted

    def _fixed_classes(self, axis: ClassAxis) -> int | None:
        shape = next(o.shape for o in self._session.get_outputs() if o.name == self._output_name)
        there = axis != "none" and -len(shape) <= axis < len(shape)
        return _fixed(shape[axis]) if there and len(shape) > 1 else None

    def _predict(self, batch: Float[torch.Tensor, "batch *item"]) -> tuple[Shaped[torch.Tensor, "..."], bool]:
        wanted = self._input_shape
        if wanted and (
            len(wanted) != batch.ndim
            or any(size not in (None, given) for size, given in zip(wanted[1:], batch.shape[1:], strict=True))
        ):
            fixed = tuple("any" if size is None else size for size in wanted[1:])
            raise InvalidInputError(
                "batch",
                f"items of shape {tuple(batch.shape[1:])} (after padding) for a network that takes {fixed}",
                "Resize the items, export the network with free axes, or leave windows out",
            )
        values = np.ascontiguousarray(batch.cpu().numpy(), dtype=self._precision)
        fixed_batch = self._batch_size
        if fixed_batch is None or fixed_batch == len(values):
            try:
                return torch.from_numpy(self._run(values)), False
            except (ModelFailedError, InvalidInputError) as error:
                if len(values) == 1 or fixed_batch is not None or is_out_of_memory(error):
                    raise
                # Some files declare a free batch axis and fix it inside, as exporters do that saw a single sample.
                fixed_batch = 1
                try:
                    self._run(values[:1])
                except ModelFailedError:
                    raise error from None
            self._batch_size = 1
        pieces: list[np.ndarray] = []
        for start in range(0, len(values), fixed_batch):
            piece = values[start : start + fixed_batch]
            missing = fixed_batch - len(piece)
            filled = np.concatenate([piece, np.repeat(piece[-1:], missing, axis=0)]) if missing else piece
            pieces.append(self._run(filled)[: len(piece)])
        return torch.from_numpy(np.concatenate(pieces)), False

    def _run(self, values: np.ndarray) -> np.ndarray:
        try:
            fed = {
                name: np.repeat(value, len(values), axis=self._repeated[name]) if name in self._repeated else value
                for name, value in self._constants.items()
            }
            made = np.asarray(self._session.run([self._output_name], {self._input_name: values, **fed})[0])
        except Exception as error:  # ONNX Runtime's own errors share no base class, and do not travel between processes
            raise ModelFailedError(
                f"ONNX Runtime cannot run {self._path} on a batch of shape {values.shape}: {error}"
            ) from error
        if len(made) != len(values):
            raise InvalidInputError(
                "path",
                f"the network returned shape {made.shape} for a batch of {len(values)}",
                "Export it with one prediction per sample, the batch axis first",
            )
        return made

    @property
    def evaluated_in(self) -> str:
        """Floating-point type of the network's input; what the file converts it to inside is not looked at."""
        return self._coarsest(np.dtype(self._precision).name)

    def __getstate__(self) -> Mapping[str, Any]:
        """Leave the session behind, which cannot travel to another process."""
        return {name: value for name, value in self.__dict__.items() if name != "_session"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Open the file again."""
        for name, value in state.items():
            setattr(self, name, value)
        self._open()

    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the file, of the weight files that it names, and of the options.

        Threads and providers only change rounding and are left out.
        """
        content = self._path.read_bytes()
        state = hashlib.sha256(content)
        folder = self._path.parent
        beside = {other.name for other in folder.iterdir() if other.name.encode() in content}
        for name in sorted(beside | _external_files(content)):
            other = folder / name
            if other != self._path and other.is_file():
                with other.open("rb") as handle:
                    state.update(hashlib.file_digest(handle, "sha256").digest())
        state.update(repr(sorted({**self._configuration(), "output_name": self._output_name}.items())).encode())
        for name, value in sorted(self._constants.items()):
            state.update(f"{name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
        return state.hexdigest()


def _external_files(content: bytes) -> set[str]:
    """Paths of the files with tensors that an ONNX file refers to, from the entries "location" in its bytes.

    An entry is a protocol buffer of two strings, each a tag, a length in groups of seven bits, and its bytes.
    """
    names: set[str] = set()
    for found in re.finditer(rb"\x0a\x08location\x12([\x80-\xff]{0,9}[\x00-\x7f])", content):
        length = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(found[1]))
        path = content[found.end() : found.end() + length]
        with contextlib.suppress(UnicodeDecodeError):
            names.add(path.decode().replace("\\", "/"))
    return names


def _constant(name: str, value: np.ndarray, declared: str) -> np.ndarray:
    """The value of a further input in the type that the file declares."""
    if declared not in _CONSTANTS or value.dtype.kind not in "biuf":
        raise InvalidInputError("inputs", f"{name} is {value.dtype}, for {declared}", "Pass numbers")
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(value, dtype=_CONSTANTS[declared]).reshape(value.shape)
    exact = made.dtype.kind == "f" or np.array_equal(made, value)
    if not exact or not np.isfinite(value).all() or not np.isfinite(made).all():
        raise InvalidInputError("inputs", f"{name} does not fit {declared}", "Pass numbers of that type")
    return made


def _fixed(size: Any) -> int | None:
    """Size of an axis, None where the file leaves it free."""
    return size if isinstance(size, int) and size > 0 else None


def _onnxruntime() -> Any:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ImportError("OnnxModel needs ONNX Runtime: pip install 'localsmooth[onnx]'") from error
