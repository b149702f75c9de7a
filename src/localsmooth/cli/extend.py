"""`localsmooth extend`: more samples for a finished run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localsmooth.cli.certify import run_configuration
from localsmooth.cli.commands import Log
from localsmooth.cli.telling import telling
from localsmooth.config import (
    AnyFile,
    ConfigurationError,
    import_plugins,
    load_configuration,
    parse_configuration,
    with_samples,
)
from localsmooth.errors import InvalidInputError
from localsmooth.execution import Until
from localsmooth.runs import DirectoryStore, OtherRunError, interrupted_words
from localsmooth.tasks import interrupted_extension, load_record

__all__ = ["extend"]


def extend(
    run: Path,
    samples: int,
    config: Path | None,
    time: str | None,
    until_interrupted: bool,
    until_settled: str | None,
    log: Log,
) -> None:
    """Draw what a larger number of samples takes beyond those of a finished run, and certify it again."""
    record = load_record(run)
    going = interrupted_extension(record, DirectoryStore(run, read_only=True).configuration)
    if going is not None and samples < going:  # said before the model is loaded and tried
        raise OtherRunError(interrupted_words(run, going))
    if samples < record.n_bound:
        raise InvalidInputError(
            "--samples", f"the run has {record.n_bound} already", "Pass the number that it is to have in all"
        )
    if config is not None:  # modules are looked for beside it, as in `localsmooth certify`
        sys.path.insert(0, str(config.resolve().parent))
    kept = record.configuration if config is None else load_configuration(config).model_dump(mode="json")
    if "sampling" not in kept or "certificate" not in kept:
        raise InvalidInputError(
            "run",
            f"{run} was not made from a configuration file, so that its model is not known here",
            "Call certify in Python with the same task and a larger n_bound, into the same directory",
        )
    until = Until.parse(time, interrupted=until_interrupted, settled=until_settled)
    with telling(log) as told:
        grown = {**kept, "sampling": with_samples(kept["sampling"], record.n_candidate, samples)}
        if record.sequence is not None:  # what ends a group's sampling is the largest budget that it began with
            grown["certificate"] = _as_begun(kept["certificate"], record.settings)
        try:
            result = run_configuration(_parsed(grown), run, told, until=until)
        except ConfigurationError as error:
            if config is not None:
                raise
            # A run directory does not say where code lies: who reads it does.
            raise ConfigurationError(
                f"{error} This is what the run kept of its file: pass --config with the file itself where modules lie "
                "beside it, or something has moved."
            ) from None
        told.result(result, run)


def _as_begun(certificate: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The section with the budgets that were found for the run, where it leaves them to be found."""
    found = {name: settings[name] for name, value in certificate.items() if value == "auto" and name in settings}
    return {**certificate, **found}


def _parsed(values: dict[str, Any]) -> AnyFile:
    import_plugins(values)
    return parse_configuration(values)
