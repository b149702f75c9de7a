"""The first screen: each answer against what the result says."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

from localsmooth.report.answers import answers
from localsmooth.report.summary import best_curve, headline_budget
from localsmooth.results import build_dataset

from ..results.synthetic import default_item, run_info


def said(*datasets: xr.Dataset, **named: xr.Dataset) -> dict[str, str]:
    results = named or {"one": datasets[0]}
    return {
        one.question: " | ".join(" ".join(sentences) for sentences in one.texts.values()).replace("\xa0", " ")
        for one in answers(results)
    }


def test_what_is_promised_is_the_share_at_the_headline(localized: xr.Dataset):
    budget = headline_budget(localized)
    share = best_curve(localized, "accuracy")[localized["budget"].values == budget].item()
    text = said(localized)["Promised"]
    assert f"At least {int(1000 * share) / 10:.1f} % of the outputs keep their correct prediction" in text
    assert f"of size {budget:.4g}" in text
    one = localized.sel(target="accuracy", budget=budget)
    each = (one["certified"].max("bound") / one["total"]).values
    assert f"mean over 2 inputs; of scene {each.argmin()}, the weakest, {int(1000 * each.min()) / 10:.1f} %" in text


def test_the_threat_the_model_and_the_data_are_those_of_the_result(localized: xr.Dataset):
    text, budget = said(localized), headline_budget(localized)
    assert f"Every perturbation of l2 norm at most {budget:.4g} (pixel values in [0, 1])." in text["Against"]
    levels = budget / np.sqrt(3 * 48 * 64) * 255
    assert f"{levels:.3g} grey levels of 255 a value" in text["Against"]
    assert "may know" in text["Against"]
    assert "model 01234567 under gaussian noise, σ from 0.2 to 1" in text["For"]
    assert "2 inputs (scene 0, scene 1): 6,126 of 6,144 outputs count, the others are ignored" in text["For"]


def test_confidence_is_for_each_input_and_for_all(localized: xr.Dataset):
    text = said(localized)["How sure"]
    assert "At least 99 % for each input on its own" in text
    assert "at least 98 % for all 2 inputs together (α = 0.01)" in text
    assert "Noisy inputs are clamped" in text  # the first assumption of the result
    assert "floating point, and taken for exactly gaussian" in text
    drawn = said(localized.assign_attrs(drawing_charge="1e-9"))["How sure"]
    assert "on a grid" in drawn
    assert "floating" not in drawn
    bits = run_info(smoothing=dataclasses.replace(run_info().smoothing, noise={"distribution": "sparse-flips"}))
    assert "Noise is" not in said(build_dataset([default_item()], bits))["How sure"]
    assert "together" not in said(localized.assign_attrs(alpha=0.5))["How sure"]


def test_what_is_not_said_names_abstentions_and_what_was_left_out(localized: xr.Dataset):
    text = said(localized)["Not said"]
    inside = ~localized["ignored"].values
    rate = (localized["prediction"].values[inside] == -1).mean()
    assert "Nothing about other inputs, other attacks, or the model without noise." in text
    assert f"{int(1000 * rate) / 10:.1f} % of the outputs abstain" in text or rate == 0
    never = localized.copy(deep=True)
    never["prediction"].values[never["prediction"].values == -1] = 0
    assert "None of the outputs abstains." in said(never)["Not said"]
    text = said(localized.assign_attrs(described="true", left_out='["a", "b"]'))["Not said"]
    assert "Counts are promised, nothing of any single one of the outputs." in text
    assert "2 inputs of the run are left out" in text


def test_agreement_is_with_clean_predictions(localized: xr.Dataset):
    assert "Clean model" not in said(localized)
    clean = localized.assign(clean=localized["candidate"].copy())
    inside = np.flatnonzero(~clean["ignored"].values.ravel())
    flat = clean["clean"].values.reshape(-1)
    flat[inside[:1000]] = (flat[inside[:1000]] + 1) % 3
    share = 1 - 1000 / inside.size
    assert f"{int(1000 * share) / 10:.1f} % of the outputs are predicted as without noise" in said(clean)["Clean model"]


def test_the_weakest_class_and_place_are_those_that_were_made_weak(localized: xr.Dataset):
    weak = localized.copy(deep=True)
    weak["radius"].values[...] = 0.5
    weak["prediction"].values[...] = np.where(weak["ignored"], -1, weak["label"])
    weak["radius"].values[weak["label"].values == 2] = 0.11
    text = said(weak)
    size = int((weak["label"] == 2).sum())
    budget = max(one for one in weak["budget"].values if one <= min(headline_budget(weak), 0.4999))
    assert text["Weakest class"].startswith(f"“block”: 0.0 % of its {size:,} outputs (by label)")
    assert f"an attack of size {budget:.4g} " in text["Weakest class"]
    weak["radius"].values[...] = 0.5
    weak["radius"].values[:, :16, -20:] = 0.11
    place = said(weak)["Weakest place"]
    assert place.startswith("The upper right: ")
    assert "measured" not in place
    assert "(measured, not promised)" in said(weak.assign_attrs(described="true"))["Weakest place"]


def test_nothing_is_weakest_where_all_are_alike(localized: xr.Dataset):
    alike = localized.copy(deep=True)
    alike["radius"].values[...] = 0.5
    alike["prediction"].values[...] = np.where(alike["ignored"], -1, alike["label"])
    assert not {"Weakest class", "Weakest place"} & said(alike).keys()


def test_other_promises_are_kept_apart(localized: xr.Dataset):
    text = said(localized.assign_attrs(proven="false"))
    assert text["Promised"].startswith("Nothing")
    assert text["How sure"].startswith("Not at all")
    assert "Weakest class" not in text
    own = said(localized.assign_attrs(promise='"something of its own"'))
    assert "wherever the smoothed model answers" in own["Promised"]
    assert "may know" not in own["Against"]
    assert "together" not in own["How sure"]
    assert "Weakest place" not in own


def test_what_several_methods_share_is_said_once(localized: xr.Dataset, isotropic: xr.Dataset):
    found = {one.question: one.texts for one in answers({"localized": localized, "isotropic": isotropic})}
    assert ("localized", "isotropic") in found["Against"]
    assert [list(texts) for texts in found.values() if len(texts) > 1]
    for texts in found.values():
        sentences = [sentence for some in texts.values() for sentence in some]
        assert len(sentences) == len(set(sentences))


@pytest.mark.parametrize(("task", "word"), [("points", "points"), ("tokens", "tokens"), ("graphs", "nodes")])
def test_outputs_go_by_their_name(localized: xr.Dataset, task: str, word: str):
    bare = localized.drop_vars("image").assign_attrs(task=json.dumps(task))
    assert f"of the {word} keep" in said(bare)["Promised"]
