"""The main job end to end, against classifiers whose certificates are known in closed form."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy.stats import beta, norm

from localsmooth.certificates import ABSTAIN
from localsmooth.collective import Naive
from localsmooth.collective.search.progress import Reporter
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout, Layout, isotropic_layout, masked, windowed
from localsmooth.models import CallableModel, OutputKind
from localsmooth.results import ACCURACY, RATIO, load, run_info
from localsmooth.runs import SamplingPlan, StoreError
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import StopWhenDecided
from localsmooth.tasks.arrays.settings import short_decimal
from localsmooth.tasks.record import RunRecordError
from localsmooth.testing.chance import CHECK, assert_binomial
from tests.flat import certify, recertify

from .models import mean_model, threshold_model

solve_module = importlib.import_module("localsmooth.collective.solving")
ALPHA = 0.05
SHAPE = (4, 6)
OPTIONS = SamplingOptions(batch_size=64)


def run(model: CallableModel, images: list[np.ndarray], layout: object, **changes: object):
    arguments = {
        "plan": SamplingPlan(n_candidate=50, n_bound=1000, seed=3, chunk_size=100),
        "alpha": ALPHA,
        "budgets": [0.0, 0.2, 0.4, 0.8],
        "options": OPTIONS,
        "progress": NoProgress(),
    }
    return certify(model, images, layout=layout, **(arguments | changes))  # type: ignore[arg-type]


def test_isotropic_votes_give_the_textbook_radius() -> None:
    sigma = 0.3
    thresholds = np.linspace(-0.5, 0.5, 24).reshape(SHAPE)
    image = np.zeros((1, *SHAPE), np.float32)
    result = run(threshold_model(thresholds), [image], GridLayout((1, 1), sigma, sigma))
    votes = result["votes"].values[0]
    # An independent formula: Cohen et al. 2019 with Clopper-Pearson at alpha / 24.
    lower = np.where(votes > 0, beta.ppf(ALPHA / votes.size, votes, 1000 - votes + 1), 0)
    textbook = np.where(lower > 0.5, sigma * norm.ppf(lower), 0)
    np.testing.assert_allclose(result["radius"].values[0], textbook, rtol=1e-5)
    assert ((result["prediction"].values[0] == ABSTAIN) == (textbook == 0)).all()
    assert result["radius"].values[0].max() > 0.2
    # The true radius of a threshold classifier is its distance to the threshold.
    certain = run(threshold_model(thresholds), [image], GridLayout((1, 1), sigma, sigma), alpha=CHECK)
    assert (certain["radius"].values[0] <= np.abs(thresholds)).all()
    assert certain["radius"].values[0].max() > 0.15


def test_votes_follow_the_closed_form_of_a_linear_classifier() -> None:
    """Pixel n sees N(x_n, σ²) with the σ of its own cell, so Pr[class 1] = Φ((x_n − t_n)/σ)."""
    layout = GridLayout((2, 3), 0.2, 0.9)
    thresholds = np.linspace(-0.3, 0.3, 24).reshape(SHAPE)
    image = np.random.default_rng(0).normal(0, 0.2, (1, *SHAPE)).astype(np.float32)
    result = run(threshold_model(thresholds), [image], layout, alpha=CHECK)
    candidate, votes = result["candidate"].values[0], result["votes"].values[0]
    chance = norm.cdf((image[0] - thresholds) / 0.2)
    chance = np.where(candidate == 1, chance, 1 - chance)
    assert_binomial(votes, 1000, chance)
    assert (result["lower_probability"].values[0] <= chance).all()


def test_only_the_level_of_the_groups_that_matter_counts() -> None:
    """A classifier of the mean under localized noise: Pr is Φ(mean · n / √Σσ²) and the certificate must respect it."""
    layout = GridLayout((2, 3), 0.5, 2.0)
    image = np.full((1, *SHAPE), 0.4, np.float32)
    result = run(mean_model(SHAPE), [image], layout, alpha=CHECK)
    made = layout.layout((1, *SHAPE), SHAPE)
    variance = np.array([(made.level_map(g) ** 2).sum() for g in range(6)])
    chance = norm.cdf(0.4 * 24 / np.sqrt(variance))[made.outputs.labels]
    assert (result["lower_probability"].values[0] <= chance).all()
    # Moving every pixel by -0.4 flips the mean: no prediction may be certified to the norm of that shift.
    assert (result["radius"].values[0] < 0.4 * np.sqrt(24)).all()
    assert result["certified"].sel(target=RATIO, bound="envelope").values[0][0] == 24


def test_result_says_what_was_proven(tmp_path: Path) -> None:
    thresholds = np.linspace(-0.5, 0.5, 24).reshape(SHAPE)
    images = [np.full((1, *SHAPE), v, np.float32) for v in (0.0, 0.25)]
    labels = [(image[0] > thresholds).astype(np.int64) for image in images]
    labels[1][0, :3] = 255
    result = run(
        threshold_model(thresholds),
        images,
        GridLayout((2, 3), 0.2, 0.4),
        labels=labels,
        ignore_label=255,
        class_names=["dark", "bright"],
        out=tmp_path / "run",
    )
    assert result.attrs["alpha"] == ALPHA
    assert result.attrs["n_bound"] == 1000
    assert json.loads(result.attrs["class_names"]) == ["dark", "bright"]
    assert result["total"].sel(target=ACCURACY).values.tolist() == [24, 21]
    certified = result["certified"]
    # naive ≤ lp ≤ envelope, falling with the budget, and accuracy never above the ratio.
    order = certified.transpose("bound", ...).values
    assert (order[0] <= order[1]).all()
    assert (order[1] <= order[2]).all()
    assert (np.diff(certified.transpose(..., "budget").values, axis=-1) <= 0).all()
    assert (certified.sel(target=ACCURACY) <= certified.sel(target=RATIO)).all()
    robust = result["prediction"].values != ABSTAIN
    robust[1, 0, :3] = False
    at_zero = certified.sel(target=RATIO, bound="envelope", budget=0.0).values
    assert at_zero.tolist() == robust.sum(axis=(1, 2)).tolist()
    assert load(tmp_path / "run" / "result.nc").equals(result)


def test_recertify_equals_certifying_with_the_same_samples(tmp_path: Path) -> None:
    model = threshold_model(np.linspace(-0.5, 0.5, 24).reshape(SHAPE))
    images = [np.zeros((1, *SHAPE), np.float32)]
    layout = GridLayout((2, 3), 0.2, 0.4, mask_beyond=1)
    labels = [np.ones(SHAPE, np.int64)]
    first = run(model, images, layout, labels=labels, out=tmp_path / "run")
    assert recertify(tmp_path / "run").identical(first)
    changed = recertify(tmp_path / "run", alpha=0.2, budgets=[0.1, 0.3], bounds={"naive": Naive()})
    direct = run(
        model,
        images,
        layout,
        labels=labels,
        alpha=0.2,
        budgets=[0.1, 0.3],
        bounds={"naive": Naive()},
        out=tmp_path / "other",
    )
    for name in ("certified", "lower", "attack", "eta", "radius", "prediction", "lower_probability"):
        np.testing.assert_array_equal(changed[name].values, direct[name].values)


@pytest.mark.parametrize("bounds", [["naive"], "naive", Naive, (Naive(),)])
def test_bounds_may_be_given_by_name_class_or_instance(bounds: object) -> None:
    model, images = threshold_model(np.linspace(-0.5, 0.5, 24).reshape(SHAPE)), [np.zeros((1, *SHAPE), np.float32)]
    layout = GridLayout((2, 3), 0.2, 0.4)
    made, expected = (run(model, images, layout, bounds=given) for given in (bounds, {"naive": Naive()}))
    assert made["bound"].values.tolist() == ["naive"]
    np.testing.assert_array_equal(made["certified"].values, expected["certified"].values)


def test_a_bound_that_is_not_known_is_refused_before_anything_is_sampled() -> None:
    asked: list[int] = []
    model = CallableModel(
        lambda batch: asked.append(len(batch)), name="never", bounds=None, classes=2, output=OutputKind.LABELS
    )
    for wrong in (["best"], "best", {"lp": "best"}):
        with pytest.raises(InvalidInputError, match="'envelope'") as caught:
            run(model, [np.zeros((1, *SHAPE), np.float32)], GridLayout((2, 3), 0.2, 0.4), bounds=wrong)
        assert caught.value.field == "bounds"
    assert not asked


def test_exact_solving_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(NoProgress):
        lines: ClassVar[list[str]] = []

        def message(self, text: str) -> None:
            self.lines.append(text)

    monkeypatch.setattr(solve_module, "Reporter", partial(Reporter, every=0.0))
    model = threshold_model(np.linspace(-0.5, 0.5, 24).reshape(SHAPE))
    layout = GridLayout((2, 3), 0.2, 0.4)
    run(model, [np.zeros((1, *SHAPE), np.float32)], layout, bounds=["exact"], progress=Told())
    told = [line for line in Told.lines if "exact, budget" in line]
    assert told
    assert "certified so far, best attack leaves" in told[0]


def test_interrupted_run_goes_on_and_another_configuration_is_refused(tmp_path: Path) -> None:
    thresholds = np.linspace(-0.5, 0.5, 24).reshape(SHAPE)
    images = [np.zeros((1, *SHAPE), np.float32)]
    layout = GridLayout((2, 3), 0.2, 0.4)
    whole = run(threshold_model(thresholds), images, layout)
    calls = 0

    class Stopping(CallableModel):  # the function itself stays the same, or its fingerprint would change
        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            nonlocal calls
            calls += 1
            if calls > 90:
                raise KeyboardInterrupt
            return super().__call__(batch)

    stops = threshold_model(thresholds)
    stops.__class__ = Stopping
    with pytest.raises(KeyboardInterrupt):
        run(stops, images, layout, out=tmp_path / "run")
    with pytest.raises(RunRecordError, match="goes on where it stopped"):
        recertify(tmp_path / "run")
    resumed = run(threshold_model(thresholds), images, layout, out=tmp_path / "run")
    np.testing.assert_array_equal(resumed["votes"].values, whole["votes"].values)
    np.testing.assert_array_equal(resumed["certified"].values, whole["certified"].values)
    with pytest.raises(StoreError, match="seed"):
        run(
            threshold_model(thresholds),
            images,
            layout,
            out=tmp_path / "run",
            plan=SamplingPlan(n_candidate=50, n_bound=1000, seed=4, chunk_size=100),
        )
    with pytest.raises(StoreError, match="fingerprint"):
        run(threshold_model(thresholds, name="another"), images, layout, out=tmp_path / "run")


def test_items_of_different_sizes_share_a_rule() -> None:
    def predict(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > 0).astype(np.int64)

    model = CallableModel(predict, name="sign", bounds=None, classes=2, output=OutputKind.LABELS)
    images = [np.full((1, 4, 6), 0.5, np.float32), np.full((1, 5, 7), 0.5, np.float32)]
    result = run(model, images, GridLayout((2, 3), 0.2, 0.4))
    assert result["total"].sel(target=RATIO).values.tolist() == [24, 35]
    assert result["certified"].sel(target=RATIO, bound="envelope", budget=0.0).values.tolist() == [24, 35]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"budgets": []}, "budgets"),
        ({"budgets": [-1.0]}, "budgets"),
        ({"budgets": [float("nan")]}, "budgets"),
        ({"bounds": {}}, "bounds"),
        ({"certificates": []}, "certificates"),
        ({"plan": SamplingPlan(10, 4)}, "at least 5 of each output group"),
        ({"layout": GridLayout((2, 3), -0.1, 0.4)}, "levels"),
        ({"layout": GridLayout((2, 3), 0.0, 0.4)}, "levels"),
        ({"layout": GridLayout((2, 3), 0.4, 0.2)}, "levels"),
        ({"layout": GridLayout((9, 3), 0.2, 0.4)}, "cells"),
        ({"layout": isotropic_layout(0.2, (4, 6), (2, 6))}, "layout"),
        ({"images": []}, "items"),
        ({"images": [np.full((1, *SHAPE), np.nan)]}, "images"),
        ({"images": [np.zeros(SHAPE[0])]}, "images"),
        ({"images": [np.array([["a"]])]}, "images"),
        ({"labels": [np.full(SHAPE, 2)]}, "labels"),
        ({"labels": [np.full(SHAPE, 0.5)]}, "labels"),
        ({"labels": [np.zeros((3, 3), int)]}, "labels"),
        ({"labels": []}, "labels"),
        ({"class_names": ["one"]}, "class_names"),
    ],
)
def test_bad_input_names_the_field_before_anything_is_sampled(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    calls = 0

    def counted(batch: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return (batch[:, 0] > 0).astype(np.int64)

    model = CallableModel(counted, name="counted", bounds=None, classes=2, output=OutputKind.LABELS)
    images = changes.pop("images", [np.zeros((1, *SHAPE), np.float32)])
    layout = changes.pop("layout", GridLayout((2, 3), 0.2, 0.4))
    assert isinstance(layout, Layout | GridLayout)
    with pytest.raises(InvalidInputError, match=message):
        run(model, images, layout, out=tmp_path / "run", **changes)  # type: ignore[arg-type]
    assert calls < 20
    assert not (tmp_path / "run" / "chunks").exists()


def test_a_result_says_which_smoothed_classifier_it_is_about(tmp_path: Path) -> None:
    model = threshold_model(np.zeros(SHAPE))
    images = [np.zeros((1, *SHAPE), np.float32)]
    layout = GridLayout((2, 3), 0.2, 0.4)
    said = run_info(run(model, images, layout, out=tmp_path / "run")).smoothing
    assert said is not None
    assert said.noise["distribution"] == "gaussian"
    assert said.levels == {"σ": (0.2, 0.4)}
    # Whole digests of what is at hand, to be compared with it.
    made = layout.layout((1, *SHAPE), SHAPE)
    assert (said.model, said.layout) == (model.fingerprint(), made.digest())
    assert said.facts()["Model (fingerprint)"] == model.fingerprint()[:16]
    assert len(said.data) == 64
    assert (said.output_groups, said.input_groups) == (6, 6)
    assert (said.plan["seed"], said.plan["n_bound"]) == (3, 1000)
    assert said.package == f"localsmooth {metadata.version('localsmooth')}"
    assert datetime.fromisoformat(said.sampled).tzinfo is not None
    # The same in memory, from the file, and certified again; the date is that of the samples.
    assert run_info(load(tmp_path / "run" / "result.nc")).smoothing == said
    assert run_info(recertify(tmp_path / "run", alpha=0.2)).smoothing == said
    assert run_info(run(model, images, layout, out=tmp_path / "run")).smoothing == said
    in_memory = run_info(run(model, images, layout)).smoothing
    assert in_memory is not None
    assert replace(in_memory, sampled=said.sampled) == said
    # What makes another smoothed classifier, or another certificate, shows.
    others = {
        "model": run(threshold_model(np.full(SHAPE, 0.1)), images, layout),
        "data": run(model, [images[0] + 0.5], layout),
        "layout": run(model, images, GridLayout((1, 3), 0.2, 0.4)),
        "levels": run(model, images, GridLayout((2, 3), 0.2, 0.5)),
        "plan": run(model, images, layout, plan=SamplingPlan(n_candidate=100, n_bound=1000, seed=4, chunk_size=100)),
    }
    for name, other in others.items():
        about = run_info(other).smoothing
        assert about is not None
        assert getattr(about, name) != getattr(said, name), name
        same = {"model", "data", "plan"} - {name}
        assert all(getattr(about, field) == getattr(said, field) for field in same)


def test_a_result_says_that_inputs_are_hidden_and_that_groups_stopped() -> None:
    def bright(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > 0).astype(np.int64)

    model = CallableModel(bright, name="bright", bounds=None, classes=2, output=OutputKind.LABELS)
    images = [np.zeros((1, *SHAPE), np.float32)]
    whole = GridLayout((2, 3), 0.2, 0.4).layout((1, *SHAPE), SHAPE)
    local = np.where(np.eye(6, dtype=bool), 0.2, np.inf)
    plan = SamplingPlan(n_candidate=100, n_bound=1000, seed=3, chunk_size=100, stop=StopWhenDecided())
    for layout, hidden in (
        (whole, False),
        (masked(whole, 1), True),
        (windowed(whole, 1), True),
        (Layout(whole.outputs, whole.inputs, local), True),
    ):
        said = run_info(run(model, images, layout, plan=plan)).smoothing
        assert said is not None
        assert said.hidden == hidden
        assert ("hidden" in said.facts()["Layout"]) == hidden
        assert said.facts()["Sampling"] == "N₁ = 100, N₂ = 1000, chunks of 100, stopping early"
        assert all(len(fact) < 120 for fact in said.facts().values())
        assert ("inputs hidden" in said.line()) == hidden
    assert "σ = 0.2" in said.facts()["Noise"]


def test_a_record_of_before_this_was_kept_is_certified_again(tmp_path: Path) -> None:
    first = run(
        threshold_model(np.zeros(SHAPE)),
        [np.zeros((1, *SHAPE), np.float32)],
        GridLayout((2, 3), 0.2, 0.4),
        out=tmp_path / "run",
    )
    path = tmp_path / "run" / "certification.json"
    content = json.loads(path.read_text())
    del content["sampled"], content["sha256"]
    text = json.dumps(content, sort_keys=True)
    path.write_text(json.dumps(content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}))
    again = recertify(tmp_path / "run")
    assert again.equals(first)
    said = run_info(again).smoothing
    assert said is not None
    assert said.facts()["Samples complete"] == "not recorded"


def test_budgets_of_a_grid_are_the_short_decimals_that_they_stand_for(tmp_path: Path) -> None:
    grid = np.linspace(0, 1, 11)
    assert 0.3 not in grid
    result = run(
        threshold_model(np.full(SHAPE, -1.0)),
        [np.zeros((1, *SHAPE), np.float32)],
        GridLayout((2, 3), 0.2, 0.4),
        budgets=grid,
        out=tmp_path / "run",
    )
    for made in (result, load(tmp_path / "run" / "result.nc"), recertify(tmp_path / "run", budgets=grid.tolist())):
        assert made["budget"].values.tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
        assert made.sel(budget=0.3).sizes["item"] == 1
    # What is certified is the rounded budget, not one beside it.
    for budget in (0.3, 0.6):
        alone = recertify(tmp_path / "run", budgets=[budget])
        np.testing.assert_array_equal(alone["certified"].values[..., 0], result["certified"].sel(budget=budget).values)


@pytest.mark.parametrize(
    ("start", "stop", "count"), [(0, 4, 81), (0, 1, 11), (0.1, 0.7, 7), (0, 255, 256), (0.05, 2.5, 50), (0, 1e-3, 101)]
)
def test_every_point_of_a_grid_is_found_by_its_short_name(start: float, stop: float, count: int) -> None:
    step = Fraction(str(stop)) - Fraction(str(start))
    for place, value in enumerate(np.linspace(start, stop, count).tolist()):
        assert short_decimal(value) == float(Fraction(str(start)) + step * place / (count - 1))


@pytest.mark.parametrize("value", [1 / 3, math.pi, 0.1234567890123, math.nextafter(0.3, 1) + 1e-15, 2**-60, 1e300])
def test_other_budgets_stay_what_they_are(value: float) -> None:
    assert short_decimal(value) == value
