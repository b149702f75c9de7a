"""Calls as they were before arguments came in objects: one flat list, for arrays only."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from inspect import signature
from typing import Any

from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.run import Run
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import ArrayTask, Settings

__all__ = ["bundled", "changed", "discouraged"]

_TASK = ("class_names", "ignore_label", "units")
_RUN = tuple(field.name for field in fields(Run))
_SMOOTHING = tuple(field.name for field in fields(Smoothing))
_SETTINGS = tuple(signature(Settings).parameters)


def discouraged(instead: str) -> None:
    """Warn that a call has a newer form."""
    warnings.warn(f"this form of the call will go: write {instead}", DeprecationWarning, stacklevel=3)


def bundled(
    model: Any, items: Any, labels: Any, arguments: Mapping[str, Any]
) -> tuple[ArrayTask, Smoothing, Settings, Run]:
    """Sort flat arguments into what `certify` takes.

    Parameters
    ----------
    model, items, labels
        As in `ArrayTask`.
    arguments
        Those of `ArrayTask`, `Smoothing`, `Settings` and `Run`, by name.

    Raises
    ------
    InvalidInputError
        If one is missing or known to none of them, or cannot be used.
    """
    left = dict(arguments)
    task, run, smoothing, prove = (
        {name: left.pop(name) for name in names if name in left} for names in (_TASK, _RUN, _SMOOTHING, _SETTINGS)
    )
    if left:
        raise InvalidInputError(next(iter(left)), "certify knows no such argument", f"Known are {', '.join(_known())}")
    for name, given in (("layout", smoothing), ("plan", smoothing), ("alpha", prove), ("budgets", prove)):
        if name not in given:
            raise InvalidInputError(name, "it is missing", "Pass it, or objects: certify(task, smoothing, settings)")
    return ArrayTask(model, items, labels, **task), Smoothing(**smoothing), Settings(**prove), Run(**run)


def changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Settings with some fields replaced.

    Raises
    ------
    InvalidInputError
        If they have no such field.
    """
    names = [field.name for field in fields(settings)]
    for name in changes:
        if name not in names:
            raise InvalidInputError(name, "settings have no such field", f"Known are {', '.join(names)}")
    return replace(settings, **changes)


def _known() -> list[str]:
    return sorted({*_TASK, *_RUN, *_SMOOTHING, *_SETTINGS})
