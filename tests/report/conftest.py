import numpy as np
import pytest
import xarray as xr

import localsmooth.tasks.arrays
import localsmooth.tasks.graphs
import localsmooth.tasks.points
import localsmooth.tasks.tokens  # noqa: F401  (what these import may seed generators, which no test may do)
from localsmooth.results import build_dataset

from ..results.synthetic import make_item, run_info


@pytest.fixture(scope="session")
def localized() -> xr.Dataset:
    return build_dataset([make_item("scene 0", 0), make_item("scene 1", 1)], run_info())


@pytest.fixture(scope="session")
def isotropic() -> xr.Dataset:
    budgets = {"budget": tuple(np.linspace(0, 1, 8).tolist())}
    run = run_info(method="isotropic", budgets=budgets)
    return build_dataset([make_item("scene 1", 1, grid=(1, 1), run=run)], run)


@pytest.fixture(scope="session")
def results(localized: xr.Dataset, isotropic: xr.Dataset) -> dict[str, xr.Dataset]:
    return {"localized": localized, "isotropic": isotropic}
