"""Whatever a stranger's file holds, readers answer with a result or with one of the package's own errors.

The quick form tries a fixed set of damaged files; the long form goes on for some minutes from other seeds.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import time
import tomllib
import warnings
import zlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsmooth.collective.problem_file import problem_from, read_problems
from localsmooth.config import load_configuration, parse_configuration
from localsmooth.errors import LocalsmoothError
from localsmooth.pipeline import recertify
from localsmooth.results import load
from localsmooth.runs import Chunk, ChunkRecord, DirectoryStore, RunIdentity, survey
from localsmooth.runs.record import decode_chunk, encode_chunk
from localsmooth.tasks import record as run_record
from localsmooth.tasks.graphs.npz import load_npz
from tests.hardening.mutations import damage_bytes, damage_values

Attempt = Callable[[random.Random], object]


def hunt(attempt: Attempt, rounds: int, seconds: float, first_seed: int) -> None:
    """Try damaged inputs, each from a seed of its own, and show the seed of the first that breaks a reader."""
    start = time.monotonic()
    seed = first_seed
    while seed < first_seed + rounds or time.monotonic() < start + seconds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                attempt(random.Random(seed))
            except LocalsmoothError:
                pass
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        seed += 1


QUICK = pytest.param(60, 0.0, 0, id="quick")
LONG = pytest.param(0, 75.0, 10**6, id="long", marks=pytest.mark.long)
amounts = pytest.mark.parametrize(("rounds", "seconds", "first_seed"), [QUICK, LONG])

DEMO: dict[str, Any] = tomllib.loads(resources.files("localsmooth.scenes").joinpath("demo.toml").read_text())


def use(values: Any) -> None:
    configuration = parse_configuration(values)
    configuration.noise.build()
    layout = configuration.layout.build(configuration.noise, configuration.data)
    layout.layout((1, 64, 96), (64, 96))
    configuration.sampling.build()
    configuration.sampling.options()
    configuration.sampling.score_counting()
    configuration.certificate.build(configuration.noise.build())


def test_the_undamaged_configuration_is_used() -> None:
    use(DEMO)


@amounts
def test_configurations(rounds: int, seconds: float, first_seed: int) -> None:
    hunt(lambda generator: use(damage_values(DEMO, generator)), 5 * rounds, seconds, first_seed)


@amounts
def test_configuration_files(rounds: int, seconds: float, first_seed: int, tmp_path: Path) -> None:
    text = resources.files("localsmooth.scenes").joinpath("demo.toml").read_bytes()
    path = tmp_path / "run.toml"
    path.write_bytes(text)
    load_configuration(path)

    def attempt(generator: random.Random) -> None:
        path.write_bytes(damage_bytes(text, generator))
        load_configuration(path)

    hunt(attempt, rounds, seconds, first_seed)


PROBLEM: dict[str, Any] = {
    "weights": [[1.0, 0.25], [0.5, 2.0]],
    "eta": [0.5, 1.0, 1.5, 0.25],
    "group": [0, 1, 1, 0],
    "A": [[1.0, 1.0]],
    "c": [[0.0], [1.0]],
    "targets": [0, 1, 3],
    "caps": [None, 2.0],
    "integer": False,
}


@amounts
def test_problems(rounds: int, seconds: float, first_seed: int) -> None:
    hunt(lambda generator: problem_from(damage_values(PROBLEM, generator)), 5 * rounds, seconds, first_seed)


@amounts
@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_problem_files(suffix: str, rounds: int, seconds: float, first_seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"problem{suffix}"
    if suffix == ".json":
        data = json.dumps([PROBLEM]).encode()
    else:
        buffer = io.BytesIO()
        np.savez(buffer, **{name: np.array(value) for name, value in PROBLEM.items() if name != "caps"})
        data = buffer.getvalue()
    path.write_bytes(data)
    read_problems(path)

    def attempt(generator: random.Random) -> None:
        path.write_bytes(damage_bytes(data, generator))
        read_problems(path)

    hunt(attempt, rounds, seconds, first_seed)


@amounts
def test_graph_files(rounds: int, seconds: float, first_seed: int, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    buffer = io.BytesIO()
    np.savez(
        buffer,
        **{
            "adj_matrix.data": np.ones(2, np.float32),
            "adj_matrix.indices": np.array([1, 0], np.int32),
            "adj_matrix.indptr": np.array([0, 1, 2], np.int32),
            "adj_matrix.shape": np.array([2, 2]),
            "attr_matrix.data": np.ones(2, np.float32),
            "attr_matrix.indices": np.array([0, 2], np.int32),
            "attr_matrix.indptr": np.array([0, 1, 2], np.int32),
            "attr_matrix.shape": np.array([2, 3]),
            "labels": np.array([0, 1]),
        },
    )
    path.write_bytes(buffer.getvalue())
    load_npz(path)

    def attempt(generator: random.Random) -> None:
        path.write_bytes(damage_bytes(buffer.getvalue(), generator))
        load_npz(path)

    hunt(attempt, rounds, seconds, first_seed)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run."""
    from localsmooth.layout import GridLayout
    from localsmooth.runs import SamplingPlan
    from tests.flat import certify
    from tests.sampling.exact import ExactModel

    folder = tmp_path_factory.mktemp("runs") / "run"
    certify(
        ExactModel(),
        np.random.default_rng(0).random((2, 1, 8, 12), dtype=np.float32),
        layout=GridLayout((2, 2), minimum=0.3, maximum=1.0),
        plan=SamplingPlan(10, 100, chunk_size=50),
        alpha=0.05,
        budgets=[0.0, 0.1],
        out=folder,
    )
    return folder


@amounts
def test_run_directories(rounds: int, seconds: float, first_seed: int, finished: Path, tmp_path: Path) -> None:
    files = sorted(p.relative_to(finished) for p in finished.rglob("*") if p.is_file() and p.name != "lock")

    def attempt(generator: random.Random) -> None:
        name = generator.choice(files)
        whole = (finished / name).read_bytes()
        folder = tmp_path / "run"
        if not folder.exists():
            shutil.copytree(finished, folder)
        try:
            (folder / name).write_bytes(damage_bytes(whole, generator))
            survey(DirectoryStore(folder, read_only=True))
            recertify(folder)
            load(folder / "result.nc")
        finally:
            (folder / name).write_bytes(whole)

    hunt(attempt, rounds, seconds, first_seed)


@amounts
def test_sealed_records(rounds: int, seconds: float, first_seed: int, finished: Path, tmp_path: Path) -> None:
    """A stranger can write a checksum that fits."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    path = folder / "certification.json"
    content = json.loads(path.read_bytes())
    del content["sha256"]
    assert run_record._digest(content) == json.loads(path.read_bytes())["sha256"]  # pyright: ignore[reportPrivateUsage]
    recertify(folder)

    def attempt(generator: random.Random) -> None:
        damaged = damage_values(content, generator)
        try:
            digest = run_record._digest(damaged)  # pyright: ignore[reportPrivateUsage]
            path.write_text(json.dumps(damaged | {"sha256": digest}))
        except (ValueError, TypeError):  # not JSON
            return
        recertify(folder)

    hunt(attempt, rounds, seconds, first_seed)


@amounts
def test_sealed_chunks(rounds: int, seconds: float, first_seed: int) -> None:
    """What is in the stream is damaged, and the checksum made to fit."""
    chunk = ChunkRecord(Chunk(0, 1, 0, 0, 3), 3, {"labels.counts": np.ones((3, 2), np.uint8), "mean.sum": np.ones(3)})
    stored = zlib.decompress(encode_chunk(chunk, "0" * 64)[:-32])
    size = 8 + int.from_bytes(stored[:8], "little")
    header = json.loads(stored[8:size])
    facts = json.loads(header["__metadata__"]["localsmooth/2"])

    def attempt(generator: random.Random) -> None:
        try:
            front = damage_values(header, generator)
            if generator.random() < 0.5:
                front = {**header, "__metadata__": {"localsmooth/2": json.dumps(damage_values(facts, generator))}}
            text = json.dumps(front).encode()
        except (ValueError, TypeError):  # not JSON
            return
        damaged = len(text).to_bytes(8, "little") + text + stored[size:]
        body = zlib.compress(damage_bytes(stored, generator) if generator.random() < 0.3 else damaged)
        decode_chunk(body + hashlib.sha256(body).digest(), "0" * 64)

    hunt(attempt, 20 * rounds, seconds, first_seed)


@amounts
def test_sealed_manifests(rounds: int, seconds: float, first_seed: int, finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    path = folder / "manifest.json"
    content = json.loads(path.read_bytes())
    assert RunIdentity(content["configuration"]).sha256 == content["sha256"]

    def attempt(generator: random.Random) -> None:
        damaged = damage_values(content, generator)
        try:
            if isinstance(damaged.get("configuration"), dict):
                damaged["sha256"] = RunIdentity(damaged["configuration"]).sha256
            path.write_text(json.dumps(damaged))
        except (ValueError, TypeError):
            return
        survey(DirectoryStore(folder, read_only=True))
        recertify(folder)

    hunt(attempt, rounds, seconds, first_seed)
