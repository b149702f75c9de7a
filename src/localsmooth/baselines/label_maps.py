"""Sampled label maps of one item, batch by batch, from the streams and models of the sampling engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int, Integer

from localsmooth.runs import Chunk
from localsmooth.sampling import BatchSize, FaultyPredictionError, Subject

__all__ = ["LabelMaps", "Measured"]


@dataclass(frozen=True, eq=False)
class Measured:
    """How far label maps are from a centre.

    Parameters
    ----------
    histogram
        Number of label maps that differ from the centre in 0, 1, … outputs.
    votes
        Number of label maps that agree with the centre, for each output.
    """

    histogram: Int[np.ndarray, "distances"]
    votes: Int[np.ndarray, "outputs"]


class LabelMaps:
    """Draws label maps of one item; only what is measured of them is kept.

    Parameters
    ----------
    subject
        What is drawn; the item's layout has one output group.
    item
        Number of the item.
    batch_size
        Samples per forward pass; the label maps do not depend on it.
    told
        Called with the number of label maps drawn.
    """

    def __init__(self, subject: Subject, item: int, batch_size: BatchSize, told: Callable[[int], None]) -> None:
        self._subject, self._told = subject, told
        self._prepared = subject.prepare(item, 0)
        self.batch_size = batch_size.of(self._prepared.elements)

    def draw(self, chunk: Chunk) -> Iterator[Integer[torch.Tensor, "maps outputs"]]:
        """Yield the label maps of one chunk in batches, on the model's device.

        Raises
        ------
        FaultyPredictionError
            If a prediction is not finite or no class.
        """
        stream = self._subject.stream(chunk.key)
        for start in range(0, chunk.size, self.batch_size):
            size = min(self.batch_size, chunk.size - start)
            with torch.inference_mode():
                seen = self._prepared.predict(self._prepared.draw(size, stream))
                if bool(seen.faulty):
                    raise FaultyPredictionError(
                        f"item {chunk.item}: the model returned scores that are NaN or infinite, or labels outside its "
                        "classes. Check the model on noisy inputs, or use full precision"
                    )
                labels = seen.labels.reshape(size, -1)
            self._told(size)
            yield labels

    def choosing(
        self, chunks: Iterator[Chunk], candidates: int
    ) -> tuple[Int[np.ndarray, "candidates outputs"], Int[np.ndarray, "maps candidates"]]:
        """Measure label maps against the first few of them.

        Parameters
        ----------
        chunks
            What to draw.
        candidates
            How many of the first label maps are candidates: only these are kept.

        Returns
        -------
        candidates
            The label maps.
        distances
            Number of outputs in which each label map, the candidates included, differs from each candidate.
        """
        kept: list[torch.Tensor] = []
        missing = candidates
        rows: list[np.ndarray] = []
        for chunk in chunks:
            for labels in self.draw(chunk):
                taken = min(missing, len(labels))
                if taken:
                    kept.append(labels[:taken])
                    missing -= taken
                if taken < len(labels):
                    rows.append(_distances(labels[taken:], torch.cat(kept)))
        chosen = torch.cat(kept)
        distances = np.concatenate([_distances(chosen, chosen), *rows])
        return chosen.cpu().numpy().astype(np.int64), distances

    def measure(self, chunk: Chunk, centre: Int[np.ndarray, "outputs"]) -> Measured:
        """Measure the label maps of one chunk against a centre."""
        histogram = np.zeros(centre.size + 1, dtype=np.int64)
        votes = np.zeros(centre.size, dtype=np.int64)
        target = torch.as_tensor(centre, device=self._subject.device)
        for labels in self.draw(chunk):
            same = labels == target
            votes += same.sum(dim=0).cpu().numpy()
            distances = (~same).sum(dim=1).cpu().numpy()
            histogram += np.bincount(distances, minlength=centre.size + 1)
        return Measured(histogram, votes)


def _distances(labels: torch.Tensor, candidates: torch.Tensor) -> Int[np.ndarray, "maps candidates"]:
    """Number of outputs in which each label map differs from each candidate."""
    columns = [(labels != candidate).sum(dim=1) for candidate in candidates]
    return torch.stack(columns, dim=1).cpu().numpy().astype(np.int64)
