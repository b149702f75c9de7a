"""Certify again from stored tallies, without sampling."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, cast

import xarray as xr

from localsmooth.collective import AnyBound, as_bound
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.pipeline.asked import restored
from localsmooth.runs import DirectoryStore
from localsmooth.tasks import (
    RunRecord,
    RunRecordError,
    Task,
    load_record,
    require_anytime,
    require_normalised_scores,
    require_same_run,
    task_of,
)

__all__ = ["certified_overlap", "recertify", "settings_of"]


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
    record, settings, store = _opened(run, prove, changes)
    task = task_of(record.task)
    sampled = _loaded(task, record, store)
    record = replace(record, method=task.shown_name(record, settings) if name is None else name)
    return task.result(sampled, settings, record, store.configuration)


def certified_overlap(
    run: str | os.PathLike[str],
    prove: Any = None,
    *,
    items: Sequence[str | int] | str | int | None = None,
    bound: AnyBound = "envelope",
    tolerance: float = 1e-3,
    tell: Callable[[str], None] | None = None,
    **changes: Any,
) -> xr.Dataset:
    """Certify the IoU and Dice of every class from the tallies of a finished run with labels.

    They rest on the event of the run's certified counts: with the run's own α and rule, all hold together with
    probability 1 − α for each item. Another α or rule is another claim, as for `recertify`.

    Parameters
    ----------
    run
        The run directory.
    prove
        What is proven, as for `recertify`; targets and collective bounds play no role.
    items
        Names or numbers of items; all by default.
    bound
        How hard to try, as for `localsmooth.solve`. A time limit is for each class, budget and value that is tried.
    tolerance
        Width of IoU at which to stop between what was proven and what was not.
    tell
        Told which item is next.
    changes
        Fields of the settings that are to be others: ``certified_overlap(run, budgets=[0, 0.5])``.

    Returns
    -------
    xr.Dataset
        `iou`, `dice` over item, class and budget, and `mean_iou`, `mean_dice` over the classes of each item: proven,
        rounded down, ignored outputs left out. `iou_upper` and so on: what the best attack found leaves.
        `candidate_iou` and `clean_iou`: as measured without a perturbation.

    Raises
    ------
    RunRecordError
        If the directory holds no finished run.
    InvalidInputError
        If there are no labels, the settings are those of a baseline or another kind of input, or an item is unknown.
    """
    record, settings, store = _opened(run, prove, changes)
    task = task_of(record.task)
    chosen, made = _numbers([name for name, _ in record.kept_items], items), as_bound(bound)
    return task.overlaps(
        _loaded(task, record, store),
        settings,
        record,
        store.configuration,
        items=chosen,
        bound=made,
        tolerance=tolerance,
        tell=tell,
    )


def _numbers(names: Sequence[str], items: object) -> list[int]:
    """Numbers of some items, given by names or numbers."""
    given = [] if items is None else [items] if isinstance(items, str | Integral) else items
    require_several("items", given, "names or numbers of items")
    numbers: list[int] = []
    for item in cast("Sequence[object]", given):
        number = names.index(item) if isinstance(item, str) and item in names else item
        if isinstance(number, str) and number.isdecimal():  # as on a command line
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, Integral) or not 0 <= int(number) < len(names):
            raise InvalidInputError("items", f"{item!r} is none of {len(names)} items", f"Name one, such as {names[0]}")
        numbers.append(int(number))
    return sorted(set(numbers))


def _opened(
    run: str | os.PathLike[str], prove: Any, changes: Mapping[str, Any]
) -> tuple[RunRecord, Any, DirectoryStore]:
    """Record, settings and store of a finished run, found to fit each other."""
    folder = _folder(run)
    record = load_record(folder)
    task = task_of(record.task)
    settings = restored(record, changes) if prove is None else prove
    task.require_settings(settings, str(folder))
    if changes:
        settings = _changed(settings, changes)
    store = DirectoryStore(folder, read_only=True)
    require_same_run(record, store)
    if record.extended is not None or record.begun is not None:
        ended = record.begun is not None
        require_anytime(settings, sequence=record.sequence is not None, place=folder, ended=ended)
    if settings.needs_scores:
        require_normalised_scores(store)
    return record, settings, store


def _loaded(task: type[Task[Any, Any]], record: RunRecord, store: DirectoryStore) -> Any:
    """What the run kept, all of it from before or after another process wrote there.

    Raises
    ------
    RunRecordError
        If the run was replaced meanwhile: numbers of samples of one state do not belong to votes of another.
    """
    sampled = task.load(record, store)
    # Whoever goes on with a run first changes its manifest, or takes away its record.
    require_same_run(record, DirectoryStore(store.path, read_only=True))
    if load_record(store.path) != record:
        raise RunRecordError(f"{store.path} was written to while it was read. Try again")
    return sampled


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
