"""Exact draws of sparsity-aware attribute noise without a dense matrix.

A bit that is flipped with probability θ is flipped exactly if a Poisson number of marks with mean −ln(1 − θ) falls on
it and is not 0, and marks on different bits are independent. So the marks of a whole row can be thrown at once: their
number is Poisson, their positions are uniform, repetitions merge. The cost is that of the flips, not of the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int, Integer

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import drawable_probabilities
from localsmooth.tasks.graphs.graph import shape_of
from localsmooth.tasks.graphs.thinning import Thinning, best_thinning

__all__ = ["AttributeNoise", "SparseSample", "random_stream"]


def random_stream(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    """Return the stream of a run seed and a key, for example that of a chunk (see `localsmooth.noise.Randomness`)."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy=seed, spawn_key=key)))


@dataclass(frozen=True, eq=False)
class SparseSample:
    """One noisy attribute matrix, written as the rows of a weight table that make up its first layer.

    Parameters
    ----------
    entries
        Row after row: column d where bit d is added to the row's start, width + d where it is taken away.
    pointers
        Where each row's entries begin; the last is the number of entries.
    """

    entries: Int[np.ndarray, "entries"]
    pointers: Int[np.ndarray, "rows_plus_one"]


class AttributeNoise:
    """Zeros flip with probability θ⁺ and ones with probability θ⁻, each node with its own pair.

    Samples are described relative to a start: the clean row where less than half of its ones go, an empty row
    elsewhere, so that a sample names as few bits as possible.

    Parameters
    ----------
    attributes
        Nodes × attributes, boolean, canonical CSR.
    addition, deletion
        θ⁺ in [0, 1) and θ⁻ in [0, 1] of each node.
    thinning
        How marks on ones and repeated marks are dropped; the fastest that is installed by default. All of them give
        the same samples.

    Raises
    ------
    InvalidInputError
        For probabilities out of range or shapes that do not match.
    """

    def __init__(
        self,
        attributes: sp.csr_array,
        addition: Float[np.ndarray, "nodes"],
        deletion: Float[np.ndarray, "nodes"],
        thinning: Thinning | None = None,
    ) -> None:
        nodes, width = shape_of(attributes)
        if addition.shape != (nodes,) or deletion.shape != (nodes,):
            raise InvalidInputError("levels", f"{addition.shape} for {nodes} nodes", "Pass one pair of levels per node")
        if not ((addition >= 0) & (addition < 1)).all():
            raise InvalidInputError("addition", "a probability lies outside [0, 1)", "Lower it")
        if not ((deletion >= 0) & (deletion <= 1)).all():
            raise InvalidInputError("deletion", "a probability lies outside [0, 1]", "Use a probability")
        self.width = width
        self.from_clean = np.asarray(deletion <= 0.5)
        self._pointers = attributes.indptr.astype(np.int64)
        self._columns = attributes.indices.astype(np.int32)
        self._means = -np.log1p(-addition) * width
        self._regions = _regions(self._pointers, deletion)
        row_of_one = np.repeat(np.arange(nodes), np.diff(self._pointers))
        self._one_entries = np.where(self.from_clean[row_of_one], self._columns + width, self._columns).astype(np.int32)
        self._named = np.zeros(self._columns.size, np.bool_)
        make = best_thinning() if thinning is None else thinning
        self._thin = make(self._pointers, self._columns, width)
        self._column_type = np.uint16 if width <= 2**16 else np.uint32
        kept = sp.diags_array(self.from_clean.astype(np.int8), dtype=np.int8)
        self._clean_starts = sp.csr_array(kept @ attributes.astype(np.int8))

    @classmethod
    def of_group(
        cls, attributes: sp.csr_array, layout: Layout, group: int, nodes: Int[np.ndarray, "chosen"] | None = None
    ) -> AttributeNoise:
        """Noise of one output group's distribution, on all nodes or on some.

        Levels are rounded to the multiples of 2⁻²⁴ that `localsmooth.noise.SparseFlips` weighs. Hidden nodes
        (level inf) lose all their attributes.

        Parameters
        ----------
        attributes
            Of the whole graph.
        layout
            With one input label per node and levels (addition, deletion).
        group
            Which output group.
        nodes
            Nodes to draw noise on; the rows of the samples are theirs.

        Raises
        ------
        InvalidInputError
            If the layout has not one input label per node, and two levels.
        """
        levels = layout.level_map(group)
        if levels.shape != (shape_of(attributes)[0], 2):
            raise InvalidInputError(
                "layout", f"it has a level map of shape {levels.shape}", "Use one input label per node, and two levels"
            )
        levels = drawable_probabilities(levels)
        levels[np.isinf(levels).any(axis=1)] = (0.0, 1.0)
        if nodes is not None:
            attributes, levels = attributes[nodes].tocsr(), levels[nodes]
        return cls(attributes, levels[:, 0], levels[:, 1])

    def draw(self, generator: np.random.Generator) -> SparseSample:
        """Draw one sample; what is taken from the stream depends on nothing but the stream."""
        counts = generator.poisson(self._means)
        marks = generator.integers(0, self.width, int(counts.sum()), dtype=self._column_type)
        self._named[:] = False
        for ones, mean in self._regions:
            hits = generator.integers(0, ones.size, generator.poisson(mean * ones.size), dtype=np.uint32)
            self._named[ones[hits]] = True
        chosen = np.flatnonzero(self._named)
        ones = self._one_entries[chosen]
        one_pointers = np.searchsorted(chosen, self._pointers)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        return SparseSample(*self._thin(marks, pointers, ones, one_pointers))

    def bits(self, sample: SparseSample) -> sp.csr_array:
        """Write a sample out as a sparse boolean matrix, nodes × attributes."""
        nodes = self.from_clean.size
        if not self.from_clean.any():
            ones = np.ones(sample.entries.size, np.bool_)
            return sp.csr_array((ones, sample.entries, sample.pointers), shape=(nodes, self.width))
        signs = np.where(sample.entries < self.width, 1, -1).astype(np.int8)
        changes = sp.csr_array((signs, sample.entries % self.width, sample.pointers), shape=(nodes, self.width))
        result: Any = changes + self._clean_starts
        result.eliminate_zeros()
        return result.astype(np.bool_)


def _regions(
    pointers: Integer[np.ndarray, "rows_plus_one"], deletion: Float[np.ndarray, "nodes"]
) -> list[tuple[Int[np.ndarray, "ones"], float]]:
    """Ones that share a level, and the mean number of marks on each: on those that go, or on those that stay."""
    per_one = np.repeat(deletion, np.diff(pointers))
    regions: list[tuple[np.ndarray, float]] = []
    for level in np.unique(per_one):
        named = level if level <= 0.5 else 1.0 - level
        if named > 0:
            mean = float(-np.log1p(-level)) if level <= 0.5 else float(-np.log(level))
            regions.append((np.flatnonzero(per_one == level), mean))
    return regions
