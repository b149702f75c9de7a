import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import average_certifiable_radius, mean_curve
from localsmooth.report import render_report, write_report
from localsmooth.report.promise import BOUND_WORDS
from localsmooth.results import build_dataset

from ..results.synthetic import default_item, make_item, run_info


class Page(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "input", "rect", "line", "path"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("rect", "line", "path"):
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] in ("td", "th"):
            self.cells[-1][-1] += data
        else:
            self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(results: dict[str, xr.Dataset]) -> Page:
    return Page(render_report(results, title="A report"))


def test_page_is_whole_small_and_self_contained(results: dict[str, xr.Dataset], page: Page, tmp_path: Path):
    assert page.open == []
    for tag, attrs in page.elements:
        for name in ("src", "href", "srcset", "action", "xlink:href"):
            assert (attrs.get(name) or "data:").startswith("data:"), (tag, attrs)
    assert {tag for tag, _ in page.elements}.isdisjoint({"link", "iframe", "object", "embed", "base"})
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    write_report(results, tmp_path / "page.html")
    content = (tmp_path / "page.html").read_bytes()
    assert len(content) < 1_000_000
    assert b"url(" not in content
    assert b"@import" not in content


def test_only_the_pages_own_script_may_run(page: Page):
    policy = next(attrs["content"] for attrs in page.named("meta") if attrs.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy is not None
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}';" in policy


def test_the_promise_names_everything_it_depends_on(page: Page):
    text = " ".join(page.texts)
    facts = ["99 %", "α = 0.01", "N₁ = 100", "N₂ = 1000", "l2 norm", "pixel values in [0, 1]", "each item on its own"]
    for fact in [*facts, "clamped to [0, 1]", "float32", "Bonferroni"]:
        assert fact in text, fact


def test_methods_with_other_levels_make_promises_of_their_own(localized: xr.Dataset, isotropic: xr.Dataset):
    page = Page(render_report({"a": localized, "b": isotropic.assign_attrs(alpha=0.05), "c": localized}, max_items=0))
    text = " ".join(page.texts)
    assert "The promise of a, c." in text
    assert "The promise of b." in text
    assert "probability at least 99 %" in text
    assert "probability at least 95 %" in text


def test_counts_that_are_not_proven_promise_nothing(localized: xr.Dataset):
    page = Page(render_report({"as published": localized.assign_attrs(proven="false")}, max_items=1))
    text = " ".join(page.texts)
    assert "as published (NOT proven)" in page.texts
    assert "The promise. None." in " ".join(text.split())
    assert "provably" not in text
    assert "certify nothing" in text
    assert "NOT proven" in text
    assert "as published (NOT proven) · envelope" in text
    assert [row for row in page.cells if row[:3] == ["as published (NOT proven)", "Certified ratio", "envelope"]]


NAME = "<script>alert(1)</script>"


def hostile(item_name: str) -> xr.Dataset:
    item = default_item()
    curves = {(target, NAME): curve for (target, bound), curve in item.curves.items() if bound == "envelope"}
    run = run_info(
        class_names=(NAME, "'\"><img src=x onerror=alert(2)>", "</style></script>&amp;"),
        bound_names=(NAME,),
        norm=NAME,
        units=NAME,
        method=NAME,
        device=NAME,
        precision=NAME,
        versions={NAME: NAME},
        assumptions=(NAME,),
        configuration={NAME: "</pre>" + NAME},
    )
    return build_dataset([dataclasses.replace(item, name=item_name, curves=curves)], run)


def test_every_name_is_escaped(tmp_path: Path):
    text = render_report({NAME: hostile(NAME)}, title=NAME + "</title>")
    page = Page(text)
    assert page.open == []
    assert len(page.named("script")) == 2
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert not [attrs for _, attrs in page.elements if "onerror" in attrs or attrs.get("src") == "x"]
    assert [attrs["value"] for attrs in page.named("option")] == ["ratio", "accuracy", NAME]
    data = json.loads(page.scripts[0])
    assert data["charts"][0]["series"][0]["label"] == f"{NAME} · {NAME}"
    assert " ".join(page.texts).count(NAME) >= 8


def test_names_that_no_encoding_knows_do_not_stop_the_report(localized: xr.Dataset, tmp_path: Path):
    write_report({"lone \ud800 surrogate": localized}, tmp_path / "page.html", max_items=0)
    assert "lone ? surrogate" in (tmp_path / "page.html").read_text("utf-8")


def test_numbers_are_those_of_the_data_set(localized: xr.Dataset, isotropic: xr.Dataset, page: Page):
    heading = next(row for row in page.cells if row[3:4] == ["ACR"])
    assert heading[:5] == ["Method", "Target", "Bound", "ACR", "ε = 0"]
    row = next(row for row in page.cells if row[:3] == ["localized", "Certified ratio", "envelope"])
    one = localized.sel(target="ratio", bound="envelope")
    curve = mean_curve(one["certified"].values, localized["total"].sel(target="ratio").values)
    assert 0 <= average_certifiable_radius(localized["budget"].values, curve).value - float(row[3]) < 1e-4
    for text, budget in zip(row[4:], heading[4:], strict=True):
        place = int(np.argmin(abs(localized["budget"].values - float(budget.split()[-1]))))
        assert 0 <= curve[place] - float(text.rstrip(" %")) / 100 < 0.001
    shorter = next(row for row in page.cells if row[:3] == ["isotropic", "Certified ratio", "envelope"])
    assert shorter[-1] == "–"  # this budget was not computed for the method
    counts = json.loads(page.scripts[0])["cards"]["m0i1"]["certified"]["accuracy"]["lp"]
    assert counts == localized["certified"].sel(item="scene 1", target="accuracy", bound="lp").values.tolist()


def test_methods_meet_at_items_of_one_name(page: Page):
    assert set(json.loads(page.scripts[0])["cards"]) == {"m0i0", "m0i1", "m1i1"}


def test_attack_shares_are_those_of_the_plan(localized: xr.Dataset, page: Page):
    plan = np.array(json.loads(page.scripts[0])["cards"]["m0i0"]["attack"]["ratio"]["envelope"])
    attack = localized["attack"].sel(item="scene 0", target="ratio", bound="envelope").values
    assert plan[0].tolist() == [0] * 12
    np.testing.assert_allclose(plan[1:] * attack[1:].sum(axis=1, keepdims=True), attack[1:], atol=1e-4 * 4)


def test_long_lists_of_items_are_cut_and_say_so(localized: xr.Dataset):
    page = Page(render_report({"localized": localized}, max_items=1))
    assert "The first 1 of 2 items" in " ".join(page.texts)
    assert set(json.loads(page.scripts[0])["cards"]) == {"m0i0"}


def test_unlabelled_items_without_pictures():
    item = default_item()
    curves = {key: curve for key, curve in item.curves.items() if key[0] == "ratio"}
    bare = build_dataset([dataclasses.replace(item, label=None, image=None, ignored=None, curves=curves)], run_info())
    page = Page(render_report({"localized": bare}))
    assert [attrs["value"] for attrs in page.named("option")] == ["ratio", "envelope", "lp", "naive"]
    assert len(json.loads(page.scripts[0])["charts"]) == 1
    row = next(row for row in page.cells if row[0] == "localized" and "%" in row[3] and row[1] == "–")
    assert row[1:3] == ["–", "–"]


@pytest.mark.parametrize(("size", "maps"), [((150,), True), ((5, 12, 14), True), ((2, 3, 4, 5), False)])
def test_outputs_of_other_ranks(size: tuple[int, ...], maps: bool):
    label = (np.indices(size).sum(axis=0) // 5) % 3
    image = np.random.default_rng(0).random((2, *size)).astype(np.float32)
    grid = (3, 2, 2, 2)[: len(size)]
    dataset = build_dataset([make_item(size=size, grid=grid, label=label, image=image)], run_info())
    page = Page(render_report({"localized": dataset}))
    text = " ".join(page.texts)
    assert len(page.named("canvas")) == (2 if maps else 0)
    assert ("middle slice" in text) == (len(size) == 3)
    assert ("Maps are not shown" in text) == (not maps)


def test_a_single_budget_at_zero(localized: xr.Dataset):
    first = localized.isel(budget=[0])
    page = Page(render_report({"localized": first}))
    assert json.loads(page.scripts[0])["charts"][0]["xMax"] > 0


def test_results_that_cannot_be_shown_together_are_refused(localized: xr.Dataset):
    with pytest.raises(InvalidInputError, match="results"):
        render_report({})
    with pytest.raises(InvalidInputError, match="max_items"):
        render_report({"a": localized}, max_items=-1)
    with pytest.raises(InvalidInputError, match="format"):
        render_report({"a": xr.Dataset()})
    for change in ({"norm": "l1"}, {"units": "volts"}, {"class_names": '["a", "b", "c"]'}):
        with pytest.raises(InvalidInputError, match=re.escape(next(iter(change)))):
            render_report({"a": localized, "b": localized.assign_attrs(change)})


def test_the_page_says_what_it_is_about(results: dict[str, xr.Dataset]):
    page = Page(render_report(results))
    said = {row[0]: row[1:] for row in page.cells if len(row) == 3}
    assert said["Model (fingerprint)"] == ["0123456789abcdef"] * 2
    assert said["Noise"] == ["gaussian, clamp; σ from 0.2 to 1"] * 2
    assert said["Seed"] == ["3"] * 2
    assert said["Samples complete"] == ["2026-01-31T12:34:56+00:00"] * 2
    assert said["Certified by"] == ["localsmooth 0.1.0"] * 2
    text = " ".join(page.texts)
    assert "is the largest computed budget at which one of the methods certifies" in text
    assert text.count("Average certifiable radius: ") == 2
    assert "it is not the time that passed" in text
    for name in ("naive", "lp", "envelope"):
        assert BOUND_WORDS[name] in text
    assert BOUND_WORDS["exact"] not in text


def test_results_that_do_not_say_what_they_are_about_have_a_page(localized: xr.Dataset):
    older = build_dataset([default_item()], run_info(smoothing=None, method="older"))
    assert "Which smoothed classifier" not in render_report({"older": older})
    page = Page(render_report({"localized": localized, "older": older}))
    assert ["Seed", "3", "not recorded"] in page.cells


def test_maps_of_single_outputs_claim_nothing_where_counts_alone_are_promised(localized: xr.Dataset):
    counted = build_dataset([default_item()], run_info(described=True, method="counted"))
    page = " ".join(Page(render_report({"localized": localized, "counted": counted})).texts)
    assert "The certified numbers of counted are promised, and nothing of single outputs" in page
    assert page.count("Certified radius of each output on its own") == 2  # one an item
    assert page.count("Radius of each output by a bound of its own") == 1
    assert "by a bound of its own" not in " ".join(Page(render_report({"localized": localized})).texts)
