"""Axes for scripts and papers."""

import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot
from matplotlib.figure import Figure

import localsmooth as ls
from localsmooth.collective import Overlap
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Gaussian
from localsmooth.report import overlap_figure
from localsmooth.report.pdf import sheets
from localsmooth.report.together import shown_together
from localsmooth.results import ItemOverlap, build_overlaps, validate
from localsmooth.tasks.arrays import NormBall, PerPosition

from ..results.synthetic import run_info


def axes_of(size: tuple[float, float] = (3, 2)):
    return Figure(figsize=size).add_subplot()


def test_curves_of_one_result_and_of_several(results: dict[str, xr.Dataset], localized: xr.Dataset):
    ax = axes_of()
    assert ls.plot.curves(localized, ax=ax) is ax
    assert len(ax.get_lines()) == 3
    assert ax.get_ylabel() == "certified accuracy"  # what the report puts first
    line = next(line for line in ax.get_lines() if line.get_label() == "localized, envelope")
    one = localized.sel(target="accuracy", bound="envelope")
    expected = (one["certified"] / localized["total"].sel(target="accuracy")).mean("item")
    np.testing.assert_allclose(line.get_ydata(), expected)
    both = ls.plot.curves(results, "ratio", ax=axes_of())
    assert len(both.get_lines()) == 6
    assert both.get_ylabel() == "certified ratio"
    for bad in ({}, {"a": localized}):
        with pytest.raises(InvalidInputError):
            ls.plot.curves(bad, "speed", ax=axes_of())


@pytest.mark.parametrize("given", ["runs/mine", None, {"localized": "runs/mine"}])
def test_paths_are_no_results(given: Any, tmp_path: Path):
    # Unwrapped: users have no type checker that speaks first.
    shown, paper = inspect.unwrap(shown_together), inspect.unwrap(ls.write_pdf)
    for show in (ls.plot.curves, partial(shown, max_items=12), partial(paper, path=tmp_path / "page.pdf")):
        with pytest.raises(InvalidInputError, match=r"results.*: got a .*load_result"):
            inspect.unwrap(show)(given)
    with pytest.raises(InvalidInputError, match=r"result: got a .*load_result"):
        inspect.unwrap(validate)(given)
    assert not list(tmp_path.iterdir())


def test_items_are_found_by_their_names(localized: xr.Dataset):
    second = str(localized["item"].values[1])
    by_name, by_place = (ls.plot.prediction(localized, item, ax=axes_of()) for item in (second, 1))
    np.testing.assert_array_equal(by_name.get_images()[0].get_array(), by_place.get_images()[0].get_array())
    with pytest.raises(InvalidInputError, match=f"'nobody' is none.*{second}"):
        ls.plot.prediction(localized, "nobody", ax=axes_of())


@pytest.mark.parametrize("name", ["input", "labels", "prediction", "radius", "attack"])
def test_maps_go_where_they_are_asked_to(localized: xr.Dataset, name: str):
    draw, ax = getattr(ls.plot, name), axes_of()
    assert draw(localized, 1, ax=ax) is ax
    assert len(ax.get_images()) == 1
    assert ax.get_title()
    with pytest.raises(InvalidInputError, match="item"):
        draw(localized, 2, ax=ax)


def test_what_a_map_shows_beside_itself(localized: xr.Dataset):
    for draw in (ls.plot.radius, ls.plot.attack):
        ax = axes_of()
        draw(localized, ax=ax)
        assert len(ax.figure.axes) == 2
        draw(localized, ax=(bare := axes_of()), colorbar=False)
        assert len(bare.figure.axes) == 1
    named = ls.plot.prediction(localized, ax=axes_of())
    assert {"background", "disc", "block"} <= {text.get_text() for text in named.get_legend().get_texts()}
    assert ls.plot.prediction(localized, ax=axes_of(), legend=False).get_legend() is None


def test_what_a_result_does_not_hold_is_refused(localized: xr.Dataset):
    with pytest.raises(InvalidInputError, match="inputs"):
        ls.plot.input(localized.drop_vars("image"), ax=axes_of())
    unlabelled = localized.assign(label=localized["label"] * 0 - 1).sel(target=["ratio"])
    with pytest.raises(InvalidInputError, match="labels"):
        ls.plot.labels(unlabelled, ax=axes_of())


def test_without_axes_the_current_ones_are_drawn_on(localized: xr.Dataset):
    try:
        _, (left, right) = pyplot.subplots(1, 2)
        pyplot.sca(left)
        assert ls.plot.curves(localized) is left
        assert localized.localsmooth.plot_curves("ratio", ax=right) is right
        assert right.get_ylabel() == "certified ratio"
        pyplot.sca(right)
        assert localized.localsmooth.plot_radius(1, colorbar=False) is right
    finally:
        pyplot.close("all")


def test_a_result_in_a_notebook(localized: xr.Dataset):
    text = localized.localsmooth._repr_html_()
    total = int(localized["total"].sel(target="ratio").sum())
    budgets = [float(found) for found in re.findall(r"ε = ([\d.]+)</th>", text)]
    assert len(budgets) == 5
    for budget in budgets:
        one = localized["certified"].sel(target="ratio").sel(budget=budget, method="nearest")
        assert f">{int(one.max('bound').sum()):,} of {total:,}<" in text
    assert "α = 0.01 for each of 2 items on its own" in text
    assert "Certified accuracy" in text
    assert "NOT proven" not in text
    assert "NOT proven" in localized.assign_attrs(proven="false").localsmooth._repr_html_()
    nothing = localized.assign({name: localized[name] * 0 for name in ("certified", "lower")})
    assert "Nothing is certified beyond ε = 0." in nothing.localsmooth._repr_html_()
    evil = localized.assign_attrs(method="<script>alert(1)</script>").localsmooth._repr_html_()
    assert "<script" not in evil
    with pytest.raises(InvalidInputError):
        xr.Dataset().localsmooth._repr_html_()


@pytest.fixture(scope="module")
def overlaps() -> xr.Dataset:
    """IoU of three classes of one item and of two of another, falling with the budget."""
    run = run_info(bound_names=("envelope",))
    budgets = len(run.budgets["budget"])
    fall = np.linspace(0.9, 0.0, budgets)
    made = [
        ItemOverlap(
            name, overlap_of(classes, fall), {"candidate": np.where(np.isin(np.arange(3), classes), 0.95, np.nan)}
        )
        for name, classes in (("one", [0, 1, 2]), ("two", [0, 2]))
    ]
    return build_overlaps(made, run)


def overlap_of(classes: list[int], fall: np.ndarray) -> Overlap:
    iou = np.stack([fall * (1 - 0.2 * number) for number in classes])
    upper = np.minimum(iou + 0.1, 1.0)
    return Overlap(np.array(classes), iou, upper, np.zeros((*iou.shape, 1)), upper.mean(axis=0), upper.mean(axis=0))


def test_overlaps_are_drawn_as_means_and_by_class(overlaps: xr.Dataset):
    ax = axes_of()
    assert ls.plot.overlap(overlaps, ax=ax) is ax
    certified, measured = ax.get_lines()
    np.testing.assert_allclose(certified.get_ydata(), overlaps["mean_iou"].mean("item"))
    np.testing.assert_allclose(measured.get_ydata(), 0.95)
    assert ax.get_ylabel() == "certified mean IoU"
    assert len(ax.collections) == 1  # shaded up to what attacks leave
    each = ls.plot.overlap(overlaps, ["disc", "block"], ax=axes_of())
    lines = {line.get_label(): line for line in each.get_lines()}
    np.testing.assert_allclose(lines["disc"].get_ydata(), overlaps["iou"].sel({"class": "disc"}).mean("item"))
    assert lines["disc"].get_color() != lines["block"].get_color()
    both = ls.plot.overlap({"a": overlaps, "b": overlaps}, ["disc"], ax=axes_of())
    assert {"a, disc", "b, disc"} <= {line.get_label() for line in both.get_lines()}
    with pytest.raises(InvalidInputError, match="'cat' is none"):
        ls.plot.overlap(overlaps, ["cat"], ax=axes_of())
    with pytest.raises(InvalidInputError, match="overlaps"):
        ls.plot.overlap({}, ax=axes_of())


def test_overlaps_have_a_curve_on_paper_and_a_figure(localized: xr.Dataset, overlaps: xr.Dataset):
    made = sheets(localized, "With overlaps", 0, {"localized": overlaps})
    labels = [axes.get_ylabel() for figure in made for axes in figure.axes]
    assert labels.count("certified mean IoU") == 1
    assert overlap_figure({"localized": overlaps}).axes[0].get_ylabel() == "certified mean IoU"


def test_axes_say_what_budgets_measure(localized: xr.Dataset):
    for threat, label in (
        (NormBall(), "budget ε  (l2 norm, pixel values in [0, 1])"),
        (PerPosition(), "budget ε  (l2 norm of each position, pixel values in [0, 1])"),
        (PerPosition(3), "budget ε  (l2 norm of each position, pixel values in [0, 1])"),
    ):
        words = threat.words(Gaussian(), "pixel values in [0, 1]")
        drawn = ls.plot.curves(localized.assign_attrs(threat=words), ax=axes_of())
        assert drawn.get_xlabel() == label
    flips = localized.assign_attrs(threat="perturbation that changes at most ε bits", norm="l0", units="bits")
    assert ls.plot.curves(flips, ax=axes_of()).get_xlabel() == "budget ε  (bits)"


def test_only_graphs_are_drawn_as_graphs(localized: xr.Dataset):
    with pytest.raises(InvalidInputError, match="no graph"):
        ls.plot.graph(localized, ax=axes_of())
