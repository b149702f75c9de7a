"""What the page shows of a result on a graph, in its text and in a browser."""

import base64
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.figure import Figure
from PIL import Image

import localsmooth as ls
from localsmooth.errors import InvalidInputError
from localsmooth.report import graph_figure, render_report, write_report
from localsmooth.report.graph_drawing import tolerated_flips
from localsmooth.report.palette import rgb
from localsmooth.report.pdf import sheets
from localsmooth.results import build_dataset, item_view, kind_curve, load, save, validate
from localsmooth.runs import SamplingPlan
from localsmooth.tasks.graphs import (
    EdgeIndexClassifier,
    GraphSettings,
    cluster_layout,
    digit_graph,
    graph_from_arrays,
    isotropic_node_layout,
    metis_clusters,
)
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from tests.flat import certify_graph

from ..report.browser import Session, find_browser, open_browser
from ..results.synthetic import make_item, run_info

HOSTILE = "</script><script>alert('x')</script> & \"quoted\" <b>ε</b>"
KEEPS, SPARED, FALLS, WRONG = "#56b4e9", "#f0e442", "#d55e00", "#b9bec4"


class Guesses(torch.nn.Module):
    """Knows an answer for every node, some better than others, and is distracted by the node's own attributes."""

    def __init__(self, width: int, answers: np.ndarray) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        certainty = 2 + 5 * torch.rand(answers.size, 1, generator=generator)
        self.answers = torch.nn.functional.one_hot(torch.from_numpy(answers), 10) * certainty
        self.distraction = 0.25 * torch.randn(width, 10, generator=generator)

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        del edge_index
        return self.answers.repeat(len(attributes) // len(self.answers), 1) + attributes @ self.distraction


class OwnBit(torch.nn.Module):
    """Says of each node what its own first attribute is."""

    def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        del edge_index
        return torch.cat([1.5 - attributes[:, :1], attributes[:, :1]], 1)


@pytest.fixture(scope="module")
def results() -> dict[str, xr.Dataset]:
    """Localized and isotropic smoothing of one small graph with hostile names."""
    digits = digit_graph(per_digit=8)
    graph = graph_from_arrays(
        digits.adjacency, digits.attributes, digits.labels, class_names=(HOSTILE, *(f"d{n}" for n in range(1, 10)))
    )
    answers = np.where(np.arange(graph.nodes) % 9 == 0, (graph.labels + 1) % 10, graph.labels)
    classifier = EdgeIndexClassifier(Guesses(graph.width, answers).eval(), 10)
    local = cluster_layout(metis_clusters(graph, 3), graph.adjacency, addition=(0.1, 0.2), deletion=(0.4, 0.7))
    layouts = {HOSTILE: local, "isotropic": isotropic_node_layout(graph.nodes, addition=0.1, deletion=0.4)}
    nodes = np.flatnonzero(np.arange(graph.nodes) % 5 != 0)
    settings = GraphSettings(0.05, [0, 1, 2], [0, 1, 3, 6], bounds=DEFAULT_BOUNDS)
    return {
        name: certify_graph(
            classifier,
            graph,
            layout,
            nodes,
            plan=SamplingPlan(50, 400),
            settings=settings,
            name=name,
            graph_name=HOSTILE,
        )
        for name, layout in layouts.items()
    }


def test_the_file_holds_everything(results, tmp_path):
    first = results[HOSTILE]
    assert first["certified"].sel(additions=1, deletions=1, bound="envelope").min() > 0
    save(first, tmp_path / "result.nc")
    xr.testing.assert_identical(load(tmp_path / "result.nc").drop_attrs(), first.drop_attrs())


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lambda d: d.drop_vars("edge_ends"), "edge_ends"),
        (lambda d: d.assign(certified=d["certified"] + 1), "certified"),
        (lambda d: d.assign(certified=-d["certified"]), "certified"),
        (lambda d: d.assign(certified=d["certified"].astype(bool)), "certified"),
        (lambda d: d.assign_coords(additions=d["additions"] + 1), "additions"),
        (lambda d: d.assign(edge_ends=d["edge_ends"] + 1000), "edge_ends"),
        (lambda d: d.assign(node_place=d["node_place"] * np.nan), "node_place"),
        (lambda d: d.assign(alone=~d["alone"]), "alone"),
        (lambda d: d.assign(certified=d["certified"].where(d["deletions"] > 0, 0)), "grows with deletions"),
        (lambda d: d.assign_coords(kind=["deletions", "additions"]), "kind"),
        (lambda d: d.drop_vars("kind"), "coordinates"),
        (lambda d: d.drop_vars("alone"), "alone"),
        (lambda d: d.assign(attack=d["attack"] * np.nan), "attack"),
    ],
)
def test_damaged_tables_are_refused(results, damage, field):
    with pytest.raises(InvalidInputError, match=field):
        validate(damage(results[HOSTILE]))


def test_curves_of_one_kind_are_results_of_their_own(results):
    for dataset in results.values():
        for kind, other in (("additions", "deletions"), ("deletions", "additions")):
            curve = validate(kind_curve(dataset, kind))
            assert np.array_equal(curve["budget"], dataset[kind])
            assert np.array_equal(curve["certified"], dataset["certified"].sel({other: 0}))
            assert np.array_equal(curve["attack"], dataset["attack"].sel({other: 0, "kind": kind}))
            assert validate(kind_curve(curve)) is curve
        xr.testing.assert_identical(kind_curve(dataset), kind_curve(dataset, "deletions"))
        words = "adds at most 0 attribute bits and deletes at most ε"
        assert kind_curve(dataset, "deletions").attrs["threat"] == f"perturbation that {words}"
        with pytest.raises(InvalidInputError, match="additions, deletions"):
            kind_curve(dataset, "budget")


class Texts(HTMLParser):
    """Collects text and tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)

    def handle_data(self, data) -> None:
        self.texts.append(data)


def test_page_names_both_kinds_and_escapes_every_name(results):
    page = render_report(results, title=HOSTILE)
    parsed = Texts()
    parsed.feed(page)
    text = "".join(parsed.texts)
    for expected in ("Certified ratio, deletions only", "Certified accuracy, additions only", HOSTILE, "added bits"):
        assert expected in text
    assert parsed.tags.count("script") == 2
    assert "alert('x')</script>" not in page
    assert not re.search(r"(?:src|href)=[\"']?https?:", page)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert data["classNames"][0] == HOSTILE
    assert len(data["graphs"]) == 2
    # One heat map cell for each pair of budgets.
    assert page.count("data-a=") == 2 * 3 * 4


def test_graphs_and_pictures_do_not_share_a_page(results):
    other = build_dataset([make_item()], run_info(norm="l0", units="attribute bits"))
    with pytest.raises(InvalidInputError):
        render_report({"graph": results["isotropic"], "scenes": other})


@pytest.fixture(scope="module")
def browser() -> Iterator[Session]:
    found = find_browser()
    if found is None:
        pytest.skip("needs Chromium and chromedriver on the PATH (Debian: apt install chromium chromium-driver)")
    with open_browser(*found) as session:
        yield session


def _set(browser: Session, name: str, value: object) -> None:
    browser.run(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('input'));",
        name,
        value,
    )
    browser.settle()


def _node_colors(browser: Session, key: str, places: np.ndarray) -> np.ndarray:
    address = browser.run("return document.querySelector(`canvas[data-graph=${arguments[0]}]`).toDataURL()", key)
    picture = np.array(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))).convert("RGB"))
    side = len(picture)
    at = np.round(0.05 * side + places * 0.9 * side).astype(int)
    return picture[at[:, 1], at[:, 0]]


@pytest.mark.browser
def test_sliders_move_counts_map_and_drawing(browser: Session, results: dict[str, xr.Dataset], tmp_path: Path):
    write_report(results, tmp_path / "page.html", title=HOSTILE)
    browser.open(tmp_path / "page.html")
    browser.settle()
    assert browser.run("return document.title") == HOSTILE
    assert browser.run("return document.querySelectorAll('script').length") == 2
    names = ("keeps", "spared", "falls")
    seen = dict.fromkeys(names, 0)
    for addition, deletion, target, bound in (
        (0, 0, "ratio", "envelope"),
        (1, 1, "ratio", "lp"),
        (2, 2, "accuracy", "envelope"),
    ):
        for name, value in (("additions", addition), ("deletions", deletion), ("target", target), ("bound", bound)):
            _set(browser, f"graph-{name}", value)
        for number, dataset in enumerate(results.values()):
            item = dataset.isel(item=0, additions=addition, deletions=deletion).sel(target=target, bound=bound)
            text = browser.run(f"return document.querySelector('[data-graph-count=g{number}]').textContent")
            assert f"certified {int(item['certified'])} of {int(item['total'])}" in text
            assert f"attack found leaves {int(item['upper'])}" in text
            # Where a label or another dot does not cover it, a node's middle has the colour of its state.
            alive = (~item["ignored"] & (item["prediction"] >= 0)).values
            wrong = (item["prediction"] != item["label"]).values & (target == "accuracy")
            falls, alone = item["falls"].values, item["alone"].values
            states = {"falls": falls, "keeps": alone & ~falls, "spared": ~alone & ~falls}
            colors = _node_colors(browser, f"g{number}", item["node_place"].values)
            for name, color in zip(names, (KEEPS, SPARED, FALLS), strict=True):
                chosen = alive & ~wrong & states[name]
                seen[name] += chosen.sum()
                if chosen.any():
                    assert (colors[chosen] == rgb(color)).all(axis=1).mean() > 0.8
            if target == "accuracy" and (alive & wrong).any():
                assert (colors[alive & wrong] == rgb(WRONG)).all(axis=1).mean() > 0.8
    assert min(seen.values()) > 0
    browser.run("document.querySelector('#g0 rect[data-a=\"1\"][data-d=\"2\"]').dispatchEvent(new Event('click'))")
    browser.settle()
    assert browser.run("return document.getElementById('graph-additions-value').textContent") == "1"
    assert browser.run("return document.getElementById('graph-deletions-value').textContent") == "3"
    tip = """const c = document.querySelector('canvas[data-graph=g0]'), b = c.getBoundingClientRect();
    const [x, y] = [arguments[0], arguments[1]].map((v) => b.width * (0.05 + 0.9 * v));
    c.dispatchEvent(new PointerEvent('pointermove', {clientX: b.left + x, clientY: b.top + y}));
    return c.parentElement.querySelector('.tip').innerText"""
    places = results[HOSTILE]["node_place"].values[0]
    zero = int(np.flatnonzero(results[HOSTILE]["label"].values[0] == 0)[0])
    assert f"true: {HOSTILE}" in browser.run(tip, *places[zero].tolist())
    assert browser.console() == []


def test_nodes_are_drawn_in_the_colours_of_what_each_tolerates(results):
    dataset = results[HOSTILE]
    for kind, other in (("deletions", "additions"), ("additions", "deletions")):
        tolerated = tolerated_flips(dataset, kind)
        budgets = dataset[kind].values
        for node in (0, 1, 7, 20):
            kept = dataset["alone"].isel(item=0).sel({other: 0}).transpose(kind, ...).values[:, node]
            expected = max((budget for budget, holds in zip(budgets, kept, strict=True) if holds), default=np.nan)
            np.testing.assert_equal(tolerated[node], expected)
    ax = Figure().add_subplot()
    assert ls.plot.graph(dataset, ax=ax) is ax
    assert ax.get_title() == "deleted bits that a node tolerates, each alone"
    view = item_view(dataset, 0)
    edges, grey, hollow, coloured = ax.collections
    assert len(edges.get_paths()) == np.count_nonzero((dataset["edge_ends"].values[0] >= 0).all(axis=1))
    sizes = [len(each.get_offsets()) for each in (grey, hollow, coloured)]
    assert sizes[0] == np.count_nonzero(~view.counted)
    assert sum(sizes) == view.prediction.size
    assert len({tuple(color) for color in coloured.get_facecolors()}) > 1
    assert len(graph_figure(dataset).axes) == 4  # both kinds, with a bar of colours each
    with pytest.raises(InvalidInputError, match="no budget of edges above 0"):
        ls.plot.graph(dataset, "edges", ax=ax)
    drawn = [axes.get_title() for figure in sheets(dataset, "", 1) for part in figure.subfigs for axes in part.axes]
    assert sum("each alone" in title for title in drawn) == 2
