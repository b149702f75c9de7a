"""Certifying with all arguments in one flat list, for tests that vary one of them at a time."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import xarray as xr

from localsmooth import pipeline
from localsmooth.pipeline import Run
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import ArrayTask, Settings
from localsmooth.tasks.graphs import GraphSettings, GraphTask

__all__ = ["certify", "certify_graph", "recertify"]


def certify(
    model: Any, items: Any, labels: Any = None, *, settings: Settings | None = None, **arguments: Any
) -> xr.Dataset:
    """Sort flat arguments into task, smoothing, settings and run; settings may be given as a whole."""
    if settings is not None:
        settings = replace(settings, **_taken(arguments, *(field.name for field in fields(Settings))))
    task = ArrayTask(model, items, labels, **_taken(arguments, "class_names", "ignore_label", "units"))
    smoothing, run = (kind(**_taken(arguments, *(field.name for field in fields(kind)))) for kind in (Smoothing, Run))
    return pipeline.certify(task, smoothing, Settings(**arguments) if settings is None else settings, run=run)


def _taken(arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: arguments.pop(name) for name in names if name in arguments}


def certify_graph(
    classifier: Any, graph: Any, layout: Any, nodes: Any, *, settings: GraphSettings, **arguments: Any
) -> xr.Dataset:
    """Sort flat arguments into task, smoothing and run."""
    called = {"called": arguments.pop("graph_name")} if "graph_name" in arguments else {}
    run = Run(**_taken(arguments, *(field.name for field in fields(Run))))
    task = GraphTask(classifier, graph, nodes, **called)
    return pipeline.certify(task, Smoothing(layout, **arguments), settings, run=run)


def recertify(run: Any, settings: Any = None, *, name: str | None = None, **changes: Any) -> xr.Dataset:
    """Change some of what a run was certified with, at most once."""
    if settings is not None and changes:
        settings, changes = replace(settings, **changes), {}
    return pipeline.recertify(run, settings, name=name, **changes)
