"""`localsmooth runs`: which runs there are, how far they have come and what they have cost."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.table import Table

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.pipeline import interruption, open_tallies
from localsmooth.runs import DirectoryStore, StoreError, Survey, find_runs, open_store, survey
from localsmooth.tasks import load_record
from localsmooth.terminal import terminal

__all__ = ["runs"]

_MISSING_SHOWN = 5


def runs(place: str, as_json: bool) -> None:
    """List stored runs with their progress, cost and what is missing; every chunk is read and checked."""
    if "://" in place:
        found = [survey(open_store(place, read_only=True))]
        unreadable: dict[str, str] = {}
    else:
        found, unreadable = _survey_folder(expanded(place))
    if not found and not unreadable:
        raise InvalidInputError("PLACE", f"{place} holds no run", "Name a folder that certify --out wrote to")
    if as_json:
        listed: list[dict[str, Any]] = [
            asdict(replace(run, missing={}, failed={}))
            | {"missing": [[*where, n] for where, n in run.missing.items()]}
            | {"failed": [[*where, array] for where, array in run.failed.items()]}
            for run in found
        ]
        typer.echo(json.dumps(listed + [{"place": where, "error": text} for where, text in unreadable.items()]))
        return
    console = terminal(stderr=False)
    console.print(_table(found), soft_wrap=False)
    for run in found:
        for line in _remarks(run):
            console.print(line)
    for text in unreadable.values():
        console.print(text)


def _survey_folder(folder: Path) -> tuple[list[Survey], dict[str, str]]:
    found: list[Survey] = []
    unreadable: dict[str, str] = {}
    for path in find_runs(folder):
        try:
            kept = DirectoryStore(path, read_only=True)
            overview = survey(open_tallies(path, kept))
            elsewhere = "" if overview.place == kept.files.place else f", chunks at {overview.place}"
            found.append(replace(overview, place=f"{kept.files.place}{elsewhere}"))
        except StoreError as error:
            unreadable[str(path)] = str(error)
    return found, unreadable


def _table(found: list[Survey]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "noise", "device"):
        table.add_column(name, overflow="fold")
    for name in ("items", "samples", "done", "hours"):
        table.add_column(name, justify="right")
    for run in found:
        most = "≤ " if run.stops_early else ""
        planned = "?" if run.planned is None else f"{most}{run.planned:,}"
        done = "?" if run.share is None else f"{most and '≥ '}{run.share:.1%}"
        devices = ", ".join(run.devices) or "–"
        samples = f"{run.counted:,} of {planned}"
        table.add_row(run.place, run.noise, devices, str(run.items), samples, done, f"{run.seconds / 3600:.3g}")
    return table


def _ended(place: str) -> bool:
    """Whether a run was ended before its plan, and certified."""
    with suppress(LocalsmoothError):
        return load_record(Path(place.split(", chunks at ")[0])).begun is not None
    return False


def _remarks(run: Survey) -> list[str]:
    lines = list(run.damaged)
    if told := interruption(Path(run.place)):
        lines.append(told)
    if run.missing:
        shown = [
            f"item {item}, output group {group}: {samples:,} of the {stage} stage"
            for (item, group, stage), samples in list(run.missing.items())[:_MISSING_SHOWN]
        ]
        more = len(run.missing) - len(shown)
        word = "may be missing (groups can stop early)" if run.stops_early else "missing"
        word = "not drawn, since sampling was ended (certify goes on with it)" if _ended(run.place) else word
        lines.append(f"{run.place}: {word}: " + "; ".join(shown) + (f"; and {more} more" if more else ""))
    if run.failed:
        arrays = list(run.failed.values())
        more = f" and {len(arrays) - _MISSING_SHOWN} more" if len(arrays) > _MISSING_SHOWN else ""
        lines.append(
            f"{run.place}: could not be drawn when last tried (arrays with the noisy inputs): "
            f"{', '.join(arrays[:_MISSING_SHOWN])}{more}"
        )
    if len(run.versions) > 1:
        lines.append(f"{run.place}: drawn with torch {', '.join(run.versions)}")
    return lines
