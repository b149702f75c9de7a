"""What a sweep file expands to, and which faults are named before anything runs."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from localsmooth.config import ConfigurationError
from localsmooth.sweep import SweepFolder, expand, load_sweep, missing_jobs
from tests.sweep.files import BASELINES, ONE_EACH, sweep_of
from tests.tiny_runs import changed


def test_points_are_all_combinations(folder: Path) -> None:
    sweep = load_sweep(folder / "sweep.toml")
    localized = [
        (point.configuration.noise.sigma_min, point.configuration.certificate.alpha)  # pyright: ignore
        for point in sweep.of(["localized"])
    ]
    assert localized == list(itertools.product([0.2, 0.3], [0.05, 0.1]))
    assert [p.label for p in sweep.of(["isotropic"])] == [
        "sigma_min = 0.2, sigma_max = 0.2",
        "sigma_min = 0.4, sigma_max = 0.4",
    ]
    assert len({point.key for point in sweep.points}) == 6
    # Points that differ in α alone share their samples.
    assert len({point.run_key for point in sweep.points}) == 4
    assert [point.total_samples for point in sweep.points] == [1280] * 4 + [320] * 2
    assert len(missing_jobs(sweep, SweepFolder(folder / "none"))) == 4


def test_keys_follow_content_and_nothing_else(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = [(p.key, p.run_key) for p in load_sweep(folder / "sweep.toml").points]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("images.npy", "labels.npy", "sweep.toml"):
        (elsewhere / name).write_bytes((folder / name).read_bytes())
    assert [(p.key, p.run_key) for p in load_sweep(elsewhere / "sweep.toml").points] == before
    renamed = sweep_of(folder, ('name = "localized"', 'name = "ours"'), ('ours = ["localized"]', 'ours = ["ours"]'))
    assert [(p.key, p.run_key) for p in renamed.points] == before
    images = np.load(folder / "images.npy")
    images[0, 0, 0, 0] = 0.123
    np.save(folder / "images.npy", images)
    after = [(p.key, p.run_key) for p in load_sweep(folder / "sweep.toml").points]
    assert not {key for pair in before for key in pair} & {key for pair in after for key in pair}


def test_early_stopping_ties_samples_to_the_certificate(folder: Path) -> None:
    sweep = sweep_of(folder, ("batch_size = 50", "batch_size = 50\nstop_early = true"))
    assert len({point.run_key for point in sweep.points}) == 6


def test_names_in_braces_are_filled_in(folder: Path) -> None:
    for sigma in ("0.2", "0.4"):
        (folder / f"model-{sigma}.onnx").write_bytes(sigma.encode())
    model = 'kind = "callable"\nfunction = "tiny_functions:bright"\nclasses = 2\noutput = "labels"'
    sweep = sweep_of(
        folder,
        (model, 'kind = "onnx"\npath = "model-{noise.sigma_min}.onnx"'),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = [0.2]'),
    )
    paths = [point.configuration.model.path.name for point in sweep.points]  # pyright: ignore
    assert paths == ["model-0.2.onnx"] * 3 + ["model-0.4.onnx"]
    with pytest.raises(ConfigurationError, match=r"noise\.sigma"):
        sweep_of(folder, ("tiny_functions:bright", "{noise.sigma}"))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"noise.sigma_max" = [0.2, 0.4]', '"noise.sigma_max" = [0.2]', "differ in length"),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = [0.2, -1]', 'method "localized", sigma_min = -1'),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = []', "empty"),
        ('baselines = ["isotropic"]', 'baselines = ["isotropc"]', "isotropc"),
        ('equal = "samples per output"', 'equal = "total samples"', "localized 1280, isotropic 320"),
        ('name = "isotropic"', 'name = "localized"', "share a name"),
        ("grid = {", "gird = {", "gird"),
        ('"layout.cells" = [1, 1]', '"layout.cells.x" = 1', "layout.cells"),
        ('"noise.sigma_min" = [0.2, 0.3]', '"noise.sigma_min" = [0.2, 0.2]', "this is the same as sigma_min = 0.2"),
        ('baselines = ["isotropic"]', 'baselines = ["localized"]', "on both sides"),
        ('"layout.cells" = [1, 1]', '"certificate.bounds" = ["naive"]', "no bound in common"),
        ('"layout.cells" = [1, 1]', '"layout.cels" = [1, 1]', 'method "isotropic".*\n.*cels'),
        ('target = "ratio"', 'target = "ratio"\nflips = "additions"', "flips: only points on a graph"),
    ],
)
def test_faults_are_named(folder: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        sweep_of(folder, (before, after))


def test_what_draws_otherwise_has_runs_of_its_own(folder: Path) -> None:
    sweep = sweep_of(
        folder,
        *ONE_EACH,
        ("n_candidate = 20", "n_candidate = 10"),
        ("sigma_max = 0.5", "sigma_max = 0.2"),
        ('"noise.sigma_min" = [0.4], "noise.sigma_max" = [0.4]', '"noise.sigma_min" = [0.2]'),
        further=BASELINES,
    )
    runs = {point.method: point.run_key for point in sweep.points}
    assert runs["segcertify"] == runs["isotropic"]
    assert runs["centre"] not in (runs["segcertify"], runs["localized"])
    # Twice N₁: the choice of a centre, and its check.
    assert {point.method: point.total_samples for point in sweep.points} == {
        "localized": 4 * 310,
        "isotropic": 310,
        "segcertify": 310,
        "centre": 320,
    }
    counted = ('bounds = ["lp', 'base = ["gaussian-scores"]\nbounds = ["lp')
    keys = {point.run_key for point in sweep_of(folder, *ONE_EACH, counted).points}
    assert keys.isdisjoint(point.run_key for point in sweep_of(folder, *ONE_EACH).points)


def test_where_samples_are_drawn_is_no_content(folder: Path) -> None:
    before = [(p.key, p.run_key) for p in sweep_of(folder).points]
    elsewhere = sweep_of(
        folder, ("[base.noise]", '[base.execution]\nexecutor = "threads"\nworkers = 3\n\n[base.noise]')
    )
    assert [(p.key, p.run_key) for p in elsewhere.points] == before


GRAPH = """
title = "Graph"
flips = "deletions"

[base.graph]
clusters = 2
clustering = "spectral"

[base.noise]
addition = [0.05, 0.05]

[base.certificate]
additions = [0]
deletions = [0, 1, 3]

[[method]]
name = "localized"
grid = { "noise.deletion" = [[0.5, 0.8], [0.6, 0.8]] }

[[method]]
name = "isotropic"
set = { "graph.clusters" = 1, "noise.deletion" = [0.8, 0.8] }
"""


def test_points_on_a_graph() -> None:
    sweep = expand(tomllib.loads(GRAPH))
    assert [point.total_samples for point in sweep.points] == [22_000, 22_000, 11_000]
    assert sweep.quality == "accuracy"
    assert len({point.run_key for point in sweep.points}) == 3
    for before, after, message in (
        ('"deletions"', '"additions"', "no budget above 0"),
        ("clusters = 2", "clusters = 0", 'method "localized", deletion'),
    ):
        with pytest.raises(ConfigurationError, match=message):
            expand(tomllib.loads(changed(GRAPH, (before, after))))


def test_graphs_and_images_are_not_compared(folder: Path) -> None:
    images = tomllib.loads((folder / "sweep.toml").read_text())["base"]
    methods = [{"name": "graph", "set": {"graph": {"clusters": 2}}}, {"name": "images", "set": images}]
    with pytest.raises(ConfigurationError, match="Make a sweep for each"):
        expand({"base": {}, "method": methods}, folder)
    assert expand({"base": {}, "method": methods[:1]}, folder).quality == "accuracy"


@pytest.mark.parametrize("section", ['labels = "labels.npy"\n'])
def test_items_without_labels_are_refused_before_anything_runs(folder: Path, section: str) -> None:
    with pytest.raises(ConfigurationError, match=r'method "localized", .*\ndata\.labels: they are missing'):
        sweep_of(folder, (section, ""))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_sweep_files_with_byte_order_marks_are_read(folder: Path, encoding: str) -> None:
    text = (folder / "sweep.toml").read_text()
    (folder / "sweep.toml").write_text(text, encoding=encoding)
    assert len(load_sweep(folder / "sweep.toml").points) == 6
