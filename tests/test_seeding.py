"""No source of randomness without a seed: global generators are watched, and the code is searched for entropy."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from localsmooth.seeds import torch_seeded
from tests.seeding import seeded, untouched

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "experiments", "examples", "scripts")
MAKERS = {"default_rng", "SeedSequence", "RandomState", "SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937"}
ENTROPY = {"os.urandom", "uuid.uuid1", "uuid.uuid4", "random.SystemRandom", "torch.initial_seed"}
TORCH = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson"}


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("random", lambda: random.random()),
        ("numpy.random", lambda: np.random.random()),  # noqa: NPY002
        ("torch", lambda: torch.rand(1)),
        ("torch", lambda: torch.manual_seed(5)),
        ("random and torch", lambda: (random.shuffle([1, 2]), torch.nn.Linear(2, 2))),
    ],
)
def test_whoever_draws_from_a_global_generator_is_found_out(name: str, draw: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"generator of {name} was drawn"), untouched():
        draw()
    with untouched(), seeded(3):
        draw()


def test_seeds_hold_inside_the_block_and_leave_no_trace() -> None:
    with torch_seeded(7):
        first = torch.rand(3)
    with pytest.raises(ZeroDivisionError), torch_seeded(7):
        _ = 1 / 0
    with torch_seeded(8), torch_seeded(7):
        assert torch.equal(torch.rand(3), first)


def unseeded(tree: ast.AST, *, package: bool) -> Iterator[str]:
    """Calls whose result differs from run to run; in the package, whatever uses a global generator as well."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        base, _, last = name.rpartition(".")
        seed = call.args[0] if call.args else next((word.value for word in call.keywords), None)
        none = seed is None or (isinstance(seed, ast.Constant) and seed.value is None)
        drawn = base == "torch" and last in TORCH and not any(word.arg == "generator" for word in call.keywords)
        if (
            ((last in MAKERS or name == "random.Random") and none)
            or (last == "seed" and base and none)
            or name in ENTROPY
            or base == "secrets"
            or (
                package
                and (drawn or name == "torch.manual_seed" or (base == "random" and last not in ("Random", "getstate")))
            )
        ):
            yield f"{call.lineno}: {ast.unparse(call)}"


def test_no_code_takes_its_seed_from_nowhere() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{place}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "seeds.py"
        for place in unseeded(ast.parse(path.read_text("utf-8")), package=folder == "src")
    ]
    assert not found, found


@pytest.mark.parametrize(
    "line",
    [
        "np.random.default_rng()",
        "default_rng(None)",
        "np.random.SeedSequence(spawn_key=None)",
        "torch.Generator().seed()",
        "secrets.randbits(64)",
        "uuid.uuid4()",
        "torch.rand(3, dtype=kind)",
        "random.random()",
    ],
)
def test_the_search_finds(line: str) -> None:
    assert [*unseeded(ast.parse(line), package=True)]


@pytest.mark.parametrize(
    "line", ["np.random.default_rng(0)", "torch.rand(3, generator=own)", "random.Random(4)", "rng.random(3)"]
)
def test_the_search_passes_over(line: str) -> None:
    assert not [*unseeded(ast.parse(line), package=True)]
