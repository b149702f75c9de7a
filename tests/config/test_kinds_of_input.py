"""Point clouds, embedded tokens and threats from TOML files: certified, certified again, reported and swept."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.tiny_runs import configuration
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.cli.app import app
from localsmooth.config import Configuration, ConfigurationError, load_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.results import load, run_info
from localsmooth.sweep import load_sweep
from localsmooth.tasks.arrays import Flips, Kind, NormBall, PerPosition
from localsmooth.tasks.points import PerPoint, PointTask, cell_layout, fit_centres, nearest_cells
from localsmooth.tasks.tokens import EmbeddedTagger, TokenTask, WindowLayout
from localsmooth.tuning import contest_of

FUNCTIONS = """
import numpy as np
from torch import nn


def high(batch):
    return (batch[:, -1] > 0).astype(np.int64)


class Tagger(nn.Module):
    def forward(self, inputs_embeds):
        return inputs_embeds[..., :2] * 4
"""
POINTS = {
    "model": 'kind = "callable"\nfunction = "kinds_functions:high"\nclasses = 2\noutput = "labels"',
    "data": 'kind = "points"\npoints = "clouds.npz"\nitems = [1, 2]\nclass_names = ["low", "high"]',
    "layout": 'cells = 3\nreference = "template.npy"',
    "noise": 'distribution = "gaussian"\nsigma_min = 0.1\nsigma_max = 0.4',
}
TOKENS = {
    "model": 'kind = "tagger"\nfactory = "kinds_functions:Tagger"\nclasses = 2',
    "data": 'kind = "tokens"\ntokens = "tokens.safetensors"\nwords = "words.txt"\nitems = [2, 0]',
    "layout": "windows = 2\nmask_beyond = 2",
    "noise": POINTS["noise"],
}
SPARSE = """
distribution = "sparse-flips"
addition_min = 0.1
addition_max = 0.2
deletion_min = 0.1
deletion_max = 0.2"""
SETTINGS = ls.Settings(0.05, [0.0, 0.1, 0.3])
PLAN = ls.SamplingPlan(20, 300, chunk_size=100)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "kinds_functions.py").write_text(FUNCTIONS)
    rng = np.random.default_rng(0)
    template = rng.uniform(-1, 1, (12, 3))
    clouds = template + 0.02 * rng.standard_normal((4, 12, 3))
    np.save(tmp_path / "template.npy", template)
    np.save(tmp_path / "centres.npy", fit_centres(template, 3))
    np.savez(tmp_path / "clouds.npz", points=clouds, labels=(clouds[..., -1] > 0).astype(np.uint8))
    np.save(tmp_path / "clouds.npy", clouds)
    tokens = rng.uniform(-1, 1, (3, 6, 4)).astype(np.float32)
    save_file({"tokens": tokens, "labels": tokens[..., :2].argmax(-1)}, tmp_path / "tokens.safetensors")
    (tmp_path / "words.txt").write_text("a b c d e f\n\nu v w x y z\n", encoding="utf-8")
    yield tmp_path
    sys.modules.pop("kinds_functions", None)


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def write(folder: Path, sections: dict[str, str], **changes: str) -> Path:
    (folder / "run.toml").write_text(configuration(**{**sections, **changes}))
    return folder / "run.toml"


def everywhere(folder: Path, task: ls.ArrayTask, layout: object, **changes: str) -> None:
    """A file certifies what Python does, and again; the page is written."""
    smoothing = ls.Smoothing(layout, PLAN)  # pyright: ignore[reportArgumentType]
    options = ls.SamplingOptions(batch_size=50)
    direct = ls.certify(task, smoothing, SETTINGS, run=ls.Run(progress=NoProgress(), options=options))
    assert "Warning" not in invoke("certify", folder / "run.toml", "--out", folder / "run")
    made = load(folder / "run" / "result.nc")
    for name in ("certified", "prediction", "image", "label"):
        if name in direct:
            np.testing.assert_array_equal(made[name], direct[name])
    assert run_info(made).task == task.name
    assert made["certified"].sel(budget=0.1).max() > 0
    invoke("recertify", folder / "run", "--budgets", "0.1,0.2", "--bound", "envelope")
    again = load(folder / "run" / "recertified.nc")
    np.testing.assert_array_equal(
        again["certified"].sel(budget=0.1, bound="envelope"), made["certified"].sel(budget=0.1, bound="envelope")
    )
    invoke("report", folder / "run")
    assert (folder / "run" / "report.html").stat().st_size > 10_000


def point_task(folder: Path, items: tuple[int, ...] = (1, 2)) -> PointTask:
    held = np.load(folder / "clouds.npz")
    model = ls.CallableModel(
        lambda batch: (batch[:, -1] > 0).astype(np.int64),
        name="high",
        bounds=None,
        classes=2,
        output=ls.OutputKind.LABELS,
    )
    clouds, labels = [held["points"][i] for i in items], [held["labels"][i] for i in items]
    return PointTask(model, clouds, labels, class_names=["low", "high"])


def test_points(folder: Path) -> None:
    write(folder, POINTS)
    template = np.load(folder / "template.npy")
    centres = fit_centres(template, 3)
    everywhere(folder, point_task(folder), cell_layout(nearest_cells(template, centres), centres, 0.1, 0.4))
    assert load(folder / "run" / "result.nc")["item"].values.tolist() == ["cloud 1", "cloud 2"]


def test_cells_come_from_centres_or_from_another_cloud(folder: Path) -> None:
    def layout(section: str) -> ls.Layout:
        made = load_configuration(write(folder, POINTS, layout=section))
        built = made.layout.build(made.noise, made.data)
        assert isinstance(built, ls.Layout)
        assert made.layout.groups == built.outputs.count
        return built

    by_number = layout('cells = 3\nreference = "template.npy"')
    by_place = layout('centres = "centres.npy"\nreference = "template.npy"\nreach = "cell"')
    np.testing.assert_array_equal(by_number.outputs.labels, by_place.outputs.labels)
    assert not np.array_equal(by_number.levels, by_place.levels)
    other = layout("cells = 3\nreference_item = 3")
    cloud = np.load(folder / "clouds.npy")[3]
    nearest = nearest_cells(cloud, fit_centres(cloud, 3))
    np.testing.assert_array_equal(other.outputs.labels, np.unique(nearest, return_inverse=True)[1])
    assert layout("cells = 1").levels.tolist() == [[0.1]]


def test_a_cloud_that_is_certified_is_no_reference(folder: Path) -> None:
    made = load_configuration(write(folder, POINTS, layout="cells = 3\nreference_item = 1"))
    task, smoothing, settings = made.prepare(folder / "run", print)
    with pytest.raises(InvalidInputError, match="certified: the smoothed classifier would change"):
        ls.certify(task, smoothing, settings, run=ls.Run(progress=NoProgress()))


def test_tokens(folder: Path) -> None:
    write(folder, TOKENS)
    sys.modules.pop("kinds_functions", None)
    import kinds_functions  # pyright: ignore[reportMissingImports]

    model = EmbeddedTagger(kinds_functions.Tagger().eval(), classes=2)
    held = load_file(folder / "tokens.safetensors")
    words = [list("uvwxyz"), list("abcdef")]
    task = TokenTask(model, held["tokens"][[2, 0]], held["labels"][[2, 0]], words)
    everywhere(folder, task, WindowLayout(2, 0.1, 0.4, mask_beyond=2))
    page = (folder / "run" / "report.html").read_text("utf-8")
    assert all(f">{word}<" in page for word in "abcuvw")


def test_a_grid_may_lay_out_tokens(folder: Path) -> None:
    made = load_configuration(write(folder, TOKENS, layout='kind = "grid"\ncells = [2]\nmetric = "euclidean"'))
    task, smoothing, _ = made.prepare(folder / "run", print)
    assert (task.name, type(smoothing.layout)) == ("tokens", ls.GridLayout)


@pytest.mark.parametrize(
    ("sections", "changes", "said"),
    [
        (POINTS, {"layout": "cells = 3"}, r"layout: .*name a reference"),
        (
            POINTS,
            {"layout": 'cels = 3\nreference = "template.npy"'},
            r'layout\.cels: unknown key. Did you mean "cells"',
        ),
        (POINTS, {"layout": 'cells = [3]\nreference = "template.npy"'}, r"layout\.cells: .*integer"),
        (POINTS, {"layout": 'cells = 3\ncentres = "centres.npy"\nreference_item = 3'}, r"layout: .*either cells"),
        (POINTS, {"layout": 'kind = "cell"\ncells = 3'}, r'layout\.kind: "cell" is not valid. Did you mean "cells"'),
        (POINTS, {"data": 'kind = "points"\npoints = "no.npz"'}, r"data\.points: no such file"),
        (
            POINTS,
            {"data": 'kind = "point"\npoints = "no.npz"'},
            r'data\.kind: "point" is not valid. Did you mean "points"',
        ),
        # What is wrong with the data is all that is wrong.
        (POINTS, {"data": 'kind = "points"\npoints = "no.npz"'}, r"^\S*run\.toml:\s+data\.points: [^\n]*$"),
        (TOKENS, {"layout": "cells = [2]"}, r"(?s)layout\.windows: this key is missing.*layout\.cells: unknown key"),
        (TOKENS, {"model": 'kind = "tagger"'}, r"model\.factory: this key is missing"),
    ],
)
def test_faults_name_key_and_remedy(folder: Path, sections: dict[str, str], changes: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_configuration(write(folder, sections, **changes))


@pytest.mark.parametrize(
    ("sections", "data", "said"),
    [
        (POINTS, 'kind = "points"\npoints = "template.npy"', r"points: .*\(12, 3\).*items × points"),
        (POINTS, 'kind = "points"\npoints = "tokens.safetensors"', 'points: .*holds .*tokens.*under the name "points"'),
        (POINTS, 'kind = "points"\npoints = "run.toml"', r"points: .*not a readable \.npy"),
        (POINTS, 'kind = "points"\npoints = "broken.npz"', r"points: .*cannot be read"),
        (POINTS, 'kind = "points"\npoints = "clouds.npy"\nlabels = "template.npy"', r"labels: .*of shape \(4, 12\)"),
        (POINTS, 'kind = "points"\npoints = "clouds.npy"\nitems = [4]', r"items: item 4 of 4.*0 … 3"),
        (TOKENS, 'kind = "tokens"\ntokens = "tokens.safetensors"\nwords = "run.toml"', "words: .*as many as tokens"),
        (TOKENS, 'kind = "tokens"\ntokens = "tokens.safetensors"\nwords = "short.txt"', "words: .*1 lines.*item 2"),
        (TOKENS, 'kind = "tokens"\ntokens = "tokens.safetensors"\nwords = "half.txt"', "words: .*is no text"),
    ],
)
def test_files_that_do_not_fit_are_refused(folder: Path, sections: dict[str, str], data: str, said: str) -> None:
    (folder / "broken.npz").write_bytes(b"PK")
    (folder / "short.txt").write_text("a b c d e f")
    (folder / "half.txt").write_bytes(b"\xff\xfe\x00")
    made = load_configuration(write(folder, sections, data=data))
    with pytest.raises(InvalidInputError, match=said):
        made.task()


def test_cells_need_points_and_one_level(folder: Path) -> None:
    made = load_configuration(write(folder, {}, layout='kind = "cells"\ncells = 1', data=TOKENS["data"]))
    with pytest.raises(ConfigurationError, match=r"layout\.kind: cells are of points"):
        made.layout.build(made.noise, made.data)
    made = load_configuration(write(folder, POINTS, noise=SPARSE))
    with pytest.raises(ConfigurationError, match=r"noise\.distribution: .*one level"):
        made.layout.build(made.noise, made.data)


# Sweeps


def test_a_sweep_over_points(folder: Path) -> None:
    isotropic = "\n".join(["[[method]]", 'name = "isotropic"', 'set = {"layout.cells" = 1}'])
    localized = "\n".join(["[[method]]", 'name = "localized"', 'grid = {"noise.sigma_max" = [0.3, 0.4]}'])
    base = configuration(name=None, within="base.", **POINTS)
    (folder / "sweep.toml").write_text(f'quality = "accuracy"\n{isotropic}\n{localized}\n{base}')
    points = load_sweep(folder / "sweep.toml").points
    assert [point.total_samples for point in points] == [320, 3 * 320, 3 * 320]
    assert len({point.key for point in points}) == 3
    assert "Report" in invoke("sweep", folder / "sweep.toml", "--out", folder / "sweep", "--jobs", "0")


def test_a_sweep_needs_labels_in_the_file_or_beside_it(folder: Path) -> None:
    data = 'kind = "points"\npoints = "clouds.npy"'
    text = configuration(name=None, within="base.", **{**POINTS, "data": data})
    (folder / "sweep.toml").write_text('[[method]]\nname = "only"\n' + text)
    with pytest.raises(ConfigurationError, match=r"data\.labels"):
        load_sweep(folder / "sweep.toml")


# Threats


@pytest.mark.parametrize(
    ("section", "threat"),
    [
        ({"kind": "norm-ball"}, NormBall()),
        ({"kind": "per-position", "most": 3}, PerPosition(3)),
        ({"kind": "per-point"}, PerPoint()),
        ({"kind": "flips", "flips": "deletions"}, Flips(Kind.DELETIONS)),
    ],
)
def test_every_threat_can_be_asked_for(folder: Path, section: dict[str, object], threat: object) -> None:
    lines = "\n".join(f"threat.{name} = {value!r}" for name, value in section.items())
    made = load_configuration(write(folder, POINTS, certificate=f"alpha = 0.05\nbudgets = [0.1]\n{lines}"))
    assert made.certificate.build(made.noise.build(), made.noise.threat()).threat == threat


def test_a_threat_is_certified_and_kept(folder: Path) -> None:
    certificate = 'alpha = 0.05\nbudgets = [0.0, 0.05]\nthreat = { kind = "per-point", most = 2 }'
    invoke("certify", write(folder, POINTS, certificate=certificate), "--out", folder / "run")
    made = load(folder / "run" / "result.nc")
    assert run_info(made).threat == PerPoint(2).words(ls.Gaussian(), "")
    assert made["certified"].sel(budget=0.05).max() > 0
    invoke("recertify", folder / "run", "--alpha", "0.01")
    assert run_info(load(folder / "run" / "recertified.nc")).threat == run_info(made).threat
    assert ls.settings_of(folder / "run").threat == PerPoint(2)
    (folder / "ball.toml").write_text('[certificate]\nalpha = 0.05\nbudgets = [0.05]\nthreat = { kind = "norm-ball" }')
    invoke("recertify", folder / "run", "--config", folder / "ball.toml")
    assert run_info(load(folder / "run" / "recertified.nc")).threat == NormBall().words(ls.Gaussian(), "")


def test_flips_are_named_once(folder: Path) -> None:
    both = 'alpha = 0.05\nbudgets = [1]\nthreat = { kind = "flips", flips = "additions" }'
    with pytest.raises(ConfigurationError, match=r"noise\.flips: .*leave one"):
        load_configuration(write(folder, POINTS, noise=f'{SPARSE}\nflips = "deletions"', certificate=both))
    made = load_configuration(write(folder, POINTS, noise=SPARSE, certificate=both))
    assert made.certificate.build(made.noise.build(), made.noise.threat()).threat == Flips(Kind.ADDITIONS)


def test_unknown_threats_are_named(folder: Path) -> None:
    certificate = 'alpha = 0.05\nbudgets = [0.1]\nthreat = { kind = "per-pont" }'
    with pytest.raises(ConfigurationError, match=r'certificate\.threat\.kind: "per-pont" .* mean "per-point"'):
        load_configuration(write(folder, POINTS, certificate=certificate))


def test_calibration_is_of_the_same_kind(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'calibration\.kind: "tokens" beside data of kind "points"'):
        load_configuration(write(folder, POINTS, calibration='kind = "tokens"\ntokens = "tokens.safetensors"'))
    other = POINTS["data"].replace("[1, 2]", "[0]")
    file = write(folder, POINTS, calibration=other)
    shown = CliRunner().invoke(app, ["plan", str(file), "--seconds", "0.1"])
    assert "In calibration, noise of level 0.1: " in shown.output, shown.output
    made = load_configuration(file)
    assert isinstance(made, Configuration)
    with pytest.raises(ConfigurationError, match=r"layout\.kind: .*cells is tuned in Python"):
        contest_of(made, folder)
    with pytest.raises(ConfigurationError, match=r"data\.kind: .*arrays"):
        made.calibration_items()
    other = 'kind = "tokens"\ntokens = "tokens.safetensors"\nitems = [1]'
    tokens = load_configuration(write(folder, TOKENS, calibration=other))
    found = contest_of(tokens, folder)
    assert next(each.name for each in found.candidates if "windows" in each.name) == "2 windows 0.1 … 0.15"
    assert found.looked_at == "1 calibration items"
    names = '\nclass_names = ["low", "high"]'
    unnamed = POINTS["data"].replace("[1, 2]" + names, "[0]")
    for data, kept in ((POINTS, unnamed), (dict(TOKENS, data=TOKENS["data"] + names), other)):
        assert "class_names" not in kept
        made = load_configuration(write(folder, data, calibration=kept))
        assert isinstance(made, Configuration)
        assert made.calibration_task(made.build_model()).items.class_names == ["low", "high"]


def test_plans_show_tokens_under_noise(folder: Path) -> None:
    """Calibration sequences are arrays, features first; those that are certified are refused."""
    tokens = load_file(folder / "tokens.safetensors")["tokens"].swapaxes(1, 2)
    np.save(folder / "first.npy", tokens)
    calibration = 'kind = "arrays"\nimages = "first.npy"\nitems = '
    assert "In calibration, noise of level 0.1" in invoke(
        "plan", write(folder, TOKENS, calibration=f"{calibration}[1]"), "--seconds", 0.1
    )
    with pytest.raises(InvalidInputError, match=r"calibration: .*is to be certified"):
        invoke("plan", write(folder, TOKENS, calibration=f"{calibration}[0, 1]"), "--seconds", 0.1)
