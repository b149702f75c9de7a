"""What every store must do: keep each chunk once, for one run, and give back what it was given."""

from __future__ import annotations

import json

import numpy as np
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import sample
from localsmooth.noise import Gaussian
from localsmooth.runs import Chunk, ChunkRecord, RunIdentity, SamplingPlan, Stage, Store, StoreError
from localsmooth.sampling import ItemTally, SamplingOptions
from localsmooth.testing.exact import ExactModel, make_item, make_layout
from localsmooth.testing.refusals import refused

__all__ = ["StoreContract"]

_CONFIGURATION = RunIdentity({"plan": {"seed": 1}, "items": [{"content": "a"}, {"content": "b"}]})
_PLAN = SamplingPlan(n_candidate=10, n_bound=45, seed=3, chunk_size=20)
_BAD_NAMES = ("", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", ".hidden", "é", "a" * 101, "a b")


def _record(index: int = 0, chosen: str = "", stage: Stage = Stage.CANDIDATE, more: int = 0) -> ChunkRecord:
    counts = {"labels.counts": np.array([[1, 2], [3, more]], np.uint8), "mean.sum": np.array([0.5, -1.0])}
    return ChunkRecord(Chunk(0, 1, stage.value, index, 3), 3, counts, chosen, {"device": "cpu", "seconds": 0.5})


class _Counted(ExactModel):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().__call__(batch)


class StoreContract:
    """Tests of a store; a test class says how an empty one is made."""

    def make(self) -> Store:
        """Make an empty store, at a place of its own each time.

        Raises
        ------
        NotImplementedError
            Where a suite does not say how.
        """
        raise NotImplementedError

    def reopened(self, store: Store) -> Store | None:
        """Open the place of a store anew, as another process would; None where nothing outlives a store.

        Parameters
        ----------
        store
            The first, which may be closed for it.
        """
        del store
        return None

    def _begun(self) -> Store:
        store = self.make()
        store.begin(_CONFIGURATION)
        return store

    def _both(self, store: Store) -> list[Store]:
        """The store, and the same place as another process sees it."""
        again = self.reopened(store)
        return [store] if again is None else [again]

    def test_it_begins_empty(self) -> None:
        """And knows its configuration from then on."""
        store = self.make()
        assert store.configuration is None
        store.begin(_CONFIGURATION)
        assert not store.finished()
        assert store.array_names() == []
        assert store.merged(0, 0, Stage.CANDIDATE).n == 0
        for seen in self._both(store):
            assert seen.configuration is not None
            assert seen.configuration.sha256 == _CONFIGURATION.sha256

    def test_chunks_are_added_up(self) -> None:
        """Each stage of each output group on its own."""
        store = self._begun()
        assert store.commit(_record(0))
        assert store.commit(_record(1))
        assert store.commit(_record(0, "a" * 64, Stage.BOUND))
        for seen in self._both(store):
            merged = seen.merged(0, 1, Stage.CANDIDATE)
            assert merged.n == 6
            assert merged.chosen == ""
            np.testing.assert_array_equal(merged.counts["labels.counts"], [[2, 4], [6, 0]])
            np.testing.assert_array_equal(merged.counts["mean.sum"], [1.0, -2.0])
            assert (seen.merged(0, 1, Stage.BOUND).n, seen.merged(0, 1, Stage.BOUND).chosen) == (3, "a" * 64)
            assert seen.merged(0, 0, Stage.CANDIDATE).n == seen.merged(1, 1, Stage.CANDIDATE).n == 0
            assert set(seen.finished()) == {(0, 1, 0, 0), (0, 1, 0, 1), (0, 1, 1, 0)}
            kept = seen.finished()[0, 1, 1, 0]
            assert (kept.size, kept.n, kept.chosen, kept.seconds) == (3, 3, "a" * 64, 0.5)

    def test_sums_leave_the_range_of_what_is_counted_in(self) -> None:
        """Chunks count in 8 bits, their sum does not."""
        store = self._begun()
        for index in range(3):
            store.commit(
                ChunkRecord(Chunk(0, 0, 0, index, 200), 200, {"labels.counts": np.full((1, 1), 200, np.uint8)})
            )
        for seen in self._both(store):
            assert seen.merged(0, 0, Stage.CANDIDATE).counts["labels.counts"] == 600

    def test_a_chunk_is_counted_once(self) -> None:
        """A sample that is counted twice makes a certificate false."""
        store = self._begun()
        assert store.commit(_record())
        assert not store.commit(_record()), "the same chunk was taken twice"
        assert not store.commit(_record(more=9)), "a chunk was replaced"
        for seen in self._both(store):
            assert seen.merged(0, 1, Stage.CANDIDATE).n == 3
            assert seen.merged(0, 1, Stage.CANDIDATE).counts["labels.counts"][1, 1] == 0
        store = self._begun()
        store.commit(_record())
        if (again := self.reopened(store)) is not None:
            again.begin(_CONFIGURATION)
            assert not again.commit(_record()), "another process took a chunk twice"
            assert again.merged(0, 1, Stage.CANDIDATE).n == 3

    def test_what_is_kept_does_not_change_with_its_source(self) -> None:
        """Counts and arrays are copied, or written at once."""
        store, record, array = self._begun(), _record(), np.arange(6.0)
        store.commit(record)
        store.put_array("image", array)
        record.counts["labels.counts"][:] = 0
        array[:] = 0
        store.commit(_record(1))
        assert store.merged(0, 1, Stage.CANDIDATE).counts["labels.counts"][0, 1] == 4
        np.testing.assert_array_equal(store.get_array("image"), np.arange(6.0))

    def test_votes_for_different_candidates_are_not_added_up(self) -> None:
        """Where the candidates have changed, the votes are about something else."""
        store = self._begun()
        store.commit(_record(0, "a" * 64, Stage.BOUND))
        with refused("a vote for other candidates", field="other candidates", kinds=(StoreError,)):
            store.commit(_record(1, "b" * 64, Stage.BOUND))
            store.merged(0, 1, Stage.BOUND)

    def test_arrays_are_kept_beside_the_tallies(self) -> None:
        """The last one of a name, with its shape and type."""
        store = self._begun()
        store.put_array("item-0.image", np.arange(6.0).reshape(2, 3))
        store.put_array("item-0.image", np.arange(6, dtype=np.int16).reshape(3, 2))
        store.put_array("flag", np.array(True))
        store.put_array("graph", np.zeros((0, 3)))
        for seen in self._both(store):
            kept = seen.get_array("item-0.image")
            np.testing.assert_array_equal(kept, np.arange(6).reshape(3, 2))
            assert kept.dtype == np.int16
            assert (seen.get_array("flag").shape, seen.get_array("graph").shape) == ((), (0, 3))
            assert seen.array_names() == ["flag", "graph", "item-0.image"]
            assert seen.has_array("flag")
            assert not seen.has_array("item-1")
            with refused("an array that was never put", field="item-1", kinds=(StoreError,)):
                seen.get_array("item-1")

    def test_names_of_arrays_lead_nowhere_else(self) -> None:
        """A name must not be a path."""
        store = self._begun()
        for name in _BAD_NAMES:
            with refused(f"the name {name!r}", field="name", kinds=(InvalidInputError,)):
                store.put_array(name, np.zeros(1))

    def test_another_configuration_is_refused(self) -> None:
        """Tallies of different distributions must not be mixed; the difference is named."""
        store = self._begun()
        store.begin(RunIdentity(json.loads(_CONFIGURATION.text)))
        store.commit(_record())
        other = RunIdentity({"plan": {"seed": 2}, "items": [{"content": "a"}]})
        for seen in self._both(store):
            with refused("another configuration", field="plan.seed", kinds=(StoreError,)):
                seen.begin(other)
            seen.begin(_CONFIGURATION)
            assert set(seen.finished()) == {(0, 1, 0, 0)}, "what was there must stay"

    def test_runs_go_on_where_they_stopped(self) -> None:
        """A run gives what it gives in memory; finished, it is read without calling the model."""
        expected, stores = _tally(None), [self.make()]
        model = _Interrupted(7)
        try:
            _tally(stores[0], model)
        except KeyboardInterrupt:
            stores += self._both(stores[0])
        assert 0 < len(stores[-1].finished()) < 16, "chunks must be kept as they are finished"
        second = _Counted()
        _require_same(_tally(stores[-1], second), expected)
        calls, third = second.calls, _Counted()
        _require_same(_tally(self._both(stores[-1])[0], third), expected)
        assert third.calls <= 1 < calls, "finished chunks were drawn again"


class _Interrupted(ExactModel):
    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__call__(batch)


def _tally(store: Store | None, model: ExactModel | None = None) -> ItemTally:
    model = ExactModel() if model is None else model
    options = SamplingOptions(batch_size=8, check_model=False)
    return sample(model, [make_item()], [make_layout()], Gaussian(), _PLAN, store, options=options, executor="serial")[
        0
    ]


def _require_same(one: ItemTally, other: ItemTally) -> None:
    np.testing.assert_array_equal(one.candidate, other.candidate)
    np.testing.assert_array_equal(one.votes, other.votes)
    assert one.n == other.n
