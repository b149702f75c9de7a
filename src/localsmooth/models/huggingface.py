"""Segmenters as Hugging Face's transformers keeps them: a folder with configuration, weights and image processor."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.models.adapter import Bounds, Upsample
from localsmooth.models.denoiser import Denoiser
from localsmooth.models.huggingface_folder import HuggingFaceFolder, named_labels
from localsmooth.models.huggingface_resizing import Resizing, resizing_of
from localsmooth.models.mask_queries import semantic_scores
from localsmooth.models.preprocessing import Number, Preprocessing
from localsmooth.models.torch_model import TorchModel

__all__ = ["HuggingFaceModel"]

_WHITE = 255  # of the pictures of 8 bits that image processors take
_TASK = "the task is semantic"  # what OneFormer is told in words

Size = tuple[int, int]


class HuggingFaceModel(TorchModel):
    """A semantic segmenter from a folder that `save_pretrained` wrote, or by its name on the hub.

    Heads of one score for each class and place (SegFormer, UPerNet, DPT, BEiT, …), and those of masks with classes
    (MaskFormer, Mask2Former, OneFormer, EoMT), whose semantic scores are made as the library's own post-processing
    makes them. The image processor's normalisation, order of channels and resizing belong to the model, and scores are
    interpolated to the size of the input: noise and certificates live in pictures of the size given.

    Parameters
    ----------
    source
        The folder, or a name that transformers resolves. Code that comes with a model is never run.
    bounds
        Values of black and white in the items: (0, 1) or (0, 255), say.
    preprocessing
        In place of the image processor's normalisation, in the units of the items; the folder needs no image processor
        then.
    resize
        True: interpolate pictures inside the model to the size that the image processor makes of them, if there is one;
        up to its rounding to grey levels, and to what cubic interpolation leaves of them beyond black and white. A
        size: to this height and width. False: the network is given pictures in their own size.
    pad_multiple
        Extend inputs by mirroring to a multiple of this many pixels; outputs are cropped back. Not with
        `preprocessing`, which has its own, and not where pictures are resized.
    threshold
        For heads with one channel: label 1 where its logit exceeds this.
    upsample
        True: interpolate the scores to the size of the input. A shape: to that shape. False: leave them coarse.
    pickled
        Also take weights that are no safetensors. They are read by transformers with `weights_only`, which has had
        faults that let files run code.
    device, precision, channels_last, compile, denoiser
        As for `TorchModel`.

    Raises
    ------
    InvalidInputError
        Naming `source` if there is no such segmenter, its weights are no safetensors or are incomplete; or another
        argument at fault.
    ImportError
        If transformers is not installed.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        bounds: Bounds = (0, 1),
        preprocessing: Preprocessing | None = None,
        resize: bool | Size = True,
        pad_multiple: int | None = None,
        threshold: Number | None = None,
        upsample: Upsample = True,
        pickled: bool = False,
        device: torch.device | str = "cpu",
        precision: torch.dtype | None = None,
        channels_last: bool = False,
        compile: bool = False,
        denoiser: Denoiser | Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        if preprocessing is not None and pad_multiple is not None:
            raise InvalidInputError("pad_multiple", "given beside preprocessing", "Say it in Preprocessing(…) alone")
        folder = _Folder(source)
        processor = folder.processor(needed=preprocessing is None)
        if preprocessing is None:
            preprocessing = Preprocessing(*_moments(processor, bounds), pad_multiple=pad_multiple)
        resizing = _resizing(resize, processor)
        if resizing is not None and preprocessing.pad_multiple is not None:
            raise InvalidInputError("pad_multiple", "pictures are resized", "Leave it out, or pass resize=False")
        segmenter = _Segmenter(
            folder.segmenter(pickled),
            resizing=resizing,
            queries=folder.has_queries,
            mask_size=folder.mask_size(processor),
            task=folder.task(),
            flipped=bool(getattr(processor, "do_flip_channel_order", False)),
        )
        super().__init__(
            segmenter.eval(),
            bounds=bounds,
            classes=None if threshold is not None else folder.config.num_labels,
            preprocessing=preprocessing,
            threshold=threshold,
            upsample=upsample,
            class_axis=1,
            device=device,
            precision=precision,
            channels_last=channels_last,
            compile=compile,
            denoiser=denoiser,
        )
        self.class_names = named_labels(folder.config.id2label, self.classes)


class _Segmenter(nn.Module):
    """A network of transformers that takes a batch alone and returns scores alone.

    Parameters
    ----------
    network
        The network.
    resizing
        What is done to the size of pictures; None for nothing.
    queries
        Whether its head predicts masks with classes.
    mask_size
        Size to which masks are interpolated before their scores are added up.
    task
        Tokens that say what is asked of it; None for networks that are told nothing.
    flipped
        Whether it takes the channels in reverse order.
    """

    task: torch.Tensor | None

    def __init__(
        self,
        network: nn.Module,
        *,
        resizing: Resizing | None,
        queries: bool,
        mask_size: Size | None,
        task: torch.Tensor | None,
        flipped: bool,
    ) -> None:
        super().__init__()
        self.network = network
        self.resizing = resizing
        self.queries = queries
        self.mask_size = mask_size
        self.flipped = flipped
        self.register_buffer("task", task)

    def forward(self, batch: Float[torch.Tensor, "batch channels *size"]) -> Float[torch.Tensor, "batch classes *out"]:
        """Return the scores of every class, as coarse as the network makes them."""
        if self.flipped:
            batch = batch.flip(1)
        if self.resizing is not None:
            batch = self.resizing(batch)
        told = {} if self.task is None else {"task_inputs": self.task.expand(len(batch), -1)}
        made = self.network(pixel_values=batch, **told)
        if not self.queries:
            return made.logits
        return semantic_scores(made.class_queries_logits, made.masks_queries_logits, self.mask_size)


def _fixed_size(size: Size | None) -> Callable[[Any, Any], Size | None]:
    return lambda config, processor: size


def _processed_size(config: Any, processor: Any) -> Size:
    """The size of the pictures that a processor makes; that of the network's own where there is no processor."""
    size: Mapping[str, int] = dict(getattr(processor, "size", None) or {})
    if "height" in size:
        return size["height"], size["width"]
    shortest = size.get("shortest_edge") or config.image_size
    return shortest, size.get("longest_edge") or shortest


# Kinds of network whose heads predict masks with classes, and the size to which these are brought before they are
# added up, as in the post-processing of each.
_MASK_SIZES: Mapping[str, Callable[[Any, Any], Size | None]] = {
    "maskformer": _fixed_size(None),
    "mask2former": _fixed_size((384, 384)),
    "oneformer": _fixed_size(None),
    "eomt": _processed_size,
    "eomt_dinov3": _processed_size,
}
_TOLD = "oneformer"


class _Folder(HuggingFaceFolder):
    """A folder with a segmenter: network, image processor, tokens of a task."""

    def __init__(self, source: str | os.PathLike[str]) -> None:
        super().__init__(source)
        self.has_queries = self.config.model_type in _MASK_SIZES
        if not self.has_queries and not self.can_be("SEMANTIC_SEGMENTATION"):
            semantic: Any = importlib.import_module("transformers.models.auto.modeling_auto")
            known = sorted({*semantic.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES, *_MASK_SIZES})
            raise InvalidInputError(
                "source",
                f"{self.name} is of the kind {self.config.model_type}, which has no head for semantic segmentation",
                "Pass it to localsmooth.tasks.tokens.HuggingFaceTagger"
                if self.tags_tokens
                else f"Pass one of {', '.join(known)}; or load it, and wrap it in TorchModel(module, select=…)",
            )

    def segmenter(self, pickled: bool) -> nn.Module:
        """Load the network, complete, in evaluation mode."""
        kind = "AutoModelForUniversalSegmentation" if self.has_queries else "AutoModelForSemanticSegmentation"
        return self.network(kind, "semantic segmentation", pickled)

    def processor(self, *, needed: bool) -> Any:
        """Load the image processor; None if there is none, and nobody needs it."""
        # A file with the names of its classes, which it would download.
        more = {"class_info_file": None} if self.config.model_type == _TOLD else {}
        try:
            return self.read("AutoImageProcessor", "its image processor", **more)
        except InvalidInputError as error:
            if not needed:
                return None
            remedy = "Pass preprocessing=Preprocessing(mean, std), as the model was trained"
            raise InvalidInputError("preprocessing", error.problem, remedy) from error

    def mask_size(self, processor: Any) -> Size | None:
        """Size to which masks are brought before they are added up."""
        return _MASK_SIZES[self.config.model_type](self.config, processor) if self.has_queries else None

    def task(self) -> torch.Tensor | None:
        """Tokens that ask for semantic segmentation, of shape (1, tokens); None for networks that are not told."""
        if self.config.model_type != _TOLD:
            return None
        tokenizer = self.read("AutoTokenizer", "its tokenizer")
        made = tokenizer([_TASK], padding="max_length", max_length=self.config.task_seq_len, truncation=True)
        return torch.tensor(made["input_ids"]) * torch.tensor(made["attention_mask"])


def _moments(processor: Any, bounds: Bounds) -> tuple[Sequence[float] | None, Sequence[float] | None]:
    """Mean and standard deviation of an image processor in the units of the items."""
    low, high = float(bounds[0]), float(bounds[1])
    # The processor takes v = 255 (x − low) / (high − low) to (factor v − mean) / std.
    factor = processor.rescale_factor if getattr(processor, "do_rescale", True) else 1.0
    scale = _WHITE * factor / (high - low)
    normalises = getattr(processor, "do_normalize", False)
    if not normalises and scale == 1 and low == 0:
        return None, None
    mean, deviation = (processor.image_mean, processor.image_std) if normalises else ([0.0], [1.0])
    return [each / scale + low for each in _listed(mean)], [each / scale for each in _listed(deviation)]


def _resizing(resize: bool | Size, processor: Any) -> Resizing | None:
    """Make what was asked for."""
    if not isinstance(resize, bool):
        size: Any = resize  # from files it may be anything
        size = tuple(size) if isinstance(size, list | tuple) else ()
        whole = all(isinstance(edge, int) and not isinstance(edge, bool) and edge > 0 for edge in size)
        if len(size) != 2 or not whole:
            raise InvalidInputError("resize", f"got {resize}", "Pass True, False, or height and width")
        return Resizing(size)
    if not resize or processor is None:
        return None
    moments, flipped = _moments(processor, (0, _WHITE)), getattr(processor, "do_flip_channel_order", False)
    mean, deviation = (
        torch.tensor(values or [each]).reshape(1, -1, 1, 1) for values, each in zip(moments, (0.0, 1.0), strict=True)
    )

    def normalised(pixels: torch.Tensor) -> torch.Tensor:
        made = (pixels - mean) / deviation
        return made.flip(1) if flipped else made

    return resizing_of(processor, normalised)


def _listed(values: float | Sequence[float]) -> list[float]:
    return [float(values)] if isinstance(values, int | float) else [float(each) for each in values]
