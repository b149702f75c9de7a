"""No Gaussian or uniform certificate is ever broken, on classifiers whose smoothed version is known in closed form."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from localsmooth.certificates import GaussianScores, GaussianVotes, Thresholds, UniformVotes, best_of
from localsmooth.noise import Gaussian, Uniform

LEVELS = np.array([[0.25, 1.0], [2.0, 0.5], [0.7, np.inf]])
"""Three output groups see two inputs, each an input group, under different levels."""

VotePromise = Callable[[np.ndarray, np.ndarray], Thresholds]
"""Maps (q, output group) to weights and thresholds."""


def radius_grid() -> np.ndarray:
    return np.concatenate([np.linspace(0.01, 4, 120), [0.999, 1.0, 1.001]])


def broken(promise: VotePromise, q: np.ndarray, group: np.ndarray, cost: np.ndarray, after: np.ndarray) -> int:
    """Number of perturbations promised although the probability afterwards is not above 1/2.

    cost[output, perturbation, column] is the budget spent; after[output, perturbation] the probability at x'.
    """
    q = np.clip(q - 1e-12, 0, np.nextafter(1, 0))
    weights, eta = promise(q, group)
    promised = np.einsum("npc,nc->np", cost, weights[group]) < eta[:, None]
    assert promised.any()
    return int((promised & (after <= 0.5 - 1e-9)).sum())


def half_spaces(promise: VotePromise) -> int:
    """Half-spaces are the worst classifiers under Gaussian noise, shifted along σ² times their normal."""
    rng, found = np.random.default_rng(0), 0
    for group, sigma in enumerate(LEVELS):
        visible = np.isfinite(sigma)
        scale = np.where(visible, sigma, 0.0)
        normals = rng.standard_normal((200, 2)) * visible
        spread = np.sqrt((normals**2 * scale**2).sum(axis=1))
        margin = spread * rng.uniform(-0.5, 4, 200)  # of a classifier 1[n·(z − x) ≤ margin]
        q = ndtr(margin / spread)
        directions = rng.standard_normal((200, 60, 2))
        directions[:, 0] = normals * scale**2  # the worst one
        directions /= np.sqrt((directions**2 / np.where(visible, sigma, 1) ** 2 * visible).sum(-1, keepdims=True))
        # Lengths in terms of the distance that the exact certificate allows, straddling it.
        exact = np.maximum(ndtri(q), 0.1)[:, None, None, None]
        shifts = directions[:, :, None, :] * np.array([0.5, 0.999, 1.001, 1.1, 2.0])[:, None] * exact
        shifts = shifts.reshape(200, -1, 2)
        after = ndtr((margin[:, None] - np.einsum("npc,nc->np", shifts, normals)) / spread[:, None])
        found += broken(promise, q, np.full(200, group), shifts**2, after)
    return found


def gaussian_votes(q: np.ndarray, group: np.ndarray) -> Thresholds:
    return GaussianVotes().certificates(Gaussian(), LEVELS, q, group)


def test_gaussian_votes_keep_their_promises() -> None:
    assert half_spaces(gaussian_votes) == 0


@pytest.mark.parametrize("factor", [1.01, 1.5])
def test_an_inflated_gaussian_threshold_is_caught(factor: float) -> None:
    assert half_spaces(lambda q, g: Thresholds(gaussian_votes(q, g).weights, gaussian_votes(q, g).eta * factor)) > 0


def test_a_weight_of_the_wrong_level_is_caught() -> None:
    """Levels read the other way round, as when sampler and certificate do not share one matrix."""
    swapped = LEVELS[:, ::-1].copy()
    swapped[2] = LEVELS[2]
    assert half_spaces(lambda q, g: GaussianVotes().certificates(Gaussian(), swapped, q, g)) > 0


def step_functions(rng: np.random.Generator, n: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges [n × steps] and heights [n × (steps + 1)] of scores that are constant between edges."""
    edges = np.sort(rng.normal(0.5, 1.5, (n, steps)), axis=1)
    return edges, np.clip(rng.beta(2, 0.6, (n, steps + 1)), 0, 1)


def gaussian_moment(edges: np.ndarray, values: np.ndarray, shift: float) -> np.ndarray:
    below = np.concatenate([np.zeros((len(edges), 1)), ndtr(edges - shift), np.ones((len(edges), 1))], axis=1)
    return (np.diff(below, axis=1) * values).sum(axis=1)


def worst_scores() -> tuple[np.ndarray, np.ndarray]:
    """Fine steps that fall linearly in the likelihood ratio e^{δz − δ²/2} and lose their majority at shift δ."""
    edges = np.linspace(-8, 8, 801)
    middles = np.concatenate([[-8.01], (edges[1:] + edges[:-1]) / 2, [8.01]])
    rows = []
    for delta in (0.2, 0.5, 1.0, 1.5, 2.0):
        ratio = np.exp(delta * middles - delta**2 / 2)
        for slope in (0.003, 0.03, 0.1, 0.3, 1.0):
            low, high = -1e6, 1e6
            for _ in range(80):
                level = (low + high) / 2
                heights = np.clip(level - slope * ratio, 0, 1)[None]
                low, high = (level, high) if gaussian_moment(edges[None], heights, delta)[0] < 0.5 else (low, level)
            rows.append(np.clip(low - slope * ratio, 0, 1))
    return np.broadcast_to(edges, (len(rows), edges.size)), np.array(rows)


def score_hunt(factor: float = 1.0, exponent: float = 1.0) -> int:
    """Broken promises of the variance-constrained certificate at the exact moments, one input, σ = 1."""
    rng, found = np.random.default_rng(1), 0
    for edges, heights in (step_functions(rng, 400, 1), step_functions(rng, 400, 4), worst_scores()):
        mu = gaussian_moment(edges, heights, 0.0)
        for nu in (mu, np.zeros_like(mu), np.clip(mu + 0.1, 0, 1)):
            zeta = gaussian_moment(edges, (heights - nu[:, None]) ** 2, 0.0)
            eta = (
                GaussianScores()
                .certificates(
                    Gaussian(),
                    np.ones((1, 1)),
                    np.clip(mu - 1e-12, 0, 1),
                    zeta**exponent + 1e-12,
                    nu,
                    np.zeros(mu.size, int),
                )
                .eta
            )
            assert (eta > 0).any() or exponent != 1.0
            for shift in np.concatenate([-radius_grid(), radius_grid()]):
                after = gaussian_moment(edges, heights, float(shift))
                found += int(((shift**2 < eta * factor) & (after <= 0.5 - 1e-9)).sum())
    return found


def test_gaussian_scores_keep_their_promises() -> None:
    assert score_hunt() == 0


def test_wrong_gaussian_score_thresholds_are_caught() -> None:
    assert score_hunt(factor=1.1) > 0
    assert score_hunt(exponent=2.0) > 0


def test_the_best_of_gaussian_votes_and_scores_keeps_its_promises() -> None:
    """0/1 scores are votes: both certificates speak of the same number."""
    edges, heights = step_functions(np.random.default_rng(2), 300, 2)
    heights = (heights > 0.5).astype(float)
    mu, group = np.clip(gaussian_moment(edges, heights, 0.0) - 1e-12, 0, 1 - 1e-12), np.zeros(300, int)
    votes = GaussianVotes().certificates(Gaussian(), np.ones((1, 1)), mu, group)
    scores = GaussianScores().certificates(Gaussian(), np.ones((1, 1)), mu, mu * (1 - mu) + 1e-12, mu, group)
    eta = best_of(votes, scores).eta
    assert (eta >= votes.eta).all()
    for shift in np.concatenate([-radius_grid(), radius_grid()]):
        after = gaussian_moment(edges, heights, float(shift))
        assert not ((shift**2 < eta) & (after <= 0.5 - 1e-9)).any()


def overlap(low: np.ndarray, high: np.ndarray, centre: np.ndarray, half_width: float) -> np.ndarray:
    """Probability that centre + U[−λ, λ] falls between low and high."""
    if np.isinf(half_width):
        return ((low <= 0) & (high > 0)).astype(float) + 0 * centre  # hidden inputs are the constant 0
    inside = np.minimum(high, centre + half_width) - np.maximum(low, centre - half_width)
    return np.clip(inside, 0, None) / (2 * half_width)


def boxes(promise: VotePromise) -> int:
    """Classifiers that reject a box at the edge of the noise's support, the worst under uniform noise, and others."""
    rng, found, n = np.random.default_rng(3), 0, 300
    for group, widths in enumerate(LEVELS):
        visible = np.isfinite(widths)
        scale = np.where(visible, widths, 1.0)
        # Reject z in a strip along the first input, or in a box.
        low = rng.uniform(-1.2, 2.5, (n, 2)) * scale
        low[: n // 2, 0] = scale[0] * rng.uniform(0, 1.5, n // 2)
        low[: n // 2, 1] = -np.inf
        high = low + rng.exponential(1, (n, 2)) * scale
        high[: n // 2] = np.inf
        volume = np.ones((n, 1))
        shifts = rng.dirichlet([0.5, 0.5], (n, 60)) * rng.uniform(0, 2.5, (n, 60, 1)) * scale
        shifts[:, ::3, 1] = 0.0
        volume, before = np.ones((n, 60)), np.ones(n)
        for d in range(2):
            volume = volume * overlap(low[:, d, None], high[:, d, None], shifts[:, :, d], widths[d])
            before = before * overlap(low[:, d], high[:, d], np.zeros(n), widths[d])
        found += broken(promise, 1 - before, np.full(n, group), np.abs(shifts), 1 - volume)
    return found


def uniform_votes(q: np.ndarray, group: np.ndarray) -> Thresholds:
    return UniformVotes().certificates(Uniform(), LEVELS, q, group)


def test_uniform_votes_keep_their_promises() -> None:
    assert boxes(uniform_votes) == 0


def test_the_unsound_uniform_threshold_is_caught() -> None:
    """Φ⁻¹(q), the formula of the source paper: at q = .99 it claims 2.33 λ, beyond the whole support."""

    def paper(q: np.ndarray, group: np.ndarray) -> Thresholds:
        return Thresholds(Uniform().weights(LEVELS), np.maximum(ndtri(q), 0.0))

    assert boxes(paper) > 0


def test_an_inflated_uniform_threshold_is_caught() -> None:
    assert boxes(lambda q, g: Thresholds(uniform_votes(q, g).weights, uniform_votes(q, g).eta * 1.1)) > 0


@pytest.mark.parametrize("q", [0.6, 0.9, 0.99])
def test_the_uniform_threshold_is_attained(q: float) -> None:
    """1[z ≤ x − λ + 2λq] has probability q and loses its majority exactly at the promised shift."""
    width = 0.7
    weights, eta = UniformVotes().certificates(Uniform(), np.array([[width]]), np.array([q]), np.array([0]))
    radius = eta[0] / weights[0, 0]
    threshold = -width + 2 * width * q
    at = overlap(np.array([-np.inf]), np.array([threshold]), np.array([radius]), width)[0]
    assert at == pytest.approx(0.5, abs=1e-6)
