"""`localsmooth certify`: one configuration file, one run directory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import xarray as xr
from rich.console import Console

from localsmooth.cli.commands import Log, Place
from localsmooth.cli.graph import print_graph_summary, run_graph_configuration
from localsmooth.cli.summary import print_summary
from localsmooth.cli.telling import Teller, telling
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
from localsmooth.execution import OtherPartsMissingError, Part
from localsmooth.pipeline import Run
from localsmooth.pipeline import certify as certify_task
from localsmooth.tasks.arrays.task import ArrayTask
from localsmooth.tasks.smoothing import Smoothing

__all__ = ["certify", "run_configuration"]


def run_configuration(
    configuration: Configuration,
    out: Path,
    told: Teller,
    *,
    store: str | None = None,
    part: Part | None = None,
) -> xr.Dataset:
    """Build everything a configuration describes and certify it into a run directory."""
    try:
        return certify_task(
            ArrayTask(build_model(configuration), build_items(configuration)),
            Smoothing(build_layout(configuration), build_plan(configuration), build_noise(configuration.noise)),
            replace(
                build_settings(configuration.certificate, configuration.noise),
                method=build_method(configuration.certificate),
            ),
            run=Run(
                out,
                configuration.name,
                build_executor(configuration.execution),
                store,
                part,
                told.progress,
                build_options(configuration),
                build_scores(configuration),
                configuration.model_dump(mode="json"),
            ),
        )
    except KeyboardInterrupt:
        told.interrupted()
        raise


def certify(
    config: Path,
    out: Path,
    store: str | None,
    part: str | None,
    executor: Place | None,
    workers: int | None,
    gpus_per_worker: float | None,
    address: str | None,
    log: Log,
) -> None:
    """Sample a model on some items, or on a graph, and certify them."""
    with telling(log) as told:
        configuration = load_any_configuration(config)
        # A model's module is looked for beside the file that names it, as Python does for a script.
        sys.path.insert(0, str(config.resolve().parent))
        configuration = with_execution(
            configuration,
            executor=None if executor is None else executor.value,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            address=address,
        )
        share = None if part is None else Part.parse(part)
        try:
            if isinstance(configuration, GraphConfiguration):
                result, show = (
                    run_graph_configuration(configuration, out, told, store=store, part=share),
                    print_graph_summary,
                )
            else:
                result, show = run_configuration(configuration, out, told, store=store, part=share), _show
        except OtherPartsMissingError as finished:
            told.say(str(finished))
            return
        told.result(result, out, show)


def _show(result: xr.Dataset, console: Console) -> None:
    print_summary({str(result.attrs["method"]): result}, console)
