"""IoU and Dice of finished runs: against all outcomes of tiny ones, in files, on the page and on the terminal."""

from __future__ import annotations

import csv
import inspect
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.bounds import JointCount, KFamilywise
from localsmooth.cli.app import app
from localsmooth.errors import InvalidInputError
from localsmooth.report import write_report
from localsmooth.results import load_overlaps, save_overlaps
from localsmooth.tasks import RunRecordError
from tests.collective.test_overlap import _real_spendings, brute_force
from tests.tiny_runs import SECTIONS, configuration, write_inputs

SHAPE = (3, 3)
N, ALPHA, BUDGETS = 400, 0.1, (0.0, 0.1, 0.2, 0.3)
LEVELS = np.array([0.3, 0.6])
LABEL = np.array([[0, 1, 2], [2, 1, 1], [0, 0, 2]])


def thirds(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > -0.4).astype(np.int64) + (batch[:, 0] > 0.4)


def task(label: np.ndarray | None = LABEL, ignore: int | None = None) -> ls.ArrayTask:
    image = np.array([[-0.9, 0.0, 0.9], [1.2, 0.1, -0.5], [-1.1, -0.6, 1.0]], np.float32)[None]
    model = ls.CallableModel(thirds, name="thirds", bounds=None, classes=3, output=ls.OutputKind.LABELS)
    labels = None if label is None else [label, label]
    return ls.ArrayTask(model, [image, image - 0.2], labels, ignore_label=ignore, class_names=["low", "[mid]", "high"])


def sampled(out: Path, made: ls.ArrayTask, **changes: Any) -> Path:
    columns = ls.GridLayout((1, 3), *LEVELS)
    plan = ls.SamplingPlan(50, N, seed=3, chunk_size=200)
    settings = ls.Settings(**({"alpha": ALPHA, "budgets": BUDGETS} | changes))
    ls.certify(made, ls.Smoothing(columns, plan), settings, run=ls.Run(out))
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sampled(tmp_path_factory.mktemp("overlap") / "run", task())


@pytest.mark.parametrize("item", [0, 1])
def test_no_outcome_lies_below_and_exact_reaches_the_least(run: Path, item: int) -> None:
    """Certificates are made anew, from the stored votes alone, and everything that falls takes every class."""
    result = ls.load_result(run / "result.nc").isel(item=item)
    votes, candidate = result["votes"].values.ravel(), result["candidate"].values.ravel().astype(np.int64)
    group = np.tile([0, 1, 2], 3)
    lower = stats.beta.ppf(ALPHA / 9, votes, N - votes + 1)
    eta = np.where(lower > 0.5, stats.norm.ppf(np.maximum(lower, 0.5)) ** 2, 0.0)
    sigma = LEVELS[0] + (LEVELS[1] - LEVELS[0]) * np.abs(np.arange(3)[:, None] - np.arange(3)) / 2
    found = {
        bound: ls.certified_overlap(run, items=item, bound=bound, tolerance=1e-4) for bound in ("envelope", "exact")
    }
    strict = 0
    for place, budget in enumerate(BUDGETS):
        case = {"weights": [1 / sigma**2], "eta": [eta], "group": group, "A": np.ones((1, 3)), "caps": [np.inf] * 3}
        stands = _real_spendings(case | {"c": np.array([budget**2])})
        least, mean = brute_force(stands, candidate, LABEL.ravel())
        for bound, made in found.items():
            at = made.isel(item=0, budget=place)
            for c in range(3):
                for name in ("iou", "dice"):
                    low, high = at[name].values[c], at[f"{name}_upper"].values[c]
                    assert Fraction(low) <= least[name, c] <= Fraction(high)
                    strict += low > 0
                    if bound == "exact":
                        assert float(least[name, c]) - low < 2e-4
            for name in ("iou", "dice"):
                assert Fraction(at[f"mean_{name}"].item()) <= mean[name] <= Fraction(at[f"mean_{name}_upper"].item())
    assert strict > 10  # something is certified
    measured = found["exact"].isel(item=0)
    assert (measured["iou"].isel(budget=0) <= measured["candidate_iou"] + 1e-12).all()
    hit = (candidate == LABEL.ravel()) & (candidate == 1)
    assert measured["candidate_iou"].values[1] == pytest.approx(
        hit.sum() / ((candidate == 1) | (LABEL.ravel() == 1)).sum()
    )


def test_ignored_outputs_play_no_role_and_absent_classes_are_not_known(tmp_path: Path) -> None:
    label = np.where(LABEL == 2, 255, LABEL)
    out = sampled(tmp_path / "run", task(label, 255))
    made, result = ls.certified_overlap(out), ls.load_result(out / "result.nc")
    assert made["iou"].isel({"class": 2}).isnull().all()
    assert made["iou"].isel({"class": [0, 1]}).notnull().all()
    np.testing.assert_allclose(made["mean_iou"], made["iou"].mean("class"))
    for place, prediction in enumerate(result["prediction"].values):
        for c in range(2):
            hit, spared = (label == c) & (prediction == c), (label == 1 - c) & ~np.isin(prediction, [c, -1])
            left = hit.sum() / ((label < 2).sum() - spared.sum())
            assert made["iou"].isel(item=place, budget=0).values[c] == pytest.approx(left, abs=1e-12)


@pytest.mark.parametrize("rule", [JointCount(), JointCount(spare=5), KFamilywise(2)], ids=str)
def test_rules_for_counts_certify_overlaps_too(run: Path, rule: Any) -> None:
    every = ls.certified_overlap(run)
    made = ls.certified_overlap(run, simultaneous=rule)
    assert ((made["iou"] >= 0) & (made["iou"] <= made["iou_upper"])).all()
    assert (made["iou"].isel(budget=0) <= made["candidate_iou"] + 1e-12).all()
    assert float(made["mean_iou"].isel(budget=0).min()) > 0
    # One bound may be wrong besides: nowhere is that better for outputs with equal bounds by more than the level gives.
    assert made.attrs["assumptions"] != every.attrs["assumptions"]
    assert rule.name in made.attrs["assumptions"]


def test_budgets_and_rules_may_change_and_items_be_chosen(run: Path) -> None:
    every = ls.certified_overlap(run)
    one = ls.certified_overlap(run, items=["item 1"], budgets=[0.1, 0.3], alpha=0.2)
    assert one["item"].values.tolist() == [every["item"].values[1]]
    assert one["budget"].values.tolist() == [0.1, 0.3]
    assert one.attrs["alpha"] == 0.2
    assert (one["iou"].isel(item=0).values >= every["iou"].isel(item=1, budget=[1, 3]).values - 2e-3).all()
    assert ls.certified_overlap(run, items=1).equals(ls.certified_overlap(run, items="1"))


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("items", {"items": "item 7"}),
        ("items", {"items": 2}),
        ("items", {"items": [-1]}),
        ("items", {"items": [True]}),
        ("items", {"items": [0.5]}),
        ("items", {"items": 1.5}),
        ("items", {"items": {0: 1}}),
        ("bound", {"bound": "best"}),
        ("epsilon", {"epsilon": 3}),
        ("method", {"method": ls.baselines.Cohen()}),
    ],
)
def test_bad_arguments_name_themselves(run: Path, field: str, arguments: dict[str, Any]) -> None:
    unchecked = inspect.unwrap(ls.certified_overlap)  # users have no type checker that speaks first
    with pytest.raises(InvalidInputError) as caught:
        unchecked(run, **arguments)
    assert caught.value.field == field


def test_runs_without_labels_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="labels: item 0 has none"):
        ls.certified_overlap(sampled(tmp_path / "none", task(None)))
    with pytest.raises(RunRecordError, match="no finished run"):
        ls.certified_overlap(tmp_path)
    with pytest.raises(RunRecordError, match="nowhere is no directory"):
        ls.certified_overlap(tmp_path / "nowhere")


def test_files_are_whole_or_refused(run: Path, tmp_path: Path) -> None:
    made = ls.certified_overlap(run)
    path = tmp_path / "overlap.nc"
    save_overlaps(made, path)
    back = load_overlaps(path)
    xr.testing.assert_identical(back.drop_attrs(deep=False), made.drop_attrs(deep=False))
    for change in (
        {"iou": made["iou"] + 0.01},  # above what an attack leaves, or above 1
        {"mean_iou": made["mean_iou"] - 2},
        {"dice": made["dice"].astype(str)},
        {"further": made["iou"]},
    ):
        with pytest.raises(InvalidInputError):
            save_overlaps(made.assign(change), path)
    with pytest.raises(InvalidInputError, match="variables"):
        save_overlaps(made.drop_vars("dice"), path)
    with pytest.raises(InvalidInputError, match="format"):
        save_overlaps(ls.load_result(run / "result.nc"), path)
    lower = back.assign(iou=back["iou"] * 0.5)  # consistent, and not what was written
    lower.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InvalidInputError, match="checksum"):
        load_overlaps(path)
    with pytest.raises(InvalidInputError):
        ls.load_result(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InvalidInputError):
        load_overlaps(path)


def test_tables_hold_every_number(run: Path, tmp_path: Path) -> None:
    made = ls.certified_overlap(run)
    save_overlaps(made, tmp_path / "overlap.csv")
    rows = list(csv.DictReader((tmp_path / "overlap.csv").open(encoding="utf-8")))
    assert len(rows) == 2 * 4 * len(BUDGETS)
    one = next(row for row in rows if (row["item"], row["class"], row["budget"]) == ("item 1", "[mid]", "0.2"))
    assert float(one["dice_upper"]) == made["dice_upper"].sel({"item": "item 1", "class": "[mid]", "budget": 0.2})
    mean = next(row for row in rows if (row["item"], row["class"], row["budget"]) == ("item 0", "mean", "0.1"))
    assert float(mean["iou"]) == made["mean_iou"].sel({"item": "item 0", "budget": 0.1})


def test_page_shows_overlaps_of_the_same_samples_alone(run: Path, tmp_path: Path) -> None:
    result, made = ls.load_result(run / "result.nc"), ls.certified_overlap(run)
    plain, shown = tmp_path / "plain.html", tmp_path / "shown.html"
    write_report({"one": result}, plain)
    write_report({"one": result}, shown, overlaps={"one": made})
    text = shown.read_text(encoding="utf-8")
    assert "How much of the IoU is certified" not in plain.read_text(encoding="utf-8")
    assert "How much of the IoU is certified" in text
    assert "the IoU and the Dice of every class" in text
    assert "one · attack leaves" in text
    other = sampled(tmp_path / "other", task(np.where(LABEL == 0, 1, LABEL)))
    for overlaps in ({"two": made}, {"one": ls.certified_overlap(sampled(tmp_path / "joint", _moved()))}):
        with pytest.raises(InvalidInputError, match="overlaps"):
            write_report({"one": result}, shown, overlaps=overlaps)
    assert other.exists()


def test_overlaps_leave_with_the_result_that_they_belong_to(tmp_path: Path) -> None:
    """The same samples with other labels: nothing in the overlaps says which labels they are about."""
    out = sampled(tmp_path / "run", task())
    save_overlaps(ls.certified_overlap(out), out / "overlap.nc")
    sampled(tmp_path / "run", task())
    assert (out / "overlap.nc").exists()
    with pytest.warns(UserWarning, match=r"result-1\.nc"):
        sampled(out, task(np.where(LABEL == 0, 255, LABEL), 255))
    assert not (out / "overlap.nc").exists()
    assert load_overlaps(out / "overlap-1.nc").sizes["item"] == 2


def _moved() -> ls.ArrayTask:
    made = task()
    return ls.ArrayTask(made.model, [item.image + 0.1 for item in made.items], [LABEL, LABEL])


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_inputs(tmp_path, np.random.default_rng(0).random((2, 1, 6, 8), dtype=np.float32))
    data = SECTIONS["data"] + 'class_names = ["dark", "<b>[red]bright</b>"]'
    (tmp_path / "run.toml").write_text(configuration(data=data))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")

    def invoke(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)

    out = tmp_path / "run"
    assert invoke("certify", tmp_path / "run.toml", "--out", out).exit_code == 0
    done = invoke("overlap", out)
    assert done.exit_code == 0
    assert "[red]bright" in done.output
    assert "attack leaves" in done.output
    assert load_overlaps(out / "overlap.nc").sizes["item"] == 2
    assert invoke("report", out).exit_code == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "How much of the IoU is certified" in page
    assert "<b>[red]" not in page
    table = tmp_path / "one.csv"
    assert invoke("overlap", out, "--item", 1, "--budgets", "0:0.2:3", "--alpha", 0.1, "--to", table).exit_code == 0
    assert len(table.read_text(encoding="utf-8").splitlines()) == 1 + 3 * 3
    with pytest.raises(InvalidInputError, match="--deletions"):
        invoke("overlap", out, "--deletions", "0,1")
    with pytest.raises(InvalidInputError, match="items"):
        invoke("overlap", out, "--item", "nowhere")
