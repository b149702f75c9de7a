"""Networks that take embedded tokens, features last, as base classifiers, which take channels first."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from jaxtyping import Shaped
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.models import OutputKind, TorchModel, is_exported, output_tensor

__all__ = ["EmbeddedTagger", "FeaturesLast", "features_last"]

_KEYWORD = "inputs_embeds"


class FeaturesLast(nn.Module):
    """Moves features to the end before a module, and classes behind the batch axis after it; see `features_last`."""

    def __init__(self, module: nn.Module, classes: int | None, keyword: str | None) -> None:
        super().__init__()
        self.module = module
        self.classes = classes
        self.keyword = keyword
        # Of this part alone: parts of the module have their own, and that of a program says nothing.
        self.training = getattr(module, "training", False) and not is_exported(module)

    def forward(self, batch: torch.Tensor) -> Shaped[torch.Tensor, "batch *prediction"]:
        """Return scores (batch, classes, tokens), or labels (batch, tokens), for a batch (batch, features, tokens).

        Raises
        ------
        InvalidInputError
            If the module returns something else than classes for each token.
        """
        if batch.ndim != 3:
            raise InvalidInputError(
                "sequences",
                f"a batch has shape {tuple(batch.shape)}, and a classifier of tokens takes (batch, features, tokens)",
                'Pass sequences of shape (tokens, features); in a file, kind = "sentences" or "tokens" in [data]',
            )
        inputs = batch.transpose(1, 2)
        made, tokens = self._called(inputs), batch.shape[2]
        wanted = (len(batch), tokens) if self.classes is None else (len(batch), tokens, self.classes)
        if tuple(made.shape) != wanted:
            raise InvalidInputError(
                "module",
                f"it returned shape {tuple(made.shape)} for {len(batch)} sequences of {tokens} tokens",
                f"Return {wanted}, one prediction for each token" + (", classes last" if self.classes else ""),
            )
        if self.classes is None:
            return made
        if tokens == self.classes:
            self._require_classes_last(inputs)
        return made.transpose(1, 2)

    def _called(self, inputs: torch.Tensor) -> torch.Tensor:
        returned: Any = self.module(inputs) if self.keyword is None else self.module(**{self.keyword: inputs})
        return output_tensor(returned)[0]

    def _require_classes_last(self, inputs: torch.Tensor) -> None:
        """Where there are as many tokens as classes the shape says nothing; that of a shorter sequence does."""
        remedy = "Pass a module that takes sequences of any length, or sequences with one token more or less"
        try:
            shape = tuple(self._called(inputs[:1, :1]).shape)
        except Exception as error:  # a module may raise anything
            problem = (
                f"as many tokens as classes ({self.classes}), and it cannot take one token alone to tell which axis "
                f"holds the classes ({type(error).__name__}: {error})"
            )
            raise InvalidInputError("module", problem, remedy) from error
        if shape != (1, 1, self.classes):
            raise InvalidInputError(
                "module",
                f"it returned shape {shape} for one token: the classes do not lie last",
                "Return (batch, tokens, classes)",
            )


def features_last(module: nn.Module, *, classes: int | None, keyword: str | None = None) -> nn.Module:
    """Let a module that takes (batch, tokens, features) take (batch, features, tokens), as base classifiers do.

    What it returns must have the shape (batch, tokens, classes), and anything else is refused. Where there are as many
    tokens as classes, so that the shape would not tell a wrong order, it is asked about a single token too.

    Parameters
    ----------
    module
        Returns a tensor, or an object with `.logits`.
    classes
        Number of classes on the last axis; None for a module that returns labels (batch, tokens).
    keyword
        Name of the argument that takes the embeddings; by default `inputs_embeds` where `forward` has it (Hugging
        Face), and the first argument otherwise.

    Raises
    ------
    InvalidInputError
        If `forward` has no argument of that name.
    """
    try:
        parameters = dict(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):  # compiled modules may have none
        parameters = {}
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    if keyword is not None and keyword not in parameters and not takes_any:
        raise InvalidInputError("keyword", f"forward has no {keyword}", f"Pass one of {', '.join(parameters)}")
    if keyword is None and _KEYWORD in parameters:
        keyword = _KEYWORD
    return FeaturesLast(module, classes, keyword)


class EmbeddedTagger(TorchModel):
    """A torch module that labels every token of embedded sequences, as a base classifier.

    Parameters
    ----------
    module
        In evaluation mode; takes (batch, tokens, features) and returns (batch, tokens, classes), or an object with such
        `.logits`. See `features_last`.
    classes
        Number of classes; taken from `module.config.num_labels` where there is such a thing.
    bounds
        Smallest and largest value of a clean embedding; None if unbounded.
    output
        What the module returns; labels have the shape (batch, tokens).
    keyword
        Name of the argument that takes the embeddings; found as in `features_last` by default.
    device, precision, compile
        As in `TorchModel`.

    Raises
    ------
    InvalidInputError
        Naming the argument at fault.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        classes: int | None = None,
        bounds: tuple[float, float] | None = None,
        output: OutputKind = OutputKind.LOGITS,
        keyword: str | None = None,
        device: torch.device | str = "cpu",
        precision: torch.dtype | None = None,
        compile: bool = False,
    ) -> None:
        if classes is None:
            classes = getattr(getattr(module, "config", None), "num_labels", None)
        if classes is None:
            raise InvalidInputError("classes", "not given", "Pass the number of classes")
        last = None if output is OutputKind.LABELS else classes
        super().__init__(
            features_last(module, classes=last, keyword=keyword),
            bounds=bounds,
            classes=classes,
            output=output,
            upsample=False,
            class_axis=None if output is OutputKind.LABELS else 1,  # `FeaturesLast` puts them there, and tries it
            device=device,
            precision=precision,
            compile=compile,
        )
