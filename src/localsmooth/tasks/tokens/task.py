"""Tokens: embedded sequences under a model that labels every token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import xarray as xr

from localsmooth.errors import InvalidInputError, require_several
from localsmooth.execution import SamplingProgress
from localsmooth.models import Model
from localsmooth.results import attach_names
from localsmooth.runs import RunIdentity
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import ArrayTask, SampledItem, Settings, require_one_each
from localsmooth.tasks.base import Assignment
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.smoothing import Smoothing

__all__ = ["TokenTask"]

_WORDS = "words"


class TokenTask(ArrayTask):
    """A tagger, and the embedded sequences that it is certified on: what is perturbed are embeddings, not words.

    Parameters
    ----------
    model
        The base classifier, such as `EmbeddedTagger(module, classes=…)`; it gets features first, as every model does.
    sequences
        One array (tokens, features) for each sequence; lengths may differ.
    labels
        Known class of every token.
    words
        What a report calls every token; kept with the run and with results.
    class_names, ignore_label, units
        As for `ArrayTask`.

    Raises
    ------
    InvalidInputError
        Naming what is no model, no sequence, or does not fit it.
    """

    name: ClassVar[str] = "tokens"

    def __init__(
        self,
        model: Model,
        sequences: Sequence[np.ndarray] | np.ndarray,
        labels: Sequence[np.ndarray] | np.ndarray | None = None,
        words: Sequence[Sequence[str]] | None = None,
        *,
        class_names: Sequence[str] | None = None,
        ignore_label: int | None = None,
        units: str = "embedding units",
    ) -> None:
        require_several("sequences", sequences, "arrays")
        given = [np.asarray(sequence) for sequence in sequences]
        for place, sequence in enumerate(given):
            if sequence.ndim != 2:
                raise InvalidInputError(
                    "sequences", f"number {place} has shape {sequence.shape}", "Pass one (tokens, features) array each"
                )
        turned = [sequence.T for sequence in given]
        if words is not None:
            lengths = [len(sequence) for sequence in given]
            require_several("words", words, "lists of words")
            for line in words:
                require_several("words", line, "words for each sequence")
            if [len(line) for line in words] != lengths:
                raise InvalidInputError("words", "they are not as many as tokens", "Pass one list of words a sequence")
        self.words = None if words is None else [list(map(str, line)) for line in words]
        super().__init__(model, turned, labels, class_names=class_names, ignore_label=ignore_label, units=units)

    def assign(
        self, smoothing: Smoothing, settings: Settings, options: SamplingOptions, scores: ScoreCounting | None
    ) -> Assignment[Sequence[SampledItem]]:
        """Check what `ArrayTask` checks, and that every token has one prediction; the record keeps the words.

        Raises
        ------
        InvalidInputError
            Naming what does not fit.
        """
        assignment = super().assign(smoothing, settings, options, scores)
        remedy = "Predict one class for every token: wrap the module in EmbeddedTagger"
        require_one_each(self.items, assignment.subject.layouts, "tokens", remedy)
        details = assignment.facts.details | ({} if self.words is None else {_WORDS: self.words})
        return replace(assignment, facts=replace(assignment.facts, details=details))

    @classmethod
    def result(
        cls,
        sampled: Sequence[SampledItem],
        settings: Settings,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        progress: SamplingProgress | None = None,
    ) -> xr.Dataset:
        """Certify every sequence, and name its tokens."""
        made = super().result(sampled, settings, record, configuration, progress)
        words = record.details.get(_WORDS)
        return made if words is None else attach_names(made, [words[item] for item in record.certified_items])


TASK = TokenTask
