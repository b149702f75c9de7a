"""One protocol over torch modules, ONNX files, Hugging Face models and plain callables."""

from localsmooth.models.adapter import Adapter, Upsample
from localsmooth.models.base import Model, OutputKind
from localsmooth.models.callable_model import CallableModel
from localsmooth.models.checks import ModelCheck, check_batch, check_form, check_item, check_model, warn_of_scale
from localsmooth.models.denoiser import Denoiser
from localsmooth.models.exported import evaluated, is_exported, require_evaluation_mode
from localsmooth.models.fingerprint import describe, describe_module, lasting_name, tensor_digest
from localsmooth.models.huggingface import HuggingFaceModel
from localsmooth.models.huggingface_folder import HuggingFaceFolder, is_hub_name, named_labels
from localsmooth.models.onnx_model import OnnxModel
from localsmooth.models.outputs import output_tensor
from localsmooth.models.preprocessing import Preprocessing
from localsmooth.models.replica import can_be_copied, replica_of, shared_words, weight_digests
from localsmooth.models.segmentation import segmentation_network
from localsmooth.models.told import encoded_levels, level_channel
from localsmooth.models.torch_model import TorchModel, working_precision
from localsmooth.models.unseen import Unseen

__all__ = [
    "Adapter",
    "CallableModel",
    "Denoiser",
    "HuggingFaceFolder",
    "HuggingFaceModel",
    "Model",
    "ModelCheck",
    "OnnxModel",
    "OutputKind",
    "Preprocessing",
    "TorchModel",
    "Unseen",
    "Upsample",
    "can_be_copied",
    "check_batch",
    "check_form",
    "check_item",
    "check_model",
    "describe",
    "describe_module",
    "encoded_levels",
    "evaluated",
    "is_exported",
    "is_hub_name",
    "lasting_name",
    "level_channel",
    "named_labels",
    "output_tensor",
    "replica_of",
    "require_evaluation_mode",
    "segmentation_network",
    "shared_words",
    "tensor_digest",
    "warn_of_scale",
    "weight_digests",
    "working_precision",
]
