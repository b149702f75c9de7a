from pathlib import Path

import numpy as np
import pytest

from tests.sweep.files import SWEEP
from tests.tiny_runs import write_inputs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sweep file and what it names."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(2, 4, 6))
    write_inputs(tmp_path, np.clip(labels[:, None] + rng.normal(0, 0.1, (2, 1, 4, 6)), 0, 1), labels)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path
