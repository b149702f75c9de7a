"""How far certificates can reach is known before anything is drawn: as far as a model whose votes all agree gets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import localsmooth as ls
from localsmooth import graphs as lg
from localsmooth.baselines import CentreSmoothing, Cohen, SegCertify, SparseSmooth
from localsmooth.bounds import CandidateWeights, JointCount, KFamilywise
from localsmooth.certificates import GaussianScores
from localsmooth.execution import NoProgress
from localsmooth.layout import Layout, Partition, isotropic_layout
from localsmooth.results import reach_words, run_info
from localsmooth.tasks import StopWhenDecided
from localsmooth.tasks.arrays import Flips, Kind, PerPosition
from localsmooth.tasks.arrays.reach import reach_of_items
from localsmooth.tasks.graphs.ideal import reach_of_nodes
from localsmooth.tasks.reach import Planned, budget_steps, farthest

SHAPE = (6, 8)
SIGMA = ls.GridLayout((2, 2), 0.2, 0.6)
BITS = ls.GridLayout((2, 2), 0.1, 0.3)
BOTH = ls.GridLayout((2, 2), (0.02, 0.4), (0.05, 0.6))
PLAN = ls.SamplingPlan(50, 400, seed=1, chunk_size=200)
ALPHA = 0.05
RULES = [None, KFamilywise(5), JointCount()]


class Told(NoProgress):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def message(self, text: str) -> None:
        self.lines.append(text)


def constant() -> ls.CallableModel:
    """Every prediction is class 0, whatever the input."""

    def predict(batch: np.ndarray) -> np.ndarray:
        return np.zeros((len(batch), *SHAPE), np.int64)

    return ls.CallableModel(predict, name="constant", bounds=(0, 1), classes=2, output=ls.OutputKind.LABELS)


def reach(layout: Any, settings: ls.Settings, noise: Any = None, planned: Planned | None = None) -> dict[str, float]:
    made = layout.layout((1, *SHAPE), SHAPE) if isinstance(layout, ls.GridLayout) else layout
    noise = ls.Gaussian() if noise is None else noise
    planned = Planned(PLAN.n_candidate, PLAN.n_bound) if planned is None else planned
    return reach_of_items([(image(noise), made, None)], noise, settings.completed(noise), planned)


def image(noise: Any) -> np.ndarray:
    bits = np.arange(48).reshape(1, *SHAPE) % 2
    return (bits if isinstance(noise, ls.Bernoulli | ls.SparseFlips) else bits / 3).astype(np.float32)


def certified(layout: Any, settings: ls.Settings, noise: Any, plan: ls.SamplingPlan = PLAN) -> Any:
    task = ls.ArrayTask(constant(), [image(noise)])
    return ls.certify(task, ls.Smoothing(layout, plan, noise), settings, run=ls.Run(progress=NoProgress()))


def require_reached(layout: Any, noise: Any, plan: ls.SamplingPlan = PLAN, **asked: Any) -> None:
    """At the reach of every bound something is certified of the constant model, and a little beyond it nothing."""
    sequence = None if plan.stop is None else plan.stop.sequence
    planned = Planned(plan.n_candidate, plan.n_bound, sequence)
    found = reach(layout, ls.Settings(ALPHA, [1.0], **asked), noise, planned)
    whole = isinstance(noise, ls.Bernoulli | ls.SparseFlips)
    sides = sorted({each for value in found.values() for each in (value, value + 1 if whole else value * 1.0021)})
    result = certified(layout, ls.Settings(ALPHA, [0.0, *sides, 1e6], **asked), noise, plan)
    assert set(result["bound"].values) <= found.keys()
    counts = result["certified"].sel(target="ratio").max("item")
    for name in result["bound"].values.tolist():
        here = counts.sel(bound=name)
        budgets = here["budget"].values
        positive = float(budgets[here.values > 0].max(initial=0.0))
        assert positive == pytest.approx(found[name], rel=1e-9), name
    assert run_info(result).reach["budget"] == found


@pytest.mark.parametrize("rule", RULES, ids=["bonferroni", "k", "joint"])
@pytest.mark.parametrize("layout", [SIGMA, ls.GridLayout((1, 1), 0.3, 0.3)], ids=["localized", "isotropic"])
@pytest.mark.parametrize("noise", [ls.Gaussian(), ls.Uniform()], ids=["gaussian", "uniform"])
def test_the_reach_is_that_of_a_unanimous_model(layout: Any, noise: Any, rule: Any) -> None:
    require_reached(layout, noise, simultaneous=rule, bounds=["naive", "envelope"])


@pytest.mark.parametrize("rule", RULES, ids=["bonferroni", "k", "joint"])
@pytest.mark.parametrize(
    ("layout", "noise", "asked"),
    [
        (BITS, ls.Bernoulli(), {}),
        (ls.GridLayout((1, 1), 0.2, 0.2), ls.Bernoulli(), {}),
        (BOTH, ls.SparseFlips(), {}),
        (BOTH, ls.SparseFlips(), {"threat": Flips(Kind.ADDITIONS)}),
        (SIGMA, ls.Gaussian(), {"threat": PerPosition(3)}),
    ],
    ids=["bernoulli", "isotropic-bernoulli", "sparse", "additions", "per-position"],
)
def test_flips_and_other_threats_have_a_reach(layout: Any, noise: Any, asked: Any, rule: Any) -> None:
    require_reached(layout, noise, simultaneous=rule, bounds=["naive", "envelope"], **asked)


def test_the_reach_where_groups_may_stop_early() -> None:
    plan = ls.SamplingPlan(50, 400, seed=1, chunk_size=200, stop=StopWhenDecided())
    require_reached(SIGMA, ls.Gaussian(), plan, bounds=["naive", "envelope"])


def test_ignored_outputs_leave_more_to_the_others_where_outputs_are_counted() -> None:
    labels = np.where(np.arange(SHAPE[1]) < 4, 0, 7) * np.ones((SHAPE[0], 1), np.int64)
    task = ls.ArrayTask(constant(), [image(None)], [labels], ignore_label=7)
    settings = ls.Settings(ALPHA, "auto", simultaneous=JointCount(), bounds=["naive", "envelope"])
    result = ls.certify(task, ls.Smoothing(SIGMA, PLAN), settings, run=ls.Run(progress=NoProgress()))
    found = run_info(result).reach["budget"]
    assert found["naive"] > reach(SIGMA, ls.Settings(ALPHA, [1.0], simultaneous=JointCount()))["naive"] * 1.01
    finer = ls.Settings(
        ALPHA, [0.0, *found.values(), *(each * 1.0021 for each in found.values())], simultaneous=JointCount()
    )
    again = ls.certify(task, ls.Smoothing(SIGMA, PLAN), finer, run=ls.Run(progress=NoProgress()))
    for name, limit in found.items():
        counts = again["certified"].sel(bound=name).max(("item", "target"))
        assert float(counts["budget"].values[counts.values > 0].max()) == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize("method", [Cohen(), SegCertify(0.8)], ids=lambda method: method.name)
def test_baselines_have_a_reach(method: Any) -> None:
    require_reached(isotropic_layout(0.3, SHAPE, SHAPE), ls.Gaussian(), method=method)


def test_the_baseline_on_bits_has_a_reach() -> None:
    require_reached(isotropic_layout(0.2, SHAPE, SHAPE), ls.Bernoulli(), method=SparseSmooth())


@pytest.mark.parametrize("layout", [SIGMA, isotropic_layout(0.3, SHAPE, SHAPE)], ids=["localized", "isotropic"])
@pytest.mark.parametrize("rule", RULES, ids=["bonferroni", "k", "joint"])
def test_the_reach_grows_with_samples_alpha_and_noise(layout: Any, rule: Any) -> None:
    def largest(alpha: float = 0.01, n: int = 500, scale: float = 1.0) -> float:
        made = layout.layout((1, *SHAPE), SHAPE) if isinstance(layout, ls.GridLayout) else layout
        made = Layout(made.outputs, made.inputs, made.levels * scale)
        found = reach(made, ls.Settings(alpha, [1.0], simultaneous=rule), planned=Planned(50, n))
        assert found["naive"] <= found["envelope"] * 1.001
        return found["envelope"]

    for grown in (
        [largest(n=n) for n in (200, 500, 2000, 20_000)],
        [largest(alpha=alpha) for alpha in (0.001, 0.01, 0.1)],
    ):
        assert all(before < after for before, after in pairwise(grown)), grown
    assert largest(scale=2.0) == pytest.approx(2 * largest(), rel=2e-3)


def test_no_other_votes_reach_farther() -> None:
    """Whatever the rule makes of outputs of which some err, in either stage: those that do not gain nothing by it."""
    rng = np.random.default_rng(0)

    def predict(batch: np.ndarray) -> np.ndarray:
        threshold = np.linspace(-0.4, 1.4, 48).reshape(SHAPE)
        return (batch[:, 0] > threshold).astype(np.int64)

    model = ls.CallableModel(predict, name="mixed", bounds=None, classes=2, output=ls.OutputKind.LABELS)
    for rule in (*RULES, CandidateWeights()):
        settings = ls.Settings(ALPHA, np.linspace(0, 3, 61), simultaneous=rule)
        task = ls.ArrayTask(model, [rng.uniform(0, 1, (1, *SHAPE)).astype(np.float32)])
        result = ls.certify(task, ls.Smoothing(SIGMA, PLAN), settings, run=ls.Run(progress=NoProgress()))
        for name, limit in run_info(result).reach["budget"].items():
            counts = result["certified"].sel(bound=name).max(("item", "target"))
            assert float(counts.where(counts["budget"] > limit * 1.0021, 0).max()) == 0, (rule, name)


def test_a_million_outputs_share_alpha_and_cost_little() -> None:
    outputs = Partition((np.arange(1_000_000) % 6).astype(np.int32).reshape(1000, 1000))
    layout = Layout(outputs, Partition(np.zeros(SHAPE, dtype=np.int32)), np.full((6, 1), 0.3))
    few = Layout(Partition(np.arange(6, dtype=np.int32)), layout.inputs, layout.levels)
    many, little = (
        reach(one, ls.Settings(0.01, [1.0], simultaneous=ls.bounds.Bonferroni()))["naive"] for one in (layout, few)
    )
    # Φ⁻¹(level^(1/N)) · σ: an independent formula.
    for found, size in ((many, 1e6), (little, 6)):
        share = torch.tensor((0.01 / size) ** (1 / PLAN.n_bound), dtype=torch.float64)
        assert found == pytest.approx(0.3 * float(torch.special.ndtri(share)), rel=2e-3)


def test_what_cannot_be_told_is_not_told() -> None:
    layout = isotropic_layout(0.3, SHAPE, SHAPE)
    assert reach(layout, ls.Settings(0.1, [1.0], certificates=[GaussianScores()])) == {}
    assert reach(layout, ls.Settings(0.1, [1.0], method=CentreSmoothing())) == {}
    with pytest.raises(ls.InvalidInputError, match="cannot be told"):
        certified(layout, ls.Settings(0.1, "auto", certificates=[GaussianScores()]), ls.Gaussian())


def test_the_search_for_an_optimum_shares_the_reach_where_nothing_is_whole() -> None:
    asked = {"bounds": ["naive", "exact"]}
    assert reach(SIGMA, ls.Settings(0.1, [1.0], **asked)).keys() == {"naive", "envelope", "exact"}
    assert reach(BITS, ls.Settings(0.1, [1.0], **asked), ls.Bernoulli()).keys() == {"naive", "envelope"}


def test_it_is_told_before_the_first_sample() -> None:
    told = Told()
    task = ls.ArrayTask(constant(), [image(None)])
    result = ls.certify(task, ls.Smoothing(SIGMA, PLAN), ls.Settings(ALPHA, [0, 0.1, 2, 3]), run=ls.Run(progress=told))
    assert told.lines[0].startswith("With these numbers of samples, noise and α, certificates can reach ε = ")
    assert told.lines[0].endswith("2 of 4 budgets lie beyond: there, even votes that all agree certify nothing.")
    assert not result["certified"].sel(budget=[2, 3]).any()


def test_words() -> None:
    found = {"budget": {"naive": 0.6149, "envelope": 1.0291}}
    words = "With these numbers of samples, noise and α, certificates can reach ε = 1.02 (each output alone: 0.614)."
    assert reach_words(found, {"budget": (0.0, 1.0)}, ("naive", "envelope")) == words
    one = reach_words(found, {"budget": (0.0, 2.0)}, ("naive", "envelope"))
    assert one == f"{words} 1 of 2 budgets lies beyond: there, even votes that all agree certify nothing."
    assert reach_words(found, {"budget": (0.0, 2.0)}, ("naive", "exact")) == words
    assert reach_words({}, {"budget": (0.0, 2.0)}, ("naive",)) == ""


def test_automatic_budgets_end_at_the_reach_and_are_recorded_as_numbers(tmp_path: Any) -> None:
    run = ls.Run(tmp_path, progress=NoProgress())
    smoothing = ls.Smoothing(SIGMA, PLAN)
    result = ls.certify(ls.ArrayTask(constant(), [image(None)]), smoothing, ls.Settings(ALPHA, "auto"), run=run)
    budgets = result["budget"].values
    farthest_reach = run_info(result).reach["budget"]["envelope"]
    assert 12 <= len(budgets) <= 15
    assert budgets[0] == 0
    assert budgets[-1] <= farthest_reach < 1.1 * budgets[-1]
    assert all(len(f"{budget:.12g}") <= 6 for budget in budgets)
    assert (result["certified"].sel(bound="envelope", target="ratio") > 0).all()
    assert ls.settings_of(tmp_path).budgets == tuple(budgets)
    again = ls.recertify(tmp_path, ls.Settings(0.5, "auto"))
    assert again["budget"].values[-1] > budgets[-1]


def test_steps_of_two_digits() -> None:
    assert budget_steps({"naive": 0.3, "envelope": 1.0}) == tuple(round(0.083 * n, 10) for n in range(13))
    assert budget_steps({"envelope": 7.0}, whole=True) == tuple(map(float, range(8)))
    assert budget_steps({"envelope": 40.0}, whole=True) == tuple(map(float, range(0, 40, 3)))
    for nothing in ({"naive": 0.0}, {"naive": float("inf")}, {}):
        with pytest.raises(ls.InvalidInputError, match="auto"):
            budget_steps(nothing)


@pytest.mark.parametrize("limit", [0.0, 0.013, 1.0, 7.3, 900.0])
def test_the_search_finds_a_limit_from_below(limit: float) -> None:
    found = farthest(lambda budget: budget <= limit)
    assert limit * 0.998 <= found <= limit
    assert farthest(lambda budget: budget <= limit, whole=True) == int(limit)
    assert farthest(lambda budget: True, whole=True, most=20.0) == float("inf")
    for known in (limit / 2, limit, limit * 3, float("inf")):  # what is known to be reached otherwise
        assert max(known, limit * 0.998) <= max(known, farthest(lambda budget: budget <= limit, least=known))
        assert farthest(lambda budget: budget <= limit, least=known) == known or known < limit
    assert farthest(lambda budget: budget <= limit, whole=True, least=float(int(limit))) == int(limit)


class _First(torch.nn.Module):
    """Every node is of the first class."""

    depth: ClassVar[int] = 1

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Scores."""
        del edges
        return torch.tensor([[1.0, 0.0]]).expand(len(attributes), 2) + 0 * attributes[:, :1]


def graph() -> lg.AttributedGraph:
    rng = np.random.default_rng(0)
    edges = np.array([np.arange(11), np.arange(1, 12)])
    return lg.graph_from_arrays(edges, rng.random((12, 40)) < 0.3, np.zeros(12, dtype=np.int64))


def clusters() -> Layout:
    parts = Partition((np.arange(12) // 6).astype(np.int32))
    near, far = (0.02, 0.5), (0.05, 0.6)
    return Layout(parts, parts, np.array([[near, far], [far, near]]))


@pytest.mark.parametrize("rule", RULES, ids=["bonferroni", "k", "joint"])
@pytest.mark.parametrize("baseline", [None, SparseSmooth()], ids=["localized", "sparse-smooth"])
def test_graphs_have_a_reach_for_each_kind_of_flip(rule: Any, baseline: Any) -> None:
    layout = clusters() if baseline is None else lg.isotropic_node_layout(12, addition=0.02, deletion=0.5)
    task = lg.GraphTask(lg.EdgeIndexClassifier(_First().eval(), 2), graph(), np.arange(12))
    bounds = ["naive", "envelope"]
    asked = {"bounds": bounds, "simultaneous": rule, "baseline": baseline}
    found = reach_of_nodes(task.graph, layout, task.nodes, lg.GraphSettings(ALPHA, **asked), Planned(50, 400))
    for kind, other in (("additions", "deletions"), ("deletions", "additions")):
        sides = sorted({int(value) + more for value in found[kind].values() for more in (0, 1)})
        settings = lg.GraphSettings(ALPHA, **{kind: sides, other: [0]}, **asked)
        told = Told()
        result = ls.certify(task, ls.Smoothing(layout, PLAN), settings, run=ls.Run(progress=told))
        counts = result["certified"].sel({"target": "ratio", other: 0}).isel(item=0)
        for name in result["bound"].values.tolist():
            here = counts.sel(bound=name)
            assert float(here[kind].values[here.values > 0].max()) == found[kind][name], (kind, name)
        assert "1 of" in told.lines[0]
        assert run_info(result).reach == found


def test_graphs_propose_flips() -> None:
    task = lg.GraphTask(lg.EdgeIndexClassifier(_First().eval(), 2), graph(), np.arange(12))
    settings = lg.GraphSettings(ALPHA, "auto", "auto")
    result = ls.certify(task, ls.Smoothing(clusters(), PLAN), settings, run=ls.Run(progress=NoProgress()))
    for kind, each in run_info(result).reach.items():
        budgets = result[kind].values
        assert budgets[-1] <= max(each.values()) < budgets[-1] + max(2, budgets[1] - budgets[0] + 1), kind
