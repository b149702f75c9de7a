"""Axes for scripts and papers."""

import re

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot
from matplotlib.figure import Figure

import localsmooth as ls
from localsmooth.errors import InvalidInputError


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
