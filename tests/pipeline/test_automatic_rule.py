"""The rule that the candidate stage chooses, in whole runs: what is certified, said, kept and allowed afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsmooth.baselines import Cohen, ReceptiveFields, SegCertify
from localsmooth.bounds import Automatic, Bonferroni, JointAndBonferroni, JointCount
from localsmooth.certificates import GaussianScores
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress, Until
from localsmooth.graphs import GraphSettings
from localsmooth.layout import GridLayout
from localsmooth.pipeline import settings_of, walk
from localsmooth.results import run_info
from localsmooth.runs import DirectoryStore, SamplingPlan, Stage
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import FINISHED, StopWhenDecided, load_record, save_record
from localsmooth.tasks.arrays import Settings
from tests.flat import certify, recertify
from tests.pipeline.models import threshold_model

FEW, MANY = (4, 6), (48, 64)
SURE, ROUGH = -1.0, -0.45
ASKED: dict[str, Any] = {"alpha": 0.05, "budgets": [0.0, 0.2]}


def run(
    out: Path | None,
    shape: tuple[int, int],
    threshold: float,
    n_bound: int = 400,
    stop: Any = None,
    items: int = 2,
    until: Until | None = None,
    **asked: Any,
):
    return certify(
        threshold_model(np.full(shape, threshold)),
        np.zeros((items, 1, *shape), np.float32),
        settings=Settings(**ASKED, **asked),
        layout=GridLayout((2, 3), 0.3, 0.6),
        plan=SamplingPlan(n_candidate=40, n_bound=n_bound, seed=1, stop=stop),
        options=SamplingOptions(batch_size=100, check_model=False),
        progress=NoProgress(),
        out=out,
        **({} if until is None else {"until": until}),
    )


def said(result: Any) -> str:
    return "\n".join(run_info(result).assumptions)


@pytest.mark.parametrize(
    ("shape", "threshold", "rule"), [(FEW, ROUGH, Bonferroni()), (MANY, SURE, JointAndBonferroni())]
)
def test_what_is_chosen_is_what_is_certified_and_said(
    tmp_path: Path, shape: tuple[int, int], threshold: float, rule: Any
) -> None:
    made = run(tmp_path, shape, threshold)
    named = recertify(tmp_path, settings=Settings(**ASKED, simultaneous=rule))
    for variable in ("certified", "upper", "eta", "lower_probability"):
        np.testing.assert_array_equal(made[variable], named[variable])
    assert f"by {rule.name}" in said(made)
    assert run_info(made).described == isinstance(rule, JointAndBonferroni)
    assert "chosen from the candidate stage" in said(made)
    assert "chosen from the candidate stage" not in said(named)
    assert settings_of(tmp_path).simultaneous == Automatic()
    np.testing.assert_array_equal(recertify(tmp_path)["certified"], made["certified"])


def test_each_item_has_the_rule_that_suits_it(tmp_path: Path) -> None:
    made = certify(
        threshold_model(np.full((12, 12), ROUGH)),
        [np.full((1, 12, 12), fill, np.float32) for fill in (0.0, 30.0)],
        settings=Settings(**ASKED),
        layout=GridLayout((2, 3), 0.3, 0.6),
        plan=SamplingPlan(n_candidate=40, n_bound=128, seed=1),
        options=SamplingOptions(batch_size=100, check_model=False),
        progress=NoProgress(),
        out=tmp_path,
    )
    each = {
        rule: recertify(tmp_path, settings=Settings(**ASKED, simultaneous=rule))
        for rule in (JointAndBonferroni(), Bonferroni())
    }
    chosen = [
        {
            rule
            for rule, other in each.items()
            if (other["lower_probability"][item] == made["lower_probability"][item]).all()
        }
        for item in range(2)
    ]
    assert chosen == [{Bonferroni()}, {JointAndBonferroni()}], said(made)
    assert "bonferroni for 1 of 2 items (item 0)" in said(made)
    assert "joint_and_bonferroni for 1 of 2 items (item 1)" in said(made)


def test_a_run_of_many_outputs_may_go_on(tmp_path: Path) -> None:
    run(tmp_path, MANY, SURE)
    made = run(tmp_path, MANY, SURE, n_bound=600)
    assert "joint_count holds at every number of samples at once" in said(made)
    np.testing.assert_array_equal(recertify(tmp_path)["certified"], made["certified"])


def test_a_run_of_few_outputs_may_not_go_on_and_nothing_is_drawn(tmp_path: Path) -> None:
    run(tmp_path, FEW, ROUGH)
    with pytest.raises(InvalidInputError, match="chosen when the run began") as caught:
        run(tmp_path, FEW, ROUGH, n_bound=600)
    assert "JointCount" in str(caught.value)
    with DirectoryStore(tmp_path, read_only=True) as store:
        assert store.merged(0, 0, Stage.BOUND).n == 400
    assert recertify(tmp_path)["certified"].size


def test_a_run_that_was_never_certified_may_not_go_on_before_its_rule_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, FEW, ROUGH)
    (tmp_path / FINISHED).unlink()

    def refused(words: str) -> None:
        with pytest.raises(InvalidInputError, match=words):
            run(tmp_path, FEW, ROUGH, n_bound=600)
        with DirectoryStore(tmp_path, read_only=True) as store:
            assert store.merged(0, 0, Stage.BOUND).n == 400

    refused("chosen when the run began")
    monkeypatch.setattr(walk, "unfinished_items", lambda *_: [0])
    refused("end with n_bound = 400 first")


@pytest.mark.filterwarnings("error:.*do not hold together")
def test_what_was_begun_automatically_goes_on_as_one_claim(tmp_path: Path) -> None:
    run(tmp_path, MANY, SURE)
    made = run(tmp_path, MANY, SURE, n_bound=600, until=Until(seconds=3600))
    assert load_record(tmp_path).settings["simultaneous"] == {"name": "automatic"}
    half = recertify(tmp_path, settings=Settings(0.025, ASKED["budgets"], simultaneous=JointCount()))
    np.testing.assert_array_equal(made["certified"], half["certified"])


@pytest.mark.filterwarnings("error:.*do not hold together")
@pytest.mark.parametrize("shape", [FEW, MANY])
def test_what_was_begun_by_counting_goes_on_counting(tmp_path: Path, shape: tuple[int, int]) -> None:
    run(tmp_path, shape, ROUGH, until=Until(seconds=3600))
    for number in (400, 600):
        made = run(tmp_path, shape, ROUGH, n_bound=number)
        named = recertify(tmp_path, settings=Settings(**ASKED, simultaneous=JointCount()))
        np.testing.assert_array_equal(made["certified"], named["certified"])


def test_what_was_named_for_another_certificate_is_no_concern_of_this_one(tmp_path: Path) -> None:
    alone = run(None, FEW, ROUGH)
    run(tmp_path, FEW, ROUGH, simultaneous=JointCount())
    with pytest.warns(UserWarning, match="another certificate"):
        made = run(tmp_path, FEW, ROUGH)
    assert load_record(tmp_path).settings["simultaneous"] == {"name": "automatic"}
    np.testing.assert_array_equal(made["certified"], alone["certified"])


@pytest.mark.filterwarnings("ignore:.*do not hold together")
def test_the_record_says_whether_counting_was_chosen(tmp_path: Path) -> None:
    """Naming it in between does not change what the run goes on by; records of earlier versions may be either."""

    def counted(**how: Any) -> tuple[str, bool | None]:
        run(tmp_path, FEW, ROUGH, **how)
        record = load_record(tmp_path)
        return record.settings["simultaneous"]["name"], record.counted

    assert counted(simultaneous=JointCount()) == ("joint_count", False)
    save_record(replace(load_record(tmp_path), counted=None), tmp_path)
    assert counted() == ("joint_count", None)
    assert counted(until=Until(seconds=3600)) == ("joint_count", True)
    assert counted(simultaneous=JointCount()) == ("joint_count", True)
    assert counted() == ("joint_count", True)
    assert counted(simultaneous=Bonferroni()) == ("bonferroni", False)
    assert counted() == ("automatic", False)
    assert counted(simultaneous=JointCount()) == ("joint_count", False)
    assert counted(n_bound=600) == ("joint_count", True)


@pytest.mark.parametrize("before", [{"simultaneous": Bonferroni()}, {}])
def test_an_interrupted_certificate_does_not_vouch_for_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, Any]
) -> None:
    """What a directory holds is asked itself, and not the record of a certification that wrote no result."""
    run(tmp_path, FEW, ROUGH, **before)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(walk, "save_result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, FEW, ROUGH, simultaneous=JointCount())
    with pytest.warns(UserWarning, match="do not hold together"):
        run(tmp_path, FEW, ROUGH, simultaneous=JointCount())


@pytest.mark.parametrize("threshold", [SURE, ROUGH, -0.75])
def test_half_of_alpha_each_keeps_what_either_half_certifies(tmp_path: Path, threshold: float) -> None:
    run(tmp_path, (12, 18), threshold, items=1)
    asked = {"budgets": np.linspace(0, 1.2, 9), "bounds": ["naive", "exact"]}

    def certified(alpha: float, rule: Any) -> np.ndarray:
        return recertify(tmp_path, settings=Settings(alpha, **asked, simultaneous=rule))["certified"].values

    both = certified(0.05, JointAndBonferroni())
    naive = [certified(0.025, rule)[..., 0, :] for rule in (JointCount(), Bonferroni())]
    np.testing.assert_array_equal(both[..., 0, :], np.maximum(*naive))
    assert (both[..., 1, :] >= both[..., 0, :]).all()


def test_the_choice_is_that_of_the_number_of_samples_that_a_run_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, MANY, SURE)
    asked: list[int] = []

    def choose(self: Automatic, candidates: Any, n_bound: int, alpha: float, group: Any, *, divide: bool) -> JointCount:
        del self, candidates, alpha, group, divide
        asked.append(n_bound)
        return JointCount()

    monkeypatch.setattr(Automatic, "choose", choose)
    run(tmp_path, MANY, SURE, n_bound=600)
    recertify(tmp_path)
    assert set(asked) == {400}


def test_early_stopping_counts() -> None:
    made = run(None, FEW, ROUGH, stop=StopWhenDecided())
    assert "by joint_count" in said(made)


def test_bonferroni_where_no_count_can_be_bounded() -> None:
    assert Settings(**ASKED).simultaneous == Automatic()
    assert Settings(**ASKED, certificates=[GaussianScores()]).simultaneous == Bonferroni()
    assert Settings(**ASKED, method=ReceptiveFields(3)).simultaneous == Bonferroni()
    assert Settings(**ASKED, method=SegCertify()).simultaneous == Bonferroni()
    assert Settings(**ASKED, method=Cohen()).simultaneous == Automatic()
    assert GraphSettings(0.01, strictly_local=True).simultaneous == Bonferroni()
    assert GraphSettings(0.01).simultaneous == Automatic()


def test_the_better_way_to_count_stands_at_each_budget(tmp_path: Path) -> None:
    """What all strata share is worth its price for the whole, and not for a class of few outputs."""
    thresholds = np.linspace(-1.2, 0.1, MANY[0] * MANY[1]).reshape(MANY)
    certify(
        threshold_model(thresholds),
        np.zeros((1, 1, *MANY), np.float32),
        (np.arange(thresholds.size).reshape(1, *MANY) % 37 == 0).astype(np.int64),
        settings=Settings(**ASKED),
        layout=GridLayout((2, 3), 0.3, 0.6),
        plan=SamplingPlan(n_candidate=40, n_bound=400, seed=1),
        options=SamplingOptions(batch_size=100, check_model=False),
        progress=NoProgress(),
        out=tmp_path,
    )
    asked = Settings(
        0.05, np.linspace(0, 1.2, 13), bounds=["naive", "envelope"], targets=["ratio", "accuracy", "class:1"]
    )
    both = recertify(tmp_path, settings=asked, simultaneous=JointCount())["certified"]
    apart = recertify(tmp_path, settings=asked, simultaneous=JointCount(spare=0))["certified"]
    assert (both >= apart).all()
    assert (both.sel(target="ratio") > apart.sel(target="ratio")).any()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "ways", lambda self: (self,))
        shared = recertify(tmp_path, settings=asked, simultaneous=JointCount())["certified"]
    assert (both >= shared).all()
    assert (both > shared).any()


def test_runs_that_stop_early_say_what_bounds_their_votes() -> None:
    """Counts, unless a rule that needs the sequence is named; nothing was chosen from the candidate stage."""
    words = said(run(None, FEW, SURE, stop=StopWhenDecided(target=0.9)))
    assert "Votes are bounded by joint_count" in words
    assert "sequence" not in words
    assert "chosen" not in words
