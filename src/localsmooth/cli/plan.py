"""`localsmooth plan`: what certifying would take, before it does."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from localsmooth.cli.telling import Teller
from localsmooth.config import AnyFile, Configuration, load_configuration, naming_keys_of
from localsmooth.pipeline import Estimate, Run
from localsmooth.pipeline import plan as estimate
from localsmooth.tasks.arrays import ArrayTask
from localsmooth.terminal import terminal

__all__ = ["estimated", "plan", "print_estimate"]


def plan(config: Path, seconds: float, as_json: bool) -> None:
    """Say what a configuration file asks for would take."""
    # Modules are looked for beside the file that names them, as for `localsmooth certify`.
    sys.path.insert(0, str(config.resolve().parent))
    found = estimated(load_configuration(config), Teller(), seconds, config)
    if as_json:
        print(json.dumps(asdict(found) | {"seconds": found.seconds}, indent=1))
    else:
        print_estimate(found, config)


def estimated(configuration: AnyFile, told: Teller, seconds: float = 4.0, file: Path | None = None) -> Estimate:
    """Estimate what a configuration asks for; networks that a file has trained are trained for it, and not kept."""
    about_items = isinstance(configuration, Configuration)
    with tempfile.TemporaryDirectory(prefix="localsmooth-plan-") as folder, naming_keys_of(configuration, file):
        calibration = None if about_items else configuration.calibration_data()
        task, smoothing, settings = configuration.prepare(Path(folder), told.say)
        if about_items and configuration.calibration is not None:
            assert isinstance(task, ArrayTask)
            calibration = configuration.calibration_task(task.model).items
        run = Run(
            executor=configuration.execution.build(),
            options=configuration.sampling.options(),
            scores=configuration.sampling.score_counting(),
        )
        return estimate(task, smoothing, settings, run=run, calibration=calibration, seconds=seconds, tell=told.say)


def print_estimate(found: Estimate, place: Path) -> None:
    """Print an estimate for people."""
    console = terminal(stderr=False)
    console.print(str(found))
    console.print(f"Nothing of this was certified, and nothing was written ({place}).")
