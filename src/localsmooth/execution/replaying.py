"""Draw some samples of a finished run again, under other conditions.

A certificate is about the program that was run, which is taken to compute one function: to give the same labels for
the same input whenever it is asked. Trials before a run look at a handful of samples. A replay looks at as many as one
likes of those that were counted: each is predicted as in the run (in a batch of that size, in the same place of the
chunk's stream, with as many threads as the executor allows a call) and by itself on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from jaxtyping import Integer

from localsmooth.bounds import clopper_pearson_lower
from localsmooth.execution.executor import one_thread
from localsmooth.runs import Chunk, FileStore, Stage, Store
from localsmooth.sampling import BatchSize, ChunkWorker, Job, PreparedGroup, Subject, choose

__all__ = ["REPLAY_LEVEL", "replay_samples"]

REPLAY_LEVEL = 0.05
"""Probability with which the upper bound on the share of samples that differ may be wrong."""
_STREAM = 4  # beside the two stages, trials and kept predictions: which samples are replayed


def replay_samples(
    subject: Subject,
    batch_size: BatchSize,
    store: Store,
    samples: int,
    conditions: Callable[[], AbstractContextManager[None]],
) -> dict[str, float]:
    """Draw samples of the bound stage again, chosen at random, and compare labels under two conditions.

    The first chunk that was chosen is also drawn again as a whole, one sample at a time on one thread, where the store
    keeps single chunks, and its votes are compared with those that were counted.

    Parameters
    ----------
    subject
        What was drawn, with its model as the run used it.
    batch_size
        Samples per forward pass, for chunks of which it was not recorded.
    store
        The finished chunks.
    samples
        How many to draw, at least 1; with replacement, each of the run's samples being as likely as any other.
    conditions
        The run's: a context in which this process runs the model as the workers did.

    Returns
    -------
    dict
        `samples`; `differing`, how many of them got another label for at least one output; `labels` and
        `differing_labels`, the same label by label; `upper`, which the share of the run's samples that differ so does
        not exceed with probability 1 − `level` over the choice (Clopper–Pearson), nor does the mean share of
        labels; and, where a chunk was compared, `chunk_votes` and `differing_chunk_votes`, by how many votes it is off.
    """
    kept = {key: chunk for key, chunk in store.finished().items() if key[2] == Stage.BOUND.value}
    keys = sorted(kept)
    sizes = np.array([kept[key].n for key in keys])
    generator = np.random.default_rng([subject.seed, _STREAM])
    drawn = np.sort(generator.integers(0, sizes.sum(), samples))
    ends = np.cumsum(sizes)
    differing = labels = differing_labels = 0
    for number in drawn.tolist():
        place = int(np.searchsorted(ends, number, side="right"))
        key, within = keys[place], int(number - (ends[place] - sizes[place]))
        with torch.inference_mode():
            prepared = subject.prepare(key[0], key[1])
            size = min(kept[key].batch_size or batch_size.of(prepared.elements), kept[key].n)
            with conditions():
                usual = _labels(prepared, subject.stream(key), within, size, kept[key].n)
            with one_thread():
                # A run that asked sample by sample is compared with pairs.
                single = _labels(prepared, subject.stream(key), within, 1 if size > 1 else 2)
        other = int((usual != single).sum())
        differing, labels, differing_labels = differing + (other > 0), labels + usual.size, differing_labels + other
    agreeing = clopper_pearson_lower(np.array([samples - differing]), samples, REPLAY_LEVEL)
    made: dict[str, float] = {
        "samples": float(samples),
        "differing": float(differing),
        "labels": float(labels),
        "differing_labels": float(differing_labels),
        "upper": float(np.nextafter(1 - agreeing[0], 1)),
        "level": REPLAY_LEVEL,
    }
    place = int(np.searchsorted(ends, generator.permutation(drawn)[0], side="right"))
    return made | _whole_chunk(subject, store, keys[place])


def _labels(
    prepared: PreparedGroup, stream: Any, within: int, size: int, total: int | None = None
) -> Integer[np.ndarray, " outputs"]:
    """Labels of one sample of a chunk that is drawn in batches of a size; the batches before its own are drawn only."""
    for _ in range(within // size):
        prepared.draw(size, stream)
    count = size if total is None else min(size, total - within // size * size)
    predictions = prepared.predict(prepared.draw(count, stream))
    return predictions.labels[within % size].cpu().numpy().ravel()


def _whole_chunk(subject: Subject, store: Store, key: tuple[int, int, int, int]) -> dict[str, float]:
    record = store.chunk(key) if isinstance(store, FileStore) else None
    if record is None:
        return {}
    chosen = choose(subject.counters, store.merged(key[0], key[1], Stage.CANDIDATE))
    size = record.provenance.get("batch_size")
    with one_thread():
        worker = ChunkWorker(subject, BatchSize(1 if size != 1 else 2))
        again = worker(Job(Chunk(*key, record.n), chosen)).counts["votes.votes"].astype(np.int64)
    votes = record.counts["votes.votes"].astype(np.int64)
    off = float(np.abs(again - votes).sum())
    return {"chunk_votes": float(votes.size * record.n), "differing_chunk_votes": off}
