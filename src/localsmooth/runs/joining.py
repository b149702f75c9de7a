"""Join the chunks of one run that were drawn in several places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localsmooth.errors import InvalidInputError
from localsmooth.runs.file_store import FileStore
from localsmooth.runs.identity import RunIdentity
from localsmooth.runs.record import ChunkRecord
from localsmooth.runs.store import StoreError, require_same

__all__ = ["CANDIDATES_FROM", "PREDICTIONS", "Joined", "join", "require_like_predictions"]

PREDICTIONS = "trial-predictions"
"""Array with the labels of a few samples that are the same in every run."""
CANDIDATES_FROM = "candidates-from"
"""Array that names the run which chose the candidates, where it was another one."""
_SHARED = frozenset({PREDICTIONS, CANDIDATES_FROM, "calibration", "output-groups"})
_DIFFERING = 0.01  # share of the labels that another device, batch size or library may round differently


@dataclass(frozen=True)
class Joined:
    """What joining did.

    Parameters
    ----------
    added
        Chunks that were copied.
    known
        Chunks that were there already, with the same counts.
    """

    added: int
    known: int


def join(into: FileStore, others: Sequence[FileStore]) -> Joined:
    """Copy into one store the chunks that it lacks and others of the same run have.

    Everything is checked before anything is written.

    Parameters
    ----------
    into
        Receives the chunks; may be empty.
    others
        Stores of runs with the same configuration, seed included.

    Raises
    ------
    StoreError
        If a store belongs to another configuration (another seed, say), was drawn with a model that predicts
        differently, took its candidates from another run or chose its own, holds a damaged chunk, or holds a chunk with
        other counts than another store has for it.
    InvalidInputError
        If there is nothing to join.
    """
    if not others:
        raise InvalidInputError("runs", "there is nothing to join", "Pass at least two runs")
    configuration = into.configuration or others[0].configuration
    known = 0
    counted: dict[tuple[int, int, int, int], FileStore] = {}
    labels: np.ndarray | None = None
    origins: dict[bytes, FileStore] = {}
    for store in (into, *others):
        if store.configuration is None:
            if store is into:
                continue
            raise StoreError(f"{store.files.place} holds no run")
        assert configuration is not None
        if not _other_steps(configuration, store.configuration):
            require_same(configuration, store.configuration, into.files.place)
        if configuration.first != store.configuration.first or configuration.samples != store.configuration.samples:
            raise StoreError(
                f"{into.files.place} and {store.files.place}: one of them was extended after it had begun, and the "
                "other was not, or from or to another number of samples. Extend both in the same steps, then join them"
            )
        took = store.get_array(CANDIDATES_FROM).tobytes() if store.has_array(CANDIDATES_FROM) else b""
        origins.setdefault(took, store)
        if len(origins) > 1:
            one, other = (each.files.place for each in origins.values())
            raise StoreError(
                f"{one} and {other}: their candidates were chosen by different runs. Draw one of them again"
            )
        if store.has_array(PREDICTIONS):
            own = store.get_array(PREDICTIONS)
            labels = own if labels is None else labels
            require_like_predictions(labels, own)
        for record in store.records():
            first = counted.setdefault(record.chunk.key, store)
            if first is not store:
                _require_same_counts(first, store, record)
                known += 1
    if configuration is None:
        raise StoreError(f"{into.files.place} and the others hold no run")
    into.begin(configuration)
    added = 0
    for store in others:
        for name in set(store.array_names()) & _SHARED - set(into.array_names()):
            into.put_array(name, store.get_array(name))
        added += sum(into.commit(record) for record in store.records())
    return Joined(added, known)


def _other_steps(one: RunIdentity, other: RunIdentity) -> bool:
    """Whether two runs, of which one was extended, differ in how many samples they have now and in nothing else."""
    extended = one.first is not None or other.first is not None
    return extended and (one.grown_to(other) is not None or other.grown_to(one) is not None)


def _require_same_counts(first: FileStore, second: FileStore, record: ChunkRecord) -> None:
    other = first.chunk(record.chunk.key)
    if other is None or (other.n, other.chosen, other.counts.keys()) != (record.n, record.chosen, record.counts.keys()):
        same = False
    else:
        same = all(np.array_equal(other.counts[name], array) for name, array in record.counts.items())
    if not same:
        raise StoreError(
            f"{first.files.place} and {second.files.place} both hold chunk {record.chunk.key}, with different counts: "
            "machines of different kinds drew it. Delete its file in one of them, with the later chunks of its group"
        )


def require_like_predictions(kept: np.ndarray, labels: np.ndarray) -> None:
    """Refuse labels that differ from those of the same samples that another run kept.

    Raises
    ------
    StoreError
        If more than one in a hundred differ.
    """
    differing = float((kept != labels).mean()) if kept.shape == labels.shape else 1.0
    if not differing <= _DIFFERING:
        raise StoreError(
            f"the model predicts differently from the one that drew the stored chunks: {100 * differing:.3g} % of its "
            "labels for the same noisy samples are others, although its fingerprint is the same. Use another run "
            "directory, or restore the model (its code, its libraries, the files and services that it uses)"
        )
