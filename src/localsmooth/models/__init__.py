"""One protocol over torch modules, ONNX files, Hugging Face models and plain callables."""

from localsmooth.models.adapter import Adapter, Upsample
from localsmooth.models.base import Model, OutputKind
from localsmooth.models.callable_model import CallableModel
from localsmooth.models.checks import ModelCheck, check_batch, check_form, check_item, check_model
from localsmooth.models.onnx_model import OnnxModel
from localsmooth.models.torch_model import TorchModel

__all__ = [
    "Adapter",
    "CallableModel",
    "Model",
    "ModelCheck",
    "OnnxModel",
    "OutputKind",
    "TorchModel",
    "Upsample",
    "check_batch",
    "check_form",
    "check_item",
    "check_model",
]
