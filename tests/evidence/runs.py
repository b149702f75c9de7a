"""Small finished runs to verify, and ways to change them so that every checksum still fits."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.runs import DirectoryStore, SamplingPlan, record
from localsmooth.sampling import SamplingOptions
from tests.flat import certify
from tests.pipeline.models import threshold_model

SHAPE = (6, 8)
PLAN = SamplingPlan(n_candidate=20, n_bound=300, seed=0, chunk_size=100)


def images(count: int = 1) -> list[np.ndarray]:
    generator = np.random.default_rng(5)
    return [generator.random((1, *SHAPE)).astype(np.float32) for _ in range(count)]


def make_run(out: Path, count: int = 1, **changes: Any) -> Path:
    """Certify thresholds on pictures of noise: outputs from hopeless to unanimous."""
    items = changes.pop("images", None) or images(count)
    arguments: dict[str, Any] = {
        "labels": [(item[0] > 0.5).astype(np.int64) for item in items],
        "layout": GridLayout((2, 2), 0.2, 0.5),
        "plan": PLAN,
        "alpha": 0.05,
        "budgets": [0.0, 0.1, 0.2, 0.4],
        "options": SamplingOptions(batch_size=50),
        "progress": NoProgress(),
        "out": out,
    }
    arguments |= changes
    labels, model = arguments.pop("labels"), arguments.pop("model", threshold_model(np.array(0.5)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certify(model, items, labels, **arguments)
    return out


def scoring_model() -> CallableModel:
    """Scores of two classes from each pixel's own value."""

    def predict(batch: np.ndarray) -> np.ndarray:
        return np.stack([0.5 - batch[:, 0], batch[:, 0] - 0.5], axis=1).astype(np.float32) * 20

    return CallableModel(predict, name="scores", bounds=None, classes=2, output=OutputKind.LOGITS)


def chunk_files(run: Path) -> list[Path]:
    return sorted((run / "chunks").rglob("*.tally"))


def rewrite_chunk(path: Path, run: Path, change: Callable[[record.ChunkRecord], record.ChunkRecord]) -> None:
    """Change the content of a chunk and give it a checksum that fits."""
    store = DirectoryStore(run, read_only=True)
    assert store.configuration is not None
    seal = store.configuration.seal
    path.write_bytes(record.encode_chunk(change(record.decode_chunk(path.read_bytes(), seal)), seal))


def rewrite_array(run: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change a kept array and give it a checksum that fits."""
    store = DirectoryStore(run, read_only=True)
    assert store.configuration is not None
    made = record.encode_array(name, change(store.get_array(name).copy()), store.configuration.seal)
    (run / "arrays" / f"{name}.array").write_bytes(made)


def rewrite_record(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record and give it a checksum that fits."""
    path = run / "certification.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    change(content)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()
    path.write_text(json.dumps(content | {"sha256": digest}, indent=1))
