"""The files of the paper's graph figures, run on a small graph in place of their data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from localsmooth.cli.app import app
from localsmooth.results import load

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "node_classification"
FILES = sorted(FOLDER.glob("*.toml"))
LESS = [
    (r'kind = "(.*)".*', r'kind = "\1"\nepochs = 2\nself_training = false'),
    (r"n_candidate = \d+", "n_candidate = 20"),
    (r"n_bound = \d+", "n_bound = 300\nchunk_size = 100"),
    (r"bounds = .*", 'bounds = ["naive"]'),
]


def _save_graph(path: Path) -> None:
    """Six classes on a ring with chords, in the flat form of the citation graphs."""
    r = np.random.default_rng(0)
    nodes = 6 * 45
    labels = np.repeat(np.arange(6), 45)
    links = np.concatenate([[np.arange(nodes), (np.arange(nodes) + 1) % nodes], r.integers(0, nodes, (2, 100))], axis=1)
    adjacency = sp.csr_array((np.ones(links.shape[1]), links), shape=(nodes, nodes))
    attributes = sp.csr_array((r.random((nodes, 12)) < np.where(labels[:, None] == np.arange(12) % 6, 0.8, 0.1)) * 1.0)
    content = {"labels": labels}
    for name, matrix in (("adj_matrix", adjacency), ("attr_matrix", attributes)):
        content |= {
            f"{name}.{part}": np.asarray(getattr(matrix, part)) for part in ("data", "indices", "indptr", "shape")
        }
    np.savez(path, **content)  # type: ignore[arg-type]


def _run(*arguments: object) -> None:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_every_figure_has_its_file():
    graphs = ("citeseer_appnp", "citeseer_gcn", "cora_ml_appnp")
    figures = {f"{graph}_{kind}" for graph in graphs for kind in ("additions", "deletions")}
    classes = {f"{data}_by_class_{kind}" for data in ("citeseer", "cora_ml") for kind in ("additions", "deletions")}
    assert {path.stem for path in FILES} == figures | classes | {"citeseer_strictly_local"}


@pytest.mark.parametrize("graph", ["citeseer_appnp", "citeseer_gcn", "cora_ml_appnp"])
def test_one_run_serves_both_figures(graph: str, tmp_path: Path):
    data = re.search(r'data = "(.*)"', (FOLDER / f"{graph}_deletions.toml").read_text("utf-8"))
    assert data is not None
    _save_graph(tmp_path / data[1])
    for kind in ("deletions", "additions"):
        text = (FOLDER / f"{graph}_{kind}.toml").read_text("utf-8")
        assert f"{graph}_{kind}.toml" in text  # the command that it names
        for pattern, less in LESS:
            text, found = re.subn(pattern, less, text)
            assert found == 1
        (tmp_path / f"{kind}.toml").write_text(text, "utf-8")
    _run("certify", tmp_path / "deletions.toml", "--out", tmp_path / "run")
    deletions = load(tmp_path / "run" / "result.nc")
    assert deletions["deletions"].values.tolist() == list(range(61))
    _run("recertify", tmp_path / "run", "--config", tmp_path / "additions.toml", "--to", tmp_path / "additions.nc")
    additions = load(tmp_path / "additions.nc")
    assert additions["additions"].values.tolist() == list(range(21))
    # The two figures are of one run: nothing was drawn or trained for the second.
    assert int(deletions["certified"].max()) == int(additions["certified"].max())


def test_strictly_local_certificates_gain(tmp_path: Path):
    _save_graph(tmp_path / "citeseer.npz")
    text = (FOLDER / "citeseer_strictly_local.toml").read_text("utf-8")
    for pattern, less in LESS[:-1]:
        text = re.sub(pattern, less, text)
    (tmp_path / "local.toml").write_text(text.replace("epochs = 2", "epochs = 200\nlearning_rate = 0.05"), "utf-8")
    _run("certify", tmp_path / "local.toml", "--out", tmp_path / "run")
    counts = load(tmp_path / "run" / "result.nc")["certified"].sel(target="ratio")
    naive, best = (counts.sel(bound=bound).values.ravel() for bound in ("naive", "envelope"))
    assert (best >= naive).all()
    assert best.sum() > naive.sum()
