"""Folders in which Hugging Face's transformers keeps a model: configuration, weights, and what prepares its inputs."""

from __future__ import annotations

import importlib
import os
import re
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, cast

from torch import nn

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError
from localsmooth.seeds import torch_seeded

__all__ = ["HuggingFaceFolder", "is_hub_name", "named_labels"]

_HUB_NAME = re.compile(r"^\w[\w.-]*(/[\w.-]+)?$")
_SHOWN = 3
_ONE_AT_A_TIME = threading.Lock()  # so that nobody puts back what another thread has set for a while


def is_hub_name(source: str) -> bool:
    """Whether a text may be the name of a model on the hub, such as "owner/model"."""
    return _HUB_NAME.match(source) is not None


class HuggingFaceFolder:
    """What transformers finds under a name. Code that comes with a model is never run.

    Parameters
    ----------
    source
        A folder that `save_pretrained` wrote, or a name on the hub.

    Raises
    ------
    InvalidInputError
        Naming `source` if there is no such folder, or no configuration in it.
    ImportError
        If transformers is not installed.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self._library = _transformers()
        path = expanded(source)
        self.name = str(path) if path.is_dir() else str(source)
        if not path.is_dir() and not is_hub_name(self.name):
            raise InvalidInputError(
                "source",
                f"there is no folder {self.name}",
                "Pass a folder that save_pretrained wrote, or a name on the hub, such as owner/model",
            )
        self.config: Any = self.read("AutoConfig", "its configuration")

    @property
    def tags_tokens(self) -> bool:
        """Whether it holds a classifier of tokens."""
        heads: list[str] = getattr(self.config, "architectures", None) or []
        return any(head.endswith("ForTokenClassification") for head in heads)

    def can_be(self, head: str) -> bool:
        """Whether models of this kind have a head of a name, such as "TOKEN_CLASSIFICATION"."""
        known: Any = importlib.import_module("transformers.models.auto.modeling_auto")
        return type(self.config) in getattr(known, f"MODEL_FOR_{head}_MAPPING")

    def read(self, kind: str, what: str, **options: object) -> Any:
        """Let one of the classes of transformers read the folder.

        Parameters
        ----------
        kind
            Name of the class, such as "AutoConfig".
        what
            What it reads, in words.
        options
            What it is told beside the name.

        Raises
        ------
        InvalidInputError
            If it cannot.
        """
        # What is downloaded may show how far it is; a folder is read before anybody asks.
        silence = _without_bars() if os.path.isdir(self.name) else nullcontext()
        try:
            with silence:
                return getattr(self._library, kind).from_pretrained(self.name, trust_remote_code=False, **options)
        except Exception as error:  # what transformers raises depends on the file, its version and the network
            problem = f"transformers cannot load {what} from {self.name}: {_first_line(error)}"
            remedy = "Pass a folder that save_pretrained wrote, of a model whose code comes with transformers"
            raise InvalidInputError("source", problem, remedy) from error

    def network(self, kind: str, purpose: str, pickled: bool) -> nn.Module:
        """Load a network, complete, in evaluation mode.

        Parameters
        ----------
        kind
            Name of the class that loads it.
        purpose
            What it must have been trained for, in words.
        pickled
            Also take weights that are no safetensors.

        Raises
        ------
        InvalidInputError
            If weights are missing, or pickled.
        """
        if not pickled and os.path.isdir(self.name):
            files = sorted(os.listdir(self.name))
            if any(name.endswith(".bin") for name in files) and not any(f.endswith(".safetensors") for f in files):
                raise InvalidInputError(
                    "source",
                    f"the weights in {self.name} are pickled ({', '.join(f for f in files if f.endswith('.bin'))}), "
                    "and reading pickles can run code",
                    "Save them again with save_pretrained, which writes safetensors; or pass pickled=True if you trust "
                    "whom they are from",
                )
        with torch_seeded(0):  # of weights that are missing, which are refused below
            loaded = self.read(
                kind,
                "its weights" if pickled else "its weights as safetensors",
                use_safetensors=None if pickled else True,
                output_loading_info=True,
            )
        network, found = cast("tuple[nn.Module, Mapping[str, Any]]", loaded)
        if missing := sorted(map(str, (*found["missing_keys"], *found.get("mismatched_keys", ())))):
            shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if missing[_SHOWN:] else "")
            made = ", ".join(getattr(self.config, "architectures", None) or ["a model"])
            raise InvalidInputError(
                "source",
                f"{self.name} holds {made} without the weights of {type(network).__name__}: {shown}",
                f"Pass a model that was trained for {purpose}",
            )
        _forget_names(network)
        return network


def named_labels(known: Mapping[int, str] | None, classes: int) -> tuple[str, ...] | None:
    """Name every class, each once.

    Parameters
    ----------
    known
        What a configuration calls `id2label`.
    classes
        Number of classes.

    Returns
    -------
    tuple[str, ...] | None
        None where nobody named them.
    """
    names = [str((known or {}).get(number, "")) for number in range(classes)]
    if not known or len(known) != classes or all(name in ("", f"LABEL_{n}") for n, name in enumerate(names)):
        return None
    return tuple(name if name and names.count(name) == 1 else f"{name} ({n})" for n, name in enumerate(names))


def _forget_names(network: nn.Module) -> None:
    """Let a network forget where it was read, so that a copy of the folder elsewhere is the same model."""
    for part in network.modules():
        for holder in (part, getattr(part, "config", None)):
            for name in ("name_or_path", "_name_or_path"):
                if name in getattr(holder, "__dict__", {}):
                    setattr(holder, name, "")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


@contextmanager
def _without_bars() -> Generator[None]:
    """Let transformers draw no bars for a while; what the user made of them is put back."""
    said: Any = importlib.import_module("transformers.utils.logging")
    hook: Callable[[Any], Any] | None = getattr(said, "set_tqdm_hook", None)  # not in every version
    if hook is None:
        yield
        return
    with _ONE_AT_A_TIME:
        earlier = hook(lambda make, given, options: make(*given, **{**options, "disable": True}))
        try:
            yield
        finally:
            hook(earlier)


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise ImportError("HuggingFaceModel needs transformers: pip install 'localsmooth[huggingface]'") from error
