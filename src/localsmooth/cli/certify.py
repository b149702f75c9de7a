"""`localsmooth certify`: one configuration file, one run directory."""

from __future__ import annotations

import sys
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
    build_model,
    build_noise,
    build_options,
    build_plan,
    build_scores,
    build_settings,
)
from localsmooth.config.methods import build_method
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.certify import run_certification
from localsmooth.sampling import OtherPartsMissingError, Part, RichProgress

__all__ = ["certify", "run_configuration"]


def run_configuration(
    configuration: Configuration, out: Path, console: Console, *, store: str | None = None, part: Part | None = None
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
            progress=RichProgress(console),
            store=store,
            part=part,
        )
    except KeyboardInterrupt:
        console.print("Interrupted. Finished chunks are kept: the same command goes on where this one stopped.")
        raise


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
) -> None:
    """Sample a model on some items, or on a graph, and certify them; the result is RUN/result.nc."""
    console = Console(stderr=True)
    configuration = load_any_configuration(config)
    # A model's module is looked for beside the file that names it, as Python does for a script.
    sys.path.insert(0, str(config.resolve().parent))
    if isinstance(configuration, GraphConfiguration):
        if store is not None or part is not None:
            raise InvalidInputError("--store, --part", "graphs are sampled in one place", "Leave them out")
        print_graph_summary(run_graph_configuration(configuration, out, console), Console())
    else:
        share = None if part is None else Part.parse(part)
        try:
            result = run_configuration(configuration, out, console, store=store, part=share)
        except OtherPartsMissingError as finished:
            console.print(str(finished), markup=False, highlight=False)
            return
        print_summary({str(result.attrs["method"]): result}, Console())
    console.print(f"Result: {out / 'result.nc'}. Picture: localsmooth report {out}", highlight=False)
