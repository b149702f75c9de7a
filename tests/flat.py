"""Certifying with all arguments in one flat list, for tests that vary one of them at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from inspect import signature
from typing import Any

import xarray as xr

from localsmooth import pipeline
from localsmooth.pipeline import Run, settings_of
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import ArrayTask, Settings
from localsmooth.tasks.graphs import GraphSettings, GraphTask

__all__ = ["certify", "certify_graph", "recertify"]

_TASK = ("labels", "class_names", "ignore_label", "units")
_RUN = tuple(field.name for field in fields(Run))
_SETTINGS = tuple(signature(Settings).parameters)


def certify(
    model: Any, items: Any, labels: Any = None, *, settings: Settings | None = None, **arguments: Any
) -> xr.Dataset:
    """Sort flat arguments into task, smoothing, settings and run; settings may be given as a whole."""
    of_task, run = _taken(arguments, _TASK[1:]), Run(**_taken(arguments, _RUN))
    task = ArrayTask(model, items, labels, **of_task)
    prove = Settings(**_taken(arguments, _SETTINGS)) if settings is None else _changed(settings, arguments)
    return pipeline.certify(task, Smoothing(**arguments), prove, run=run)


def certify_graph(
    classifier: Any, graph: Any, layout: Any, nodes: Any, *, settings: GraphSettings, **arguments: Any
) -> xr.Dataset:
    """Sort flat arguments into task, smoothing and run."""
    called = {"called": arguments.pop("graph_name")} if "graph_name" in arguments else {}
    run = Run(**_taken(arguments, _RUN))
    task = GraphTask(classifier, graph, nodes, **called)
    return pipeline.certify(task, Smoothing(layout, **arguments), settings, run=run)


def recertify(run: Any, settings: Any = None, *, name: str | None = None, **changes: Any) -> xr.Dataset:
    """Change some of what a run was certified with."""
    base = settings_of(run) if settings is None and changes else settings
    return pipeline.recertify(run, _changed(base, changes), name=name)


def _changed(settings: Any, changes: dict[str, Any]) -> Any:
    return replace(settings, **_taken(changes, _SETTINGS)) if changes else settings


def _taken(arguments: dict[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    return {name: arguments.pop(name) for name in names if name in arguments}
