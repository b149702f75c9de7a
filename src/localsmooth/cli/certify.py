"""`localsmooth certify`: one configuration file, one run directory."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import xarray as xr
from rich.console import Console

from localsmooth.cli.graph import print_graph_summary, run_graph_configuration
from localsmooth.cli.summary import print_summary
from localsmooth.config import Configuration, GraphConfiguration, load_any_configuration
from localsmooth.config.build import (
    build_items,
    build_layout,
    build_noise,
    build_options,
    build_plan,
    build_scores,
    build_settings,
)
from localsmooth.config.build_model import build_model
from localsmooth.config.execution import build_executor
from localsmooth.config.load import with_execution
from localsmooth.config.methods import build_method
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.certify import run_certification
from localsmooth.sampling import JsonProgress, OtherPartsMissingError, Part, RichProgress, SamplingProgress

__all__ = ["certify", "run_configuration"]


def run_configuration(
    configuration: Configuration,
    out: Path,
    console: Console,
    progress: SamplingProgress | None = None,
    *,
    store: str | None = None,
    part: Part | None = None,
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
            method=build_method(configuration.certificate),
            out=out,
            name=configuration.name,
            configuration=configuration.model_dump(mode="json"),
            options=build_options(configuration),
            executor=build_executor(configuration.execution),
            progress=RichProgress(console) if progress is None else progress,
            store=store,
            part=part,
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
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="Address for finished chunks, such as s3://bucket/run.  [default: the run directory]"
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option("--part", help="Share of the work, such as 1/2, for machines without a disk in common."),
    ] = None,
    executor: Annotated[
        Place | None,
        typer.Option("--executor", help=r"Where samples are drawn, in place of the file's section \[execution]."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Number of threads, processes or actors.")] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option("--gpus-per-worker", help="GPUs for each process or actor, such as 1 or 0.5.")
    ] = None,
    address: Annotated[str | None, typer.Option("--address", help='Of a running Ray cluster, or "auto".')] = None,
    log: Annotated[Log, typer.Option("--log", help="Progress for people, or as lines of JSON.")] = Log.TEXT,
) -> None:
    """Sample a model on some items, or on a graph, and certify them; the result is RUN/result.nc."""
    console = Console(stderr=True)
    configuration = load_any_configuration(config)
    # A model's module is looked for beside the file that names it, as Python does for a script.
    sys.path.insert(0, str(config.resolve().parent))
    if isinstance(configuration, GraphConfiguration):
        if any(option is not None for option in (store, part, executor, workers, gpus_per_worker, address)):
            raise InvalidInputError(
                "--store, --part, --executor", "graphs are sampled in one process", "Leave these options out"
            )
        print_graph_summary(run_graph_configuration(configuration, out, console), Console())
    else:
        configuration = with_execution(
            configuration,
            executor=None if executor is None else executor.value,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            address=address,
        )
        share = None if part is None else Part.parse(part)
        told = JsonProgress() if log is Log.JSON else None
        try:
            result = run_configuration(configuration, out, console, told, store=store, part=share)
        except OtherPartsMissingError as finished:
            console.print(str(finished), markup=False, highlight=False)
            return
        print_summary({str(result.attrs["method"]): result}, Console())
    console.print(f"Result: {out / 'result.nc'}. Picture: localsmooth report {out}", highlight=False)
