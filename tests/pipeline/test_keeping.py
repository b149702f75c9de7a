"""A run directory loses no earlier result, and says which key of the configuration belongs to another run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout
from localsmooth.pipeline import certify
from localsmooth.results import load
from localsmooth.sampling import NoProgress, OtherRunError, SamplingOptions, SamplingPlan
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
    model = threshold_model(np.full(SHAPE, -1.0))
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
