"""The package's collective bounds under the contract suite, and such as are wrong on purpose, which it must catch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from localsmooth.collective import BOUNDS, Bound, Envelope, Exact, LinearProgram, Milp, Naive, Problem
from localsmooth.collective.kernel.dual import DualPoint
from localsmooth.collective.kernel.proof import Leaf
from localsmooth.collective.search.bound import Outcome, Solver
from localsmooth.collective.search.setting import Setting
from localsmooth.testing import BoundContract


class TestNaive(BoundContract):
    bound = Naive()


class TestLinearProgram(BoundContract):
    bound = LinearProgram()


class TestEnvelope(BoundContract):
    bound = Envelope()


class TestExact(BoundContract):
    bound = Exact()
    optimal = True


class TestMilp(BoundContract):
    bound = Milp()
    problems = 8


def test_all_are_tested() -> None:
    tested = {
        type(suite.bound)
        for suite in BoundContract.__subclasses__()
        if suite.__module__ == __name__ and suite.__name__[:4] == "Test"
    }
    assert tested == set(BOUNDS.values())


class Wrong(Bound):
    """The envelope but for one fault."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.used = 0

    def solver(self, problem: Problem) -> Solver:
        self.used += 1
        return WrongSolver(Envelope().solver(problem), self.how, self.used)


class WrongSolver(Solver):
    def __init__(self, honest: Solver, how: str, used: int) -> None:
        self.honest, self.how, self.used = honest, how, used

    def solve(self, setting: Setting, deadline: float | None) -> Outcome:
        found = self.honest.solve(setting, deadline)
        if self.how == "claims one more":
            return replace(found, lower=found.lower + 1)
        if self.how == "claims everything" or (self.how == "tires" and self.used > 200):
            return replace(found, lower=float(len(setting.problem.targets)))
        if self.how == "proves nothing":
            return replace(found, lower=0.0)
        if self.how == "proves something else":
            point = found.root.points[0] if isinstance(found.root, Leaf) else None
            assert point is not None
            return replace(found, root=Leaf((DualPoint(point.slopes * 0.5, point.shares, point.multipliers * 0.5),)))
        if self.how == "rounds up":
            return replace(found, lower=float(np.ceil(found.lower)) + 1e-3)
        return found


def caught(bound: Bound) -> list[str]:
    """Names of the tests of the suite that fail."""
    suite, failed = type("Suite", (BoundContract,), {"bound": bound})(), []
    for name in (name for name in dir(suite) if name.startswith("test_")):
        try:
            getattr(suite, name)()
        except Exception:
            failed.append(name)
    return failed


@pytest.mark.parametrize(
    "how", ["claims one more", "claims everything", "proves nothing", "proves something else", "rounds up", "tires"]
)
def test_faults_are_caught(how: str) -> None:
    assert caught(Wrong(how)), f"a bound that {how} passes"


def test_without_a_fault_nothing_fails() -> None:
    assert caught(Wrong("does nothing else")) == []


def test_an_empty_promise_of_the_optimum_is_caught() -> None:
    suite = type("Suite", (BoundContract,), {"bound": Naive(), "optimal": True})()
    with pytest.raises(AssertionError, match="the optimum was promised"):
        suite.test_no_attack_leaves_less_than_is_certified()
