"""A run directory loses no earlier result, and says which key of the configuration belongs to another run."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from localsmooth.bounds import Bonferroni, JointCount
from localsmooth.cli.app import app
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.results import load
from localsmooth.runs import OtherRunError, SamplingPlan, StoreError
from localsmooth.sampling import SamplingOptions
from tests.flat import certify
from tests.pipeline.models import threshold_model

SHAPE = (4, 6)
CONFIGURATION = {"name": "mine", "noise": {"sigma_min": 0.3, "sigma_max": 0.6}, "certificate": {"alpha": 0.05}}


def run(out: Path, sigma_max: float = 0.6, alpha: float = 0.05, **changes: Any) -> xr.Dataset:
    arguments: dict[str, Any] = {
        "layout": GridLayout((2, 3), 0.3, sigma_max),
        "plan": SamplingPlan(n_candidate=10, n_bound=100, seed=1, chunk_size=50),
        "budgets": [0.0, 0.2],
        "options": SamplingOptions(batch_size=50, check_model=False),
        "progress": NoProgress(),
        "configuration": CONFIGURATION
        | {"noise": {"sigma_min": 0.3, "sigma_max": sigma_max}, "certificate": {"alpha": alpha}},
    }
    model = changes.pop("model", threshold_model(np.full(SHAPE, -1.0)))
    return certify(model, np.zeros((1, 1, *SHAPE), np.float32), alpha=alpha, out=out, **(arguments | changes))


def test_another_certificate_from_the_same_tallies_keeps_the_first(tmp_path: Path) -> None:
    first = run(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(tmp_path)
    assert not (tmp_path / "result-1.nc").exists()
    with pytest.warns(UserWarning, match=r"kept as result-1\.nc"):
        second = run(tmp_path, alpha=0.01)
    with pytest.warns(UserWarning, match=r"kept as result-2\.nc"):
        third = run(tmp_path, alpha=0.02)
    for name, result in (("result-1.nc", first), ("result-2.nc", second), ("result.nc", third)):
        assert load(tmp_path / name).attrs["alpha"] == result.attrs["alpha"]
        np.testing.assert_array_equal(load(tmp_path / name)["lower_probability"], result["lower_probability"])


def test_counts_of_other_outputs_are_another_claim(tmp_path: Path) -> None:
    """Which outputs are ignored belongs to the event: with the same settings, two sets of them share no α."""
    every = np.ones((1, *SHAPE), np.int64)
    few = np.where(np.arange(6) < 3, every, 255)

    def labelled(labels: np.ndarray, n_bound: int) -> None:
        plan = SamplingPlan(n_candidate=10, n_bound=n_bound, seed=1, chunk_size=50)
        run(tmp_path, labels=labels, ignore_label=255, plan=plan, simultaneous=JointCount())

    labelled(every, 100)
    with pytest.warns(UserWarning, match="do not hold together"):
        labelled(few, 100)
    with pytest.warns(UserWarning, match="do not hold together"):
        labelled(every, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled(every, 300)
    assert (tmp_path / "result-3.nc").exists()


def budgets_asked(out: Path, budgets: Any, n_bound: int = 100, **changes: Any) -> list[str]:
    """Certify, and return what was said of certificates that do not hold together."""
    plan = SamplingPlan(n_candidate=20, n_bound=n_bound, seed=1, chunk_size=50)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(out, **{"plan": plan, "simultaneous": JointCount(), **changes, "budgets": budgets})
    return [str(each.message) for each in told if "do not hold together" in str(each.message)]


def test_budgets_that_were_proposed_anew_after_an_extension_are_no_other_claim(tmp_path: Path) -> None:
    assert not budgets_asked(tmp_path, "auto")
    assert not budgets_asked(tmp_path, "auto", 300)
    before, after = load(tmp_path / "result-1.nc"), load(tmp_path / "result.nc")
    assert before["budget"].values[-1] < after["budget"].values[-1]


@pytest.mark.parametrize("n_bound", [100, 300])
def test_budgets_alone_are_no_other_claim_where_the_event_is_about_all_of_them(tmp_path: Path, n_bound: int) -> None:
    assert not budgets_asked(tmp_path, [0.0, 0.2])
    assert not budgets_asked(tmp_path, [0.0, 0.1, 0.3], n_bound)
    assert (tmp_path / "result-1.nc").exists()


@pytest.mark.parametrize(
    "changes", [{"alpha": 0.02}, {"simultaneous": JointCount(fit=False)}, {"simultaneous": Bonferroni()}]
)
def test_other_budgets_do_not_hide_another_claim(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Another α, a prior of its own, another rule: events that do not hold together at one α."""
    assert not budgets_asked(tmp_path, [0.0, 0.2])
    assert budgets_asked(tmp_path, [0.0, 0.3], **changes)


def test_rules_for_a_fixed_number_of_samples_are_told_of_other_budgets(tmp_path: Path) -> None:
    assert not budgets_asked(tmp_path, [0.0, 0.2], simultaneous=Bonferroni())
    assert budgets_asked(tmp_path, [0.0, 0.3], simultaneous=Bonferroni())


def test_a_damaged_result_is_kept_too(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "result.nc").write_bytes(b"not a result")
    with pytest.warns(UserWarning, match=r"result-1\.nc"):
        run(tmp_path)
    assert (tmp_path / "result-1.nc").read_bytes() == b"not a result"
    with pytest.raises(InvalidInputError):
        load(tmp_path / "result-1.nc")


def test_another_noise_level_is_named_by_its_key(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(OtherRunError, match=r"configuration: noise\.sigma_max was 0\.6 and is 0\.7\. Tallies"):
        run(tmp_path, sigma_max=0.7, alpha=0.01)


def test_fewer_samples_than_a_run_has_are_refused_with_the_number_that_it_has(tmp_path: Path) -> None:
    for number in (100, 50):
        plan = SamplingPlan(n_candidate=10, n_bound=number, seed=1, chunk_size=50)
        wanted = {"plan": plan, "configuration": CONFIGURATION | {"sampling": {"n_bound": number}}}
        if number == 100:
            run(tmp_path, **wanted)
        else:
            with pytest.raises(OtherRunError, match=r"has more samples than are asked for.*set n_bound = 100"):
                run(tmp_path, **wanted)


def test_passes_after_an_extension_are_refused_with_the_numbers_to_write(tmp_path: Path) -> None:
    long = SamplingPlan(n_candidate=10, n_bound=100, seed=1, chunk_size=50)
    numbers = {"n_candidate": 10, "n_bound": 100, "passes": None, "split": None}
    run(tmp_path, plan=long, configuration=CONFIGURATION | {"sampling": numbers})
    asked = {"n_candidate": None, "n_bound": None, "passes": 240.0, "split": 0.2}
    short = SamplingPlan(n_candidate=10, n_bound=50, seed=1, chunk_size=50)
    what = r"passes = 240 comes to other numbers.*write n_candidate = 10 and n_bound = 100 in place of passes"
    with pytest.raises(OtherRunError, match=what):
        run(tmp_path, plan=short, configuration=CONFIGURATION | {"sampling": asked})
    with pytest.raises(
        OtherRunError, match=r"n_bound was 100 and is 50\..*pass n_bound = 100, and n_candidate = 10 as"
    ):
        run(tmp_path, plan=short, configuration={})


def test_keys_are_named_for_interrupted_runs_too(tmp_path: Path) -> None:
    class Stop(NoProgress):
        def advance(self, samples: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=Stop())
    with pytest.raises(OtherRunError, match=r"noise\.sigma_max was 0\.6 and is 0\.7"):
        run(tmp_path, sigma_max=0.7)


@pytest.mark.parametrize("content", [None, b"[]", b"{", b"[" * 100_000])
def test_without_a_known_configuration_the_layout_is_named(tmp_path: Path, content: bytes | None) -> None:
    run(tmp_path)
    kept = tmp_path / "configuration.json"
    kept.unlink()
    if content is not None:
        kept.write_bytes(content)
    with pytest.raises(OtherRunError, match=r"items\[0\]\.layout and its noise levels"):
        run(tmp_path, sigma_max=0.7)


def test_a_first_attempt_that_drew_nothing_does_not_claim_the_directory(tmp_path: Path) -> None:
    class Broken(NoProgress):
        def start(self, total: int, done: int) -> None:
            raise RuntimeError("before anything is drawn")

    with pytest.raises(RuntimeError, match="before anything"):
        run(tmp_path, sigma_max=0.7, progress=Broken())
    again = run(tmp_path)
    xr.testing.assert_equal(again, run(tmp_path / "fresh"))
    # What the directory was asked for is what it was asked for last.
    with pytest.raises(OtherRunError, match=r"noise\.sigma_max was 0\.6 and is 0\.7"):
        run(tmp_path, sigma_max=0.7)


BORDER = 0.0


def _above(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > BORDER).astype(np.int64)


def test_a_function_that_reads_another_global_is_named_as_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def certify_function(seed: int = 1) -> None:
        model = CallableModel(_above, name="above", bounds=None, classes=2, output=OutputKind.LABELS)
        plan = SamplingPlan(n_candidate=10, n_bound=100, seed=seed, chunk_size=50)
        run(tmp_path, model=model, plan=plan, configuration=None)

    certify_function()
    with pytest.raises(OtherRunError, match=r"\(differing in plan\.seed\), and [^.]* must not be mixed\. Use another"):
        certify_function(2)
    monkeypatch.setitem(globals(), "BORDER", 0.25)
    what = (
        r"\(differing in model\.fingerprint\).*the code of a function, or something that this reads \(a global variable"
    )
    with pytest.raises(OtherRunError, match=what):
        certify_function()


class Counting(NoProgress):
    """Adds up what is drawn."""

    drawn = 0

    def advance(self, samples: int) -> None:
        self.drawn += samples


def test_a_directory_remembers_where_its_chunks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = run(tmp_path / "run", store="chunks")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    told = Counting()
    again = run(tmp_path / "run", progress=told)
    assert told.drawn == 0
    assert not (tmp_path / "run" / "chunks").exists()
    xr.testing.assert_equal(first, again)


def test_interrupted_runs_remember_it_too(tmp_path: Path) -> None:
    class Stop(Counting):
        def advance(self, samples: int) -> None:
            super().advance(samples)
            raise KeyboardInterrupt

    stop, told = Stop(), Counting()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", store=f"file://{tmp_path}/chunks", progress=stop)
    run(tmp_path / "run", progress=told)
    whole = Counting()
    run(tmp_path / "whole", progress=whole)
    assert 0 < told.drawn < whole.drawn


def test_another_place_is_taken_only_where_it_has_the_chunks(tmp_path: Path) -> None:
    class Stop(Counting):
        def advance(self, samples: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", store=str(tmp_path / "chunks"), progress=Stop())
    with pytest.raises(StoreError, match=r"are kept at .*chunks, and .*others holds none"):
        run(tmp_path / "run", store=str(tmp_path / "others"))
    shutil.copytree(tmp_path / "chunks", tmp_path / "moved")
    told, whole = Counting(), Counting()
    result = run(tmp_path / "run", store=str(tmp_path / "moved"), progress=told)
    xr.testing.assert_equal(result, run(tmp_path / "whole", progress=whole))
    assert told.drawn < whole.drawn
    # A place that can no longer be reached holds nobody up.
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "lost", store=str(tmp_path / "gone"), progress=Stop())
    shutil.rmtree(tmp_path / "gone")
    xr.testing.assert_equal(run(tmp_path / "lost", store=str(tmp_path / "found")), result)


def test_runs_are_listed_and_merged_wherever_their_chunks_are(tmp_path: Path) -> None:
    run(tmp_path / "a" / "run", store=str(tmp_path / "b" / "chunks"))
    listed = CliRunner().invoke(app, ["runs", str(tmp_path / "a"), "--json"])
    (one,) = json.loads(listed.output)
    assert one["counted"] == one["planned"] > 0
    assert one["place"] == f"{tmp_path}/a/run, chunks at {tmp_path}/b/chunks"

    class Stop(Counting):
        def advance(self, samples: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "part", progress=Stop())
    merged = CliRunner().invoke(app, ["merge", str(tmp_path / "part"), str(tmp_path / "a" / "run")])
    assert merged.exit_code == 0, merged.output
    assert ": 0 chunks" not in merged.output
    told = Counting()
    run(tmp_path / "part", progress=told)
    assert told.drawn == 0


def test_passwords_in_addresses_are_not_kept_and_nothing_is_drawn_again(tmp_path: Path) -> None:
    run(tmp_path / "run", store="memory://me:secret@host/chunks")
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    with pytest.raises(StoreError, match=r"kept at memory://.*Name it again \(--store\)"):
        run(tmp_path / "run")
    # A directory of an earlier release, which remembered nothing.
    (tmp_path / "run" / "store.json").unlink()
    with pytest.raises(StoreError, match=r"none of its chunks.*Name the place \(--store\)"):
        run(tmp_path / "run")
    told = Counting()
    run(tmp_path / "run", store="memory://me:secret@host/chunks", progress=told)
    assert told.drawn == 0
    (tmp_path / "run" / "store.json").write_text("{}")
    with pytest.raises(StoreError, match="damaged"):
        run(tmp_path / "run")


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), np.float32(1)])
def test_a_configuration_that_is_no_json_is_refused_before_sampling(tmp_path: Path, value: object) -> None:
    told = Counting()
    with pytest.raises(InvalidInputError, match="configuration: it is not plain JSON"):
        run(tmp_path / "run", configuration={"value": value}, progress=told)
    assert not (tmp_path / "run").exists()
