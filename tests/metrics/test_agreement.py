"""What is left of the predictions without noise."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import xarray as xr
from rich.console import Console

from localsmooth.certificates import ABSTAIN
from localsmooth.cli.summary import print_summary
from localsmooth.metrics import CleanAgreement, Kept, clean_agreement
from localsmooth.report import render_report
from localsmooth.results import CertifiedCurve, ItemResult, Stake, build_dataset, load, save

from ..results.synthetic import BUDGETS, run_info

RUN = run_info(bound_names=("naive",))
#                 sky               cat           dog    ignored
CLEAN = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 1])
CANDIDATE = np.array([0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 2, 0, 0])
PREDICTION = np.array([0, 0, 0, 0, ABSTAIN, 0, 1, ABSTAIN, 0, 0, 0, 2, 0, 0])


def item(name: str = "one", clean: np.ndarray | None = CLEAN, target: str = "agreement") -> ItemResult:
    """An item whose first outputs are sky, most of whose cats are lost, and whose targets are made up."""
    alive = PREDICTION != ABSTAIN
    count = len(BUDGETS)
    flat = np.zeros(count)
    ratio = CertifiedCurve(np.full(count, 9), flat + 9.0, flat + 9.0, np.zeros((count, 1)))
    other = CertifiedCurve(np.full(count, 3), flat + 3.0, flat + 3.0, np.zeros((count, 1)))
    zeros = np.zeros(CLEAN.size, np.int64)
    return ItemResult(
        name, None, np.arange(CLEAN.size) == 13, CANDIDATE, PREDICTION, zeros + 9, alive * 0.9, alive * 1.0,
        alive * 0.5, zeros, zeros, {("ratio", "naive"): ratio, (target, "naive"): other},
        clean=clean, stakes={target: Stake(8.0, 13.0, target == "agreement")},
    )  # fmt: skip


def result(*items: ItemResult) -> xr.Dataset:
    return build_dataset(items, dataclasses.replace(RUN, class_names=("sky", "cat", "dog")))


def test_agreement_by_hand(tmp_path):
    save(result(item()), tmp_path / "r.nc")
    made = clean_agreement(load(tmp_path / "r.nc"))
    assert made is not None
    assert made.overall == Kept("", 13, 9, 7)
    assert made.classes == (Kept("sky", 6, 6, 5), Kept("cat", 5, 2, 1), Kept("dog", 2, 1, 1))
    assert made.differs


def test_units_say_which_targets_are_no_numbers_of_outputs():
    made = result(item(target="balanced"))
    assert made["certified"].attrs["units"] == "outputs; for balanced what outputs are worth"
    assert result(item())["total"].attrs["units"] == "outputs"


def test_items_add_up_and_those_without_clean_predictions_do_not_count():
    made = clean_agreement(result(item("a"), item("b"), item("c", None)))
    assert made is not None
    assert made.overall == Kept("", 26, 18, 14)


def test_a_class_that_is_lost_is_named_and_one_that_keeps_half_is_not():
    made = clean_agreement(result(item()))
    assert made is not None
    (sentence,) = made.warnings
    assert sentence.startswith(
        "Smoothing loses the class 'cat': of 5 outputs that the model predicts as it without noise, 40 % keep it."
    )


def test_many_classes_that_are_lost_are_one_sentence():
    lost = tuple(Kept(f"class {k}", 10, k % 5, 0) for k in range(8))
    (sentence,) = CleanAgreement(Kept("", 80, 16, 0), (*lost, Kept("sky", 10, 9, 9))).warnings
    assert sentence.startswith("Smoothing loses 8 of 9 classes")
    assert "worst 'class 0' (0 % of 10), 'class 5' (0 % of 10), 'class 1' (10 % of 10)." in sentence


def shown(dataset: xr.Dataset) -> tuple[str, str]:
    """What the console and the page say."""
    text = io.StringIO()
    print_summary({"tiny": dataset}, Console(file=text, width=400))
    return text.getvalue(), render_report({"tiny": dataset})


def test_console_and_page_say_it_without_labels():
    for text in shown(result(item())):
        assert "Smoothing loses the class" in text
        assert "69.2 %" in text  # candidates, of all
        assert "53.8 %" in text  # without abstaining
        for share in ("100.0 %", "83.3 %", "40.0 %", "20.0 %", "50.0 %"):
            assert share in text
        assert "ertified agreement with the clean model" in text


def test_results_of_before_say_nothing_of_it():
    dataset = result(item(clean=None))
    assert clean_agreement(dataset) is None
    for text in shown(dataset):
        assert "lean model:" not in text
        assert "Smoothing loses" not in text
        assert "Clean outputs" not in text


def test_the_headline_without_labels_is_what_agrees_and_the_ratio_comes_second():
    _, page = shown(result(item()))
    assert 'class="big">23.0 %' in page
    assert "of the outputs provably keep the clean model&#39;s prediction at ε = 0.05 (one item)" in page
    assert "Whichever prediction it is: 69.2\u00a0%" in page


def test_sums_of_weights_are_shown_as_shares():
    text, page = shown(result(item(target="my weights")))
    assert "certified share by my weights" in text
    assert '<option value="my weights">Certified share by my weights</option>' in page
    assert '"counts":["ratio"]' in page
    assert "of the share by my weights provably stands" in page
