"""The size of the search tree on made-up vote fields: nodes, which no other work on the machine changes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localsmooth.collective import Ball, Exact, Problem, Status, solve
from localsmooth.collective.search.tree import Search

BUDGETS = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 1.0)
SHARE = {"smooth": 0.001, "saturated": 0.001, "mixed": 0.01}


@pytest.fixture
def field(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    yield __import__("vote_fields").PASCAL
    sys.modules.pop("vote_fields", None)


@pytest.fixture
def nodes(monkeypatch):
    counted: list[int] = []
    honest = Search.run

    def run(self):
        honest(self)
        counted.append(self.nodes)

    monkeypatch.setattr(Search, "run", run)
    return counted


@pytest.mark.parametrize(("seed", "budget"), [(2, 0.4), (7, 0.5)])
def test_hard_budgets_reach_a_gap_in_few_nodes(field, nodes, seed, budget):
    weights, eta, group = field.problem("mixed", seed)
    gap = int(0.025 * len(eta))
    answer = solve(Problem(weights, eta, group, Ball(budget)), Exact(gap=gap, time_limit=None))[0]
    assert answer.gap <= gap
    assert nodes[-1] <= 700


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["smooth", "saturated", "mixed"])
def test_every_budget_of_every_field_reaches_its_gap_in_few_nodes(field, nodes, kind, seed):
    weights, eta, group = field.problem(kind, seed)
    gap = int(SHARE[kind] * len(eta))
    for budget in BUDGETS:
        answer = solve(Problem(weights, eta, group, Ball(budget)), Exact(gap=gap, time_limit=120))[0]
        assert answer.status is not Status.TIME_LIMIT
        assert answer.gap <= gap
        assert nodes[-1] <= 5000, budget
