"""One protocol over torch modules, ONNX files, Hugging Face models and plain callables."""

from localsmooth.models.base import Model, OutputKind

__all__ = ["Model", "OutputKind"]
