"""What every smoothing distribution must do."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from scipy import stats

from localsmooth.certificates import VOTE_CERTIFICATES
from localsmooth.layout import Layout, Partition
from localsmooth.noise import NOISES, Randomness
from localsmooth.tasks import noise_from_configuration
from localsmooth.testing.chance import binomial_p_values, likely
from localsmooth.testing.laws import NoiseCase
from localsmooth.testing.refusals import refused

__all__ = ["NoiseContract"]

_GLOBAL: tuple[Callable[[], object], ...] = (
    lambda: torch.get_rng_state().numpy().tobytes(),
    lambda: pickle.dumps(np.random.get_state()),  # noqa: NPY002
    random.getstate,
)
"""States of the generators that everybody shares."""

_SAMPLES = 8000
_PER_GROUP = 2  # elements of each input group


class NoiseContract:
    """Tests of a noise: what it draws has the law that its certificates assume, from one level matrix.

    Whether the weights certify is for the suite of the base certificate that goes with the noise.
    """

    case: NoiseCase
    """The noise, levels, and its law."""

    # Items have two channels, the groups' elements side by side; every output is a group.
    def _layout(self) -> Layout:
        outputs, inputs = self.case.levels.shape[:2]
        labels = np.repeat(np.arange(inputs), _PER_GROUP)
        return Layout(Partition(np.arange(outputs)), Partition(labels), self.case.levels)

    def _item(self, value: float | None = None, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        shape = (2, _PER_GROUP * self.case.levels.shape[1])
        if value is not None:
            return torch.full(shape, value, dtype=dtype)
        chosen = np.random.default_rng(0).choice(self.case.values or (0.1, 0.3, 0.8), shape)
        return torch.from_numpy(chosen).to(dtype)

    def _draw(
        self,
        group: int = 0,
        samples: int = 4,
        item: torch.Tensor | None = None,
        key: tuple[int, ...] = (0, 1),
        seed: int = 5,
        before: float = float("nan"),
        hidden_value: float = 0.0,
    ) -> torch.Tensor:
        item = self._item() if item is None else item
        prepared = self.case.noise.prepare(item, self._layout().level_map(group), None, hidden_value)
        out = torch.full((samples, *item.shape), before, dtype=item.dtype)
        prepared.draw(out, Randomness(seed, key))
        return out

    def _loudest(self) -> int:
        """An output group whose samples are no constants: the one with the fewest hidden inputs."""
        return int(np.argmin(self.case.hidden.sum(axis=1)))

    def test_configuration_makes_the_same_noise_again(self) -> None:
        """Stored runs know a noise by its configuration alone."""
        noise = self.case.noise
        stored = cast("dict[str, Any]", json.loads(json.dumps(dict(noise.configuration()), allow_nan=False)))
        assert stored.get("distribution") == noise.distribution, "the configuration must name the distribution"
        assert NOISES.get(noise.distribution) is type(noise), "register the class: localsmooth.register(…)"
        made = noise_from_configuration(stored)
        assert dict(made.configuration()) == dict(noise.configuration())
        np.testing.assert_array_equal(made.weights(self.case.levels), noise.weights(self.case.levels))

    def test_default_certificate_is_known(self) -> None:
        """A name that stands for nothing would be noticed after sampling only."""
        assert not self.case.noise.certificate or self.case.noise.certificate in VOTE_CERTIFICATES

    def test_levels_are_validated(self) -> None:
        """Good levels pass, bad ones and other shapes name `levels`."""
        noise, levels = self.case.noise, self.case.levels
        noise.validate(levels)
        for bad in self.case.refused:
            wrong = levels.copy()
            wrong[-1, 0] = bad
            with refused(f"the level {bad}", field="levels"):
                noise.validate(wrong)
            with refused(f"the level {bad}", field="levels"):
                noise.weights(wrong)
        with refused("a level matrix with a further axis", kinds=(Exception,)):
            noise.validate(np.repeat(levels[..., None], 3, axis=-1))

    def test_weights_have_their_shape_and_are_no_gift(self) -> None:
        """One column per input group and kind; hidden inputs weigh nothing, others something."""
        noise, levels = self.case.noise, self.case.levels
        weights = noise.weights(levels)
        assert weights.shape == (levels.shape[0], levels.shape[1] * len(noise.kinds))
        assert not np.isnan(weights).any()
        assert (weights >= 0).all()
        assert (weights[np.tile(self.case.hidden, len(noise.kinds))] == 0).all(), "hidden inputs weigh something"
        assert (weights > 0).any()

    def test_weights_depend_on_their_own_level_only(self) -> None:
        """Rows are output groups, and columns input groups of one kind after those of the other."""
        noise, levels = self.case.noise, self.case.levels
        weights = noise.weights(levels)
        np.testing.assert_array_equal(
            np.concatenate([noise.weights(levels[i : i + 1]) for i in range(len(levels))]), weights
        )
        turned = noise.weights(levels[:, ::-1].copy()).reshape(len(levels), len(noise.kinds), -1)
        np.testing.assert_array_equal(turned[:, :, ::-1].reshape(weights.shape), weights)

    def test_the_stream_does_not_depend_on_the_batch(self) -> None:
        """Interrupted, resumed and distributed runs draw the same samples."""
        group, item = self._loudest(), self._item()
        together = self._draw(group, 64)
        prepared = self.case.noise.prepare(item, self._layout().level_map(group), None, 0.0)
        for batch in (1, 7, 64):
            stream, parts = Randomness(5, (0, 1)), list[torch.Tensor]()
            for start in range(0, 64, batch):
                part = torch.full((min(batch, 64 - start), *item.shape), float("nan"), dtype=item.dtype)
                prepared.draw(part, stream)
                parts.append(part)
            assert torch.equal(torch.cat(parts), together), f"in batches of {batch} other samples are drawn"

    def test_streams_and_samples_differ(self) -> None:
        """Another seed or key gives other samples, and no sample is drawn twice."""
        group, large = self._loudest(), 40
        streams = [
            self._draw(group, large, key=key, seed=seed)
            for seed, key in ((5, (0, 1)), (6, (0, 1)), (5, (1,)), (5, (1, 0)))
        ]
        for one, other in ((a, b) for i, a in enumerate(streams) for b in streams[:i]):
            assert not torch.equal(one, other), "different streams give the same samples"
        assert len({sample.numpy().tobytes() for sample in streams[0]}) > 1, "all samples are the same"

    def test_everything_is_overwritten_and_nothing_else(self) -> None:
        """What was in the buffer plays no role; the item and the global generators stay as they were."""
        item = self._item()
        kept, before = item.clone(), [state() for state in _GLOBAL]
        drawn = self._draw(self._loudest(), 5, item=item)
        assert torch.isfinite(drawn).all(), "some elements were not written"
        assert torch.equal(drawn, self._draw(self._loudest(), 5, before=7.0)), "what was in the buffer shows"
        assert torch.equal(item, kept), "the item was changed"
        assert before == [state() for state in _GLOBAL], "a global generator was used"

    def test_both_precisions(self) -> None:
        """Samples have the item's type."""
        for dtype in (torch.float32, torch.float64):
            assert torch.isfinite(self._draw(item=self._item(dtype=dtype))).all()

    def test_hidden_inputs_are_the_constant(self) -> None:
        """Not the item, and not noise around the constant."""
        hidden = np.repeat(self.case.hidden, _PER_GROUP, axis=1)
        for group in np.flatnonzero(hidden.any(axis=1)):
            for value in self.case.values or (0.1, 0.75):
                drawn = self._draw(int(group), 50, hidden_value=value)[:, :, hidden[group]]
                assert (drawn == value).all(), "hidden inputs show"

    def test_samples_have_the_law(self) -> None:
        """Every element has the law of its own level, the same way round as the weights read the matrix."""
        p_values = list[float]()
        for group in range(len(self.case.levels)):
            for value in self.case.values or (0.25,):
                drawn = self._draw(group, _SAMPLES, item=self._item(value, torch.float64), key=(group,)).numpy()
                for source in np.flatnonzero(~self.case.hidden[group]):
                    level = self.case.level(group, int(source))
                    elements = drawn[:, :, source * _PER_GROUP : (source + 1) * _PER_GROUP].ravel()
                    p_values += self._p_values(elements, value, level)
        assert likely(p_values), f"samples do not have the law: p-value {min(p_values)}"

    def _p_values(self, elements: np.ndarray, value: float, level: np.ndarray) -> list[float]:
        if self.case.values is None:
            uniform = self.case.cdf(elements, value, level)
            # Kolmogorov's test sees the shape; a scale that is a few percent off shows in the spread, a sum of
            # thousands of bounded terms with mean 1/12 and variance 1/180.
            spread = (np.mean((uniform - 0.5) ** 2) - 1 / 12) * np.sqrt(180 * elements.size)
            return [float(stats.kstest(uniform, "uniform").pvalue), float(2 * stats.norm.sf(abs(spread)))]
        edges = np.array(self.case.values[:-1])
        assert np.isin(elements, self.case.values).all(), "samples have other values than the case says"
        below = (elements[:, None] <= edges).sum(axis=0)
        return binomial_p_values(below, elements.size, self.case.cdf(edges, value, level)).tolist()

    def test_elements_and_samples_are_independent(self) -> None:
        """Elements of one sample, and samples that follow each other, are not correlated."""
        group = self._loudest()
        drawn = self._draw(group, _SAMPLES, item=self._item(dtype=torch.float64)).numpy().reshape(_SAMPLES, -1)
        varied = drawn[:, drawn.std(axis=0) > 0]
        assert varied.shape[1] > 1, "nothing is noisy"
        pairs = [(varied[:, i], varied[:, j]) for i in range(varied.shape[1]) for j in range(i)]
        pairs += [(varied[1:, i], varied[:-1, i]) for i in range(varied.shape[1])]
        # Standardised sums: 8 is beyond 1e-8 even where flips are so rare that few samples share one.
        scores = [float(np.corrcoef(one, other)[0, 1]) * np.sqrt(len(one)) for one, other in pairs]
        assert np.abs(scores).max() < 8, "elements or samples depend on each other"
