import base64
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from localsmooth.report import write_report
from localsmooth.report.palette import rgb
from localsmooth.results import build_dataset

from ..results.synthetic import make_item, run_info
from .browser import Session, find_browser, open_browser
from .test_html_report import NAME, hostile

pytestmark = pytest.mark.browser

RIGHT, HOME, END = "\ue014", "\ue011", "\ue010"
KEEPS, FALLS, WRONG = "#56b4e9", "#d55e00", "#b9bec4"


@pytest.fixture(scope="module")
def browser() -> Iterator[Session]:
    found = find_browser()
    if found is None:
        pytest.skip("needs Chromium and chromedriver on the PATH (Debian: apt install chromium chromium-driver)")
    with open_browser(*found) as session:
        yield session


def texts(browser: Session) -> list[str]:
    return browser.run("return Array.from(document.querySelectorAll('[data-count]'), e => e.textContent)")


def pictures(browser: Session, kind: str) -> list[str]:
    return browser.run(f"return Array.from(document.querySelectorAll('canvas[data-{kind}]'), e => e.toDataURL())")


def pixels(browser: Session, key: str) -> np.ndarray:
    address = browser.run("return document.querySelector(`canvas[data-outputs=${arguments[0]}]`).toDataURL()", key)
    return np.array(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))).convert("RGB"))


def choose(browser: Session, name: str, value: str) -> None:
    browser.run(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('input'));",
        name,
        value,
    )
    browser.settle()


def test_slider_moves_counts_plans_and_maps(browser: Session, results: dict[str, xr.Dataset], tmp_path: Path):
    write_report(results, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.settle()
    localized = results["localized"]
    browser.press("#budget", HOME)
    assert browser.run("return document.getElementById('epsilon').textContent") == "0"
    before, plans, maps = texts(browser), pictures(browser, "attack"), pictures(browser, "outputs")
    browser.press("#budget", RIGHT * 6)
    budget = localized["budget"].values[6]
    assert float(browser.run("return document.getElementById('epsilon').textContent")) == pytest.approx(budget)
    after = texts(browser)
    for old, new in zip(before, after, strict=True):
        assert old != new
    for kind, old in (("attack", plans), ("outputs", maps)):
        assert all(a != b for a, b in zip(old, pictures(browser, kind), strict=True)), kind
    for item, text in enumerate(after[:2]):
        chosen = localized.isel(item=item, budget=6).sel(target="ratio")
        assert f"certified {int(chosen['certified'].sel(bound='envelope'))} of 3063" in text
        assert f"each on its own: {int(chosen['certified'].sel(bound='naive'))} " in text
    # The other method has its own budgets: what counts is its next larger one.
    isotropic = results["isotropic"].sel(target="ratio", bound="envelope")
    place = int(np.searchsorted(isotropic["budget"].values, budget))
    assert f"certified {int(isotropic['certified'].isel(item=0, budget=place))} of 3063" in after[2]
    browser.press("#budget", END)
    assert "nothing was computed" in texts(browser)[2]
    assert browser.console() == []


def test_map_shows_which_outputs_stand_on_their_own(browser: Session, results: dict[str, xr.Dataset], tmp_path: Path):
    write_report(results, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.press("#budget", HOME + RIGHT * 5)
    item = results["localized"].isel(item=0)
    budget = float(item["budget"][5])
    scale = pixels(browser, "m0i0").shape[0] // 48
    shown = pixels(browser, "m0i0")[scale // 2 :: scale, scale // 2 :: scale]
    counted = (~item["ignored"] & (item["prediction"] >= 0)).values
    stands = (item["radius"] > budget).values
    assert (shown[counted & stands] == rgb(KEEPS)).all()
    assert (shown[counted & ~stands] == rgb(FALLS)).all()
    assert 0 < stands[counted].mean() < 1
    assert (shown[item["ignored"].values] == 255).all()
    choose(browser, "target", "accuracy")
    shown = pixels(browser, "m0i0")[scale // 2 :: scale, scale // 2 :: scale]
    wrong = counted & (item["prediction"] != item["label"]).values
    assert (shown[wrong] == rgb(WRONG)).all()
    assert (shown[counted & ~wrong & stands] == rgb(KEEPS)).all()
    count = int(item["certified"].sel(target="accuracy", bound="envelope").isel(budget=5))
    assert f"certified {count} of" in texts(browser)[0]
    choose(browser, "bound", "lp")
    count = int(item["certified"].sel(target="accuracy", bound="lp").isel(budget=5))
    assert f"certified {count} of" in texts(browser)[0]
    assert browser.console() == []


def test_curves_can_be_read_off(browser: Session, results: dict[str, xr.Dataset], tmp_path: Path):
    write_report(results, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    script = """const s = document.querySelector('svg[data-chart]'), b = s.getBoundingClientRect();
    s.dispatchEvent(new PointerEvent('pointermove', {clientX: b.left + b.width * (52 + arguments[0] * 470) / 540}));
    return s.parentElement.querySelector('.tip').innerText"""
    reach = browser.run("return JSON.parse(document.getElementById('data').textContent).charts[0].xMax")
    text = browser.run(script, 0.5 / reach)
    chosen = results["localized"].sel(target="ratio", bound="envelope").isel(budget=10)
    share = float((chosen["certified"] / results["localized"]["total"].sel(target="ratio")).mean())
    assert "ε = 0.5" in text
    assert f"localized · envelope: {int(share * 1000) / 10:.1f}\u2009%" in text
    assert browser.console() == []


def test_hostile_names_do_not_run(browser: Session, tmp_path: Path):
    write_report({NAME: hostile(NAME)}, tmp_path / "page.html", title=NAME)
    browser.open(tmp_path / "page.html")
    browser.press("#budget", RIGHT)
    assert browser.run("return document.title") == NAME
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert "certified" in texts(browser)[0]
    assert browser.console() == []


@pytest.mark.parametrize("size", [(150,), (5, 12, 14), (2, 3, 4, 5)])
def test_other_ranks_run_without_errors(browser: Session, size: tuple[int, ...], tmp_path: Path):
    label = (np.indices(size).sum(axis=0) // 5) % 3
    dataset = build_dataset([make_item(size=size, grid=(2,) * len(size), label=label)], run_info())
    write_report({"localized": dataset}, tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.press("#budget", HOME)
    before = texts(browser)
    browser.press("#budget", END)
    assert texts(browser) != before
    assert browser.console() == []


_BROKEN_WORDS = """
const broken = [];
for (const cell of document.querySelectorAll('td, th, dd, .tile p, li')) {
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    for (const match of walk.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(walk.currentNode, match.index);
      range.setEnd(walk.currentNode, match.index + match[0].length);
      if (new Set(Array.from(range.getClientRects(), one => one.top)).size > 1) broken.push(match[0]);
    }
  }
}
return broken;
"""


@pytest.mark.parametrize("width", [400, 1320])
def test_words_are_whole_and_a_single_chart_is_of_reading_size(browser: Session, tmp_path: Path, width: int):
    run = run_info(method="isotropic-with-a-rather-long-name")
    item = make_item("scene 1", 1, run=run)
    kept = {key: curve for key, curve in item.curves.items() if key[0] == "ratio"}
    unlabelled = dataclasses.replace(item, label=None, curves=kept)
    write_report(build_dataset([unlabelled], run), tmp_path / "page.html")
    browser.call("POST", "/window/rect", {"width": width, "height": 1400})
    try:
        browser.open(tmp_path / "page.html")
        browser.settle()
        assert browser.run("return document.querySelectorAll('.chart').length") == 1
        assert browser.run("return document.querySelector('.chart').getBoundingClientRect().width") <= 640
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.run(_BROKEN_WORDS) == []
    finally:
        browser.call("POST", "/window/rect", {"width": 1320, "height": 1400})
