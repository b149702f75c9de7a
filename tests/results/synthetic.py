"""A made-up certification of a small scene, with arrays as a run would fill them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from scipy.stats import beta, norm

from localsmooth.certificates import ABSTAIN
from localsmooth.results import CertifiedCurve, ItemResult, RunInfo, SmoothedClassifier

N_BOUND = 1000
ALPHA = 0.01
BUDGETS = tuple(np.linspace(0, 2, 41).tolist())
CLASSES = ("background", "disc", "block")
BOUNDS = ("naive", "lp", "envelope")


def run_info(**changes: object) -> RunInfo:
    run = RunInfo(
        budgets={"budget": BUDGETS},
        norm="l2",
        units="pixel values in [0, 1]",
        alpha=ALPHA,
        n_candidate=100,
        n_bound=N_BOUND,
        class_names=CLASSES,
        bound_names=BOUNDS,
        method="localized",
        configuration={"noise": {"distribution": "gaussian", "sigma_min": 0.2, "sigma_max": 1.0}, "seed": 3},
        seconds=83.4,
        batch_size=16,
        versions={"localsmooth": "0.1.0", "numpy": "2.4"},
        input_bounds=(0.0, 1.0),
        assumptions=(
            "Noisy inputs are clamped to [0, 1] before the model sees them.",
            "All bounds of one item hold together (Bonferroni).",
        ),
        smoothing=SmoothedClassifier(
            model="0123456789abcdef",
            data="fedcba9876543210",
            noise={"distribution": "gaussian", "clamp": True},
            levels={"σ": (0.2, 1.0)},
            layout="00112233445566aa",
            output_groups=12,
            input_groups=12,
            plan={"seed": 3, "n_candidate": 100, "n_bound": N_BOUND, "chunk_size": 128},
            package="localsmooth 0.1.0",
            sampled="2026-01-31T12:34:56+00:00",
        ),
    )
    return dataclasses.replace(run, **changes)


def scene(seed: int, size: tuple[int, int] = (48, 64)) -> tuple[np.ndarray, np.ndarray]:
    """Picture and labels: a disc and a block on a shaded background."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size[0], : size[1]]
    label = np.zeros(size, dtype=np.int64)
    center = rng.uniform(0.3, 0.7, 2) * size
    label[np.hypot(y - center[0], x - center[1]) < 0.22 * size[0]] = 1
    top, left = (int(rng.uniform(0.05, 0.6) * length) for length in size)
    label[top : top + size[0] // 3, left : left + size[1] // 4] = 2
    colors = np.array([[0.35, 0.4, 0.5], [0.9, 0.6, 0.2], [0.2, 0.65, 0.6]])
    image = colors[label].transpose(2, 0, 1) * (0.75 + 0.25 * x / size[1]) + rng.normal(0, 0.03, (3, *size))
    return image.clip(0, 1).astype(np.float32), label


def cells(size: tuple[int, ...], grid: tuple[int, ...]) -> np.ndarray:
    places = [np.arange(length) * count // length for length, count in zip(size, grid, strict=True)]
    return np.ravel_multi_index(np.meshgrid(*places, indexing="ij"), grid)


def levels(grid: tuple[int, ...], low: float, high: float) -> np.ndarray:
    places = np.stack(np.unravel_index(np.arange(np.prod(grid)), grid), axis=1)
    distance = np.abs(places[:, None] - places[None]).max(axis=2)
    return low + (high - low) * distance / max(1, max(grid) - 1)


def make_item(
    name: str = "scene 0",
    seed: int = 0,
    size: tuple[int, ...] = (48, 64),
    grid: tuple[int, ...] = (3, 4),
    high: float = 1.0,
    run: RunInfo | None = None,
    image: np.ndarray | None = None,
    label: np.ndarray | None = None,
) -> ItemResult:
    """One item with votes that are poor near borders, Gaussian certificates, and bounds up to the optimum."""
    run = run or run_info()
    rng = np.random.default_rng(seed)
    if label is None:
        image, label = scene(seed, (size[0], size[1]))
    group = cells(size, grid)
    sigma = levels(grid, 0.2, high)
    borders = sum((label != np.roll(label, shift, axis)) for axis in range(label.ndim) for shift in (-2, -1, 1, 2))
    probability = 1 - np.minimum(0.55, 0.0005 + 0.11 * borders + 0.02 * rng.random(size) ** 8)
    votes = rng.binomial(N_BOUND, probability)
    q = beta.ppf(ALPHA / label.size, np.maximum(votes, 1), N_BOUND - votes + 1) * (votes > 0)
    alive = q > 0.5
    eta = np.where(alive, norm.ppf(np.where(alive, q, 0.5)) ** 2, 0.0)
    candidate = np.where((borders > 0) & (rng.random(size) < 0.3), (label + 1) % 3, label)
    weights = 1 / sigma**2
    radius = np.sqrt(eta / weights.max(axis=1)[group])
    ignored = np.zeros(size, dtype=bool)
    ignored[tuple(slice(0, 3) for _ in size)] = True
    item = ItemResult(
        name, label, ignored, candidate, np.where(alive, candidate, ABSTAIN), votes, q, eta, radius, group, group, {},
        image,
    )  # fmt: skip
    curves = {
        (target, bound): _curve(item, target, weights, share, run.budgets["budget"], seed)
        for target in ("ratio", "accuracy")
        for bound, share in zip(run.bound_names, (0.0, 0.5, 0.9), strict=False)
    }
    return dataclasses.replace(item, curves=curves)


@functools.cache
def default_item() -> ItemResult:
    return make_item()


def _curve(
    item: ItemResult, target: str, weights: np.ndarray, share: float, budgets: tuple[float, ...], seed: int
) -> CertifiedCurve:
    count = len(weights)
    rng = np.random.default_rng(seed)
    plans = np.concatenate([np.eye(count), np.full((1, count), 1 / count), rng.dirichlet(np.full(count, 0.5), 60)])
    stake = item.counted & (item.prediction != ABSTAIN)
    if target == "accuracy":
        stake &= item.prediction == item.label
    eta, group, radius = item.eta[stake], item.output_group[stake], item.radius[stake]
    certified, lower, upper, attack = [], [], [], []
    for budget in budgets:
        spent = plans * budget**2
        left = [(eta > (weights @ plan)[group]).sum() for plan in spent]
        naive = (radius > budget).sum()
        value = naive + share * (min(left) - naive)
        certified.append(np.ceil(value - 1e-9))
        lower.append(float(value))
        upper.append(float(min(left)))
        attack.append(spent[int(np.argmin(left))])
    return CertifiedCurve(np.array(certified, dtype=np.int64), np.array(lower), np.array(upper), np.array(attack))
