"""Budgets of work in place of numbers of samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.cli.app import app
from localsmooth.config import ConfigurationError, load_configuration, parse_configuration, with_samples
from localsmooth.errors import InvalidInputError
from localsmooth.results import run_info
from localsmooth.runs import PassPlan
from localsmooth.sweep import load_sweep
from localsmooth.tasks import load_record
from tests.seeding import seeded
from tests.tiny_runs import changed, configuration, write_inputs

SETTINGS = ls.Settings(0.05, [0.0, 0.2], bounds=["envelope"])
NUMBERS = "n_candidate = 20\nn_bound = 300\n"


def task() -> ls.ArrayTask:
    model = ls.CallableModel(
        lambda batch: (batch[:, 0] > 0.5).astype(np.int64),
        name="bright",
        bounds=None,
        classes=2,
        output=ls.OutputKind.LABELS,
    )
    return ls.ArrayTask(model, np.full((1, 1, 6, 6), 0.9, np.float32))


def test_numbers_follow_from_passes() -> None:
    made = PassPlan(122_880, seed=3, chunk_size=50).plan(15)
    assert made == ls.SamplingPlan(910, 7282, 3, 50)
    assert 15 * (made.n_candidate + made.n_bound) == 122_880
    assert PassPlan(1000, split=0.5).plan(1.0000000002) == ls.SamplingPlan(500, 500)
    assert PassPlan(2, split=0.9).plan(1) == ls.SamplingPlan(1, 1)
    with pytest.raises(InvalidInputError, match=r"^passes: 20 passes an item are 1 samples"):
        PassPlan(20).plan(15)
    for arguments, field in (
        ({"passes": 0}, "passes"),
        ({"passes": float("inf")}, "passes"),
        ({"passes": 10, "split": 1.0}, "split"),
        ({"passes": 10, "seed": -1}, "seed"),
    ):
        with pytest.raises(InvalidInputError, match=f"^{field}"):
            PassPlan(**arguments)  # pyright: ignore


def test_a_run_is_the_one_of_these_numbers() -> None:
    layout = ls.GridLayout((2, 2), 0.2, 0.5)
    made = ls.certify(task(), ls.Smoothing.for_passes(layout, 1280, split=0.1, seed=7), SETTINGS)
    plain = ls.certify(task(), ls.Smoothing(layout, ls.SamplingPlan(32, 288, 7)), SETTINGS)
    assert (run_info(made).n_candidate, run_info(made).n_bound) == (32, 288)
    xr.testing.assert_equal(made["certified"], plain["certified"])
    np.testing.assert_array_equal(made["votes"], plain["votes"])


def test_windows_cost_what_they_show() -> None:
    layout = ls.GridLayout((2, 3), 0.2, 0.5, window_margin=0)
    told = ls.plan(task(), ls.Smoothing.for_passes(layout, 500), SETTINGS, seconds=0.01)
    assert (told.n_candidate, told.n_bound) == (56, 444)
    assert told.passes == pytest.approx(500)
    assert "Samples: N₁ = 56 and N₂ = 444 of each output group" in str(told)


def test_who_draws_in_a_way_of_its_own_needs_numbers() -> None:
    centre = ls.Settings(0.05, [0.0, 0.2], method=ls.baselines.CentreSmoothing())
    with pytest.raises(InvalidInputError, match=r"^passes"):
        ls.certify(task(), ls.Smoothing.for_passes(ls.GridLayout((1, 1), 0.2, 0.2), 5000), centre)


def test_graphs_pay_a_pass_for_each_cluster() -> None:
    from localsmooth import graphs

    graph = graphs.digit_graph(per_digit=5)
    layout = graphs.cluster_layout(
        np.arange(graph.nodes) % 2, graph.adjacency, addition=(0.1, 0.1), deletion=(0.5, 0.8)
    )
    with seeded(0):
        network = graphs.NetworkClassifier(graphs.GCN(graph.width, graph.classes, (4,)).eval())
    made = graphs.GraphTask(network, graph, np.arange(9))
    settings = graphs.GraphSettings(0.05, [0], [0, 1], bounds=["envelope"])
    told = ls.plan(made, ls.Smoothing.for_passes(layout, 200, split=0.2), settings, seconds=0.01)
    assert (told.n_candidate, told.n_bound) == (20, 80)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_inputs(tmp_path, np.random.default_rng(0).choice([0.1, 0.9], (1, 1, 6, 6)))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_files_say_passes(folder: Path) -> None:
    file = folder / "run.toml"
    file.write_text(changed(configuration(), (NUMBERS, "passes = 800\nsplit = 0.25\n")))
    done = CliRunner().invoke(app, ["plan", str(file), "--seconds", "0.01"], catch_exceptions=False)
    assert "N₁ = 50 and N₂ = 150" in done.output
    for numbers, message in (
        (NUMBERS + "passes = 800\n", "passes: numbers of samples follow from it; leave n_candidate and n_bound out"),
        ("n_bound = 3\npasses = 800\n", "leave n_bound out"),
        ("n_bound = 3\n", "n_candidate is missing: say n_candidate and n_bound, or passes"),
        (NUMBERS + "split = 0.5\n", "split has no effect without passes"),
    ):
        file.write_text(changed(configuration(), (NUMBERS, numbers)))
        with pytest.raises(ConfigurationError, match=message):
            load_configuration(file)


def test_files_of_graphs_say_passes() -> None:
    values = {"graph": {"data": "digits"}, "sampling": {"passes": 700, "split": 0.5, "seed": 2}}
    made = parse_configuration(values)
    assert made.sampling.build() == PassPlan(700, 0.5, 2, 1000)
    plain = parse_configuration({"graph": {"data": "digits"}})
    assert plain.sampling.build() == ls.SamplingPlan(1000, 10_000, 0, 1000)
    for sampling, message in (({"passes": 7, "n_bound": 5}, "leave n_bound out"), ({"split": 0.5}, "no effect")):
        with pytest.raises(ConfigurationError, match=message):
            parse_configuration({"graph": {"data": "digits"}, "sampling": sampling})


def test_sweeps_compare_numbers(folder: Path) -> None:
    text = changed(configuration(name=None, within="base."), (NUMBERS, "passes = 800\n"))
    (folder / "sweep.toml").write_text(text + '\n[[method]]\nname = "a"\nset = { "noise.sigma_max" = 0.6 }\n')
    with pytest.raises(ConfigurationError, match=r"sampling\.passes"):
        load_sweep(folder / "sweep.toml")


def test_runs_by_passes_get_more_samples_and_hand_their_candidates_on(folder: Path) -> None:
    file, run, other = folder / "run.toml", folder / "run", folder / "other"
    rule = '[certificate]\nmany_outputs = { rule = "joint_count" }\n'
    by_passes = "passes = 800\nsplit = 0.25\n"
    file.write_text(changed(configuration(), (NUMBERS, by_passes), ("[certificate]\n", rule)))
    for arguments, samples in (
        (["certify", str(file), "--out", str(run)], 150),
        (["extend", str(run), "--samples", "170", "--config", str(file)], 170),
        (["extend", str(run), "--samples", "180"], 180),
        (["transfer", str(run), "--model", str(file), "--samples", "160", "--out", str(other)], 160),
    ):
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        made = load_record(other if "transfer" in arguments else run)
        assert (made.n_candidate, made.n_bound) == (50, samples)


def test_graphs_runs_by_passes_get_more_samples() -> None:
    kept = parse_configuration({"graph": {"data": "digits"}, "sampling": {"passes": 700}}).model_dump(mode="json")
    grown = parse_configuration({**kept, "sampling": with_samples(kept["sampling"], 15, 200)})
    assert grown.sampling.build() == ls.SamplingPlan(15, 200, 0, 1000)


@pytest.mark.parametrize("passes", [True, float("nan"), float("inf"), 1.7e308, 10**400, 0])
def test_what_is_no_number_of_passes_is_refused(passes: float | int) -> None:
    with pytest.raises(InvalidInputError, match="passes"):
        PassPlan(passes)
