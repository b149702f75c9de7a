"""What a sweep can be run with in place of certification; child processes import it by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import xarray as xr

from localsmooth.config import AnyFile, Configuration
from localsmooth.errors import InvalidInputError
from localsmooth.results import build_dataset
from tests.results.synthetic import make_item, run_info


def instant(configuration: AnyFile, run: Path) -> xr.Dataset:
    """A made-up result with the budgets, bounds and α that were asked for."""
    assert isinstance(configuration, Configuration)
    certificate = configuration.certificate
    bounds = certificate.bounds if certificate.baseline is None else ["naive"]
    budgets = {"budget": tuple(certificate.budget_values())}
    asked = run_info(budgets=budgets, bound_names=tuple(bounds), alpha=certificate.alpha)
    return build_dataset([make_item(size=(6, 8), grid=(2, 2), run=asked)], asked)


def refusing(configuration: AnyFile, run: Path) -> xr.Dataset:
    """Refuses one method."""
    if configuration.name == "isotropic":
        raise InvalidInputError("cells", "there are\nnone", "Have some")
    return instant(configuration, run)


def deadly(configuration: AnyFile, run: Path) -> xr.Dataset:
    """One method's process dies."""
    if configuration.name == "isotropic":
        os._exit(3)
    return instant(configuration, run)


def slow(configuration: AnyFile, run: Path) -> xr.Dataset:
    """Never ends, and leaves its process's number."""
    run.mkdir(parents=True)
    (run / "pid").write_text(str(os.getpid()))
    time.sleep(600)
    raise AssertionError


def never(configuration: AnyFile, run: Path) -> xr.Dataset:
    """For what must not be run."""
    raise AssertionError("a finished point was run again")
