"""Point clouds: cells, budgets for each point, and what is special about the task and its pictures."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.special import ndtr

import localsmooth as ls
from localsmooth.baselines import Cohen, SegCertify
from localsmooth.collective import Exact
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress, Part
from localsmooth.layout import Partition, derived, item_digest, origins_of
from localsmooth.noise import Bernoulli, Noise
from localsmooth.report.figures import item_figure
from localsmooth.report.html import render_report
from localsmooth.report.panel import panel_of
from localsmooth.results import item_view, run_info
from localsmooth.tasks import task_of
from localsmooth.tasks.points import PerPoint, PointTask, cell_layout, fit_centres, nearest_cells
from localsmooth.tasks.points.scatter import scatter

POINTS, SIGMA = 12, (0.1, 0.4)


def high(batch: np.ndarray) -> np.ndarray:
    """Class of a point: whether its last coordinate is positive."""
    return (batch[:, -1] > 0).astype(np.int64)


MODEL = ls.CallableModel(high, name="high", bounds=None, classes=2, output=ls.OutputKind.LABELS)


def template(points: int = POINTS, coordinates: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (points, coordinates))


def scan(of: np.ndarray, seed: int = 1) -> np.ndarray:
    return of + 0.02 * np.random.default_rng(seed).standard_normal(of.shape)


def cells_of(reference: np.ndarray, count: int = 3) -> ls.Layout:
    centres = fit_centres(reference, count)
    return cell_layout(nearest_cells(reference, centres), centres, *SIGMA)


def certified(task: PointTask, layout: Any, threat: Any = None, **run: Any) -> xr.Dataset:
    settings = ls.Settings(
        0.05, [0.0, 0.05, 0.2], bounds=["naive", "envelope"], threat=threat, method=run.pop("method", None)
    )
    smoothing = ls.Smoothing(layout, run.pop("plan", ls.SamplingPlan(20, 400, chunk_size=100)))
    options = ls.SamplingOptions(batch_size=50)
    return ls.certify(task, smoothing, settings, run=ls.Run(progress=NoProgress(), options=options, **run))


# Cells


def test_levels_grow_with_the_distance_of_centres() -> None:
    centres = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 10.0]])
    layout = cell_layout(np.array([0, 0, 1, 2, 1]), centres, 0.1, 1.1)
    farthest = 10.0
    wanted = 0.1 + np.linalg.norm(centres[:, None] - centres[None], axis=-1) / farthest
    np.testing.assert_allclose(layout.levels, wanted)
    assert layout.levels.max() == 1.1
    assert np.all(np.diag(layout.levels) == 0.1)
    np.testing.assert_array_equal(layout.inputs.labels, [0, 0, 1, 2, 1])
    np.testing.assert_array_equal(layout.outputs.labels, layout.inputs.labels)
    assert not layout.origins


def test_cells_without_points_are_left_out() -> None:
    centres = np.array([[0.0], [1.0], [5.0], [2.0]])
    layout = cell_layout(np.array([3, 0, 3]), centres, 0.1, 0.3)
    np.testing.assert_array_equal(layout.inputs.labels, [1, 0, 1])
    np.testing.assert_allclose(layout.levels, [[0.1, 0.3], [0.3, 0.1]])


def test_fitted_cells_are_those_of_the_nearest_centre() -> None:
    reference = template(60)
    assert fit_centres([reference, template(9)], 5).shape == (5, 3)
    centres = fit_centres(reference, 5, seed=3)
    cells = nearest_cells(reference, centres)
    distances = np.linalg.norm(reference[:, None] - np.asarray(centres)[None], axis=-1)
    np.testing.assert_array_equal(cells, distances.argmin(axis=1))
    np.testing.assert_array_equal(centres, fit_centres(reference, 5, seed=3))
    assert set(cells.tolist()) == set(range(5))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: cell_layout(np.array([0, 3]), np.zeros((2, 3)), 0.1, 0.2), "cells"),
        (lambda: cell_layout(np.array([-1, 0]), np.zeros((2, 3)), 0.1, 0.2), "cells"),
        (lambda: cell_layout(np.array([], dtype=np.int64), np.zeros((2, 3)), 0.1, 0.2), "cells"),
        (lambda: cell_layout(np.array([0, 1]), np.array([[0.0], [np.nan]]), 0.1, 0.2), "centres"),
        (lambda: cell_layout(np.array([0, 1]), np.array([[0.0], [1.0]]), 0.3, 0.2), "levels"),
        (lambda: nearest_cells(template(), np.zeros((2, 2))), "centres"),
        (lambda: nearest_cells(np.full((3, 2), np.inf), np.zeros((2, 2))), "reference"),
        (lambda: fit_centres(template(), POINTS + 1), "count"),
        (lambda: fit_centres(np.zeros((9, 3)), 2), "count"),
        (lambda: fit_centres(template(), 0), "count"),
        (lambda: fit_centres([], 2), "reference"),
    ],
)
def test_cells_that_make_no_sense_are_named(make: Any, field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.field == field


# Cells do not follow what is certified


def test_cells_remember_their_reference() -> None:
    reference, other = template(), template(seed=5)
    marks = {item_digest(reference)}
    centres = fit_centres([reference, derived(other, "older")], 3)
    assert origins_of(centres) == marks | {item_digest(other), "older"}
    assert origins_of(nearest_cells(reference, np.array(centres))) == marks
    assert origins_of(nearest_cells(derived(reference, "earlier"), np.array(centres))) == marks | {"earlier"}
    layout = cell_layout(nearest_cells(reference, np.array(centres)), np.array(centres), *SIGMA)
    assert layout.origins == marks


@pytest.mark.parametrize("through", ["cells", "centres", "one of several", "single precision", "transposed"])
def test_cells_of_the_very_cloud_do_not_certify_it(through: str) -> None:
    cloud, other = scan(template()), template()
    centres: np.ndarray = np.array(fit_centres(other, 3))
    cells: np.ndarray = np.array(nearest_cells(other, centres))
    if through == "cells":
        cells = nearest_cells(cloud, centres)
    elif through == "centres":
        centres = fit_centres(cloud, 3)
    elif through == "one of several":
        centres = fit_centres([other, cloud], 3)
    elif through == "single precision":
        cells = nearest_cells(cloud.astype(np.float32), centres)
    else:  # whoever keeps coordinates first
        cells = nearest_cells(np.ascontiguousarray(cloud.T).T, centres)
    layout = cell_layout(cells, centres, *SIGMA)
    with pytest.raises(InvalidInputError, match=r"layout.*items\[0\]"):
        certified(PointTask(MODEL, [cloud]), layout)
    assert certified(PointTask(MODEL, [scan(template(), 7)]), layout)["certified"].values.max() > 0


def test_arrays_with_coordinates_first_are_refused_in_the_same_way() -> None:
    cloud = scan(template())
    task = ls.ArrayTask(MODEL, [cloud.T])
    smoothing = ls.Smoothing(cells_of(cloud), ls.SamplingPlan(20, 400))
    with pytest.raises(InvalidInputError, match="computed from"):
        ls.certify(task, smoothing, ls.Settings(0.05, [0.0]), run=ls.Run(progress=NoProgress()))


# Budgets for each point


def spending(moves: np.ndarray, partition: Partition, norm: int) -> np.ndarray:
    """Σ|δ|^p of each input group, exactly."""
    labels = np.broadcast_to(partition.labels, moves.shape)
    spent = [Fraction(0)] * partition.count
    for label, move in zip(labels.ravel().tolist(), moves.ravel().tolist(), strict=True):
        spent[label] += abs(Fraction(move)) ** norm
    return np.array(spent, dtype=object)


@pytest.mark.parametrize("noise", [ls.Gaussian(), ls.Uniform()], ids=["l2", "l1"])
@pytest.mark.parametrize("most", [None, 1, 2, 5, 100])
@pytest.mark.parametrize("shape", ["points", "coordinates"])
def test_no_allowed_perturbation_breaks_a_row(noise: Noise, most: int | None, shape: str) -> None:
    rng = np.random.default_rng(0)
    points, budgets = 6, [0.0, 0.1, 1 / 3, 1.7e3]
    label = np.array([0, 0, 1, 2, 2, 2])
    if shape == "coordinates":
        label = rng.permutation(np.repeat(np.arange(4), 3)).reshape(2, points)
    layout = ls.Layout(Partition(np.zeros(points, np.int32)), Partition(label), np.full((1, label.max() + 1), 0.2))
    threat = PerPoint(most).threat(budgets, np.zeros((2, points), np.float32), layout, noise)
    constraints = threat.constraints(layout.inputs.count)
    attained = np.zeros(len(budgets))
    for movable in itertools.product([False, True], repeat=points):
        if most is not None and sum(movable) > most:
            continue
        for budget, right in zip(budgets, constraints.budgets, strict=True):
            moves = rng.standard_normal((2, points)) * np.array(movable)
            if rng.uniform() < 0.5:
                moves[rng.integers(2)] = 0  # all along one axis, where the length is exact
            length = np.linalg.norm(moves, noise.norm, axis=0)
            scale = np.where(length > 0, budget / np.where(length > 0, length, 1), 0)
            moves *= np.where(np.abs(moves).astype(bool).sum(axis=0) == 1, 1, 1 - 1e-12) * scale
            for axis in range(2):  # one coordinate alone: exactly as far as it may
                alone = moves[1 - axis] == 0
                moves[axis, alone] = np.sign(moves[axis, alone]) * budget
            spent = spending(moves, layout.inputs, noise.norm)
            for row, bound in zip(constraints.rows, right, strict=True):
                assert sum(int(a) * b for a, b in zip(row, spent, strict=True)) <= Fraction(bound)
            for limit, columns in constraints.limits:
                assert len(set(columns[spent > 0].tolist())) <= limit
            assert bool(np.all(spent <= constraints.caps))
            place = budgets.index(budget)
            attained[place] = max(attained[place], float(spent.sum()) / (float(right[-1]) or 1.0))
    np.testing.assert_array_less(0.999, attained[1:])  # no more is allowed than this relaxation must


def test_right_hand_sides_are_rounded_up() -> None:
    layout = ls.Layout(*(Partition(np.zeros(7, np.int32)),) * 2, np.array([[0.2]]))
    for budget in (0.1, 1 / 3, math.nextafter(1.0, 2), 1e-170, 1e200):
        threat = PerPoint(3).threat([budget], np.zeros((2, 7), np.float32), layout, ls.Gaussian())
        right = threat.constraints(1).budgets[0]
        exact = 3 * Fraction(budget) ** 2
        assert all(value == math.inf or Fraction(value) >= exact for value in right.tolist())
        if 1e-100 < budget < 1e100:
            assert max(map(Fraction, right.tolist())) <= exact * (1 + Fraction(1, 2**50))


def test_radius_of_an_output_is_in_units_of_the_threat() -> None:
    """Own radii answer to what each output tolerates, in ε of this threat: the naive count follows from them."""
    task, layout = PointTask(MODEL, [scan(template())]), cells_of(template())
    for threat in (PerPoint(), PerPoint(2)):
        result = certified(task, layout, threat)
        naive = result["certified"].sel(target="ratio", bound="naive").values[0]
        alone = [(result["radius"].values[0] > budget).sum() for budget in result["budget"].values]
        np.testing.assert_array_equal(naive[1:], alone[1:])
    ball = certified(task, layout)
    assert bool((ball["radius"].values >= result["radius"].values).all())
    assert run_info(result).threat == PerPoint(2).words(ls.Gaussian(), "")


def test_words_and_arguments() -> None:
    assert (
        PerPoint().words(ls.Gaussian(), "")
        == "perturbation that moves each point by at most ε (l2 norm of its coordinates)"
    )
    assert "at most 4 points" in PerPoint(4).words(ls.Uniform(), "")
    with pytest.raises(InvalidInputError, match="most"):
        PerPoint(-1)
    with pytest.raises(InvalidInputError, match="most"):
        PerPoint(0)
    layout = ls.layout.isotropic_layout(0.1, (POINTS,), (POINTS,))
    with pytest.raises(InvalidInputError, match="Bernoulli"):
        PerPoint().threat([1.0], np.zeros((3, POINTS)), layout, Bernoulli())


@pytest.mark.parametrize("method", [Cohen(), SegCertify()])
def test_baselines_that_know_balls_alone_refuse_other_threats(method: Any) -> None:
    """They counted what survives the ball, and the result said that every point may move by ε."""
    task, layout = PointTask(MODEL, [scan(template())]), ls.layout.isotropic_layout(0.2, (POINTS,), (POINTS,))
    certified(task, layout, method=method)
    for threat in (PerPoint(), ls.tasks.arrays.Flips()):
        with pytest.raises(InvalidInputError, match="threat"):
            certified(task, layout, threat, method=method)


# The truth on a space with a closed form


@pytest.mark.parametrize("most", [None, 1, 2])
def test_no_attack_beats_the_certified_count(most: int | None) -> None:
    """Half-spaces over three points on a line each: the smoothed classifier is known, and moves are tried on a grid."""
    rng = np.random.default_rng(2)
    layout = cell_layout(np.array([0, 0, 1]), np.array([[0.0], [1.0]]), 0.15, 0.5)
    normals = rng.standard_normal((3, 3))
    clouds = [rng.uniform(-1, 1, (3, 1)) for _ in range(4)]

    def sides(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] @ normals.T > 0).astype(np.int64)

    model = ls.CallableModel(sides, name="sides", bounds=None, classes=2, output=ls.OutputKind.LABELS)
    spread = (
        np.sqrt((normals**2 * layout.level_map(0) ** 2).sum(axis=1)),
        np.sqrt((normals**2 * layout.level_map(1) ** 2).sum(axis=1)),
    )
    sigma = np.where(layout.outputs.labels == 0, *spread)
    budgets = [0.0, 0.05, 0.1, 0.2, 0.4]
    # Four clouds at α = 2.5e-7 each: at most one false alarm in 10⁶ runs of this test.
    settings = ls.Settings(2.5e-7, budgets, bounds={"exact": Exact()}, threat=PerPoint(most))
    result = ls.certify(
        PointTask(model, clouds),
        ls.Smoothing(layout, ls.SamplingPlan(50, 2000)),
        settings,
        run=ls.Run(progress=NoProgress()),
    )
    steps = np.array(list(itertools.product(np.linspace(-1, 1, 9), repeat=3)))
    if most is not None:
        steps = steps[(steps != 0).sum(axis=1) <= most]
    broken = False
    for index, cloud in enumerate(clouds):
        prediction = result["prediction"].values[index]
        for place, budget in enumerate(budgets):
            chance = ndtr((cloud[:, 0] + budget * steps) @ normals.T / sigma)
            kept = (np.where(prediction == 1, chance, 1 - chance) > 0.5) & (prediction >= 0)
            count = int(result["certified"].values[index, 0, 0, place])
            assert count <= kept.sum(axis=1).min()
            broken |= bool(kept.sum(axis=1).min() < (prediction >= 0).sum())
    assert broken  # some attack succeeds: the test could have failed
    assert result["certified"].values[..., 1].max() > 0


# The task


def test_clouds_of_different_size_have_layouts_of_their_own(tmp_path: Path) -> None:
    references = [template(), template(9, seed=4), template(seed=6)]
    clouds, layouts = [scan(one) for one in references], [cells_of(one, 3) for one in references]
    labels = [(cloud[:, 2] > 0).astype(np.int64) for cloud in clouds]
    task = PointTask(MODEL, clouds, labels, names=["a", "b", "c"], class_names=["low", "high"])
    result = certified(task, layouts, PerPoint(1), out=tmp_path)
    assert run_info(result).task == "points"
    assert result["item"].values.tolist() == ["a", "b", "c"]
    assert result["total"].values[:, 0].tolist() == [POINTS, 9, POINTS]
    for index, cloud in enumerate(clouds):
        view = item_view(result, index)
        np.testing.assert_array_equal(view.image, cloud.T.astype(np.float32))
        np.testing.assert_array_equal(view.input_group, layouts[index].inputs.labels)
        np.testing.assert_array_equal(view.prediction[view.prediction >= 0], labels[index][view.prediction >= 0])
    again = ls.recertify(
        tmp_path, ls.Settings(0.05, [0.0, 0.05, 0.2], bounds=["naive", "envelope"], threat=PerPoint(1))
    )
    xr.testing.assert_equal(again, result)
    assert task_of("points") is PointTask
    # The default is the ball over the whole cloud, which allows no more than that each point moves as far.
    assert bool(
        (
            ls.recertify(tmp_path)["certified"].sel(bound="envelope")
            >= certified(task, layouts, PerPoint())["certified"].sel(bound="envelope")
        ).all()
    )


def test_executors_and_parts_count_the_same(tmp_path: Path) -> None:
    task, layout = PointTask(MODEL, [scan(template())]), cells_of(template())
    plain = certified(task, layout, executor="serial")
    np.testing.assert_array_equal(certified(task, layout, executor="threads")["votes"], plain["votes"])
    with pytest.raises(ls.LocalsmoothError):
        certified(task, layout, out=tmp_path / "one", part=Part(1, 2))
    certified(task, layout, out=tmp_path / "one")
    np.testing.assert_array_equal(ls.load_result(tmp_path / "one" / "result.nc")["votes"], plain["votes"])


def test_early_stopping_aims_at_the_threat() -> None:
    """What decides an output under the ball does not where every point may move."""
    task, layout = PointTask(MODEL, [scan(template())]), cells_of(template())
    plan = ls.SamplingPlan(20, 4000, chunk_size=100, stop=ls.StopWhenDecided())
    saved = [
        certified(task, layout, threat, plan=plan)["votes"].values.sum() for threat in (None, PerPoint(1), PerPoint())
    ]
    assert saved[0] == saved[1] < saved[2]


NAN = template()
NAN[4, 1] = np.nan


@pytest.mark.parametrize(
    ("clouds", "labels", "field", "words"),
    [
        (template(), None, "clouds", r"one array of shape \(12, 3\).*\[cloud\]"),
        ([], None, "clouds", "none"),
        ([template(), NAN], None, "clouds", 'point 4 of "cloud 1".*NaN'),
        ([template().T], None, "clouds", r"coordinates first.*cloud\.T"),
        ([template().T], [np.zeros(POINTS, int)], "clouds", r"coordinates first.*cloud\.T"),
        ([template()], [np.zeros(POINTS - 1, int)], "labels", "12 points, and labels of shape"),
        ([template()], [np.zeros(POINTS)], "labels", "whole number"),
        ([template()], [np.zeros(POINTS, int)] * 2, "labels", "2 for 1 clouds"),
        ([template(), template(9, 2)], None, "clouds", "number of coordinates"),
        ([np.array([["a", "b"]])], None, "clouds", "type"),
        ([np.zeros((0, 3))], None, "clouds", "shape"),
        ([np.zeros((2, 4, 3))], None, "clouds", "shape"),
    ],
)
def test_what_is_no_cloud_is_named(clouds: Any, labels: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        PointTask(MODEL, clouds, labels)
    assert caught.value.field == field


def test_models_that_do_not_fit_are_named() -> None:
    class Global(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2].mean(dim=2, keepdim=True)

    class Wide(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 4, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.conv1d(x, self.weight)

    for module, field in ((Global(), "model"), (Wide(), "clouds")):
        model = ls.TorchModel(module.eval(), bounds=None, classes=2)
        with pytest.raises(InvalidInputError) as caught:
            certified(
                PointTask(model, [template()]),
                ls.layout.isotropic_layout(0.1, (POINTS,), (1 if field == "model" else POINTS,)),
            )
        assert caught.value.field == field
        assert "batch" in caught.value.remedy
    with pytest.raises(InvalidInputError, match="2 layouts for 1 items"):
        certified(PointTask(MODEL, [template(seed=3)]), [cells_of(template())] * 2)


# Pictures


def test_each_element_shows_the_nearest_point() -> None:
    cloud = np.stack([np.zeros(3), np.array([0.0, -1.0, 0.0]), np.array([0.0, 0.0, 3.0])]).astype(np.float32)
    towards = np.array([0.46, -0.8, 0.37])  # about from where points are seen
    behind = np.concatenate([cloud, (cloud[:, :1] - 0.2 * towards[:, None])], axis=1).astype(np.float32)
    for made in (behind, behind[:, [3, 1, 2, 0]]):
        picture = scatter(made)
        front = int(np.argmax(picture.near[[0, 3]]))
        assert set(np.unique(picture.seen)) >= {-1, 1, 2, (0, 3)[front]}
        near, far = ((picture.seen == number).sum() for number in ((0, 3)[front], (3, 0)[front]))
        assert near > far
    top, low = (np.flatnonzero((scatter(cloud).seen == number).any(axis=1)).mean() for number in (2, 0))
    assert top < low  # the third coordinate is up


def test_pictures_of_other_numbers_of_coordinates() -> None:
    flat = scatter(np.array([[0.0, 4.0], [0.0, 1.0]], np.float32))
    assert flat.seen.shape[1] > 2 * flat.seen.shape[0]
    assert flat.note == "the two coordinates"
    rows, columns = (np.stack(np.nonzero(flat.seen == number)).mean(axis=1) for number in (0, 1))
    assert rows[0] > columns[0]
    assert rows[1] < columns[1]
    assert scatter(np.zeros((1, 1), np.float32)).seen.max() == 0
    many = np.zeros((5, 3), np.float32)
    many[1] = [0, 1, 2]
    many[4] = [0, 5, 1]
    assert "coordinates 2 and 5 of 5" in scatter(many).note
    hidden = scatter(np.zeros((3, 4), np.float32))
    assert "3 of 4 covered" in hidden.note
    np.testing.assert_array_equal(np.unique(hidden(np.array([5, 6, 7, 8]), -1)), [-1, 8])
    assert hidden(np.zeros((2, 4), bool), True).shape == (2, *hidden.seen.shape)


def test_the_page_shows_points_where_they_are(tmp_path: Path) -> None:
    clouds = [scan(template(40)), scan(template(25, seed=9))]
    layouts = [cells_of(template(40)), cells_of(template(25, seed=9))]
    labels = [(cloud[:, 2] > 0).astype(np.int64) for cloud in clouds]
    result = certified(PointTask(MODEL, clouds, labels), layouts, PerPoint(2))
    page = render_report({"localized": result})
    for words in ("40 points", "25 points", "seen from above one corner", "moves at most 2 points, each by at most ε"):
        assert words in page
    panel, view = panel_of("points"), item_view(result, 1)
    picture = panel.outputs(view)
    assert picture is not None
    assert set(np.unique(picture(view.input_group, -1))) == {-1, 0, 1, 2}
    figure = item_figure(result)
    figure.savefig(tmp_path / "figure.png")
    plan = np.ma.filled(np.ma.masked_invalid(figure.axes[4].images[0].get_array()), np.nan)
    nowhere = np.isnan(plan)
    drawn = panel.outputs(item_view(result, 0))
    assert drawn is not None
    np.testing.assert_array_equal(nowhere, drawn.magnify(drawn(np.zeros(40, bool), True)))


# The example


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "point_parts.py"
    spec = importlib.util.spec_from_file_location("point_parts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "point_parts", module)
    spec.loader.exec_module(module)
    tiny = ["--points", "24", "--clouds", "1", "--cells", "2", "--samples", "200", "--steps", "10", "--most", "2"]
    monkeypatch.setattr(sys, "argv", ["point_parts.py", "--out", str(tmp_path), *tiny])
    module.main()
    said = capsys.readouterr().out
    for name in ("localized", "isotropic"):
        assert f"{name}: certified accuracy" in said
        assert ls.load_result(tmp_path / name / "result.nc")["item"].values.tolist() == ["table 1", "chair 1", "lamp 1"]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "moves at most 2 points" in page
