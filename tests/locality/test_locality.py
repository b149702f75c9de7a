"""Measured locality of models whose locality is known, levels that follow, and items that they may not certify."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.config import ConfigurationError, load_configuration, parse_configuration
from localsmooth.datasets import Item, ItemSet
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, grid_layout, origins_of, windowed
from localsmooth.locality import (
    Measurement,
    item_digest,
    largest_levels,
    measure_locality,
    read_levels,
    read_measurement,
    require_unseen,
    write_levels,
    write_measurement,
)
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import Bernoulli, Gaussian, Uniform
from localsmooth.report.locality import levels_figure, locality_figure
from localsmooth.testing.chance import assert_binomial
from tests.tiny_runs import changed, configuration, write_inputs

SHAPE = (4, 6)
LEVELS = (0.2, 0.5, 1.0, 2.0)


def layout(low: float = 0.2, high: float = 2.0) -> Layout:
    return grid_layout((2, 2), SHAPE, minimum=low, maximum=high)


def own_pixel(batch: np.ndarray) -> np.ndarray:
    """Looks at its own pixel only."""
    return (batch[:, 0] > 0.5).astype(np.int64)


def everywhere(batch: np.ndarray) -> np.ndarray:
    """Every output looks at the mean of the whole input."""
    return np.broadcast_to((batch.mean(axis=(1, 2, 3)) > 0.5)[:, None, None], (len(batch), *SHAPE)).astype(np.int64)


def neighbour(batch: np.ndarray) -> np.ndarray:
    """Looks half the width to the left: outputs of the right cells depend on the left cells, and vice versa."""
    return (np.roll(batch[:, 0], 3, axis=-1) > 0.5).astype(np.int64)


def model(function: object) -> CallableModel:
    return CallableModel(function, name=repr(function), bounds=None, classes=2, output=OutputKind.LABELS)  # pyright: ignore


def items(count: int, value: float = 0.8) -> list[np.ndarray]:
    return [np.full((1, *SHAPE), value, dtype=np.float32) + 0.001 * number for number in range(count)]


MARGINS = 0.3 + 0.001 * np.arange(3)
"""How far these three are from the threshold."""


def measured(function: object, samples: int = 200) -> Measurement:
    several = items(3, 0.8)
    return measure_locality(model(function), several, [layout()] * 3, Gaussian(), LEVELS, samples=samples, seed=1)


def test_a_local_model_is_disturbed_by_its_own_cell_alone() -> None:
    found = measured(own_pixel)
    own = np.eye(4, dtype=bool)
    assert (found.agreement[:, ~own] == 1).all()
    # A vote stays with probability Φ(.3/σ). 3 items × 6 outputs × 200 samples.
    for level, matrix in zip(found.levels, found.agreement, strict=True):
        assert_binomial(np.rint(3600 * matrix[own]), 3600, norm.cdf(MARGINS / level).mean())


def test_a_global_model_is_disturbed_by_every_cell_alike() -> None:
    found = measured(everywhere)
    # Noise in a quarter of 24 pixels moves the mean by σ·√6/24.
    for level, matrix in zip(found.levels, found.agreement, strict=True):
        assert_binomial(np.rint(600 * matrix), 600, norm.cdf(MARGINS * 24 / np.sqrt(6) / level).mean())
        assert (matrix == matrix[:1]).all()  # all outputs see the same mean


def test_rows_are_outputs_and_columns_inputs() -> None:
    found = measured(neighbour, samples=20)
    disturbed = (found.agreement[-1] < 1).astype(int)
    np.testing.assert_array_equal(disturbed, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])


@pytest.mark.parametrize(("noise", "levels"), [(Uniform(), (0.5, 1.0)), (Bernoulli(), (0.1, 0.4))])
def test_other_noise(noise: Uniform | Bernoulli, levels: tuple[float, float]) -> None:
    ones = [np.ones((1, *SHAPE), dtype=np.float32)]
    found = measure_locality(model(own_pixel), ones, [layout()], noise, levels, samples=400)
    own = np.eye(4, dtype=bool)
    # A one falls below ½ under U[1 − λ, 1 + λ] with probability (λ − ½)/(2λ), and by a flip with probability θ.
    expected = [1.0, 0.75] if isinstance(noise, Uniform) else [0.9, 0.6]
    for matrix, share in zip(found.agreement, expected, strict=True):
        assert_binomial(np.rint(2400 * matrix[own]), 2400, share)
        assert (matrix[~own] == 1).all()


def test_batches_and_order_of_levels_change_nothing() -> None:
    arguments = (model(own_pixel), items(2), [layout()] * 2, Gaussian())
    first = measure_locality(*arguments, (0.5, 1.0), samples=20, batch_size=7)
    second = measure_locality(*arguments, (1.0, 0.5, 0.5), samples=20, batch_size=32)
    np.testing.assert_array_equal(first.agreement, second.agreement)
    other = measure_locality(*arguments, (0.5, 1.0), samples=20, seed=3)
    assert (first.agreement != other.agreement).any()


def test_levels_follow_the_locality() -> None:
    """A local model may have the largest noise wherever it does not look, a global one the same noise everywhere."""
    own = np.eye(4, dtype=bool)
    local = largest_levels(measured(own_pixel), 0.2)
    assert (local[~own] == 2.0).all()
    # Φ(.3/σ) is .933 at .2 and .726 at .5: a line between them is at .8 near .39; 3600 votes leave .02 open.
    assert 0.3 < local[own].min() <= local[own].max() < 0.45
    assert np.ptp(largest_levels(measured(everywhere), 0.2)) < 0.2


def test_measurements_are_read_as_written_and_remember_their_items(tmp_path: Path) -> None:
    found = measured(own_pixel, samples=5)
    write_measurement(tmp_path / "m.npz", found)
    again = read_measurement(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.agreement, found.agreement)
    np.testing.assert_array_equal(again.levels, found.levels)
    assert (again.items, again.samples, again.origins) == (3, 5, found.origins)
    assert origins_of(largest_levels(again, 0.1)) == frozenset(item_digest(item) for item in items(3))
    np.savez(tmp_path / "other.npz", levels=found.levels)
    np.savez(tmp_path / "shares.npz", levels=found.levels, agreement=found.agreement + 1, counts=[1, 1], calibration=[])
    (tmp_path / "broken.npz").write_bytes(b"PK nonsense")
    for name in ("other", "shares", "broken"):
        with pytest.raises(InvalidInputError, match="no measured locality"):
            read_measurement(tmp_path / f"{name}.npz")


disturbances = arrays(np.float64, (4, 2, 3), elements=st.floats(0, 1))


@settings(max_examples=60)
@given(disturbances, st.floats(0, 1))
def test_largest_levels_against_a_fine_search(disturbed: np.ndarray, tolerance: float) -> None:
    found = largest_levels(Measurement(np.array(LEVELS), 1 - disturbed, 1, 1), tolerance)
    fine = np.linspace(LEVELS[0], LEVELS[-1], 2001)
    for place in np.ndindex(2, 3):
        raised = np.maximum.accumulate(1 - (1 - disturbed[:, *place]))
        allowed = fine[np.interp(fine, LEVELS, raised) <= tolerance]
        expected = allowed.max() if allowed.size else LEVELS[0]
        assert abs(found[place] - expected) <= (LEVELS[-1] - LEVELS[0]) / 2000 + 1e-9


@given(disturbances, st.floats(0, 1), st.floats(0, 1))
def test_levels_grow_with_the_tolerance(disturbed: np.ndarray, first: float, second: float) -> None:
    measurement = Measurement(np.array(LEVELS), 1 - disturbed, 1, 1)
    low, high = (largest_levels(measurement, tolerance) for tolerance in sorted((first, second)))
    assert (low <= high + 1e-12).all()
    assert (LEVELS[0] <= low).all()
    assert (high <= LEVELS[-1]).all()


def test_bad_arguments_are_named() -> None:
    good = {"model": model(own_pixel), "items": items(1), "layouts": [layout()], "noise": Gaussian(), "levels": (0.5,)}
    for change, message in (
        ({"items": []}, "items"),
        ({"levels": ()}, "levels"),
        ({"levels": (0.0,)}, "levels"),
        ({"layouts": []}, "layouts"),
        ({"samples": 0}, "samples"),
        ({"layouts": [windowed(layout(), 1)]}, "windows"),
        ({"items": items(2), "layouts": [layout(), grid_layout((1, 1), SHAPE, minimum=1.0, maximum=1.0)]}, "grid"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            measure_locality(**{**good, **change})  # pyright: ignore


def item_set(*values: float) -> ItemSet:
    return ItemSet([Item(i, f"item {i}", np.full((1, *SHAPE), v, dtype=np.float32)) for i, v in enumerate(values)])


def test_levels_are_read_as_written_and_remember_their_items(tmp_path: Path) -> None:
    levels = np.random.default_rng(0).uniform(0.1, 2, (4, 4))
    write_levels(tmp_path / "levels.npz", levels, item_set(0.1, 0.2))
    file = read_levels(tmp_path / "levels.npz")
    np.testing.assert_array_equal(file.levels, levels)
    require_unseen(file, item_set(0.3, 0.4))
    with pytest.raises(InvalidInputError, match='fitted on "item 1"'):
        require_unseen(file, item_set(0.3, 0.2))
    np.save(tmp_path / "plain.npy", levels)
    require_unseen(read_levels(tmp_path / "plain.npy"), item_set(0.1))
    assert item_digest(np.zeros((1, 2, 3))) != item_digest(np.zeros((1, 3, 2)))
    np.savez(tmp_path / "other.npz", levels=levels)
    (tmp_path / "broken.npz").write_bytes(b"PK nonsense")
    np.savez(tmp_path / "objects.npz", levels=levels, calibration=np.array([{}], dtype=object))
    for name in ("other", "broken", "objects"):
        with pytest.raises(InvalidInputError, match=r"layout\.levels"):
            read_levels(tmp_path / f"{name}.npz")


CONFIG = configuration(
    data='kind = "arrays"\nimages = "images.npy"\nitems = [0, 1]',
    calibration='kind = "arrays"\nimages = "images.npy"\nitems = [2, 3]',
    noise='distribution = "gaussian"\nsigma_min = 0.2\nsigma_max = 1.0',
    locality="count = 3\nsamples = 20",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    write_inputs(tmp_path, rng.choice([0.1, 0.9], (4, 1, *SHAPE)))
    (tmp_path / "run.toml").write_text(CONFIG)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_command_writes_a_page_and_the_measurement(folder: Path) -> None:
    out = folder / "out"
    made = CliRunner().invoke(app, ["locality", str(folder / "run.toml"), "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert "localsmooth tune" in made.output
    found = read_measurement(out / "measurement.npz")
    assert found.agreement.shape == (3, 4, 4)
    levels = largest_levels(found, 0.2)
    assert (levels[~np.eye(4, dtype=bool)] == 1.0).all()
    assert {file.name for file in out.iterdir()} >= {"locality.html", "agreement.svg", "levels.pdf"}
    assert "data:image/svg+xml" in (out / "locality.html").read_text()


def test_fitted_levels_are_used_for_other_items_alone(folder: Path) -> None:
    configuration = load_configuration(folder / "run.toml")
    levels = np.where(np.eye(4, dtype=bool), 0.25, 1.0)
    write_levels(folder / "levels.npz", levels, configuration.calibration_items())  # pyright: ignore
    used = changed(CONFIG, ("cells = [2, 2]", 'cells = [2, 2]\nlevels = "levels.npz"'))
    (folder / "used.toml").write_text(used)
    configuration = load_configuration(folder / "used.toml")
    made = configuration.layout.build(configuration.noise)  # pyright: ignore
    np.testing.assert_array_equal(made.layout((1, *SHAPE), SHAPE).levels, levels)
    run = CliRunner().invoke(app, ["certify", str(folder / "used.toml"), "--out", str(folder / "run")])
    assert run.exit_code == 0, run.output
    (folder / "leak.toml").write_text(used.replace("items = [0, 1]", "items = [0, 3]"))
    with pytest.raises(InvalidInputError, match="fitted on"):
        load_configuration(folder / "leak.toml").task()  # pyright: ignore


def test_calibration_items_must_not_be_certified(folder: Path) -> None:
    (folder / "run.toml").write_text(changed(CONFIG, ("items = [2, 3]", "items = [1, 2]")))
    with pytest.raises(InvalidInputError, match="calibration"):
        load_configuration(folder / "run.toml").calibration_items()
    refused = CliRunner().invoke(app, ["certify", str(folder / "run.toml"), "--out", str(folder / "run")])
    assert isinstance(refused.exception, InvalidInputError)
    assert refused.exception.field == f"{folder / 'run.toml'}: calibration"
    (folder / "run.toml").write_text(without("calibration"))
    done = CliRunner().invoke(app, ["locality", str(folder / "run.toml"), "--out", str(folder / "out")])
    assert isinstance(done.exception, ConfigurationError)
    assert "calibration" in str(done.exception)


def without(section: str) -> str:
    start, rest = CONFIG.split(f"[{section}]")
    return start + rest[rest.find("\n[") :] if "\n[" in rest else start


def test_the_section_on_measuring_may_be_left_out(folder: Path) -> None:
    (folder / "run.toml").write_text(without("locality"))
    made = CliRunner().invoke(app, ["locality", str(folder / "run.toml"), "--out", str(folder / "out")])
    assert made.exit_code == 0, made.output
    assert (folder / "out" / "measurement.npz").is_file()


def test_scenes_of_two_splits_share_no_item() -> None:
    text = {"kind": "digit-scenes", "items": [0, 1, 2]}
    base = {
        "model": {"kind": "digit-scenes"},
        "data": text,
        "calibration": {**text, "split": "validation"},
        "layout": {"cells": [3, 4]},
        "noise": {"distribution": "gaussian", "sigma_min": 0.2, "sigma_max": 1.0},
        "sampling": {"n_candidate": 1, "n_bound": 1},
        "certificate": {"alpha": 0.1, "budgets": [0.0]},
    }
    assert len(parse_configuration(base).calibration_items()) == 3
    with pytest.raises(InvalidInputError, match="calibration"):
        parse_configuration({**base, "calibration": text}).calibration_items()


def test_figures_refuse_nothing_to_show() -> None:
    with pytest.raises(InvalidInputError):
        locality_figure(np.empty(0), np.empty((0, 2, 2)), "σ")
    with pytest.raises(InvalidInputError):
        levels_figure({}, "σ")
    assert len(locality_figure(np.array([0.1, 0.2]), np.ones((2, 3, 3)), "σ").axes) >= 2
