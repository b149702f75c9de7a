"""Every noise × base certificates × collective bound × threat on arrays, against exact truth at every input.

`certify` samples a tiny item once; `recertify` then proves whatever is asked with bounds that are the exact truth. What
it claims is compared with the smallest number of outputs that really survive among all inputs that the threat allows
(all of them for bits; for real inputs along rays, at the places where outputs lose their class). Derived from
docs/guarantees.md: a certified count is a promise about the classifier that `relies_on` names, at every allowed input
and for every budget at once; a radius is one about an output alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from ledger import Ledger, Truth
from registered import BOUNDS, NOISES, certificates_for, combinations, quick
from tests.flat import certify, recertify
from threats import cases_for
from truthful import Exactly, ExactScores
from worlds import WORLDS, World

from localsmooth.certificates import ScoreCertificate
from localsmooth.collective import Bound
from localsmooth.execution import NoProgress
from localsmooth.noise import BinaryNoise, Noise
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import ItemMethod, ItemThreat

REFERENCES: tuple[str | float, ...] = ("given", "mean", 0.0, 1.0)


def sampled(world: World, folder: Path, n: int = 60) -> tuple[np.ndarray, Truth]:
    """Sample the world into a run directory; candidates of its outputs, and the truth."""
    known = [one for _, one in certificates_for(world.noise, world.layout.levels)]
    result = certify(
        world.model,
        [world.image],
        [world.label],
        layout=world.layout,
        noise=world.noise,
        plan=SamplingPlan(30, n, seed=1),
        alpha=0.5,
        budgets=[0.0],
        certificates=[one for one in known if isinstance(one, ScoreCertificate)][:1] or known[:1],
        ignore_label=255,
        out=folder,
        options=SamplingOptions(batch_size=64, channels_last=False),
        progress=NoProgress(),
    )
    return result["candidate"].values[0].astype(np.int64), world.law()


def truthful(
    world: World,
    folder: Path,
    candidate: np.ndarray,
    *,
    certificates: Sequence | None = None,
    bounds: dict[str, Bound] | None = None,
    threat: ItemThreat | None = None,
    method: ItemMethod | None = None,
    reference: str | float = "given",
    wrong: Sequence[int] = (),
    inflated: float = 0.0,
    alpha: float = 0.01,
    budgets: Sequence[float] | None = None,
) -> xr.Dataset:
    """Certify again with bounds at the truth; `wrong` ones are far above, and paid for by the discount."""
    q, mean, square = world.moments(candidate)
    if not isinstance(world.noise, BinaryNoise):
        # A hair below, as floating-point numbers know no better.
        q, mean = np.maximum(q - 1e-12, 0), np.maximum(mean - 1e-12, 0)
    q, mean = np.minimum(q + inflated, 1), np.minimum(mean + inflated, 1)
    q[list(wrong)], mean[list(wrong)], square[list(wrong)] = 1.0, 1.0, 1.0
    return recertify(
        folder,
        alpha=alpha,
        budgets=world.budgets if budgets is None else budgets,
        certificates=certificates,
        bounds=bounds,
        simultaneous=Exactly(q, len(wrong)),
        score_bound=ExactScores(mean, square, reference),
        threat=threat,
        method=method,
    )


def attack(noise: Noise, seed: int, ledger: Ledger, folder: Path, budgets: int | None = None) -> None:
    """Attack everything that can be said about one world, at some of its budgets or at all."""
    world = WORLDS[type(noise)](noise, seed)
    candidate, truth = sampled(world, folder)
    rng = np.random.default_rng(seed)
    name, cases = type(noise).__name__, cases_for(world)
    for at, (called, chosen) in enumerate(combinations(noise, world.layout.levels)):
        # All threats for one combination of the world, one of them for each of the others.
        for case in cases if at == seed % 3 else [cases[0], cases[rng.integers(len(cases))]]:
            failing = int(rng.integers(0, 3)) if rng.random() < 0.3 else 0
            wrong = rng.choice(candidate.size, failing, replace=False).tolist()
            result = truthful(
                world,
                folder,
                candidate,
                certificates=chosen,
                bounds=quick(BOUNDS),
                threat=case.threat,
                budgets=world.budgets if budgets is None else rng.choice(world.budgets, budgets, replace=False),
                reference=REFERENCES[rng.integers(4)],
                wrong=wrong,
                alpha=float(rng.choice([1e-9, 0.01, 0.7])),
            )
            felt = case.felt(world, truth)
            ledger.check(
                f"{name} {seed} {called}, {case.name}, {len(wrong)} wrong",
                result,
                felt,
                case.masks(world, result["budget"].values, felt.size),
                f"{name}: {called}",
                f"{name}, {case.name}",
                wrong=wrong,
            )


def expected_promises(noise: Noise) -> set[str]:
    """Keys under which something must have been promised beyond the smallest budget."""
    world = WORLDS[type(noise)](noise, 0)
    name = type(noise).__name__
    return (
        {f"{name}: {called}" for called, _ in combinations(noise, world.layout.levels)}
        | {f"{name}, {case.name}" for case in cases_for(world)}
        | {f"bound {bound}" for bound in BOUNDS}
    )


def sweep(kind: type[Noise], seeds: range, folder: Path, budgets: int | None = None) -> Ledger:
    ledger, noise = Ledger(), kind()
    for seed in seeds:
        attack(noise, seed, ledger, folder / str(seed), budgets)
    ledger.settle()
    missing = expected_promises(noise) - set(ledger.promised) if budgets is None else set()
    assert not missing, f"nothing was ever promised by {missing}: nothing was attacked"
    return ledger


@pytest.mark.parametrize("kind", NOISES.values(), ids=NOISES)
def test_nothing_false_is_certified(kind: type[Noise], tmp_path: Path) -> None:
    assert sweep(kind, range(1), tmp_path, budgets=3).claims > 50


@pytest.mark.long
@pytest.mark.parametrize("kind", NOISES.values(), ids=NOISES)
def test_nothing_false_is_certified_in_many_worlds(kind: type[Noise], tmp_path: Path) -> None:
    assert sweep(kind, range(100, 106), tmp_path).claims > 3_000
