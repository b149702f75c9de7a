"""Drawing what centre smoothing needs: a centre, a check of its ball, and the distances of further label maps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from localsmooth.baselines.centre import CentreOptions, choose_centre
from localsmooth.baselines.label_maps import LabelMaps
from localsmooth.certificates import OutputVotes
from localsmooth.errors import InvalidInputError
from localsmooth.execution import SamplingProgress
from localsmooth.runs import Chunk, ChunkRecord, RunIdentity, SamplingPlan, Stage, Store, chosen_digest
from localsmooth.sampling import BatchSize, SamplingOptions, Subject, compare_predictions, require_choice, try_out
from localsmooth.tasks.arrays import Drawn

__all__ = ["BALL", "HISTOGRAM", "Ball", "draw_label_maps"]

BALL, HISTOGRAM = "ball", "distances"
"""Names of what is kept for each item beside the votes."""

_CHECK_STREAM = 4  # beside the streams of the two stages and those on which models are tried


@dataclass(frozen=True)
class Ball:
    """The ball around a centre, as the smoothed model found it.

    Parameters
    ----------
    radius
        r, of the ball around at least half of the label maps that chose the centre.
    inside
        Number of further label maps inside it.
    n
        Number of label maps that chose the centre, and of further ones.
    candidates
        k.
    """

    radius: int
    inside: int
    n: int
    candidates: int

    @classmethod
    def read(cls, array: Int[np.ndarray, "4"]) -> Ball:
        """Read back what `array` made."""
        radius, inside, n, candidates = (int(value) for value in array)
        return cls(radius, inside, n, candidates)

    def array(self) -> Int[np.ndarray, "4"]:
        """Return the numbers as an array to be kept."""
        return np.array([self.radius, self.inside, self.n, self.candidates], dtype=np.int64)


def draw_label_maps(
    subject: Subject,
    plan: SamplingPlan,
    store: Store,
    *,
    centre: CentreOptions,
    options: SamplingOptions,
    progress: SamplingProgress,
) -> list[Drawn]:
    """Draw what is missing of a run, and return it for every item.

    N₁ label maps choose the centre of an item, N₁ further ones check its ball, and N₂ are measured; these are drawn
    from the streams that `sample` uses for its two stages. Interrupted runs lose the chunk in flight, or the choice of
    a centre that was not finished.

    Parameters
    ----------
    subject, plan, store, options, progress
        As in `localsmooth.execution.sample_subject`.
    centre
        Parameters of centre smoothing.

    Raises
    ------
    InvalidInputError, StoreError, FaultyPredictionError
        As in `sample`.
    """
    if plan.stop is not None:
        raise InvalidInputError("stop", "centre smoothing needs a fixed number of samples", "Leave stop out")
    items = range(len(subject.layouts))
    described = subject.describe(plan)
    store.begin(RunIdentity({**described.content, "centre_smoothing": {"candidates": centre.candidates}}))
    with progress as told:
        if options.check_model:
            try_out(subject)
            compare_predictions(subject, store, keep=True)
        ready = subject.get_ready(plan, store, options, nullcontext())
        each = 2 * plan.n_candidate + plan.n_bound
        known = set(store.array_names())
        done = sum(2 * plan.n_candidate for item in items if _name(item) in known)
        told.start(each * len(items), done + sum(chunk.n for chunk in store.finished().values()))
        return [_draw_item(ready.subject, plan, store, item, centre, ready.batch_size, told) for item in items]


def _name(item: int) -> str:
    return f"item{item}-{BALL}"


def _draw_item(
    subject: Subject,
    plan: SamplingPlan,
    store: Store,
    item: int,
    centre: CentreOptions,
    batch_size: BatchSize,
    told: SamplingProgress,
) -> Drawn:
    maps = LabelMaps(subject, item, batch_size, told.advance)
    if not store.has_array(_name(item)):
        chosen, ball = _choose(maps, plan, item, centre)
        store.put_array(f"item{item}-centre", chosen)
        store.put_array(_name(item), ball.array())
    chosen, ball = store.get_array(f"item{item}-centre"), Ball.read(store.get_array(_name(item)))
    digest = chosen_digest({"candidate": chosen})
    finished = store.finished()
    for chunk in plan.chunks(item, 0, Stage.BOUND):
        if chunk.key not in finished:
            started = time.perf_counter()
            measured = maps.measure(chunk, chosen)
            provenance = {"batch_size": maps.batch_size, "seconds": time.perf_counter() - started}
            counts = {"votes.votes": measured.votes, "distances.histogram": measured.histogram}
            store.commit(ChunkRecord(chunk, chunk.size, counts, digest, provenance))
    merged = store.merged(item, 0, Stage.BOUND)
    require_choice(item, 0, {"candidate": chosen}, merged.chosen)
    votes = OutputVotes(chosen, merged.counts["votes.votes"].astype(np.int64), merged.n)
    histogram = merged.counts["distances.histogram"].astype(np.int64)
    return Drawn(votes, {BALL: ball.array(), HISTOGRAM: histogram})


def _choose(
    maps: LabelMaps, plan: SamplingPlan, item: int, centre: CentreOptions
) -> tuple[Int[np.ndarray, "outputs"], Ball]:
    """Choose the centre, and count how many further label maps lie in its ball."""
    n = plan.n_candidate
    candidates, distances = maps.choosing(plan.chunks(item, 0, Stage.CANDIDATE), min(centre.candidates, n))
    best, radius = choose_centre(distances)
    inside = 0
    for chunk in _check_chunks(item, n, plan.chunk_size):
        inside += int(maps.measure(chunk, candidates[best]).histogram[: radius + 1].sum())
    return candidates[best], Ball(radius, inside, n, centre.candidates)


def _check_chunks(item: int, samples: int, size: int) -> Iterator[Chunk]:
    for index, start in enumerate(range(0, samples, size)):
        yield Chunk(item, 0, _CHECK_STREAM, index, min(size, samples - start))
