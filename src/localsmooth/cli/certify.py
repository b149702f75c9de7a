"""`localsmooth certify`: one configuration file, one run directory."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import xarray as xr
from rich.console import Console

from localsmooth.cli.summary import print_summary
from localsmooth.config import Configuration, load_configuration
from localsmooth.config.build import (
    build_items,
    build_layout,
    build_model,
    build_noise,
    build_options,
    build_plan,
    build_scores,
    build_settings,
)
from localsmooth.config.execution import build_executor
from localsmooth.config.load import with_execution
from localsmooth.pipeline.certify import run_certification
from localsmooth.sampling import JsonProgress, RichProgress, SamplingProgress

__all__ = ["certify", "run_configuration"]


def run_configuration(
    configuration: Configuration, out: Path, console: Console, progress: SamplingProgress | None = None
) -> xr.Dataset:
    """Build everything a configuration describes and certify it into a run directory."""
    try:
        return run_certification(
            build_model(configuration),
            build_items(configuration),
            layout=build_layout(configuration),
            noise=build_noise(configuration.noise),
            plan=build_plan(configuration),
            settings=build_settings(configuration.certificate, configuration.noise),
            scores=build_scores(configuration),
            out=out,
            name=configuration.name,
            configuration=configuration.model_dump(mode="json"),
            options=build_options(configuration),
            executor=build_executor(configuration.execution),
            progress=RichProgress(console) if progress is None else progress,
        )
    except KeyboardInterrupt:
        console.print("Interrupted. Finished chunks are kept: the same command goes on where this one stopped.")
        raise


class Log(StrEnum):
    """How progress is told."""

    TEXT = "text"
    JSON = "json"


class Place(StrEnum):
    """Where samples are drawn."""

    SERIAL = "serial"
    THREADS = "threads"
    PROCESSES = "processes"
    RAY = "ray"


def certify(
    config: Annotated[Path, typer.Argument(help="Configuration file (TOML).", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Run directory; an interrupted run in it goes on.")],
    executor: Annotated[
        Place | None,
        typer.Option("--executor", help="Where samples are drawn, in place of the file's section [execution]."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Number of threads, processes or actors.")] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option("--gpus-per-worker", help="GPUs for each process or actor, such as 1 or 0.5.")
    ] = None,
    address: Annotated[str | None, typer.Option("--address", help='Of a running Ray cluster, or "auto".')] = None,
    log: Annotated[Log, typer.Option("--log", help="Progress for people, or as lines of JSON.")] = Log.TEXT,
) -> None:
    """Sample a model on some items and certify them; the result is RUN/result.nc."""
    console = Console(stderr=True)
    configuration = with_execution(
        load_configuration(config),
        executor=None if executor is None else executor.value,
        workers=workers,
        gpus_per_worker=gpus_per_worker,
        address=address,
    )
    # A model's module is looked for beside the file that names it, as Python does for a script.
    sys.path.insert(0, str(config.resolve().parent))
    result = run_configuration(configuration, out, console, JsonProgress() if log is Log.JSON else None)
    print_summary({str(result.attrs["method"]): result}, Console())
    console.print(f"Result: {out / 'result.nc'}. Picture: localsmooth report {out}", highlight=False)
