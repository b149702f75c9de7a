"""`localsmooth recertify`: another α or other budgets from stored tallies."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr
from pydantic import TypeAdapter, ValidationError

from localsmooth.cli.graph import graph_settings
from localsmooth.cli.summary import print_summary
from localsmooth.collective import BOUNDS, as_bounds
from localsmooth.config import AnyNoise, CertificateSection, load_certificate
from localsmooth.disk import require_writable
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline import recertify as certify_again
from localsmooth.results import save
from localsmooth.tasks import RunRecord, load_record
from localsmooth.tasks.arrays import ArrayTask, Settings, equally_spaced
from localsmooth.terminal import terminal

__all__ = ["parse_budgets", "recertify"]


def parse_budgets(text: str) -> list[float]:
    """Read `0,0.5,1` or `start:stop:count`.

    Raises
    ------
    InvalidInputError
        If the text has neither form.
    """
    try:
        if ":" in text:
            start, stop, count = text.split(":")
            return equally_spaced(float(start), float(stop), int(count))
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            "--budgets", f'"{text}" cannot be read', "Write 0,0.5,1 or start:stop:count, such as 0:4:81"
        ) from None


def recertify(
    run: Path,
    alpha: float | None,
    budgets: str | None,
    additions: str | None,
    deletions: str | None,
    bound: list[str] | None,
    config: Path | None,
    shown: str | None,
    to: Path | None,
) -> None:
    """Certify again from the tallies of a finished run, without sampling."""
    for name in bound or ():
        if name not in BOUNDS:
            raise InvalidInputError("--bound", f'"{name}" is no bound', f"Pass one of {', '.join(BOUNDS)}")
    if shown is not None and not shown.strip():
        raise InvalidInputError("--name", "it is empty", "Write a name, or leave the option out")
    if config is not None:
        sys.path.insert(0, str(config.resolve().parent))  # plugins are looked for beside the file that names them
    record = load_record(run)
    target = require_writable(run / "recertified.nc" if to is None else to)
    if record.task == "graphs":
        if budgets is not None:
            raise InvalidInputError("--budgets", "a graph has two kinds of budgets", "Pass --additions and --deletions")
        settings = graph_settings(
            record,
            alpha=alpha,
            additions=None if additions is None else parse_budgets(additions),
            deletions=None if deletions is None else parse_budgets(deletions),
            bounds=bound,
            config=config,
        )
        return _write(certify_again(run, settings, name=shown), target)
    if additions is not None or deletions is not None:
        raise InvalidInputError("--additions", "this run is not on a graph", "Pass --budgets")
    settings = _settings(record, None if config is None else load_certificate(config))
    changes: dict[str, Any] = {}
    if alpha is not None:
        changes["alpha"] = alpha
    if budgets is not None:
        changes["budgets"] = tuple(parse_budgets(budgets))
    if bound is not None:
        if settings.method is not None:
            raise InvalidInputError("--bound", f"{settings.method.name} has a bound of its own", "Leave --bound out")
        changes["bounds"] = as_bounds(bound, "--bound")
    return _write(certify_again(run, replace(settings, **changes), name=shown), target)


def _write(result: xr.Dataset, target: Path) -> None:
    save(result, target)
    print_summary({str(result.attrs["method"]): result}, terminal(stderr=False))
    terminal().print(f"Result: {target}. Picture: localsmooth report {target}")


def _settings(record: RunRecord, section: CertificateSection | None) -> Settings:
    """What the run was certified with, or what a file's certificate section says."""
    stored = record.configuration
    try:
        noise = TypeAdapter[AnyNoise](AnyNoise).validate_python(stored["noise"])
        section = CertificateSection.model_validate(stored["certificate"]) if section is None else section
        return section.build(noise)
    except (KeyError, ValidationError):  # the run was not made from a configuration file
        if section is not None:
            raise InvalidInputError(
                "--config", "this run was not made from a configuration file", "Use localsmooth.recertify in Python"
            ) from None
    return ArrayTask.settings(record)
