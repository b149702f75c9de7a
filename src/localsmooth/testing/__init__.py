"""Contract suites: what a class of each kind must do, as tests that your own classes inherit.

Derive a test class from the suite of the kind, say what is to be tested, and let a runner such as pytest collect it::

    class TestMyNoise(NoiseContract):
        case = NoiseCase(MyNoise(), levels, cdf)

The suites need no package beyond localsmooth itself: pytest collects methods called ``test_…`` of classes called
``Test…``, and so do others. The package's own classes pass the same suites.
"""

import sys

from localsmooth.errors import LocalsmoothError

if not __debug__:
    raise LocalsmoothError("python -O drops assertions, so that every suite would pass. Run tests without it")
if "pytest" in sys.modules:
    # Failing assertions of the suites then show their values, as those in test files do.
    for _suite in ("certificates", "collective", "confidence", "executors", "models", "noises", "stores", "tasks"):
        sys.modules["pytest"].register_assert_rewrite(f"{__name__}.{_suite}")

from localsmooth.testing.certificates import ScoreCertificateContract, VoteCertificateContract
from localsmooth.testing.collective import BoundContract
from localsmooth.testing.confidence import ScoreBoundContract, SimultaneousContract, VoteBoundContract
from localsmooth.testing.executors import ExecutorContract
from localsmooth.testing.laws import (
    BERNOULLI,
    GAUSSIAN,
    GAUSSIAN_GRID,
    KNOWN_NOISES,
    SPARSE_FLIPS,
    UNIFORM,
    UNIFORM_GRID,
    NoiseCase,
)
from localsmooth.testing.models import ModelContract
from localsmooth.testing.noises import NoiseContract
from localsmooth.testing.stores import StoreContract
from localsmooth.testing.tasks import TaskCase, TaskContract

__all__ = [
    "BERNOULLI",
    "GAUSSIAN",
    "GAUSSIAN_GRID",
    "KNOWN_NOISES",
    "SPARSE_FLIPS",
    "UNIFORM",
    "UNIFORM_GRID",
    "BoundContract",
    "ExecutorContract",
    "ModelContract",
    "NoiseCase",
    "NoiseContract",
    "ScoreBoundContract",
    "ScoreCertificateContract",
    "SimultaneousContract",
    "StoreContract",
    "TaskCase",
    "TaskContract",
    "VoteBoundContract",
    "VoteCertificateContract",
]
