"""The sections of configuration files that are about embedded tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from localsmooth.config import (
    DATA_SECTIONS,
    LAYOUT_SECTIONS,
    MODEL_SECTIONS,
    ConfigurationError,
    DataSection,
    ExistingPath,
    LayoutSection,
    ModelSection,
    NoiseSection,
    SamplingSection,
    build_module,
    evaluation,
    one_level,
)
from localsmooth.datasets import load_sequences, read_arrays
from localsmooth.disk import read_text
from localsmooth.errors import InvalidInputError
from localsmooth.models import Model, OutputKind
from localsmooth.tasks.tokens.huggingface import HuggingFaceTagger
from localsmooth.tasks.tokens.layout import WindowLayout
from localsmooth.tasks.tokens.model import EmbeddedTagger
from localsmooth.tasks.tokens.task import TokenTask

__all__ = ["SentencesSection", "TaggerSection", "TokensSection", "WindowsSection"]


@DATA_SECTIONS.register
class TokensSection(DataSection):
    """Sequences with as many embedded tokens each; what is perturbed are embeddings, not words."""

    lays_out: ClassVar[str] = "windows"

    kind: Literal["tokens"]
    tokens: ExistingPath
    """Embeddings, items × tokens × features: a .npy file, or an .npz or .safetensors file with an array `tokens` and,
    possibly, one `labels`."""
    labels: ExistingPath | None = None
    """Class of every token, items × tokens, as a .npy file; by default the file's array `labels`, if it has one."""
    words: ExistingPath | None = None
    """What a report calls the tokens: a text file with a line for each item of the file, and spaces or tabs between
    words."""
    items: list[int] | None = None
    """Which sequences to certify; all by default."""
    ignore_label: int | None = None
    """Label of tokens that count neither for nor against the model."""
    class_names: list[str] | None = None
    """Name of every class, in order."""
    units: str = "embedding units"
    """Units of embeddings and budgets."""

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return self.labels is not None or "labels" in read_arrays(self.tokens, "tokens")

    def task(self, model: Model) -> TokenTask:
        """Load the sequences.

        Raises
        ------
        InvalidInputError
            If a file does not fit the others.
        """
        numbers, sequences, labels = load_sequences(self.tokens, "tokens", self.labels, items=self.items)
        words = None if self.words is None else _lines(self.words)
        if words is not None and len(words) <= max(numbers):
            raise InvalidInputError(
                "words", f"{self.words} has {len(words)} lines, and item {max(numbers)} none", "Write one for each item"
            )
        return TokenTask(
            model,
            sequences,
            labels,
            None if words is None else [words[number] for number in numbers],
            class_names=self.class_names,
            ignore_label=self.ignore_label,
            units=self.units,
        )


@DATA_SECTIONS.register
class SentencesSection(DataSection):
    """Sentences for a classifier of tokens with a tokenizer (`kind = "huggingface"` in [model])."""

    lays_out: ClassVar[str] = "windows"

    kind: Literal["sentences"]
    sentences: ExistingPath
    """A text file with a sentence a line, and spaces or tabs between words. Its tokens are embedded by the model."""
    labels: ExistingPath | None = None
    """A text file with a line for each sentence: the class of every word, by name or number. Tokens that go on with a
    word do not count then."""
    items: list[int] | None = None
    """Which lines to certify, from 0; all by default."""

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return self.labels is not None

    def task(self, model: Model) -> TokenTask:
        """Embed the sentences.

        Raises
        ------
        InvalidInputError
            If the model embeds none, or a line cannot be used.
        """
        if not isinstance(model, HuggingFaceTagger):
            problem = "sentences are embedded by a model with a tokenizer, and this one has none"
            raise InvalidInputError("model", problem, 'Use kind = "huggingface" with a classifier of tokens')
        sentences = _chosen(_lines(self.sentences, "sentences"), self.items, "sentences")
        labels = None if self.labels is None else _chosen(_lines(self.labels, "labels"), self.items, "labels")
        return model.task(sentences, labels)


def _chosen(lines: list[list[str]], items: list[int] | None, field: str) -> list[list[str]]:
    for number in items or ():
        if not 0 <= number < len(lines):
            raise InvalidInputError(field, f"{len(lines)} lines, and none of the number {number}", "Count from 0")
    return lines if items is None else [lines[number] for number in items]


def _lines(path: Path, field: str = "words") -> list[list[str]]:
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise InvalidInputError(field, f"{path} is no text ({error})", "Write it in UTF-8") from error
    # Not `splitlines` and `split`: a line separator or a no-break space in a sentence is a part of a word.
    return [re.findall(r"[^ \t]+", line) for line in text.removesuffix("\n").split("\n")] if text else []


@LAYOUT_SECTIONS.register
class WindowsSection(LayoutSection):
    """Windows of consecutive tokens, with levels that grow with their distance."""

    kind: Literal["windows"] = "windows"
    windows: int = Field(ge=1)
    """Number of windows; 1 is isotropic smoothing."""
    mask_beyond: int | None = Field(default=None, ge=0)
    """Hide tokens farther than this many from an output's window."""

    @property
    def groups(self) -> int:
        """Number of windows."""
        return self.windows

    def build(self, noise: NoiseSection, data: DataSection | None = None) -> WindowLayout:
        """Make the rule.

        Parameters
        ----------
        noise
            The section with the levels.
        data
            Not looked at.
        """
        del data
        return WindowLayout(self.windows, *one_level(noise), mask_beyond=self.mask_beyond)

    def isotropic(self) -> dict[str, object]:
        """One window."""
        return {"windows": 1, "mask_beyond": None}

    def tried(self, cells: list[list[int]] | None, margins: list[int] | None) -> list[tuple[str, Mapping[str, object]]]:
        """Other numbers of windows; by default this one and half as many.

        Raises
        ------
        ConfigurationError
            If several axes are asked for, or margins.
        """
        if margins is not None:
            raise ConfigurationError("tune.window_margins: windows of tokens have none. Leave it out.")
        usual = [[2], [3]] if self.windows == 1 else [[self.windows], [-(-self.windows // 2)]]
        counts = [each[0] for each in usual if cells is None] + [each[0] for each in cells or () if len(each) == 1]
        if len(counts) < len(cells or ()):
            raise ConfigurationError("tune.cells: tokens have one axis. Write numbers of windows like [[2], [4]].")
        several = (count for count in dict.fromkeys(counts) if count > 1)
        return [(f"{count} windows {{}}", {"windows": count, "mask_beyond": None}) for count in several]


@MODEL_SECTIONS.register
class TaggerSection(ModelSection):
    """A torch module from (batch, tokens, features) to (batch, tokens, classes), as of Hugging Face."""

    kind: Literal["tagger"]
    factory: str
    """`package.module:function`; called without arguments, returns the module."""
    checkpoint: ExistingPath | None = None
    """Weights to load into the module: safetensors, or a torch state dict (read with weights_only)."""
    classes: Annotated[int, Field(ge=2)] | None = None
    """Number of classes, where it cannot be read off the module."""
    bounds: tuple[float, float] | None = None
    """Smallest and largest value of a clean embedding."""
    output: Literal["logits", "probabilities", "labels"] = "logits"
    """What the module returns."""
    keyword: str | None = None
    """Argument that takes the embeddings; by default `inputs_embeds` where there is such a thing, else the first."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""

    def build(self, sampling: SamplingSection) -> Model:
        """Make the module, and a model of it.

        Parameters
        ----------
        sampling
            Says in which precision it is evaluated.

        Raises
        ------
        ConfigurationError
            Naming the key at fault.
        """
        return EmbeddedTagger(
            build_module(self.factory, self.checkpoint),
            classes=self.classes,
            bounds=self.bounds,
            output=OutputKind[self.output.upper()],
            keyword=self.keyword,
            device=self.device,
            **evaluation(sampling),
        )
