"""Noise on a grid: tables with proven errors, draws that follow them, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.noise.drawing import draw

from localsmooth.errors import InvalidInputError
from localsmooth.layout import grid_layout
from localsmooth.noise import Gaussian, Noise, Randomness, Uniform
from localsmooth.noise.additive import AdditiveNoise
from localsmooth.noise.cumulative import UNIT, RoundedLaw, rounded_gaussian, rounded_uniform
from localsmooth.noise.on_grid import PreparedSteps
from localsmooth.noise.table import DrawingTable
from localsmooth.testing.chance import likely

DEFAULT = Gaussian()
STEPS = [Fraction(1, 1020), Fraction(1, 150), Fraction(0.1), Fraction(1, 8), Fraction(1.7), Fraction(18), Fraction(50)]
"""Grids from very fine to one on which nothing but 0 comes out."""


def cumulative(family: type[AdditiveNoise], step: Fraction, k: int) -> mpmath.mpf:
    """Pr[K ≤ k] by mpmath alone."""
    at = (mpmath.mpf(k) + 0.5) * step.numerator / step.denominator
    return mpmath.ncdf(at) if family is Gaussian else min(max((at + 1) / 2, mpmath.mpf(0)), mpmath.mpf(1))


def counts_of(table: DrawingTable) -> dict[int, int]:
    """Number of the 2⁶⁴ values of the random bits that become each number."""
    edges = [-(2**63) - 1, *table.thresholds.tolist()]
    return {table.first + k: after - before for k, (before, after) in enumerate(itertools.pairwise(edges))}


def distance(table: DrawingTable, family: type[AdditiveNoise], step: Fraction) -> mpmath.mpf:
    """The total variation distance itself."""
    below = outside = cumulative(family, step, table.first - 1)
    total = mpmath.mpf(0)
    for k, count in counts_of(table).items():
        before, below = below, cumulative(family, step, k)
        total += abs(mpmath.mpf(count) / 2**64 - (below - before))
    return (total + outside + 1 - below) / 2


@pytest.mark.parametrize("step", STEPS, ids=float)
@pytest.mark.parametrize("family", [Gaussian, Uniform])
def test_tables_are_as_close_as_they_say(family: type[AdditiveNoise], step: Fraction) -> None:
    table = DrawingTable.of(family.rounded(step))
    with mpmath.workprec(320):
        counts = counts_of(table)
        for k in list(counts)[:: max(1, len(counts) // 400)]:
            exact = cumulative(family, step, k) - cumulative(family, step, k - 1)
            assert abs(mpmath.mpf(counts[k]) / 2**64 - exact) < mpmath.mpf(2) ** -63
        assert sum(counts.values()) == 1 << 64
        if len(counts) < 3000:
            exact = distance(table, family, step)
            assert exact <= table.error < 2 * exact + mpmath.mpf(2) ** -64


@settings(max_examples=25, deadline=None)
@given(st.fractions(Fraction(1, 400), 30, max_denominator=10**6))
def test_cumulative_probabilities_of_any_step(step: Fraction) -> None:
    with mpmath.workprec(320):
        for law, family in ((rounded_gaussian(step), Gaussian), (rounded_uniform(step), Uniform)):
            assert len(law.cumulative) == -2 * law.first
            for place in range(0, len(law.cumulative), max(1, len(law.cumulative) // 15)):
                exact = cumulative(family, step, law.first + place)
                assert abs(mpmath.mpf(law.cumulative[place]) / UNIT - exact) * UNIT <= law.slack
            outside = 2 * (1 - cumulative(family, step, -law.first))
            assert outside * UNIT <= law.outside


def test_an_error_that_is_too_small_is_noticed() -> None:
    """The comparison above can fail: a table of another step has a larger distance than it says."""
    step = Fraction(1, 20)
    table = DrawingTable.of(rounded_gaussian(step * (1 + Fraction(1, 2**58))))
    with mpmath.workprec(320):
        assert distance(table, Gaussian, step) > table.error


def places(table: DrawingTable, bits: torch.Tensor) -> np.ndarray:
    """What some random bits become, around 0 on the grid of whole numbers."""

    class Given(Randomness):
        def bits(self, shape: tuple[int, ...]) -> torch.Tensor:
            return bits.reshape(shape)

    prepared = PreparedSteps.around(torch.zeros(1), np.ones(1), 1.0, lambda _: table, None, 0.0)
    out = torch.empty(bits.numel(), 1, dtype=torch.float64)
    prepared.draw(out, Given(0, ()))
    return out.numpy().ravel()


@pytest.mark.parametrize("step", STEPS, ids=float)
def test_every_threshold_is_met_exactly(step: Fraction) -> None:
    """At each threshold one number ends and the next begins, also where many lie between neighbouring guides."""
    table = DrawingTable.of(rounded_gaussian(step))
    at = table.thresholds[:-1]
    rng = np.random.default_rng(0)
    bits = np.concatenate(
        [at, at + 1, [np.iinfo(np.int64).min, np.iinfo(np.int64).max], rng.integers(-(2**63), 2**63 - 1, 2000)]
    )
    np.testing.assert_array_equal(places(table, torch.from_numpy(bits)), table.first + np.searchsorted(at, bits))


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """P-value, with rare numbers at the ends put together."""
    order = np.argsort(expected)
    few = order[np.cumsum(expected[order]) < 100]
    keep = np.setdiff1d(np.arange(expected.size), few)
    counts = np.append(counts[keep], counts[few].sum())
    expected = np.append(expected[keep], expected[few].sum())
    if expected[-1] == 0:
        assert counts[-1] == 0
        counts, expected = counts[:-1], expected[:-1]
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), expected.size - 1))


def frequencies(noise: AdditiveNoise, level: float, draws: int, seed: int) -> float:
    """P-value of draws, all of one level, against probabilities that do not come from the table."""
    step = Fraction(noise.grid) / Fraction(level)
    table = noise.table(level)
    prepared = noise.prepare(torch.zeros(1000, dtype=torch.float64), np.full(1000, level), None, 0.0)
    out, stream = torch.empty(1000, 1000, dtype=torch.float64), Randomness(seed, (0,))
    counts = np.zeros(table.thresholds.size, np.int64)
    for _ in range(draws // out.numel()):
        prepared.draw(out, stream)
        counts += np.bincount((out / noise.grid).round().long().ravel().numpy() - table.first, minlength=counts.size)
    edges = (np.arange(table.first, table.first + counts.size - 1) + 0.5) * float(step)
    below = stats.norm.cdf(edges) if isinstance(noise, Gaussian) else np.clip((edges + 1) / 2, 0, 1)
    return chi_square(counts, np.diff(np.concatenate([[0.0], below, [1.0]])) * counts.sum())


LAWS = [
    (Gaussian(grid=1 / 255), 0.15),
    (Gaussian(grid=1 / 1020), 1.0),
    (Gaussian(grid=0.5), 0.4),
    (Uniform(grid=1 / 255), 0.3),
]


@pytest.mark.parametrize(("noise", "level"), LAWS)
def test_draws_have_the_law(noise: AdditiveNoise, level: float) -> None:
    assert likely([frequencies(noise, level, 10**6, 1)])


@pytest.mark.long
@pytest.mark.parametrize(("noise", "level"), LAWS)
def test_very_many_draws_have_the_law(noise: AdditiveNoise, level: float) -> None:
    assert likely([frequencies(noise, level, 10**8, 2)])


def test_a_wrong_level_is_noticed() -> None:
    """A hundredth of σ shows in as many draws."""

    class Quieter(Gaussian):
        @classmethod
        def rounded(cls, step: Fraction) -> RoundedLaw:
            return rounded_gaussian(step * Fraction(101, 100))

    assert not likely([frequencies(Quieter(grid=1 / 255), 0.15, 10**6, 1)])


def on_device(seed: int) -> Randomness:
    """A stream of the kind used on accelerators, on the CPU."""
    randomness = Randomness(seed, (0,))
    randomness._numpy = None
    randomness._torch = torch.Generator().manual_seed(seed)
    return randomness


@pytest.mark.parametrize("make", [lambda: Randomness(3, (1, 2)), lambda: on_device(3)])
def test_bits_are_random_and_do_not_depend_on_the_batch(make) -> None:
    whole, parts = make().bits((12, 500)), make()
    assert torch.equal(torch.cat([parts.bits((n, 500)) for n in (1, 4, 7)]), whole)
    assert whole.dtype == torch.int64
    set_ = np.unpackbits(whole.numpy().view(np.uint8)).reshape(-1, 64).sum(axis=0)
    assert likely([stats.binomtest(int(one), 6000, 0.5).pvalue for one in set_])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_are_one_function_of_whole_numbers(dtype: torch.dtype) -> None:
    """What the model gets is float(k) · float(h), in single precision too: equal numbers of steps are equal numbers."""
    grid, shape = 1 / 255, (2, 6, 10)
    item = torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape) / 255).to(dtype)
    levels = grid_layout((2, 2), shape[1:], minimum=0.1, maximum=0.7).level_map(1)
    levels[2:4] = np.inf
    out = draw(Gaussian(grid=grid), item, levels, 300)
    shown = out[:, :, np.isfinite(levels)]
    steps = (shown.double() / grid).round()
    assert torch.equal(shown, steps.to(dtype) * torch.tensor(grid, dtype=dtype))
    assert (out[:, :, 2:4] == 0.0).all()
    spread = ((out - item).double() / torch.from_numpy(levels)).numpy()[:, :, np.isfinite(levels)]
    assert likely([float(stats.kstest(spread.ravel(), "norm").pvalue)])  # steps are small beside the levels
    clamped = draw(Gaussian(grid=grid, clamp=True), item, levels, 300, bounds=(0.0, 1.0))
    assert torch.equal(clamped, out.clamp(0, 1))


def test_weights_are_those_of_the_exact_level() -> None:
    level = np.array([[0.1, 0.3]])  # single precision rounds the first up, and the second too
    assert (Gaussian(grid=0.1).weights(level) >= 1 / level**2).all()
    np.testing.assert_allclose(Gaussian(grid=0.1).weights(level), 1 / level**2, rtol=1e-15)
    np.testing.assert_allclose(Uniform(grid=0.1).weights(level), 1 / level, rtol=1e-15)


def test_what_is_off_the_grid_is_refused() -> None:
    good = torch.tensor([0.0, 3 / 255, 1.0])
    Gaussian(grid=1 / 255).require_item(good)
    for bad in (0.5, float("nan"), float("inf"), 1e9):
        with pytest.raises(InvalidInputError, match=r"grid"):
            Gaussian(grid=1 / 255).require_item(torch.tensor([0.0, bad]))
    fine = torch.arange(65536, dtype=torch.float64) / 65535
    Gaussian(grid=1 / 65535).require_item(fine.float())
    with pytest.raises(InvalidInputError, match=r"grid=None"):
        Gaussian(grid=1 / 65535).require_item(fine.float() + 0.02 / 65535)
    with pytest.raises(InvalidInputError, match=r"grid=None"):
        Gaussian(grid=1 / 255).prepare(torch.tensor([0.5]), np.ones(1), None, 0.0)
    Gaussian(grid=1 / 255).prepare(torch.tensor([0.5]), np.full(1, np.inf), None, 0.0)  # which nobody sees
    with pytest.raises(InvalidInputError, match="coarser"):
        Gaussian(grid=1e-6).validate(np.ones((1, 1)))
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match="grid"):
            Gaussian(grid=bad)


def test_the_error_of_a_sample_adds_up() -> None:
    noise, levels, sizes = Gaussian(grid=1 / 255), np.array([[0.1, 0.2, np.inf], [0.2, 0.1, 0.1]]), np.array([3, 5, 7])
    small, large = noise.table(0.1).error, noise.table(0.2).error
    wanted = 3 * small + 5 * large + 3 * large + 5 * small + 7 * small
    assert wanted <= noise.drawing_error(levels, sizes) <= wanted * (1 + 1e-5)
    assert Gaussian().drawing_error(levels, sizes) is None


def test_other_noise_is_what_it_was() -> None:
    """Neither its name in stored runs, nor a draw."""
    assert dict(Gaussian().configuration()) == {"distribution": "gaussian", "clamp": False}
    assert Gaussian(grid=1 / 255).configuration()["grid"] == 1 / 255
    drawn = draw(Gaussian(), torch.zeros(3), np.ones(3), 2)
    expected = np.random.Generator(
        np.random.SFC64(np.random.SeedSequence(entropy=0, spawn_key=(1, 2, 3)))
    ).standard_normal((2, 3), dtype=np.float32)
    np.testing.assert_array_equal(drawn.numpy(), expected)


class TestSuited:
    """What is settled where the grid is left to the items."""

    pictures = (torch.from_numpy(np.random.default_rng(5).integers(0, 256, (2, 3, 8, 8))) / 255).float()
    levels = np.array([[0.25, np.inf], [0.5, 0.25]])

    def settled(self, items: torch.Tensor, levels: np.ndarray = levels, noise: Noise = DEFAULT) -> float | None:
        made = noise.suited(list(items), [levels] * len(items))
        assert made.grid != "auto"
        return made.grid

    def test_of_pictures(self) -> None:
        assert self.settled(self.pictures) == 1 / 255
        assert self.settled(self.pictures, noise=Uniform()) == 1 / 255
        assert self.settled(torch.from_numpy(np.rint(255 * self.pictures.numpy())), 255 * self.levels) == 1.0

    @pytest.mark.parametrize(("level", "halved"), [(8 / 255, 0), (7.9 / 255, 1), (0.004, 3)])
    def test_it_is_fine_for_the_smallest_level(self, level: float, halved: int) -> None:
        assert self.settled(self.pictures, np.array([[level, 0.5]])) == 1 / 255 / 2**halved

    @pytest.mark.parametrize(
        "items",
        [
            np.random.default_rng(5).random((1, 3, 8, 8)),
            np.zeros((1, 3, 8, 8)),  # few values lie on many grids
            np.random.default_rng(5).integers(0, 2, (1, 3, 8, 8)),
            np.full((1, 3, 8, 8), 0.2),
            np.full((1, 3, 8, 8), np.nan),
            np.arange(8.0)[None] * 2**20,  # more steps than can be told apart
        ],
    )
    def test_of_what_shows_no_grid(self, items: np.ndarray) -> None:
        assert self.settled(torch.from_numpy(items).float()) is None

    def test_all_items_have_to_lie_on_it(self) -> None:
        items = self.pictures.clone()
        items[1, 2, 7, 7] += 0.001
        assert self.settled(items) is None
        items[1] = 0  # lies on it, and shows nothing
        assert self.settled(items) == self.settled(items.flip(0)) == 1 / 255

    def test_levels_that_no_table_is_for(self) -> None:
        assert self.settled(self.pictures, np.array([[0.25, 1e3]])) is None
        assert self.settled(self.pictures, np.array([[1e-9]])) is None
        assert self.settled(self.pictures, np.array([[np.inf]])) is None

    def test_what_is_asked_for_stays(self) -> None:
        for noise in (Gaussian(grid=None), Gaussian(grid=1 / 1020), Gaussian(grid=0.1)):
            assert noise.suited(list(self.pictures), [self.levels] * 2) is noise

    def test_it_is_what_a_run_remembers(self) -> None:
        for items in (self.pictures, self.pictures + 0.001):
            made = Gaussian(clamp=True).suited(list(items), [self.levels] * 2)
            parameters = dict(made.configuration())
            assert parameters.pop("distribution") == "gaussian"
            assert Gaussian.of_run(**parameters) == made

    def test_families_without_a_law_on_grids_draw_floating_point(self) -> None:
        class Laplace(Gaussian):
            rounded = AdditiveNoise.rounded

        assert self.settled(self.pictures, noise=Laplace()) is None
