"""Certify another version of a model: the candidates are those of a finished run, the votes are of the new model alone.

Candidates may be any labels that are fixed before the votes (MATH section 3): which model chose them does not matter to
the promise. So the candidate stage of a run on the same items under the same noise serves every version of its model.
Its votes of the bound stage are left alone: bounding a version's probability by what is left of the old one's when
disagreements are subtracted takes passes of both models, and never certifies more than votes of the new one do
(``docs/guarantees.md``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

import numpy as np

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.keeping import open_tallies
from localsmooth.runs import (
    CANDIDATES_FROM,
    ChunkRecord,
    DirectoryStore,
    FileStore,
    OtherRunError,
    RunIdentity,
    SamplingPlan,
    Stage,
    Store,
    StoreError,
)
from localsmooth.sampling import Subject, groups_of

__all__ = ["candidates_from", "take_candidates"]

_MAY_DIFFER = ("model", "plan.seed", "plan.n_bound", "plan.stop")


def take_candidates(run: str | os.PathLike[str], subject: Subject, plan: SamplingPlan, store: Store) -> None:
    """Begin a run with the candidate stage of another one, which an interrupted call goes on with.

    Parameters
    ----------
    run
        Directory of the other run, on the same items under the same layouts and noise.
    subject, plan
        What is drawn, and how often.
    store
        Where its chunks are kept.

    Raises
    ------
    InvalidInputError
        If the other run has other items, layouts, noise, classes, counters, numbers of samples of its candidate stage
        or the same seed, or its candidate stage is not complete.
    StoreError
        If there is no other run, or its chunks cannot be read; an `OtherRunError` if the store holds a run whose
        candidates come from elsewhere.
    """
    wanted = subject.describe(plan)
    with open_tallies(expanded(run), DirectoryStore(expanded(run), read_only=True)) as source:
        known = source.configuration
        assert known is not None  # or it could not have been opened
        _require_alike(known, wanted, str(run))
        taken = _taken(source, subject, plan, known.seal)
        # Of a run that took its candidates itself, whoever chose them is named, and all seeds on the way are used up.
        before = _kept(source) or {"run": known.seal, "model": _fingerprint(known), "seeds": []}
        seeds = [*before["seeds"], _plan(known).get("seed")]
        if plan.seed in seeds:
            raise InvalidInputError(
                "seed",
                f"it is that of {run}, or of a run whose candidates that took, and their votes may have been looked at",
                "Use another seed, so that the samples are independent of those runs",
            )
        origin = {"run": before["run"], "model": before["model"]}
        fresh = store.configuration is None or (isinstance(store, FileStore) and store.untouched)
        if not fresh and candidates_from(store) != origin:
            raise OtherRunError(
                f"the run that has begun there has candidates of its own, or of another run than {run}. Use another "
                "run directory"
            )
        store.begin(wanted)
        # Written first: whoever goes on with a run that was interrupted here knows where its candidates come from.
        store.put_array(CANDIDATES_FROM, np.frombuffer(json.dumps({**origin, "seeds": seeds}).encode(), dtype=np.uint8))
        for record in taken:
            store.commit(record)


def candidates_from(store: Store) -> dict[str, str] | None:
    """Identity of the run that chose the candidates of this one, and fingerprint of its model; None for its own.

    Raises
    ------
    StoreError
        If what is kept of them is damaged.
    """
    kept = _kept(store)
    return None if kept is None else {"run": kept["run"], "model": kept["model"]}


class _Origin(TypedDict):
    run: str
    model: str
    seeds: list[object]


def _kept(store: Store) -> _Origin | None:
    if not store.has_array(CANDIDATES_FROM):
        return None
    try:
        content = json.loads(store.get_array(CANDIDATES_FROM).tobytes())
        return {"run": str(content["run"]), "model": str(content["model"]), "seeds": list(content["seeds"])}
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"array {CANDIDATES_FROM!r} of the store names no run. Use another run directory") from None


def _taken(source: FileStore, subject: Subject, plan: SamplingPlan, origin: str) -> list[ChunkRecord]:
    """All chunks of the candidate stage, which took this run no time."""
    made: list[ChunkRecord] = []
    for item, group in groups_of(subject):
        for chunk in plan.chunks(item, group, Stage.CANDIDATE):
            record = source.chunk(chunk.key)
            if record is None or record.chunk != chunk or record.n != chunk.size:
                raise InvalidInputError(
                    "candidates", f"chunk {chunk.key} of its candidate stage is missing", "Let that run end first"
                )
            made.append(replace(record, provenance={**record.provenance, "seconds": 0.0, "taken_from": origin}))
    return made


def _require_alike(known: RunIdentity, wanted: RunIdentity, place: str) -> None:
    differing = [
        name
        for name in known.differences(wanted)
        if not any(name == each or name.startswith(f"{each}.") for each in _MAY_DIFFER)
    ]
    if _model(known).get("classes") != _model(wanted).get("classes"):
        differing.append("model.classes")
    if differing:
        raise InvalidInputError(
            "candidates",
            f"{place} is about something else (differing in {', '.join(differing[:8])})",
            "Pass the same items, layout, noise, counters, n_candidate and chunk_size, and another model",
        )


def _plan(identity: RunIdentity) -> Mapping[str, object]:
    plan = identity.content.get("plan")
    return plan if isinstance(plan, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def _model(identity: RunIdentity) -> Mapping[str, object]:
    model = identity.content.get("model")
    return model if isinstance(model, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def _fingerprint(identity: RunIdentity) -> str:
    return str(_model(identity).get("fingerprint"))
