"""`localsmooth certify`: one configuration file, one run directory."""

from __future__ import annotations

import sys
from pathlib import Path

import xarray as xr

from localsmooth.cli.commands import Log, Place
from localsmooth.cli.plan import estimated, print_estimate
from localsmooth.cli.telling import Teller, telling
from localsmooth.config import AnyFile, load_configuration, naming_keys_of, with_execution
from localsmooth.execution import OtherPartsMissingError, Part, Until
from localsmooth.pipeline import Run
from localsmooth.pipeline import certify as certify_task

__all__ = ["certify", "run_configuration"]


def run_configuration(
    configuration: AnyFile,
    out: Path,
    told: Teller,
    *,
    store: str | None = None,
    part: Part | None = None,
    until: Until | None = None,
    candidates: Path | None = None,
    file: Path | None = None,
) -> xr.Dataset:
    """Build everything a configuration describes and certify it into a run directory; errors name keys of its file."""
    try:
        with naming_keys_of(configuration, file):
            task, smoothing, settings = configuration.prepare(out, told.say)
            run = Run(
                out,
                configuration.name,
                configuration.execution.build(),
                store,
                part,
                told.progress,
                configuration.sampling.options(),
                configuration.sampling.score_counting(),
                configuration.model_dump(mode="json"),
                until,
                candidates,
            )
            return certify_task(task, smoothing, settings, run=run)
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
    time: str | None,
    until_interrupted: bool,
    dry_run: bool,
    replay: int | None,
    until_settled: str | None,
    log: Log,
) -> None:
    """Sample a model on some items, or on a graph, and certify them."""
    with telling(log) as told:
        # Modules are looked for beside the file that names them, as Python does for a script.
        sys.path.insert(0, str(config.resolve().parent))
        configuration = load_configuration(config)
        configuration = with_execution(
            configuration,
            executor=None if executor is None else executor.value,
            workers=workers,
            gpus_per_worker=gpus_per_worker,
            address=address,
        )
        if dry_run:
            print_estimate(estimated(configuration, told, file=config), out)
            return
        if replay is not None:
            section = configuration.sampling.model_copy(update={"replay": replay})
            configuration = configuration.model_copy(update={"sampling": section})
        share = None if part is None else Part.parse(part)
        until = Until.parse(time, interrupted=until_interrupted, settled=until_settled)
        try:
            result = run_configuration(configuration, out, told, store=store, part=share, until=until, file=config)
        except OtherPartsMissingError as finished:
            told.say(str(finished))
            return
        told.result(result, out)
