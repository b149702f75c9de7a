"""Tallies of one item as certificates read them, and how they are kept in a run directory, whatever the input."""

from __future__ import annotations

import numpy as np

from localsmooth.bounds import CandidateVotes, VoteConfidenceSequence
from localsmooth.certificates import OutputScores, OutputVotes
from localsmooth.layout import Layout, Partition
from localsmooth.runs import Store, StoreError
from localsmooth.sampling import ItemTally
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.scores import ScoreCounting

__all__ = ["DAMAGED", "collected_votes", "keep_layout", "keep_votes", "kept_layout", "kept_votes"]


DAMAGED = "Run the same certification into this directory again: the tallies are kept, these arrays are written anew"
"""What to do where kept arrays do not fit each other."""


def collected_votes(
    tally: ItemTally, scores: ScoreCounting | None, sequence: VoteConfidenceSequence | None
) -> OutputVotes:
    """Take from a tally what certificates need.

    Parameters
    ----------
    tally
        Of one item.
    scores
        How scores were counted, if they were.
    sequence
        Confidence sequence of the stopping rule, if there was one.
    """
    counted = None
    # Bounds on scores hold for a number of samples that was fixed beforehand, and for no other.
    if scores is not None and tally.n_per_output is None:
        counted = OutputScores(scores.tally(tally.further[scores.array_name], tally.n), tally.further["reference"])
    n = tally.n if tally.n_per_output is None else tally.n_per_output
    first = None if tally.candidate_votes is None else CandidateVotes(tally.candidate_votes, tally.n_candidate)
    ended = sequence is None and tally.n_per_output is not None
    return OutputVotes(tally.candidate, tally.votes, n, counted, sequence, first, tally.n, ended=ended)


def keep_votes(votes: OutputVotes, index: int, store: Store) -> None:
    """Keep an item's votes and scores under its number."""
    store.put_array(f"item{index}-candidate", votes.candidate)
    store.put_array(f"item{index}-votes", votes.votes)
    if votes.candidate_votes is not None:
        store.put_array(f"item{index}-candidate-votes", votes.candidate_votes.votes)
    if votes.clean is not None:
        store.put_array(f"item{index}-clean", votes.clean)
    if not isinstance(votes.n, int):
        store.put_array(f"item{index}-n", votes.n)
    if votes.scores is not None:
        store.put_array(f"item{index}-scores", ScoreCounting.array(votes.scores.tally))
        store.put_array(f"item{index}-reference", votes.scores.reference)


def kept_votes(record: RunRecord, index: int, store: Store, outputs: int) -> OutputVotes:
    """Read back what `keep_votes` kept; earlier versions kept no votes of the candidate stage, or no clean predictions.

    Parameters
    ----------
    record, index, store
        As for `keep_votes`.
    outputs
        How many outputs the item has.

    Raises
    ------
    StoreError
        If an array is missing or damaged, or is not about so many outputs.
    """

    def kept(name: str) -> np.ndarray:
        array = store.get_array(f"item{index}-{name}")
        if array.shape != (outputs,):
            raise StoreError(f"array 'item{index}-{name}' is not about {outputs} outputs. {DAMAGED}")
        return array

    scores = first = None
    if record.scores is not None:
        tally = record.scores.tally(store.get_array(f"item{index}-scores"), record.n_bound)
        scores = OutputScores(tally, kept("reference"))
    if store.has_array(f"item{index}-candidate-votes"):
        first = CandidateVotes(kept("candidate-votes"), record.n_candidate)
    return OutputVotes(
        kept("candidate"),
        kept("votes"),
        record.n_bound if record.sequence is None and record.begun is None else kept("n"),
        scores,
        record.sequence,
        first,
        # Whoever extends a run may have looked: shares of α must not follow that number.
        record.n_bound if record.extended is None else record.extended,
        kept("clean") if store.has_array(f"item{index}-clean") else None,
        ended=record.sequence is None and record.begun is not None,
    )


def keep_layout(layout: Layout, number: int, store: Store) -> None:
    """Keep a layout under its number."""
    store.put_array(f"layout{number}-outputs", layout.outputs.labels)
    store.put_array(f"layout{number}-inputs", layout.inputs.labels)
    store.put_array(f"layout{number}-levels", layout.levels)
    if layout.views is not None:  # so that the layout's digest can be compared
        store.put_array(f"layout{number}-views", np.frombuffer(layout.view_bytes, dtype=np.uint8))


def kept_layout(number: int, store: Store) -> Layout:
    """Read a layout back; it comes without views, which only sampling needs.

    Raises
    ------
    StoreError
        If an array is missing or damaged.
    """
    outputs, inputs, levels = (store.get_array(f"layout{number}-{part}") for part in ("outputs", "inputs", "levels"))
    return Layout(Partition(outputs), Partition(inputs), levels)
