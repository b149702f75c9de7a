"""The model is tried in batches as large as the run's, and recognised by what it predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError, ModelFailedError
from localsmooth.execution import sample
from localsmooth.layout import windowed
from localsmooth.models import Model, OutputKind
from localsmooth.noise import Gaussian
from localsmooth.runs import DirectoryStore, MemoryStore, Store, StoreError
from localsmooth.sampling import ItemTally, SamplingOptions
from localsmooth.sampling.arrays import ArraySubject
from localsmooth.sampling.options import BatchSize
from tests.sampling.exact import PLAN, ExactModel, assert_same, make_item, make_layout

PREDICTIONS = "trial-predictions"


class Mixing(ExactModel):
    """Averages the scores of batches with more than eight samples."""

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        made = super().scores(batch)
        return made.mean(dim=0, keepdim=True).expand_as(made) if len(batch) > 8 else made


class Shifted(ExactModel):
    """Predicts another class for a share of the outputs, under the same fingerprint."""

    def __init__(self, share: float, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.share = share

    def scores(self, batch: torch.Tensor) -> torch.Tensor:
        made = super().scores(batch)
        changed = torch.zeros(made.shape[2:], dtype=torch.bool)
        changed.view(-1)[: round(self.share * changed.numel())] = True
        return torch.where(changed, made.roll(1, dims=1), made)


def draw(
    model: Model, store: Store | None = None, *, batch_size: int | None = 8, check_model: bool = True
) -> ItemTally:
    options = SamplingOptions(batch_size=batch_size, check_model=check_model)
    return sample(model, [make_item()], [make_layout()], Gaussian(), PLAN, store, options=options)[0]


class TestBatches:
    @pytest.mark.parametrize("output", [OutputKind.LOGITS, OutputKind.LABELS])
    @pytest.mark.parametrize("batch_size", [9, 64])
    def test_a_model_that_mixes_large_batches_is_refused_with_them(self, output: OutputKind, batch_size: int) -> None:
        store = MemoryStore()
        with pytest.raises(InvalidInputError, match=r"other samples in its batch of (9|20) change"):
            draw(Mixing(output=output), store, batch_size=batch_size)
        assert not store.finished()

    def test_and_taken_with_small_ones(self) -> None:
        assert_same(draw(Mixing(), batch_size=8), draw(ExactModel()))

    def test_small_windows_with_larger_batches_are_tried_too(self) -> None:
        layout = windowed(make_layout(cells=(4, 4)), 1)  # 3 × 4 in the corners, 4 × 5 inside
        subject = ArraySubject(Mixing(), [make_item()], [layout], Gaussian(), PLAN.seed)
        subject.try_batch(BatchSize(4, 20), PLAN)
        with pytest.raises(InvalidInputError, match="batch of 13 change"):
            subject.try_batch(BatchSize(8, 20), PLAN)

    def test_too_large_a_batch_is_halved(self) -> None:
        class Small(ExactModel):
            def __call__(self, batch: torch.Tensor) -> torch.Tensor:
                if len(batch) > 5:
                    raise MemoryError
                return super().__call__(batch)

        assert_same(draw(Small(), batch_size=20), draw(ExactModel()))

    def test_unless_the_check_is_switched_off(self) -> None:
        draw(Mixing(), batch_size=9, check_model=False)


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "run")


class TestPredictions:
    def test_the_same_model_goes_on(self, store: Store) -> None:
        first = draw(ExactModel(), store)
        assert PREDICTIONS in store.array_names()
        assert len(store.get_array(PREDICTIONS)) >= 100
        assert_same(draw(ExactModel(), store), first)

    def test_another_model_under_the_same_fingerprint_cannot_use_a_finished_run(self, store: Store) -> None:
        draw(ExactModel(), store)
        with pytest.raises(StoreError, match=r"predicts differently .* another run\s+directory"):
            draw(Shifted(0.25), store)

    def test_nor_go_on_with_an_interrupted_one(self, store: Store) -> None:
        calls = 0

        def interrupt(batch: torch.Tensor) -> None:
            nonlocal calls
            calls += 1
            if calls > 40:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            draw(ExactModel(watch=interrupt), store)
        finished = store.finished()
        assert finished
        with pytest.raises(StoreError, match="predicts differently"):
            draw(Shifted(0.25), store)
        assert store.finished() == finished
        assert_same(draw(ExactModel(), store), draw(ExactModel()))

    def test_a_few_labels_may_be_rounded_differently(self, store: Store) -> None:
        draw(ExactModel(), store)
        kept = store.get_array(PREDICTIONS).copy()
        few = int(0.01 * len(kept))
        kept[:few] += 1
        store.put_array(PREDICTIONS, kept)
        draw(ExactModel(), store)
        kept[: few + 1] = store.get_array(PREDICTIONS)[: few + 1]
        kept[few] += 1
        store.put_array(PREDICTIONS, kept)
        with pytest.raises(StoreError, match="predicts differently"):
            draw(ExactModel(), store)

    def test_labels_of_another_number(self, store: Store) -> None:
        draw(ExactModel(), store)
        store.put_array(PREDICTIONS, np.zeros(3, np.int32))
        with pytest.raises(StoreError, match="100 %"):
            draw(ExactModel(), store)

    def test_finished_runs_without_them_stay_usable(self, store: Store) -> None:
        first = draw(ExactModel(), store, check_model=False)
        assert PREDICTIONS not in store.array_names()
        assert_same(draw(ExactModel(), store), first)
        assert PREDICTIONS not in store.array_names()

    def test_a_model_that_fails_is_named(self, store: Store) -> None:
        """On the trials, and where the samples are there, and only their model is compared."""

        class Failing(ExactModel):
            def scores(self, batch: torch.Tensor) -> torch.Tensor:
                del batch
                raise ZeroDivisionError("boo")

        with pytest.raises(ModelFailedError, match=r"ZeroDivisionError on a few noisy samples.*: boo\."):
            draw(Failing(), store)
        draw(ExactModel(), store)
        with pytest.raises(ModelFailedError, match=r"ZeroDivisionError on noisy samples of item 0: boo\."):
            draw(Failing(), store)

    def test_finished_runs_can_be_read_only(self, tmp_path: Path) -> None:
        with DirectoryStore(tmp_path / "run") as writing:
            first = draw(ExactModel(), writing)
        assert_same(draw(ExactModel(), DirectoryStore(tmp_path / "run", read_only=True)), first)
