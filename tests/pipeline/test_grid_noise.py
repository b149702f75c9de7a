"""What drawing from tables costs: a hundredth of α, told with the result; and who can do without it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from localsmooth.baselines import CentreSmoothing, Cohen, SegCertify
from localsmooth.bounds import Bonferroni, JointCount
from localsmooth.cli.app import app
from localsmooth.collective import Naive
from localsmooth.config import ConfigurationError, load_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout, Layout, grid_layout, masked, windowed
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Gaussian, Noise, Uniform
from localsmooth.results import load, run_info
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.arrays import Settings
from localsmooth.tasks.arrays.reserve import RESERVED, drawing_charge, less_reserve
from localsmooth.training import GroupNoise, OneGroup
from tests.flat import certify, recertify
from tests.tiny_runs import configuration, write_inputs

SHAPE = (1, 4, 6)
GRID = 1 / 255


def bright(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > 0.5).astype(np.int64)


def arguments(noise: Noise, **further) -> dict:
    model = CallableModel(bright, name="bright", bounds=(0.0, 1.0), classes=2, output=OutputKind.LABELS)
    items = [
        np.random.default_rng(seed).integers(0, 256, SHAPE).astype(np.float32) / np.float32(255) for seed in (0, 1)
    ]
    return {
        "model": model,
        "items": items,
        "layout": grid_layout((2, 2), SHAPE[1:], minimum=0.1, maximum=0.3),
        "noise": noise,
        "plan": SamplingPlan(30, 600, seed=1, chunk_size=300),
        "alpha": 0.05,
        "budgets": [0.0, 0.1, 0.2],
        "bounds": {"naive": Naive()},
        "simultaneous": Bonferroni(),
        "options": SamplingOptions(batch_size=100, channels_last=False),
        "progress": NoProgress(),
    } | further


def test_bounds_share_what_is_left_of_alpha() -> None:
    """Each output is bounded as if α were 0.99 α, and the result says what that is for."""
    result = certify(**arguments(Gaussian(grid=GRID)))
    votes = result["votes"].values[0].ravel()
    alone = Bonferroni().lower_bounds(votes, 600, math.nextafter(0.99 * 0.05, 0)).lower
    np.testing.assert_array_equal(result["lower_probability"].values[0].ravel(), alone)
    assert (alone < Bonferroni().lower_bounds(votes, 600, 0.05).lower).all()
    run = run_info(result)
    assert run.alpha == 0.05
    noise, layout = Gaussian(grid=GRID), arguments(Gaussian())["layout"]
    each = sum(
        noise.table(float(layout.level_map(group).ravel()[place])).error for group in range(4) for place in range(24)
    )
    assert run.drawing_charge == pytest.approx(600 * each, rel=1e-5)
    assert run.drawing_charge >= 600 * each
    assert any("whole steps of 0.00392156863" in one and "1% of α" in one for one in run.assumptions)


def test_a_plan_that_is_too_small_names_alpha_as_it_was_given() -> None:
    few = SamplingPlan(30, 3, seed=1, chunk_size=300)
    with pytest.raises(InvalidInputError, match=r"alpha = 0\.01 \(0\.0099 of it for bounds, the rest is set aside for"):
        certify(**arguments(Gaussian(grid=GRID), plan=few, alpha=0.01))
    with pytest.raises(InvalidInputError, match=r"^n_bound: with N₂ = 3 .*alpha = 0\.01 and 24 outputs, "):
        certify(**arguments(Gaussian(grid=None), plan=few, alpha=0.01))


@pytest.mark.parametrize("method", [Cohen(), SegCertify(tau=0.6)], ids=lambda one: one.name)
def test_baselines_pay_too(method) -> None:
    layout = GridLayout((1, 1), 0.3, 0.3)
    result = certify(**arguments(Gaussian(grid=GRID), layout=layout, method=method, simultaneous=None))
    less = certify(**arguments(Gaussian(grid=GRID), layout=layout, method=method, simultaneous=None, alpha=0.0499))
    plain = certify(**arguments(Gaussian(grid=None), layout=layout, method=method, simultaneous=None))
    assert run_info(result).drawing_charge > 0
    assert run_info(plain).drawing_charge is None
    assert not any("whole steps" in one for one in run_info(plain).assumptions)
    assert (less["lower_probability"] <= result["lower_probability"]).all()


def test_centre_smoothing_refuses_a_grid() -> None:
    with pytest.raises(InvalidInputError, match="grid=None"):
        certify(
            **arguments(
                Gaussian(grid=GRID), layout=GridLayout((1, 1), 0.3, 0.3), method=CentreSmoothing(), simultaneous=None
            )
        )


@pytest.mark.parametrize("noise", [Gaussian(), Uniform()])
def test_a_grid_is_the_default_where_all_items_lie_on_it(noise: Noise) -> None:
    """Votes and words are those of the grid that would have been named; where one item is off it, of floating point."""
    asked, seen = certify(**arguments(replace(noise, grid=GRID))), certify(**arguments(noise))
    np.testing.assert_array_equal(seen["votes"], asked["votes"])
    assert seen.attrs["assumptions"] == asked.attrs["assumptions"]
    assert run_info(seen).drawing_charge > 0
    mixed = arguments(noise)
    mixed["items"][1] = mixed["items"][1] + np.float32(0.001)
    off = certify(**mixed)
    floating = certify(**mixed | {"noise": replace(noise, grid=None)})
    np.testing.assert_array_equal(off["votes"], floating["votes"])
    assert (off["votes"].values != seen["votes"].values).any()
    assert run_info(off).drawing_charge is None
    assert any("taken for real noise" in one for one in run_info(off).assumptions)
    assert not any("taken for real noise" in one for one in run_info(seen).assumptions)


@pytest.mark.parametrize(
    "further",
    [
        {
            "method": CentreSmoothing(delta=0.3),
            "simultaneous": None,
            "plan": SamplingPlan(60, 300, seed=1),
        },  # is about samples at inputs off the grid, too
        {"alpha": 1e-12, "plan": SamplingPlan(30, 10**3)},  # cannot pay for what tables leave open
    ],
)
def test_nobody_is_refused_for_a_grid_that_was_not_asked_for(further: dict) -> None:
    result = certify(**arguments(Gaussian(), layout=GridLayout((1, 1), 0.3, 0.3), **further))
    assert run_info(result).drawing_charge is None
    assert any("taken for real noise" in one for one in run_info(result).assumptions)


def test_runs_go_on_with_the_grid_that_they_saw(tmp_path: Path) -> None:
    first = certify(**arguments(Gaussian(), simultaneous=JointCount(), out=tmp_path))
    more = certify(**arguments(Gaussian(), simultaneous=JointCount(), out=tmp_path, plan=SamplingPlan(30, 900, 1, 300)))
    assert run_info(more).drawing_charge == pytest.approx(1.5 * run_info(first).drawing_charge)
    assert run_info(recertify(tmp_path)).drawing_charge == run_info(more).drawing_charge


def test_a_charge_above_what_is_set_aside_is_refused() -> None:
    settings = Settings(0.01, [0.1])
    assert less_reserve(settings, None) is settings
    left = less_reserve(settings, 0.9999e-4).alpha
    assert left + RESERVED * settings.alpha <= settings.alpha
    assert left == pytest.approx(0.0099)
    for charge in (1e-4, 0.5, float("nan")):
        with pytest.raises(InvalidInputError, match="grid=None"):
            less_reserve(settings, charge)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="1% of alpha"):
        certify(**arguments(Gaussian(grid=GRID), alpha=1e-12, plan=SamplingPlan(30, 10**5)))
    off = arguments(Gaussian(grid=GRID))
    off["items"][1] = off["items"][1] + 0.001
    with pytest.raises(InvalidInputError, match="grid=None"):
        certify(**off)
    with pytest.raises(InvalidInputError, match="coarser"):
        certify(**arguments(Gaussian(grid=1e-7)))


def test_what_is_hidden_costs_nothing() -> None:
    noise, layout = Gaussian(grid=GRID), grid_layout((2, 2), SHAPE[1:], minimum=0.1, maximum=0.3)
    whole = drawing_charge(noise, layout, SHAPE, 100)
    window = drawing_charge(noise, windowed(layout, margin=0), SHAPE, 100)
    assert whole is not None
    assert window is not None
    assert 0.05 * whole < window < 0.25 * whole  # each group sees a quarter, and in it the lowest level
    assert drawing_charge(noise, layout, (3, 4, 6), 100) == pytest.approx(3 * whole)
    assert drawing_charge(Gaussian(), layout, SHAPE, 100) is None


@pytest.mark.parametrize("noise", [Gaussian(grid=GRID, clamp=True), Uniform(grid=GRID)])
def test_stored_runs_know_the_grid(noise: Noise, tmp_path: Path) -> None:
    """The run's identity has it, and so has what is certified again; a run that grows pays once."""
    first = certify(**arguments(noise, simultaneous=JointCount(), out=tmp_path))
    again = recertify(tmp_path)
    assert run_info(again).drawing_charge == run_info(first).drawing_charge > 0
    np.testing.assert_array_equal(again["certified"], first["certified"])
    with pytest.raises(InvalidInputError, match="1% of alpha"):
        recertify(tmp_path, alpha=1e-50)
    more = certify(**arguments(noise, simultaneous=JointCount(), out=tmp_path, plan=SamplingPlan(30, 900, 1, 300)))
    assert run_info(more).drawing_charge == pytest.approx(1.5 * run_info(first).drawing_charge)
    with pytest.raises(Exception, match="another"):
        certify(**arguments(replace(noise, grid=None), simultaneous=JointCount(), out=tmp_path))


def test_windows_masks_and_batches_change_no_vote() -> None:
    """A mask hides what a window leaves out; the streams do not depend on the batch."""
    layout = grid_layout((2, 2), SHAPE[1:], minimum=0.1, maximum=0.3)

    def votes(layout: Layout, batch_size: int) -> np.ndarray:
        options = SamplingOptions(batch_size=batch_size, channels_last=False)
        return certify(**arguments(Gaussian(grid=GRID), layout=layout, options=options))["votes"].values

    np.testing.assert_array_equal(votes(layout, 1), votes(layout, 128))
    np.testing.assert_array_equal(votes(masked(layout), 7), votes(masked(layout), 300))


def test_networks_are_trained_with_the_noise_of_the_certificate() -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, *SHAPE)) / 255).float()
    augmentation = OneGroup(GroupNoise(GridLayout((2, 2), 0.1, 0.3), Gaussian(grid=GRID)))
    batch = augmentation(images, torch.zeros(3, *SHAPE[1:], dtype=torch.int64), 0)
    steps = (batch.inputs.double() / GRID).round()
    assert torch.equal(batch.inputs, steps.float() * torch.tensor(GRID))
    assert not torch.equal(batch.inputs, images)
    with pytest.raises(InvalidInputError, match="grid=None"):
        augmentation(images + 0.001, torch.zeros(3, *SHAPE[1:], dtype=torch.int64), 0)


def test_a_file_may_name_the_grid_as_a_fraction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_inputs(tmp_path, np.random.default_rng(0).integers(0, 256, (2, *SHAPE)).astype(np.float32) / np.float32(255))
    section = 'distribution = "gaussian"\nsigma_min = 0.2\nsigma_max = 0.5\ngrid = "1/255"'
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "run.toml"
    file.write_text(configuration(noise=section))
    assert load_configuration(file).noise.build() == Gaussian(grid=1 / 255)
    done = CliRunner().invoke(app, ["certify", str(file), "--out", str(tmp_path / "run")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "whole steps of 0.00392156863" in re.sub(r"\s+", " ", done.output)
    assert run_info(load(tmp_path / "run" / "result.nc")).drawing_charge > 0
    for word, noise in {"auto": Gaussian(), "none": Gaussian(grid=None)}.items():
        file.write_text(configuration(noise=section.replace("1/255", word)))
        assert load_configuration(file).noise.build() == noise
    file.write_text(configuration(noise=section.replace("1/255", "a third")))
    with pytest.raises(ConfigurationError, match=r"noise.*grid"):
        load_configuration(file)
