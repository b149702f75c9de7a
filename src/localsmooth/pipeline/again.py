"""Certify again from stored tallies, without sampling."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import xarray as xr

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.pipeline.asked import restored
from localsmooth.runs import DirectoryStore
from localsmooth.tasks import load_record, require_anytime, require_normalised_scores, require_same_run, task_of

__all__ = ["recertify", "settings_of"]


def recertify(run: str | os.PathLike[str], prove: Any = None, *, name: str | None = None, **changes: Any) -> xr.Dataset:
    """Prove something else from the tallies of a finished run.

    The tallies hold whatever is proven from them, but α is spent once: choose among several settings before looking
    at their results, or divide α among them.

    Parameters
    ----------
    run
        The run directory.
    prove
        What is proven, as for `certify`; by default `settings_of(run)`. Certificates from scores need a run that
        counted scores, and centre smoothing one that was made for it, whose votes serve every other method too.
    name
        What the result calls the method; by default the run's name, with a baseline that is new in brackets.
    changes
        Fields of the settings that are to be others: ``recertify(run, alpha=0.05)``.

    Raises
    ------
    RunRecordError
        If the directory holds no finished run.
    InvalidInputError
        If the settings are those of another kind of input, or `run` is no path.
    """
    folder = _folder(run)
    record = load_record(folder)
    task = task_of(record.task)
    settings = restored(record, changes) if prove is None else prove
    task.require_settings(settings, str(folder))
    if changes:
        settings = _changed(settings, changes)
    store = DirectoryStore(folder, read_only=True)
    require_same_run(record, store)
    if record.extended is not None:
        require_anytime(settings, sequence=record.sequence is not None, place=folder)
    if settings.needs_scores:
        require_normalised_scores(store)
    record = replace(record, method=task.shown_name(record, settings) if name is None else name)
    sampled = task.load(record, store)
    return task.result(sampled, settings, record, store.configuration)


def settings_of(run: str | os.PathLike[str]) -> Any:
    """What a finished run was certified with; the user is told of what its record cannot give back.

    That is what is of a class of the user's own, unless it is registered and its fields are plain values.

    Parameters
    ----------
    run
        The run directory.

    Raises
    ------
    RunRecordError
        If the directory holds no finished run.
    InvalidInputError
        If `run` is no path.
    """
    return restored(load_record(_folder(run)))


def _changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    names = [field.name for field in fields(settings)]
    for name in changes:
        if name not in names:
            raise InvalidInputError(name, "settings have no such field", f"Known are {', '.join(names)}")
    return replace(settings, **changes)


def _folder(run: str | os.PathLike[str]) -> Path:
    require_kind("run", run, str, os.PathLike)
    return expanded(run)
