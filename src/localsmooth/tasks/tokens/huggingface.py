"""Classifiers of tokens as Hugging Face's transformers keeps them, certified on the embeddings of their tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from localsmooth.errors import InvalidInputError, require_several
from localsmooth.models import HuggingFaceFolder, named_labels
from localsmooth.tasks.tokens.model import EmbeddedTagger
from localsmooth.tasks.tokens.task import TokenTask

__all__ = ["NOT_THE_FIRST", "HuggingFaceTagger", "Sentence"]

NOT_THE_FIRST = -100
"""Label of tokens that go on with a word, as transformers has it: they count neither for nor against the model."""

_PROBE = "one two three"  # any text: what is asked is whether embeddings and numbers of tokens give the same
_TOLERANCE = 1e-3  # of scores of the size of 1: sums in another order differ by far less, another position by more
_ENDLESS = 1_000_000  # what tokenizers say that know no limit is larger

Text = str | Sequence[str]


@dataclass(frozen=True, eq=False)
class Sentence:
    """An embedded sentence.

    Parameters
    ----------
    embeddings
        Of its tokens, those that the tokenizer puts around every sentence left out.
    tokens
        What each token stands for.
    words
        Number of the word that each token belongs to.
    """

    embeddings: Float[np.ndarray, "tokens features"]
    tokens: tuple[str, ...]
    words: Int[np.ndarray, " tokens"]


class HuggingFaceTagger(EmbeddedTagger):
    """A classifier of tokens from a folder that `save_pretrained` wrote, or by its name on the hub.

    It takes the embeddings of a sentence's tokens, in place of their numbers. The tokens that the tokenizer puts around
    every sentence ([CLS], [SEP] and the like) are part of the model: it adds them without noise, and their outputs are
    left out. Positions are added by the network, as for any sentence.

    Parameters
    ----------
    source
        The folder with weights and tokenizer, or a name that transformers resolves. Code that comes with a model is
        never run.
    pickled
        Also take weights that are no safetensors, which could run code.
    device, precision, compile
        As for `TorchModel`.

    Raises
    ------
    InvalidInputError
        Naming `source` if there is no classifier of tokens, its weights are incomplete, its tokenizer does not say
        which token stands for which text, or embeddings give other scores than the tokens' numbers.
    ImportError
        If transformers is not installed.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        pickled: bool = False,
        device: torch.device | str = "cpu",
        precision: torch.dtype | None = None,
        compile: bool = False,
    ) -> None:
        folder = HuggingFaceFolder(source)
        if not folder.can_be("TOKEN_CLASSIFICATION"):
            raise InvalidInputError(
                "source",
                f"{folder.name} is of the kind {folder.config.model_type}, which classifies no tokens",
                "Pass a classifier of tokens; ls.HuggingFaceModel takes segmenters of images",
            )
        network: Any = folder.network("AutoModelForTokenClassification", "the classification of tokens", pickled)
        self._tokenizer: Any = folder.read("AutoTokenizer", "its tokenizer")
        if not getattr(self._tokenizer, "is_fast", False):
            raise InvalidInputError(
                "source",
                f"its tokenizer ({type(self._tokenizer).__name__}) does not say which token stands for which text",
                "Save it with a fast tokenizer (tokenizer.json)",
            )
        made: Mapping[str, Sequence[int]] = self._tokenizer(_PROBE, return_special_tokens_mask=True)
        inside = np.flatnonzero(np.asarray(made["special_tokens_mask"]) == 0)
        if inside.size == 0:
            raise InvalidInputError("source", f"its tokenizer makes nothing of {_PROBE!r}", "Pass another one")
        numbers = torch.tensor(made["input_ids"])
        around = numbers[: inside[0]], numbers[inside[-1] + 1 :]
        self._around: tuple[list[int], list[int]] = (around[0].tolist(), around[1].tolist())
        _require_same(network, numbers)
        limits = (getattr(folder.config, "max_position_embeddings", None), self._tokenizer.model_max_length)
        longest = min((limit for limit in limits if limit is not None and 0 < limit < _ENDLESS), default=None)
        self.longest = None if longest is None else longest - sum(len(part) for part in around)
        super().__init__(
            _Surrounded(network, *around).eval(),
            classes=folder.config.num_labels,
            keyword="inputs_embeds",
            device=device,
            precision=precision,
            compile=compile,
        )
        self._embedding: nn.Module = network.get_input_embeddings()
        self.class_names = named_labels(folder.config.id2label, self.classes)

    def embed(self, sentences: Sequence[Text]) -> list[Sentence]:
        """Embed sentences.

        Parameters
        ----------
        sentences
            Texts, or lists of their words.

        Raises
        ------
        InvalidInputError
            If one has no token, or more than the network takes.
        """
        require_several("sentences", sentences, "texts")
        return [self._embedded(place, sentence) for place, sentence in enumerate(sentences)]

    def task(self, sentences: Sequence[Text], labels: Sequence[Sequence[int | str]] | None = None) -> TokenTask:
        """Make the task of certifying this tagger on some sentences; outputs are called by their tokens.

        Parameters
        ----------
        sentences
            Texts, or lists of their words.
        labels
            Class of every word, by number, or as text by its name or else its number; a word's first token has it, and
            its other tokens are left out. Without labels all tokens count.

        Raises
        ------
        InvalidInputError
            Naming a sentence, or a label, that cannot be used.
        """
        made = self.embed(sentences)
        known = None if labels is None else _label_maps(made, labels, self.class_names, self.classes)
        return TokenTask(
            self,
            [sentence.embeddings for sentence in made],
            known,
            [sentence.tokens for sentence in made],
            class_names=self.class_names,
            ignore_label=None if labels is None else NOT_THE_FIRST,
        )

    def _embedded(self, place: int, sentence: Text) -> Sentence:
        text = sentence if isinstance(sentence, str) else list(map(str, sentence))
        options = {"is_split_into_words": text is not sentence}
        made = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, **options)
        numbers: list[int] = made["input_ids"]
        if not numbers:
            raise InvalidInputError("sentences", f"number {place} has no token", "Leave out empty sentences")
        if self.longest is not None and len(numbers) > self.longest:
            problem = f"number {place} has {len(numbers)} tokens, and the network takes {self.longest}"
            raise InvalidInputError("sentences", problem, "Split it")
        before, after = self._around
        if self._tokenizer(text, **options)["input_ids"] != [*before, *numbers, *after]:
            problem = f"the tokenizer puts other tokens around number {place} than around other texts"
            raise InvalidInputError("sentences", problem, "Leave it out")
        with torch.no_grad():
            embedded = self._embedding(torch.tensor(numbers, device=self.device)).float().cpu().numpy()
        words: list[int] = made.word_ids()
        own = [text] * len(words) if isinstance(text, str) else [text[word] for word in words]
        parts = [part[start:end].strip() for part, (start, end) in zip(own, made["offset_mapping"], strict=True)]
        known = self._tokenizer.convert_ids_to_tokens(numbers)
        return Sentence(embedded, tuple(part or name for part, name in zip(parts, known, strict=True)), np.array(words))


class _Surrounded(nn.Module):
    """A network that is given a sentence's embeddings, and puts those of the tokens around it on both sides."""

    before: torch.Tensor
    after: torch.Tensor

    def __init__(self, network: nn.Module, before: torch.Tensor, after: torch.Tensor) -> None:
        super().__init__()
        self.network: Any = network
        self.register_buffer("before", before)
        self.register_buffer("after", after)

    def forward(
        self, inputs_embeds: Float[torch.Tensor, "batch tokens features"]
    ) -> Float[torch.Tensor, "batch tokens classes"]:
        """Return the scores of every token but those around."""
        embedding, size, first = self.network.get_input_embeddings(), len(inputs_embeds), self.before.numel()
        around = [embedding(part)[None].expand(size, -1, -1).to(inputs_embeds) for part in (self.before, self.after)]
        made = self.network(inputs_embeds=torch.cat([around[0], inputs_embeds, around[1]], dim=1)).logits
        return made[:, first : first + inputs_embeds.shape[1]]


@torch.no_grad()
def _require_same(network: Any, numbers: Int[torch.Tensor, " tokens"]) -> None:
    """Refuse networks that embeddings do not get into as tokens do: what is certified would be another model."""
    remedy = "Load it, and wrap what takes embeddings in EmbeddedTagger(module)"
    try:
        expected = network(input_ids=numbers[None]).logits
        found = network(inputs_embeds=network.get_input_embeddings()(numbers)[None]).logits
    except Exception as error:  # a network may raise anything
        problem = f"it cannot be given embeddings in place of tokens ({type(error).__name__}: {error})"
        raise InvalidInputError("source", problem, remedy) from error
    if not torch.allclose(expected, found, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise InvalidInputError("source", "the embeddings of tokens give other scores than the tokens", remedy)


def _label_maps(
    sentences: Sequence[Sentence],
    labels: Sequence[Sequence[int | str]],
    names: Sequence[str] | None,
    classes: int,
) -> list[Int[np.ndarray, " tokens"]]:
    """Give the first token of every word the word's label."""
    require_several("labels", labels, "lists of labels")
    if len(labels) != len(sentences):
        problem = f"{len(labels)} lists for {len(sentences)} sentences"
        raise InvalidInputError("labels", problem, "Pass one list a sentence")
    numbers = {name: number for number, name in enumerate(names or ())}
    numbers |= {str(number): number for number in range(classes) if str(number) not in numbers}
    made: list[Int[np.ndarray, " tokens"]] = []
    for place, (sentence, line) in enumerate(zip(sentences, labels, strict=True)):
        require_several("labels", line, "labels for each sentence")
        words = int(sentence.words.max()) + 1
        if len(line) != words:
            problem = f"{len(line)} for the {words} words of sentence {place}"
            raise InvalidInputError("labels", problem, "Pass one for each word, and sentences as lists of words")
        found = [_class_number(label, numbers, classes) for label in line]
        if None in found:
            known = f"one of {', '.join(names)}, or " if names else ""
            problem = f"{str(line[found.index(None)])!r} in sentence {place} is no class"
            raise InvalidInputError("labels", problem, f"Pass {known}a number from 0 to {classes - 1}")
        own = np.array(found, dtype=np.int64)[sentence.words]
        first = np.append(True, np.diff(sentence.words) != 0)
        made.append(np.where(first, own, NOT_THE_FIRST))
    return made


def _class_number(label: object, numbers: Mapping[str, int], classes: int) -> int | None:
    """Number of the class that a label stands for: only text is a name, whatever classes are called."""
    if isinstance(label, str):
        return numbers.get(label)
    if isinstance(label, bool) or not isinstance(label, Integral):
        return None
    return int(label) if 0 <= int(label) < classes else None
