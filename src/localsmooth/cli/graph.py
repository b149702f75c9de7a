"""Runs on graphs, as the commands show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

from localsmooth.cli.telling import Teller
from localsmooth.collective import as_bounds
from localsmooth.config import GraphCertificateSection, GraphConfiguration, load_graph_certificate
from localsmooth.errors import InvalidInputError
from localsmooth.execution import Part
from localsmooth.pipeline import Run, certify
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import RunRecord, Smoothing
from localsmooth.tasks.graphs import GraphSettings, GraphTask

__all__ = ["graph_settings", "run_graph_configuration"]


def run_graph_configuration(
    configuration: GraphConfiguration,
    out: Path,
    told: Teller,
    *,
    store: str | None = None,
    part: Part | None = None,
) -> xr.Dataset:
    """Train or load, sample what is missing, and certify into a run directory."""
    file = out / "network.safetensors"
    try:
        data = configuration.graph.build(configuration.noise)
        if not file.exists():
            told.say("Preparing the model; a network without weights is trained now.")
        classifier = configuration.model.build(data, file)
        return certify(
            GraphTask(classifier, data.graph, data.nodes, called=data.name),
            Smoothing(data.layout, configuration.sampling.build()),
            configuration.certificate.build(),
            run=Run(
                out,
                configuration.name,
                configuration.execution.build(),
                store,
                part,
                told.progress,
                SamplingOptions(batch_size=configuration.sampling.batch_size),
                configuration=configuration.model_dump(mode="json"),
            ),
        )
    except KeyboardInterrupt:
        told.interrupted()
        raise


def graph_settings(
    record: RunRecord,
    *,
    alpha: float | None,
    additions: Sequence[float] | None,
    deletions: Sequence[float] | None,
    bounds: Sequence[str] | None,
    config: Path | None,
) -> GraphSettings:
    """What a graph's run was certified with, but for what is given."""
    settings = _settings(record, config)
    changes: dict[str, Any] = {}
    if alpha is not None:
        changes["alpha"] = alpha
    for name, budgets in (("additions", additions), ("deletions", deletions)):
        if budgets is not None:
            if not all(float(budget).is_integer() for budget in budgets):
                raise InvalidInputError(f"--{name}", "a budget is no whole number", "Write numbers of flips: 0,1,2")
            changes[name] = [int(budget) for budget in budgets]
    if bounds is not None:
        if settings.baseline is not None:
            raise InvalidInputError("--bound", f"{settings.baseline.name} has a bound of its own", "Leave --bound out")
        changes["bounds"] = as_bounds(bounds, "--bound")
    return replace(settings, **changes)


def _settings(record: RunRecord, config: Path | None) -> GraphSettings:
    if config is not None:
        return load_graph_certificate(config).build()
    stored = record.configuration.get("certificate")
    if stored is not None:
        return GraphCertificateSection.model_validate(stored).build()
    # A run made in Python: what its certificates were made of is not known, what they were about is.
    return GraphTask.settings(record)
