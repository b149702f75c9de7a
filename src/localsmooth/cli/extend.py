"""`localsmooth extend`: more samples for a finished run."""

from __future__ import annotations

from pathlib import Path

from localsmooth.cli.certify import run_configuration
from localsmooth.cli.commands import Log
from localsmooth.cli.telling import telling
from localsmooth.config import import_plugins, parse_configuration
from localsmooth.errors import InvalidInputError
from localsmooth.execution import Until
from localsmooth.tasks import load_record

__all__ = ["extend"]


def extend(
    run: Path, samples: int, time: str | None, until_interrupted: bool, until_settled: str | None, log: Log
) -> None:
    """Draw what a larger number of samples takes beyond those of a finished run, and certify it again."""
    record = load_record(run)
    if samples < record.n_bound:
        raise InvalidInputError(
            "--samples", f"the run has {record.n_bound} already", "Pass the number that it is to have in all"
        )
    kept = record.configuration
    if "sampling" not in kept or "certificate" not in kept:
        raise InvalidInputError(
            "run",
            f"{run} was not made from a configuration file, so that its model is not known here",
            "Call certify in Python with the same task and a larger n_bound, into the same directory",
        )
    with telling(log) as told:
        grown = {**kept, "sampling": {**kept["sampling"], "n_bound": samples}}
        import_plugins(grown)
        until = Until.parse(time, interrupted=until_interrupted, settled=until_settled)
        told.result(run_configuration(parse_configuration(grown), run, told, until=until), run)
