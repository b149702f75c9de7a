"""Where and how a certification runs, and what its record says of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from localsmooth.errors import require_kind
from localsmooth.execution import Executor, ExecutorName, Part, SamplingProgress, Until
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import ScoreCounting

__all__ = ["Run"]


@dataclass(frozen=True, eq=False)
class Run:
    """Everything about a run that its certificate does not depend on.

    Parameters
    ----------
    out
        Run directory: finished chunks are kept there, a run that was interrupted goes on, and the result is written
        to `result.nc`; an earlier result with other contents is kept as `result-1.nc` and so on. Without a directory,
        nothing is written.
    name
        What the result calls the method.
    executor
        Where samples are drawn: `SerialExecutor`, `ThreadExecutor`, `ProcessExecutor` or `RayExecutor`, or "serial",
        "threads", "processes" or "ray" for one with its defaults; by default in this process, on every core where
        the model allows that.
    store
        Address of another place for finished chunks, such as ``s3://bucket/run``; by default they are kept in `out`.
    part
        Draw this share of the output groups only, for machines without a disk in common; see
        `localsmooth.runs.join`. Nothing is certified before all parts are there.
    progress
        Told how far sampling, and then the exact bound, has come; by default a bar where standard error is a terminal,
        and elsewhere lines, one a minute, of what takes more than a few seconds. `NoProgress()` says nothing.
    options
        How to run the model; by default found by a short calibration.
    scores
        How scores are counted; by default only where the settings need them, and as little as they need.
    until
        When to end sampling before its plan: after some time, at Ctrl-C, item by item when counts have settled, or when
        somebody says so. What is complete by then is certified, by rules that hold at every number of samples at once
        (`JointCount`, early stopping).
    configuration
        What to store as the configuration of the run: plain JSON values.
    candidates
        Directory of a run on the same items under the same layouts and noise, say of another version of the model: its
        candidate stage is taken in place of one of this model. The seed must be another.

    Raises
    ------
    InvalidInputError
        Naming what is of another kind.
    """

    out: str | os.PathLike[str] | None = None
    name: str = "localized"
    executor: Executor | ExecutorName | None = None
    store: str | None = None
    part: Part | None = None
    progress: SamplingProgress | None = None
    options: SamplingOptions | None = None
    scores: ScoreCounting | None = None
    configuration: Mapping[str, Any] | None = None
    until: Until | None = None
    candidates: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for field, kinds in (
            ("out", (str, os.PathLike, NoneType)),
            ("name", (str,)),
            ("store", (str, NoneType)),
            ("part", (Part, NoneType)),
            ("progress", (SamplingProgress, NoneType)),
            ("options", (SamplingOptions, NoneType)),
            ("scores", (ScoreCounting, NoneType)),
            ("configuration", (Mapping, NoneType)),
            ("until", (Until, NoneType)),
            ("candidates", (str, os.PathLike, NoneType)),
        ):
            require_kind(field, getattr(self, field), *kinds)
