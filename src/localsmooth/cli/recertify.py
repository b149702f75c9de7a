"""`localsmooth recertify`: another α or other budgets from stored tallies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from localsmooth.cli.summary import print_summary
from localsmooth.collective import BOUNDS, as_bounds
from localsmooth.config import load_certificate
from localsmooth.disk import require_writable
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline import recertify as certify_again
from localsmooth.pipeline import settings_of
from localsmooth.results import save
from localsmooth.tasks import RunRecord, as_targets, load_record, noise_from_configuration, require_few_budgets
from localsmooth.tasks.arrays import equally_spaced
from localsmooth.terminal import terminal

__all__ = ["asked_settings", "parse_budgets", "recertify"]


def parse_budgets(text: str, option: str = "--budgets") -> list[float]:
    """Read `0,0.5,1` or `start:stop:count`.

    Raises
    ------
    InvalidInputError
        If the text has neither form, or there are too many budgets.
    """
    try:
        if ":" in text:
            start, stop, count = text.split(":")
            number = int(count)
            require_few_budgets(option, number)
            return equally_spaced(float(start), float(stop), number)
        return [float(value) for value in text.split(",")]
    except InvalidInputError:
        raise
    except ValueError:
        raise InvalidInputError(
            option, f'"{text}" cannot be read', "Write 0,0.5,1 or start:stop:count, such as 0:4:81"
        ) from None


def recertify(
    run: Path,
    alpha: float | None,
    budgets: str | None,
    additions: str | None,
    deletions: str | None,
    bound: list[str] | None,
    target: list[str] | None,
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
    record = load_record(run)
    place = require_writable(run / "recertified.nc" if to is None else to)
    asked = {"budgets": budgets, "additions": additions, "deletions": deletions}
    settings = asked_settings(run, record, config, alpha, asked)
    changes: dict[str, Any] = {}
    if bound is not None:
        baseline = getattr(settings, "method", None) or getattr(settings, "baseline", None)
        if baseline is not None:
            raise InvalidInputError("--bound", f"{baseline.name} has a bound of its own", "Leave --bound out")
        changes["bounds"] = as_bounds(bound, "--bound")
    if target is not None:
        changes["targets"] = as_targets(target, "--target")
    result = certify_again(run, replace(settings, **changes), name=shown)
    save(result, place)
    print_summary({str(result.attrs["method"]): result}, terminal(stderr=False))
    terminal().print(f"Result: {place}. Picture: localsmooth report {place}")


def asked_settings(
    run: Path, record: RunRecord, config: Path | None, alpha: float | None, budgets: Mapping[str, str | None]
) -> Any:
    """What a run was certified with, or a file says, with α and budgets as on the command line.

    Parameters
    ----------
    run
        The run directory.
    record
        Its record.
    config
        File with a section [certificate].
    alpha
        Another failure probability.
    budgets
        Texts by kind: budgets, additions, deletions.

    Raises
    ------
    InvalidInputError
        If this kind of input has no such budgets, or a text cannot be read.
    """
    if config is not None:
        sys.path.insert(0, str(config.resolve().parent))  # plugins are looked for beside the file that names them
    section = None if config is None else load_certificate(config, record.task)  # whose plugins may be needed
    settings = settings_of(run)
    if section is not None:
        settings = section.build(noise_from_configuration(record.noise), getattr(settings, "threat", None))
    changes: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    known = {field.name for field in fields(settings)}
    for name, text in budgets.items():
        if text is not None:
            if name not in known:
                takes = " and ".join(f"--{each}" for each in budgets if each in known)
                raise InvalidInputError(f"--{name}", f"this run is on {record.task}", f"Pass {takes}")
            parse = parse_budgets if name == "budgets" else _flips
            changes[name] = text if text == "auto" else parse(text, f"--{name}")
    return replace(settings, **changes)


def _flips(text: str, option: str) -> list[int]:
    budgets = parse_budgets(text, option)
    if not all(float(budget).is_integer() for budget in budgets):
        raise InvalidInputError(option, "a budget is no whole number", "Write numbers of flips: 0,1,2")
    return [int(budget) for budget in budgets]
