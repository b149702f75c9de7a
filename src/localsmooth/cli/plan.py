"""`localsmooth plan`: what certifying would take, before it does."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from localsmooth.cli.telling import Teller
from localsmooth.config import AnyFile, Configuration, load_configuration
from localsmooth.pipeline import Estimate, Run
from localsmooth.pipeline import plan as estimate
from localsmooth.terminal import terminal

__all__ = ["estimated", "plan", "print_estimate"]

_MEBI = 1 << 20


def plan(config: Path, seconds: float, as_json: bool) -> None:
    """Say what a configuration file asks for would take."""
    # Modules are looked for beside the file that names them, as for `localsmooth certify`.
    sys.path.insert(0, str(config.resolve().parent))
    found = estimated(load_configuration(config), Teller(), seconds)
    if as_json:
        print(json.dumps(asdict(found) | {"seconds": found.seconds}, indent=1))
    else:
        print_estimate(found, config)


def estimated(configuration: AnyFile, told: Teller, seconds: float = 4.0) -> Estimate:
    """Estimate what a configuration asks for; networks that a file has trained are trained for it, and not kept."""
    calibration = None
    if isinstance(configuration, Configuration) and configuration.calibration is not None:
        calibration = configuration.calibration_items()
    with tempfile.TemporaryDirectory(prefix="localsmooth-plan-") as folder:
        task, smoothing, settings = configuration.prepare(Path(folder), told.say)
        run = Run(
            executor=configuration.execution.build(),
            options=configuration.sampling.options(),
            scores=configuration.sampling.score_counting(),
        )
        return estimate(task, smoothing, settings, run=run, calibration=calibration, seconds=seconds, tell=told.say)


def print_estimate(found: Estimate, place: Path) -> None:
    """Print an estimate for people."""
    console = terminal(stderr=False)
    for line in _lines(found):
        console.print(line)
    console.print(f"Nothing of this was certified, and nothing was written ({place}).")


def _lines(found: Estimate) -> list[str]:
    lines = [f"{_several(found.items, 'item')}, {_several(found.groups, 'output group')} in all"]
    if found.samples is not None and found.passes is not None:
        most = "at most " if found.stops_early else ""
        passes = "" if round(found.passes) == found.samples else f", as much work as {found.passes:,.0f} whole passes"
        lines.append(f"Model: {most}{found.samples:,} forward passes{passes}")
    if found.seconds is not None and found.rate is not None:
        lines.append(
            f"Time: about {_duration(found.seconds)} of sampling, at the {found.rate:,.1f} passes/s measured over "
            f"{found.timed:,.0f} passes; certifying comes on top"
        )
    if found.memory is not None:
        lines.append(f"Memory: {found.memory / _MEBI:,.0f} MiB a process")
    if found.disk is not None:
        lines.append(f"Disk: {found.disk / _MEBI:,.1f} MiB of tallies")
    lines += [text for text in (found.reach, found.scale) if text]
    lines += found.notes
    lines += [f"On calibration items, {sight}" for sight in found.sights]
    lines += [found.unseen] if found.unseen else []
    return lines


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))
