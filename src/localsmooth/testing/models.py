"""What every base classifier must do, above all with what it is told of the noise."""

from __future__ import annotations

import pickle

import numpy as np
import torch
from jaxtyping import Float, Shaped

from localsmooth.models import Model, check_model
from localsmooth.testing.refusals import refused

__all__ = ["ModelContract"]


class ModelContract:
    """Tests of a model; a test class says how one is made, and what it can be asked about.

    A model that is told the noise (`told`) may depend on the levels that it is asked `under`, and on nothing else
    besides its input: which levels it was asked under before, in another thread or process, must not matter.
    """

    travels: bool = True
    """Whether the model can be pickled, so that chunks may be drawn in other processes."""

    def make(self) -> Model:
        """Make the model.

        Raises
        ------
        NotImplementedError
            Where a suite does not say how.
        """
        raise NotImplementedError

    def item(self) -> Float[np.ndarray, "channels *spatial"]:
        """Make a clean input of the model.

        Raises
        ------
        NotImplementedError
            Where a suite does not say which.
        """
        raise NotImplementedError

    def _batch(self) -> torch.Tensor:
        item = torch.from_numpy(np.asarray(self.item(), dtype=np.float32))
        noise = torch.randn((3, *item.shape), generator=torch.Generator().manual_seed(0))
        return (item + 0.3 * noise).to(self.make().device)

    def _levels(self) -> list[Float[np.ndarray, "..."]]:
        """Levels of two groups: some are different, some hidden."""
        shape = self._batch().shape[2:]
        first = np.random.default_rng(0).uniform(0.1, 1.0, shape)
        second = np.where(first > 0.8, np.inf, 1.1 - first)
        return [first, second]

    def _asked(self, model: Model) -> list[Shaped[np.ndarray, "..."]]:
        return [model.under(levels)(self._batch()).cpu().numpy() for levels in self._levels()]

    def _copies(self, model: Model) -> list[Model]:
        made = [model.replica()]
        if self.travels:
            made.append(pickle.loads(pickle.dumps(model)))  # noqa: S301 (made here)
        return made

    def test_it_predicts_each_sample_by_itself_under_any_levels(self) -> None:
        """As before sampling, without noise and with some."""
        for levels in (0.0, *self._levels()):
            check_model(self.make().under(levels), self.item())

    def test_it_is_refused_without_levels_only_if_it_is_told_some(self) -> None:
        """A level that nobody said would be a certificate about another model."""
        model = self.make()
        if model.told:
            with refused("a question without levels", field="model"):
                model(self._batch())
        else:
            for made in self._asked(model):
                np.testing.assert_array_equal(made, model(self._batch()).cpu().numpy())

    def test_what_it_was_told_before_does_not_matter(self) -> None:
        """One model serves all groups, in any order."""
        model, (first, second), batch = self.make(), self._levels(), self._batch()
        one, other = model.under(first), model.under(second)
        again = one.under(second).under(first)
        for _ in range(2):
            np.testing.assert_array_equal(one(batch).cpu().numpy(), again(batch).cpu().numpy())
            np.testing.assert_array_equal(other(batch).cpu().numpy(), one.under(second)(batch).cpu().numpy())
        if model.told:
            with refused("a question without levels, after others", field="model"):
                model(batch)

    def test_levels_are_read_once(self) -> None:
        """An array that is written to later changes nothing."""
        levels, batch = self._levels()[0], self._batch()
        model = self.make().under(levels)
        levels[...] = 3.0
        np.testing.assert_array_equal(
            model(batch).cpu().numpy(), self.make().under(self._levels()[0])(batch).cpu().numpy()
        )

    def test_levels_have_the_shape_of_the_inputs_places(self) -> None:
        """Others would be told of other places."""
        model = self.make()
        if model.told:
            wrong = np.ones((*self._batch().shape[2:-1], self._batch().shape[-1] + 1))
            with refused("levels of another shape", field="levels"):
                model.under(wrong)(self._batch())

    def test_the_fingerprint_is_that_of_the_model(self) -> None:
        """Levels belong to the layout, whose digest a stored run has beside it."""
        model = self.make()
        assert {model.under(levels).fingerprint() for levels in self._levels()} == {model.fingerprint()}
        assert self.make().fingerprint() == model.fingerprint()

    def test_copies_for_threads_and_processes_predict_the_same(self) -> None:
        """Before they are told anything, and after."""
        model = self.make()
        expected = self._asked(model)
        for made in self._copies(model):
            assert made.told == model.told
            for one, other in zip(self._asked(made), expected, strict=True):
                np.testing.assert_array_equal(one, other)
        told = model.under(self._levels()[0])
        for made in self._copies(told):
            np.testing.assert_array_equal(made(self._batch()).cpu().numpy(), expected[0])
