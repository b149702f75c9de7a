"""Tuning models whose best noise is known, and runs that follow it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.cli.app import app
from localsmooth.config import Configuration, ConfigurationError, load_configuration, parse_configuration, to_toml
from localsmooth.config.load import read_toml
from localsmooth.errors import InvalidInputError
from localsmooth.layout import grid_layout, windowed
from localsmooth.noise import Randomness
from localsmooth.results import load_result
from localsmooth.sweep.keys import point_keys
from localsmooth.tuning import Tuning, file_candidates, isotropic_candidates, pilot_seed
from tests.tiny_runs import changed, configuration, write_inputs

SHAPE = (8, 12)
SETTINGS = ls.Settings(0.05, np.linspace(0, 3, 13).tolist(), bounds=["envelope"])


def local(batch: np.ndarray) -> np.ndarray:
    """Looks at its own pixel only."""
    return (batch[:, 0] > 0.5).astype(np.int64)


def everywhere(batch: np.ndarray) -> np.ndarray:
    """Every output looks at the mean of the whole input."""
    mean = batch.mean(axis=(1, 2, 3)) > 0.5
    return np.broadcast_to(mean[:, None, None], (len(batch), *SHAPE)).astype(np.int64)


def task(function: object, margin: float = 0.4) -> ls.ArrayTask:
    model = ls.CallableModel(function, name=repr(function), bounds=None, classes=2, output=ls.OutputKind.LABELS)  # pyright: ignore
    signs = np.random.default_rng(0).choice([-1, 1], (2, 1, *SHAPE)) if function is local else np.ones((2, 1, *SHAPE))
    images = (0.5 + margin * signs).astype(np.float32)
    images[1] += 0.001
    return ls.ArrayTask(model, images, (images[:, 0] > 0.5).astype(np.int64))


@cache
def tuned() -> Tuning:
    """The local model, tuned; several tests look at it."""
    candidates = ls.grid_candidates([0.2, 0.3], cells=[(2, 3)], ratios=[8.0])
    aim = ls.Aim("accuracy", floor={"accuracy": 0.9})
    return ls.tune(task(local), SETTINGS, candidates, work=3000, aim=aim, draws=1, executor="serial")


def test_a_local_model_gets_local_noise_and_a_global_one_isotropic() -> None:
    shaped = tuned()
    assert shaped.best.entry.candidate.name in ("2×3 0.2 … 1.6", "2×3 0.3 … 2.4")
    assert shaped.best.forecast.radius > 1.2 * shaped.isotropic.forecast.radius
    # The mean of 96 pixels sees a tenth of σ: noise that hardly grows gains nothing, and has a sixth of the samples.
    flat = ls.grid_candidates([0.3], cells=[(2, 3)], ratios=[1.01])
    only = ls.tune(task(everywhere), SETTINGS, flat, work=3000, draws=1, executor="serial")
    assert only.best is only.isotropic
    assert only.best.entry.candidate.isotropic


def test_every_candidate_gets_as_much_work() -> None:
    found = tuned()
    for one in found.tried:
        assert 0.99 * 3000 < one.entry.work <= 3000
        groups = 1 if one.entry.candidate.isotropic else 6
        assert groups * (one.entry.plan.n_candidate + one.entry.plan.n_bound) == one.entry.work
    windows = ls.grid_candidates([0.3], cells=[(2, 3)], ratios=[2.0], margins=[0])
    seen = ls.tune(task(local), SETTINGS, windows, work=3000, draws=1, executor="serial")
    (shown,) = (one for one in seen.tried if not one.entry.candidate.isotropic)
    # Six windows of a sixth of the image cost one pass.
    assert shown.entry.plan.n_candidate + shown.entry.plan.n_bound == 3000
    layout = windowed(grid_layout((2, 3), SHAPE, minimum=0.3, maximum=0.6), 0)
    assert layout.shown.sum() == pytest.approx(1)


def test_the_run_that_follows_is_the_one_that_was_foretold() -> None:
    found = tuned()
    other = task(local)
    images = np.stack([item.image for item in other.items])[:, :, ::-1].copy()
    labels = (images[:, 0] > 0.5).astype(np.int64)
    result = ls.certify(ls.ArrayTask(other.model, images, labels), found.smoothing, SETTINGS)
    total = result["total"].sel(target="accuracy").values
    curve = (result["certified"].sel(target="accuracy", bound="envelope").values / total[:, None]).mean(axis=0)
    budgets = result["budget"].values
    radius = float((budgets[:-1] * -np.diff(curve)).sum() + budgets[-1] * curve[-1])
    assert radius == pytest.approx(found.best.forecast.radius, rel=0.1)
    with pytest.raises(InvalidInputError, match="levels or groups were computed from"):
        ls.certify(other, found.smoothing, SETTINGS)


def test_no_stream_of_a_pilot_is_one_of_a_run() -> None:
    seeds = {pilot_seed(seed, number) for seed in (0, 1, 2**64 - 1) for number in range(8)}
    assert len(seeds) == 24
    assert all(seed >= 2**128 for seed in seeds)  # while those of runs are below 2**64
    for bad in (-1, 2**64, 2**128):
        with pytest.raises(InvalidInputError, match="seed"):
            pilot_seed(bad, 0)
    with pytest.raises(InvalidInputError, match="seed"):
        ls.tune(task(local), SETTINGS, isotropic_candidates([0.3]), work=2000, seed=2**70)
    # What a seed and a key make of a stream depends on every bit: words of the seed, then words of the key.
    states = {
        np.random.SeedSequence(entropy=seed, spawn_key=key).generate_state(4).tobytes()
        for seed in (0, pilot_seed(0, 1), pilot_seed(0, 1) % 2**128, pilot_seed(0, 1) % 2**64)
        for key in ((0, 0, 0, 0), (0, 0, 1, 0))
    }
    assert len(states) == 8
    assert Randomness(pilot_seed(0, 1), (0, 0, 0, 0)) is not None


def test_the_same_seed_gives_the_same_forecast_and_another_other_pilots() -> None:
    few, fine = isotropic_candidates([0.3]), ls.Settings(0.05, np.linspace(0, 0.6, 61).tolist(), bounds=["envelope"])
    first, second, third = (
        ls.tune(task(local), fine, few, work=2000, draws=1, seed=seed, executor="serial") for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.best.forecast.curve, second.best.forecast.curve)
    assert (first.best.forecast.curve != third.best.forecast.curve).any()
    assert third.plan.seed == 1


def test_isotropic_noise_is_always_there() -> None:
    local_only = [one for one in ls.grid_candidates([0.3], cells=[(2, 3)], ratios=[2.0]) if not one.isotropic]
    found = ls.tune(task(local), SETTINGS, local_only, work=3000, draws=1, executor="serial")
    assert found.isotropic.entry.candidate.name == "isotropic 0.3"
    assert {one.entry.candidate.isotropic for one in found.tried} == {True, False}


def test_floors_choose() -> None:
    """Accuracy Φ(.4/σ) of votes: smoothed predictions are right long after, but abstain where it is near ½."""
    candidates = isotropic_candidates([0.3, 30.0])
    free = ls.tune(task(local), SETTINGS, candidates, work=2000, draws=1, executor="serial")
    aim = ls.Aim(floor={"accuracy": 0.95})
    held = ls.tune(task(local), SETTINGS, candidates, work=2000, aim=aim, draws=1, executor="serial")
    assert held.best.entry.candidate.name == "isotropic 0.3"
    assert held.best.forecast.quality["accuracy"] >= 0.95
    assert free.best.forecast.radius >= held.best.forecast.radius
    with pytest.raises(InvalidInputError, match=r"floor: no candidate reaches it; .* has accuracy 0\."):
        ls.tune(task(local), SETTINGS, isotropic_candidates([30.0, 40.0]), work=2000, aim=aim, executor="serial")


def test_time_in_place_of_work() -> None:
    found = ls.tune(task(local), SETTINGS, isotropic_candidates([0.3]), seconds=1, draws=1, executor="serial")
    assert found.work > 100


def test_what_cannot_be_tuned_is_said() -> None:
    few = isotropic_candidates([0.3])
    one = task(local)
    for arguments, field in (
        ({}, "work, seconds"),
        ({"work": 10.0, "seconds": 1.0}, "work, seconds"),
        ({"work": 3.0}, "n_bound"),
        ({"work": 1000.0, "share": 1.0}, "share"),
        ({"work": 1000.0, "draws": 0}, "draws"),
    ):
        with pytest.raises(InvalidInputError, match=field):
            ls.tune(one, SETTINGS, few, executor="serial", **arguments)  # pyright: ignore
    with pytest.raises(InvalidInputError, match="candidates"):
        ls.tune(one, SETTINGS, [], work=1000)
    with pytest.raises(InvalidInputError, match="same name"):
        ls.tune(one, SETTINGS, few + few, work=1000)
    with pytest.raises(InvalidInputError, match="ArrayTask"):
        ls.tune(object(), SETTINGS, few, work=1000)
    bare = ls.ArrayTask(one.model, [item.image for item in one.items])
    for aim in (ls.Aim(floor={"mean_iou": 0.5}), ls.Aim(floor={"accuracy": 0.5}), ls.Aim("accuracy")):
        with pytest.raises(InvalidInputError, match="has no labels for"):
            ls.tune(bare, SETTINGS, few, work=1000, aim=aim)
    with pytest.raises(InvalidInputError, match="baseline"):
        ls.tune(one, ls.Settings(0.1, [0.0, 1.0], method=ls.baselines.Cohen()), few, work=1000)


CONFIG = configuration(
    data='kind = "arrays"\nimages = "images.npy"\nlabels = "labels.npy"\nitems = [0, 1]',
    calibration='kind = "arrays"\nimages = "images.npy"\nlabels = "labels.npy"\nitems = [2, 3]',
    noise='distribution = "gaussian"\nsigma_min = 0.2\nsigma_max = 0.5',
    certificate='alpha = 0.05\nbudgets = { stop = 2.0, count = 9 }\nbounds = ["envelope"]',
    execution='executor = "serial"',
    tune="count = 2\nratios = [6.0]\ncells = [[2, 2]]\nfloor = { accuracy = 0.8 }\ndraws = 1",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    write_inputs(tmp_path, rng.choice([0.1, 0.9], (4, 1, *SHAPE)) + np.arange(4)[:, None, None, None] * 1e-3)
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def invoke(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_the_command_writes_a_file_that_certifies_what_was_expected(folder: Path) -> None:
    done = invoke("tune", folder / "run.toml", "--work", 4000, "--target", "accuracy", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["file"] == str(folder / "run-tuned.toml")
    assert told["best"]["radius"] > told["isotropic"]["radius"]
    assert told["floor"] == {"accuracy": 0.8}
    text = (folder / "run-tuned.toml").read_text(encoding="utf-8")
    assert "forecast" in text
    assert "does not tune again" in " ".join(text.replace("#", "").split())
    made = load_configuration(folder / "run-tuned.toml")
    assert made.sampling.n_bound == told["best"]["n_bound"]
    assert 4 * (made.sampling.n_candidate + made.sampling.n_bound) == 4000
    assert invoke("certify", folder / "run-tuned.toml", "--out", folder / "run").exit_code == 0
    result = load_result(folder / "run" / "result.nc")
    total = result["total"].sel(target="accuracy").values
    curve = (result["certified"].sel(target="accuracy", bound="envelope").values / total[:, None]).mean(axis=0)
    budgets = result["budget"].values
    radius = float((budgets[:-1] * -np.diff(curve)).sum() + budgets[-1] * curve[-1])
    assert radius == pytest.approx(told["best"]["radius"], rel=0.1)
    levels = made.layout.build(made.noise).layout((1, *SHAPE), SHAPE).levels  # pyright: ignore
    np.testing.assert_allclose(levels, told["best"]["levels"])


def test_people_are_told_what_it_means(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    done = invoke("tune", folder / "run.toml", "--work", 1500, "--at", 0.4, "--floor", "agreement=0.5")
    assert done.exit_code == 0, done.output
    for words in ("(chosen)", "Expected certified share", "does not tune again", "ratio at ε = 0.4", "agreement"):
        assert words in done.output, words


def test_measured_locality_is_tried_and_its_levels_are_written(folder: Path) -> None:
    config = changed(CONFIG, ("ratios = [6.0]", "ratios = [1.01]"))
    (folder / "run.toml").write_text(config + "\n[locality]\nlevels = [0.2, 0.5, 3.0]\nsamples = 20\n")
    assert invoke("locality", folder / "run.toml", "--out", folder / "measured").exit_code == 0
    file = folder / "measured" / "measurement.npz"
    for arguments in ((), ("--locality", file)):
        done = invoke("tune", folder / "run.toml", "--work", 3000, "--json", *arguments)
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        # Single pixels decide: far away noise may be as large as was measured.
        assert told["best"]["candidate"].startswith("by locality")
        assert np.max(told["best"]["levels"]) == 3.0
    made = load_configuration(folder / "run-tuned.toml")
    levels = made.layout.build(made.noise).layout((1, *SHAPE), SHAPE)  # pyright: ignore
    np.testing.assert_allclose(levels.levels, told["best"]["levels"])
    assert len(levels.origins) == 2
    leak = changed((folder / "run-tuned.toml").read_text(), ("items = [0, 1]", "items = [0, 2]"))
    (folder / "leak.toml").write_text(leak)
    with pytest.raises(InvalidInputError, match="fitted on"):
        load_configuration(folder / "leak.toml").task()  # pyright: ignore
    with pytest.raises(InvalidInputError, match="no measured locality"):
        invoke("tune", folder / "run.toml", "--locality", folder / "images.npy")


NOISES = {
    "gaussian": 'distribution = "gaussian"\nsigma_min = 0.2\nsigma_max = 0.5',
    "flat": 'distribution = "uniform"\nlambda_min = 0.3\nlambda_max = 0.3',
    "bernoulli": 'distribution = "bernoulli"\ntheta_min = 0.1\ntheta_max = 0.4',
}


@pytest.mark.parametrize("noise", NOISES)
def test_what_a_file_says_of_a_candidate_is_the_candidate(folder: Path, noise: str) -> None:
    layout = 'cells = [3, 2]\nwindow_margin = 2\nwindow_align = 2\nreach = "cell"'
    (folder / "run.toml").write_text(
        changed(CONFIG, ("cells = [2, 2]\n", layout + "\n"), (NOISES["gaussian"], NOISES[noise]))
    )
    values, configured = read_toml(folder / "run.toml"), load_configuration(folder / "run.toml")
    assert isinstance(configured, Configuration)
    made = file_candidates(configured)
    assert len({one.name for one in made}) == len(made)
    assert sum(one.isotropic for one in made) == 2
    assert any("windows" in one.name for one in made)
    for one in made:
        merged = {key: values.get(key, {}) | dict(one.changes.get(key, {})) for key in ("layout", "noise")}
        plain = {
            key: {name: value for name, value in each.items() if value is not None} for key, each in merged.items()
        }
        again = parse_configuration(values | plain, folder)
        assert isinstance(again, Configuration)
        layouts = [rule.layout((1, *SHAPE), SHAPE) for rule in (one.layout, again.layout.build(again.noise))]  # pyright: ignore
        assert layouts[0].digest() == layouts[1].digest(), one.name
        again.noise.build().validate(layouts[0].levels)


def test_noise_of_two_levels_is_refused(folder: Path) -> None:
    two = "\n".join(f"{kind}_{end} = 0.1" for kind in ("addition", "deletion") for end in ("min", "max"))
    text = changed(CONFIG, (NOISES["gaussian"], f'distribution = "sparse-flips"\n{two}'))
    (folder / "run.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"noise\.distribution"):
        file_candidates(load_configuration(folder / "run.toml"))  # pyright: ignore


def test_faults_of_the_command_are_named(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="--out"):
        invoke("tune", folder / "run.toml", "--out", folder / "elsewhere" / "x.toml")
    with pytest.raises(InvalidInputError, match="--out"):
        invoke("tune", folder / "run.toml", "--out", folder / "run.toml")
    (folder / "mine.toml").write_text(CONFIG, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"--out: .*mine\.toml is there"):
        invoke("tune", folder / "run.toml", "--out", folder / "mine.toml", "--work", 1500)
    assert (folder / "mine.toml").read_text(encoding="utf-8") == CONFIG
    with pytest.raises(InvalidInputError, match="at: no candidate is expected to certify anything at budget 50"):
        invoke("tune", folder / "run.toml", "--work", 1500, "--at", 50)
    assert not (folder / "run-tuned.toml").exists()
    with pytest.raises(InvalidInputError, match="--floor"):
        invoke("tune", folder / "run.toml", "--floor", "accuracy")
    with pytest.raises(InvalidInputError, match="--work, --time"):
        invoke("tune", folder / "run.toml", "--work", 10, "--time", "1min")
    for change, message in (
        (("[calibration]", "[other]"), "other"),
        (("items = [2, 3]", "items = [1, 2]"), "calibration"),
        (("chunk_size = 100", "chunk_size = 100\nstop_early = true"), "stop_early"),
    ):
        (folder / "bad.toml").write_text(changed(CONFIG, change))
        with pytest.raises((ConfigurationError, InvalidInputError), match=message):
            invoke("tune", folder / "bad.toml")


def test_runs_of_a_sweep_are_the_same_however_they_were_tuned(folder: Path) -> None:
    plain = parse_configuration(
        {key: each for key, each in read_toml(folder / "run.toml").items() if key != "tune"}, folder
    )
    assert point_keys(plain, {}) == point_keys(load_configuration(folder / "run.toml"), {})


def test_values_are_written_as_they_are_read(tmp_path: Path) -> None:
    values = {
        "name": 'a "b"\\\n\té \x7f😀',
        "model": {"kind": "x", "bounds": [0.0, 1.0], "arguments": {"a b": {"c": [1, True]}, "d": -1e-30}},
        "data": {"items": [1, 2], "names": ["x", "y"], "nested": [{"rule": "k", "k": 3}], "big": float("inf")},
        "empty": {},
    }
    file = tmp_path / "x.toml"
    file.write_text(to_toml(values), encoding="utf-8")
    assert read_toml(file) == values
    with pytest.raises(InvalidInputError, match="when"):
        to_toml({"when": object()})


NAMED = changed(CONFIG, ("items = [0, 1]", 'items = [0, 1]\nclass_names = ["ground", "disc"]'))


def test_calibration_items_have_the_class_names_of_the_data(folder: Path) -> None:
    asked = changed(NAMED, ("alpha = 0.05", 'alpha = 0.05\ntargets = ["ratio", "class:disc"]'))
    (folder / "run.toml").write_text(asked, encoding="utf-8")
    done = invoke("tune", folder / "run.toml", "--work", 1500, "--target", "class:disc", "--json")
    assert done.exit_code == 0, done.output
    made = load_configuration(folder / "run.toml")
    assert isinstance(made, Configuration)
    assert made.calibration_task(made.build_model()).items.class_names == ["ground", "disc"]


def test_classes_that_there_are_not_are_refused_before_anything_is_tried(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localsmooth.tuning.search.Pilots", None)
    for targets, options, message in (
        ('["class:disk"]', (), r"certificate\.targets: class:disk: 'disk' is none of the classes.*ground, disc$"),
        ('["ratio"]', ("--target", "class:disk"), r"target: class:disk: .*ground, disc$"),
        ('["ratio"]', ("--floor", "class:disk=0.5"), r"floor: class:disk: .*ground, disc$"),
        ('[{ kind = "foreground", background = ["disk"] }]', (), r"certificate\.targets: foreground: 'disk' is none"),
    ):
        asked = changed(NAMED, ("alpha = 0.05", f"alpha = 0.05\ntargets = {targets}"))
        (folder / "run.toml").write_text(asked, encoding="utf-8")
        with pytest.raises(InvalidInputError, match=message):
            invoke("tune", folder / "run.toml", "--work", 1500, *options)
    unnamed = changed(CONFIG, ("alpha = 0.05", 'alpha = 0.05\ntargets = ["class:disc"]'))
    (folder / "run.toml").write_text(unnamed, encoding="utf-8")
    for command in ("tune", "plan"):
        with pytest.raises(InvalidInputError, match=r"class 0, class 1 \(or say what they are called: class_names\)"):
            invoke(command, folder / "run.toml")
    other = changed(NAMED, ("items = [2, 3]", 'items = [2, 3]\nclass_names = ["disc", "ground"]'))
    (folder / "run.toml").write_text(other, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"calibration\.class_names: \[data\] names the classes otherwise"):
        load_configuration(folder / "run.toml")


def test_a_choice_at_the_edge_of_what_was_tried_is_said() -> None:
    def edge(levels: list[float], floor: float) -> tuple[str, ...]:
        aim = ls.Aim(floor={"accuracy": floor})
        candidates = isotropic_candidates(levels)
        found = ls.tune(task(local), SETTINGS, candidates, work=2000, aim=aim, draws=1, executor="serial")
        assert str(found).splitlines()[1:] == ["Isotropic noise was best.", *found.at_edge]
        return found.at_edge

    assert edge([0.05, 0.1], 0.9) == (
        "The best level, 0.1, is the largest that was tried: [tune] levels above it may be better.",
    )
    assert edge([0.3, 30.0], 0.9) == (
        "The best level, 0.3, is the smallest that was tried: [tune] levels below it may be better.",
    )
    assert edge([0.05, 0.3, 30.0], 0.9) == ()
    assert edge([0.3], 0.9) == ()


def test_localized_noise_at_the_edge_is_said() -> None:
    candidates = ls.grid_candidates([0.05, 0.2], cells=[(2, 3)], ratios=[8.0])
    found = ls.tune(task(local), SETTINGS, candidates, work=3000, draws=1, executor="serial")
    assert found.best.entry.candidate.name == "2×3 0.2 … 1.6"
    assert found.at_edge == (
        "The best level, 0.2, is the largest that was tried: [tune] levels above it may be better.",
    )


def test_what_was_said_on_the_command_line_is_written_down(folder: Path) -> None:
    options = ("--work", 1500, "--at", 0.25, "--floor", "agreement=0.5", "--floor", "class:class 1=0.5")
    done = invoke("tune", folder / "run.toml", *options)
    assert done.exit_code == 0, done.output
    assert "Nothing is kept until it ends" in done.stderr.splitlines()[0]
    said = "Chosen on the command line: --work 1500 --floor agreement=0.5 --floor 'class:class 1=0.5' --at 0.25"
    assert said in done.stdout
    lines = (folder / "run-tuned.toml").read_text(encoding="utf-8").splitlines()
    assert lines[1] == f"# {said}"
    assert lines[2].startswith(("# isotropic", "# 2×2"))
    assert invoke("tune", folder / "run.toml").exit_code == 0
    assert "command line" not in (folder / "run-tuned.toml").read_text(encoding="utf-8")
