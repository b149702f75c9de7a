"""A mistake in the code that proposes bounds is found by the code that checks them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsmooth.bounds import Bonferroni, JointAndBonferroni, JointCount, KFamilywise
from localsmooth.evidence import DoesNotHoldError, verify_run

from .runs import make_run


def around(path: str, change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Change what a function of the package returns."""

    def patch(patching: pytest.MonkeyPatch) -> None:
        import importlib

        module, _, name = path.rpartition(".")
        try:
            owner: Any = importlib.import_module(module)
        except ModuleNotFoundError:
            package, _, kind = module.rpartition(".")
            owner = getattr(importlib.import_module(package), kind)
        right = getattr(owner, name)
        patching.setattr(owner, name, lambda *given, **named: change(right(*given, **named)))

    return patch


def raised(q: np.ndarray) -> np.ndarray:
    return np.where(q > 0.5, q + (1 - q) * 1e-6, q)


def raised_by_a_step(q: np.ndarray) -> np.ndarray:
    """Further than the grid of the joint count rounds down."""
    return np.where(q > 0.5, q + (1 - q) * 0.2, q)


@pytest.mark.parametrize(
    ("rule", "mistake", "said"),
    [
        (Bonferroni(), around("localsmooth.bounds.simultaneous.clopper_pearson_lower", raised), "do not bound"),
        (
            Bonferroni(),
            around("localsmooth.bounds.simultaneous.Bonferroni.levels", lambda level: 1.01 * level),
            "levels sum",
        ),
        (
            JointCount(),
            around("localsmooth.bounds.joint_count._handed_on", raised_by_a_step),
            "may have a probability below",
        ),
        (JointCount(), around("localsmooth.bounds.joint_count._alone", raised_by_a_step), "by itself"),
        (
            JointAndBonferroni(),
            around("localsmooth.bounds.joint_count._handed_on", raised_by_a_step),
            "may have a probability",
        ),
        (
            Bonferroni(),
            around("localsmooth.certificates.gaussian_votes._eta", lambda eta: eta * (1 + 1e-10)),
            "threshold",
        ),
        (Bonferroni(), around("localsmooth.noise.gaussian.Gaussian.weights", lambda w: w * (1 - 1e-12)), "weight"),
        (Bonferroni(), around("localsmooth.tasks.arrays.threat.certified_radius", lambda r: r * (1 + 1e-9)), "radius"),
        (Bonferroni(), around("localsmooth.collective.kernel.threat.power_up", lambda p: p * (1 - 1e-12)), "ball"),
    ],
)
def test_mistakes_are_found(rule: Any, mistake: Callable[..., None], said: str, tmp_path: Path):
    with pytest.MonkeyPatch.context() as patching:
        mistake(patching)
        run = make_run(tmp_path / "run", simultaneous=rule)
        with pytest.raises(DoesNotHoldError, match=said):
            verify_run(run)


def test_without_a_mistake_the_same_runs_hold(tmp_path: Path):
    for number, rule in enumerate((KFamilywise(3), JointAndBonferroni())):
        assert verify_run(make_run(tmp_path / f"{number}", simultaneous=rule)).complete
