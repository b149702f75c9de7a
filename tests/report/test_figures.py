from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot

from localsmooth.errors import InvalidInputError
from localsmooth.report import curves_figure, item_figure, save_figure
from localsmooth.results import build_dataset

from ..results.synthetic import make_item, run_info


def test_curves_show_every_bound_of_every_method(results: dict[str, xr.Dataset]):
    axes = curves_figure(results, "accuracy").axes[0]
    assert len(axes.get_lines()) == 6
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {"localized, lp", "isotropic, naive"}
    assert axes.get_ylabel() == "certified accuracy"
    assert "l2" in axes.get_xlabel()
    assert "pixel values" in axes.get_xlabel()
    line = next(line for line in axes.get_lines() if line.get_label() == "localized, envelope")
    one = results["localized"].sel(target="accuracy", bound="envelope")
    expected = (one["certified"] / results["localized"]["total"].sel(target="accuracy")).mean("item")
    np.testing.assert_allclose(line.get_ydata(), expected)
    assert line.get_drawstyle() == "steps-pre"  # between budgets, the larger one's value


def test_item_panel(localized: xr.Dataset):
    figure = item_figure(localized, 1, budget=0.6)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[:4] == ["input", "labels", "prediction", "certified radius"]
    chosen = localized["certified"].isel(item=1).sel(target="ratio", bound="envelope")
    count = int(chosen.sel(budget=0.6, method="nearest"))
    assert f"{count}/3063 certified" in titles[4]


@pytest.mark.parametrize("suffix", [".pdf", ".png", ".svg"])
def test_figures_are_written(localized: xr.Dataset, tmp_path: Path, suffix: str):
    path = tmp_path / f"curves{suffix}"
    save_figure(curves_figure({"cost in $ and $^2": localized}), path)
    assert path.stat().st_size > 2000
    with pytest.raises(InvalidInputError, match="path"):
        save_figure(curves_figure({"a": localized}), tmp_path / "curves.bmp")


@pytest.mark.parametrize("size", [(60,), (5, 12, 14)])
def test_item_panels_of_other_ranks(size: tuple[int, ...], tmp_path: Path):
    label = (np.indices(size).sum(axis=0) // 5) % 3
    dataset = build_dataset([make_item(size=size, grid=(2,) * len(size), label=label)], run_info())
    save_figure(item_figure(dataset), tmp_path / "item.png")


def test_bad_choices_are_refused(localized: xr.Dataset):
    with pytest.raises(InvalidInputError, match="results"):
        curves_figure({})
    with pytest.raises(InvalidInputError, match="target"):
        curves_figure({"a": localized}, "speed")
    for arguments in ({"item": 2}, {"item": -1}, {"budget": 2.1}, {"target": "speed"}, {"bound": "exact"}):
        with pytest.raises(InvalidInputError, match=next(iter(arguments))):
            item_figure(localized, **arguments)


def test_no_global_state_of_the_plotting_library(localized: xr.Dataset):
    settings = dict(matplotlib.rcParams)
    figure = item_figure(localized)
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == settings
    assert type(figure.canvas).__name__ == "FigureCanvasAgg"
