import numpy as np
import pytest
import scipy.sparse as sp

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition
from localsmooth.tasks.graphs import (
    AttributeNoise,
    CompiledThinning,
    NumpyThinning,
    SparseSample,
    random_stream,
    thinning,
)
from localsmooth.tasks.graphs.thinning import best_thinning
from localsmooth.testing.chance import assert_binomial


def _have_numba() -> bool:
    return best_thinning() is CompiledThinning


IMPLEMENTATIONS = [
    NumpyThinning,
    pytest.param(CompiledThinning, marks=pytest.mark.skipif(not _have_numba(), reason="numba is not installed")),
]

ADDITION = np.array([0.0, 0.1, 0.35, 0.35, 0.01])
DELETION = np.array([0.3, 0.0, 0.8, 1.0, 0.5])


@pytest.fixture
def bits() -> sp.csr_array:
    return sp.csr_array(np.random.default_rng(1).random((5, 7)) < 0.4)


def _samples(noise: AttributeNoise, count: int, seed: int = 0) -> np.ndarray:
    stream = random_stream(seed, (1,))
    first = noise.bits(noise.draw(random_stream(seed, (2,))))
    nodes, width = first.shape
    start = noise.bits(SparseSample(np.zeros(0, np.int32), np.zeros(nodes + 1, np.int64))).toarray().ravel()
    samples = np.repeat(start[None], count, axis=0)
    for bits in samples:
        sample = noise.draw(stream)
        rows = np.repeat(np.arange(nodes), np.diff(sample.pointers))
        bits[rows * width + sample.entries % width] = sample.entries < width
    return samples.reshape(count, nodes, width)


def test_bits_write_out_what_entries_say(bits):
    noise = AttributeNoise(bits, ADDITION, DELETION)
    stream = random_stream(4, (1,))
    written = np.stack([noise.bits(noise.draw(stream)).toarray() for _ in range(30)])
    assert np.array_equal(written, _samples(noise, 30, seed=4))


@pytest.mark.parametrize("make", IMPLEMENTATIONS)
def test_each_bit_flips_with_its_own_probability(bits, make):
    count = 6_000
    samples = _samples(AttributeNoise(bits, ADDITION, DELETION, make), count)
    clean = bits.toarray()
    chance = np.where(clean, 1 - DELETION[:, None], ADDITION[:, None])
    ones = samples.sum(axis=0)
    certain = (chance == 0) | (chance == 1)
    assert (ones[certain] == count * chance[certain]).all()
    assert_binomial(ones[~certain], count, chance[~certain])


@pytest.mark.parametrize("make", IMPLEMENTATIONS)
def test_bits_are_independent(bits, make):
    """The number of ones has the law of a sum of independent bits, and no pair is one too often or too rarely."""
    count = 6_000
    samples = _samples(AttributeNoise(bits, ADDITION, DELETION, make), count, seed=5).reshape(count, -1)
    chance = np.where(bits.toarray(), 1 - DELETION[:, None], ADDITION[:, None]).ravel()
    law = np.ones(1)
    for p in chance:
        law = np.convolve(law, [1 - p, p])
    observed = np.bincount(samples.sum(axis=1), minlength=law.size)
    assert_binomial(observed, count, np.clip(law, 0, 1))
    both, pairs = samples.T.astype(np.int64) @ samples, np.triu_indices(chance.size, 1)
    assert_binomial(both[pairs], count, np.outer(chance, chance)[pairs])


def test_samples_are_independent_of_each_other(bits):
    samples = _samples(AttributeNoise(bits, ADDITION, DELETION), 8000).reshape(8000, -1)
    chance = np.where(bits.toarray(), 1 - DELETION[:, None], ADDITION[:, None]).ravel()
    # Ones in two samples that follow each other; each sample is in one such pair.
    both = samples[::2].T.astype(np.int64) @ samples[1::2]
    assert_binomial(both, 4000, np.outer(chance, chance))


def test_a_biased_sampler_would_be_caught(bits):
    """Sampling positions with replacement from a fixed number of marks is not the law; the harness must see it."""
    count = 6_000
    samples = _samples(AttributeNoise(bits, ADDITION, DELETION), count)
    wrong = DELETION * 0.94
    chance = np.where(bits.toarray(), 1 - wrong[:, None], ADDITION[:, None])
    inside = (chance > 0) & (chance < 1)
    with pytest.raises(AssertionError, match="p-value"):
        assert_binomial(samples.sum(axis=0)[inside], count, chance[inside])


@pytest.mark.skipif(not _have_numba(), reason="numba is not installed")
@pytest.mark.parametrize("block", [40, 1 << 18])
def test_both_implementations_give_the_same_samples(block, monkeypatch):
    monkeypatch.setattr(thinning, "_BLOCK", block)
    generator = np.random.default_rng(2)
    bits = sp.csr_array(generator.random((30, 19)) < 0.2)
    levels = generator.random(30) * 0.6, generator.random(30)
    streams = random_stream(1, (2,)), random_stream(1, (2,))
    noises = [AttributeNoise(bits, *levels, make) for make in (NumpyThinning, CompiledThinning)]
    for _ in range(20):
        left, right = (noise.draw(stream) for noise, stream in zip(noises, streams, strict=True))
        assert np.array_equal(left.entries, right.entries)
        assert np.array_equal(left.pointers, right.pointers)


def test_entries_never_repeat_and_never_add_to_ones(bits):
    noise = AttributeNoise(bits, np.full(5, 0.7), DELETION)
    clean = bits.toarray()
    stream = random_stream(0, (0,))
    for _ in range(200):
        sample = noise.draw(stream)
        for row in range(5):
            entries = sample.entries[sample.pointers[row] : sample.pointers[row + 1]]
            assert len(set(entries.tolist())) == len(entries)
            added, taken = entries[entries < 7], entries[entries >= 7] - 7
            assert clean[row, taken].all()
            if noise.from_clean[row]:
                assert not clean[row, added].any()


def test_streams_depend_on_seed_and_key(bits):
    noise = AttributeNoise(bits, ADDITION, DELETION)
    one, same, other = (_first(noise, *key) for key in ((0, (1, 2)), (0, (1, 2)), (0, (2, 1))))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def _first(noise: AttributeNoise, seed: int, key: tuple[int, ...]) -> np.ndarray:
    stream = random_stream(seed, key)
    return np.concatenate([noise.draw(stream).entries for _ in range(20)])


def test_groups_read_the_layout_and_hide_what_it_hides(bits):
    inputs = Partition(np.array([0, 0, 1, 1, 2]))
    levels = np.array([[[0.0, 0.0], [0.5, 0.0], [np.inf, np.inf]]])
    layout = Layout(Partition(np.zeros(5, int)), inputs, levels)
    noise = AttributeNoise.of_group(bits, layout, 0)
    samples = _samples(noise, 50)
    clean = bits.toarray()
    assert (samples[:, :2] == clean[:2]).all()
    assert not samples[:, 4].any()
    assert (samples[:, 2:4] >= clean[2:4]).all()
    assert (samples[:, 2:4] != clean[2:4]).any()
    part = AttributeNoise.of_group(bits, layout, 0, np.array([1, 4]))
    assert np.array_equal(part.bits(part.draw(random_stream(0, (0,)))).toarray(), clean[[1, 4]] & [[True], [False]])


@pytest.mark.parametrize(
    ("addition", "deletion"), [([1.0] * 5, [0.5] * 5), ([0.1] * 5, [1.1] * 5), ([np.nan] * 5, [0.5] * 5)]
)
def test_levels_out_of_range_are_refused(bits, addition, deletion):
    with pytest.raises(InvalidInputError, match="probability"):
        AttributeNoise(bits, np.array(addition), np.array(deletion))
