"""Same seed, same samples, same tallies; nothing counted twice, nothing faulty counted at all."""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from scipy import stats

from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, PoisonedChunksError, Session, sample
from localsmooth.layout import isotropic_layout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Gaussian, Randomness
from localsmooth.runs import Chunk, ChunkRecord, MemoryStore, SamplingPlan, Stage
from localsmooth.sampling import ArraySubject, BatchSize, ChunkWorker, FaultyPredictionError, Job, SamplingOptions
from localsmooth.testing.chance import assert_binomial, likely
from tests.sampling.exact import PLAN, ExactModel, assert_same, make_item, make_layout, run
from tests.seeding import seeded


def seen_samples(batch_size: int) -> list[bytes]:
    seen: list[bytes] = []
    model = ExactModel(watch=lambda batch: seen.extend(one.numpy().tobytes() for one in batch))
    run(model, batch_size=batch_size)
    return seen


def test_noise_is_identical_for_every_batch_size() -> None:
    one = seen_samples(1)
    assert len(one) == len(set(one)) == 4 * (PLAN.n_candidate + PLAN.n_bound)
    assert seen_samples(7) == one
    assert seen_samples(64) == one


@pytest.mark.parametrize("output", [OutputKind.LOGITS, OutputKind.LABELS])
def test_tallies_are_identical_for_every_batch_size(output: OutputKind) -> None:
    one = run(ExactModel(output=output), batch_size=1)
    assert 0 < one.votes.min() < one.votes.max()
    assert len(np.unique(one.candidate)) > 1
    for size in (7, 64):
        assert_same(run(ExactModel(output=output), batch_size=size), one)


def test_another_seed_gives_other_noise() -> None:
    other = run(plan=SamplingPlan(PLAN.n_candidate, PLAN.n_bound, seed=4, chunk_size=PLAN.chunk_size))
    assert not np.array_equal(other.votes, run().votes)


class ShuffledExecutor(Executor):
    """Holds several jobs and works them off in a random order."""

    def __init__(self, seed: int, capacity: int) -> None:
        self.seed, self.capacity = seed, capacity

    @contextmanager
    def open(self, worker: ChunkWorker) -> Generator[Session]:
        yield ShuffledSession(worker, self.seed, self.capacity)


class ShuffledSession(Session):
    def __init__(self, worker: ChunkWorker, seed: int, capacity: int) -> None:
        self.capacity = capacity
        self.worker = worker
        self.random = np.random.default_rng(seed)
        self.jobs: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        assert len(self.jobs) < self.capacity
        self.jobs.append(job)

    def collect(self) -> ChunkRecord:
        self.jobs.rotate(int(self.random.integers(len(self.jobs))))
        return self.worker(self.jobs.popleft())


@pytest.mark.parametrize(("seed", "capacity"), [(0, 3), (1, 50), (2, 50)])
def test_tallies_do_not_depend_on_the_order_of_the_chunks(seed: int, capacity: int) -> None:
    assert_same(run(executor=ShuffledExecutor(seed, capacity)), run())


def test_candidate_and_bound_stages_share_no_sample() -> None:
    samples: dict[int, set[bytes]] = {0: set(), 1: set()}
    group = make_layout()
    for stage in Stage:
        for chunk in PLAN.chunks(0, 0, stage):
            buffer = torch.empty(chunk.size, 1, 8, 12)
            noise = Gaussian().prepare(make_item(), group.level_map(0), None, 0.0)
            noise.draw(buffer, Randomness(PLAN.seed, chunk.key))
            samples[stage.value] |= {one.numpy().tobytes() for one in buffer}
    assert [len(samples[s.value]) for s in Stage] == [PLAN.n_candidate, PLAN.n_bound]
    assert not samples[0] & samples[1]
    # These are the samples that the engine shows the model, in this order of groups and stages.
    assert set(seen_samples(5)[: PLAN.n_candidate]) == samples[0]
    assert set(seen_samples(5)[PLAN.n_candidate : PLAN.n_candidate + PLAN.n_bound]) == samples[1]


def test_votes_are_for_the_candidate_of_the_other_stage_and_do_not_change_it() -> None:
    few = run(plan=SamplingPlan(3, 40, seed=5, chunk_size=20), keep_candidate_counts=True)
    more = run(plan=SamplingPlan(3, 80, seed=5, chunk_size=20))
    assert few.candidate_counts is not None
    np.testing.assert_array_equal(few.candidate, few.candidate_counts.argmax(axis=1))
    np.testing.assert_array_equal(few.candidate_counts.sum(axis=1), 3)
    np.testing.assert_array_equal(few.candidate, more.candidate)
    assert (few.votes < few.n / 2).any(), "a candidate of 3 samples is a minority class somewhere"


def test_seeds_that_agree_in_32_bits_give_different_noise() -> None:
    draws = []
    for seed in (5, 5 + 2**32, 5 + 2**64):
        out = torch.empty(2, 50)
        Randomness(seed, (0, 0, 0, 0)).normal_(out)
        draws.append(out)
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert likely(stats.pearsonr(draws[0].ravel(), draws[1].ravel()).pvalue)


def test_votes_of_a_linear_classifier_match_its_known_probability() -> None:
    def scores(batch: np.ndarray) -> np.ndarray:
        return np.stack([np.zeros_like(batch[:, 0]), batch[:, 0]], axis=1)

    model = CallableModel(scores, name="sign", bounds=None, classes=2)
    item = torch.linspace(-1, 1, 12).view(1, 12)
    plan = SamplingPlan(500, 4000, seed=1, chunk_size=500)
    tally = sample(model, [item], [isotropic_layout(0.7, (12,), (12,))], Gaussian(), plan)[0]
    p = stats.norm.cdf(item[0].numpy() / 0.7)
    np.testing.assert_array_equal(tally.candidate, p > 0.5)
    expected = np.where(p > 0.5, p, 1 - p)
    assert_binomial(tally.votes, tally.n, expected)


class Hungry(ExactModel):
    """Fails for batches above a limit, or now and then in the middle of a chunk."""

    def __init__(self, limit: int, error: Exception, fails_at: int | None = None) -> None:
        super().__init__()
        self.limit, self.error, self.fails_at = limit, error, fails_at
        self.sizes: list[int] = []
        self.calls = 0

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if batch.shape[0] > self.limit or self.calls == self.fails_at:
            raise self.error
        self.sizes.append(batch.shape[0])
        return super().__call__(batch)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_out_of_memory_halves_the_batch_and_loses_nothing(error: Exception) -> None:
    model = Hungry(3, error)
    assert_same(run(model, batch_size=16), run())
    assert max(model.sizes) == 2
    assert model.calls - len(model.sizes) == 2, "the smaller batch size is kept: 10 and 5 failed once each"


def test_out_of_memory_in_the_middle_of_a_chunk_counts_nothing_twice() -> None:
    model = Hungry(100, MemoryError(), fails_at=5)
    assert_same(run(model, batch_size=4), run())


def test_out_of_memory_for_a_single_sample_is_an_error() -> None:
    with pytest.raises(
        PoisonedChunksError, match=r"(?s)4 chunks could not be drawn.* 3 tries\): MemoryError"
    ) as caught:
        run(Hungry(0, MemoryError()), batch_size=4)
    assert [poisoned.chunk.key for poisoned in caught.value.chunks] == [(0, group, 0, 0) for group in range(4)]


def test_other_errors_of_the_model_are_not_taken_for_lack_of_memory() -> None:
    model = Hungry(0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(PoisonedChunksError, match="mat1"):
        run(model, batch_size=4)
    assert model.calls == 4 * 3, "each group is tried three times, at the full batch size"


class Spoilt(ExactModel):
    """Returns a bad value, in one sample and class or label, at one output: once, or from the fourth call on."""

    def __init__(
        self,
        value: float,
        position: tuple[int, int],
        output: OutputKind,
        every_class: bool = False,
        *,
        once: bool = False,
    ) -> None:
        super().__init__(output=output)
        self.value, self.position, self.every_class, self.once = value, position, every_class, once
        self.calls = 0

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        outputs = super().__call__(batch).clone()
        self.calls += 1
        if self.calls == 4 or (self.calls > 4 and not self.once):
            place = (..., slice(None) if self.every_class else 1, *self.position)
            outputs[-1][place if self.output is not OutputKind.LABELS else self.position] = self.value
        return outputs


@pytest.mark.parametrize(
    ("value", "output", "every_class"),
    [
        (float("nan"), OutputKind.LOGITS, False),
        (float("inf"), OutputKind.LOGITS, False),
        (float("-inf"), OutputKind.LOGITS, True),
        (-1, OutputKind.LABELS, False),
        (4, OutputKind.LABELS, False),
        (300, OutputKind.LABELS, False),
    ],
)
def test_faulty_predictions_are_named_and_not_counted(value: float, output: OutputKind, every_class: bool) -> None:
    store = MemoryStore()
    with pytest.raises(PoisonedChunksError, match="item 0, output group 0, chunk 0 of the bound stage") as caught:
        run(Spoilt(value, (2, 3), output, every_class), store=store)
    assert {chunk.trouble.kind for chunk in caught.value.chunks} == {FaultyPredictionError.__name__}
    assert store.merged(0, 0, Stage.BOUND).n == 0
    assert store.merged(0, 0, Stage.CANDIDATE).n == PLAN.n_candidate


def test_faults_at_outputs_of_other_groups_do_not_matter() -> None:
    assert_same(run(Spoilt(float("nan"), (7, 11), OutputKind.LOGITS, once=True)), run())


def test_a_fault_that_does_not_come_again_costs_nothing_but_time() -> None:
    model = Spoilt(float("nan"), (2, 3), OutputKind.LOGITS, once=True)
    assert_same(run(model), run())
    assert model.calls > 4


def test_a_class_that_is_ruled_out_by_an_infinite_score_is_fine() -> None:
    class RuledOut(ExactModel):
        def scores(self, batch: torch.Tensor) -> torch.Tensor:
            scores = super().scores(batch)
            scores[:, 0] = -torch.inf
            return scores

    assert run(RuledOut()).candidate.min() > 0


@pytest.mark.parametrize("shape", [(4, 7, 12), (3, 8, 12), (4, 8), (8, 12)])
def test_outputs_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    model = CallableModel(
        lambda batch: np.zeros((len(batch), *shape), dtype=np.float32), name="zeros", bounds=None, classes=4
    )
    with pytest.raises(InvalidInputError, match=r"model|classes"):
        run(model)


def test_a_model_that_drops_samples_is_refused() -> None:
    class Dropping(ExactModel):
        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            return super().__call__(batch)[1:]

    with pytest.raises(InvalidInputError, match="one prediction per sample"):
        run(Dropping())


def test_a_random_model_is_refused_before_sampling() -> None:
    class Random(ExactModel):
        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            return super().__call__(batch) + 100 * torch.rand(batch.shape[0], self.classes, 1, 1)

    with pytest.raises(InvalidInputError, match="model"), seeded(0):
        sample(Random(), [make_item()], [make_layout()], Gaussian(), PLAN, options=SamplingOptions(batch_size=4))


def live_bytes() -> int:
    tensors = [o for o in gc.get_objects() if type(o) is torch.Tensor]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


@pytest.mark.parametrize("chunk_size", [25, 1000])
def test_memory_depends_on_the_batch_and_not_on_the_number_of_samples(chunk_size: int) -> None:
    def peak(n: int) -> int:
        sizes: list[int] = []
        gc.collect()
        gc.freeze()  # what is there already needs no looking through at every batch
        before = live_bytes()
        model = ExactModel(watch=lambda batch: sizes.append(live_bytes() - before))
        run(
            model,
            plan=SamplingPlan(10, n, chunk_size=chunk_size),
            batch_size=5,
            layout=isotropic_layout(1.0, *[(8, 12)] * 2),
        )
        gc.unfreeze()
        return max(sizes)

    assert peak(25) == peak(250) > 0


@pytest.mark.parametrize(
    ("items", "layouts", "field"),
    [
        ([], [], "layouts"),
        ([make_item()], [], "layouts"),
        ([make_item(shape=(8, 11))], [make_layout()], r"items\[0\]"),
        ([torch.full((1, 8, 12), torch.nan)], [make_layout()], "item"),
    ],
)
def test_items_that_do_not_fit_are_refused(items: list[torch.Tensor], layouts: list[object], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field):
        sample(ExactModel(), items, layouts, Gaussian(), PLAN)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"batch_size": 0}, {"item_dtype": torch.float16}, {"calibration_seconds": 0.0}])
def test_bad_options_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(change))):
        SamplingOptions(**change)  # type: ignore[arg-type]


def test_a_chunk_is_reproducible_by_itself() -> None:
    subject = ArraySubject(ExactModel(), [make_item()], [make_layout()], Gaussian(), seed=3)
    job = Job(Chunk(0, 2, Stage.CANDIDATE.value, 1, 30))
    first, second = (ChunkWorker(subject, BatchSize(n))(job) for n in (4, 9))
    np.testing.assert_array_equal(first.counts["labels.counts"], second.counts["labels.counts"])
    assert first.n == 30
    assert first.provenance["batch_size"] == 4


def test_a_worker_can_be_sent_to_another_process() -> None:
    worker = ChunkWorker(ArraySubject(ExactModel(), [make_item()], [make_layout()], Gaussian(), seed=3), BatchSize(4))
    job = Job(Chunk(0, 1, Stage.BOUND.value, 0, 20), {"candidate": np.zeros(24, np.int16)})
    sent_worker, sent_task = pickle.loads(pickle.dumps((worker, job)))  # noqa: S301
    here, there = worker(job), sent_worker(sent_task)
    np.testing.assert_array_equal(here.counts["votes.votes"], there.counts["votes.votes"])
    assert here.chosen == there.chosen != ""
