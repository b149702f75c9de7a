"""Certify again from stored tallies, without sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

from localsmooth.bounds import Bonferroni, CandidateRule, EmpiricalBernstein, ScoreBound, Simultaneous
from localsmooth.certificates import ScoreCertificate, VoteCertificate
from localsmooth.collective import AnyBounds, as_bounds
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.assemble import assemble
from localsmooth.pipeline.method import ItemMethod
from localsmooth.pipeline.record import (
    RunRecord,
    load_items,
    load_record,
    require_normalised_scores,
    require_same_run,
)
from localsmooth.pipeline.registry import default_certificate, known_bounds, noise_from_configuration
from localsmooth.pipeline.settings import CertificationSettings
from localsmooth.pipeline.threat import ItemThreat, NormBall
from localsmooth.runs import DirectoryStore

__all__ = ["recertify", "recertify_with"]


def recertify(
    run: Path | str,
    *,
    alpha: float | None = None,
    budgets: Sequence[float] | np.ndarray | None = None,
    bounds: AnyBounds | None = None,
    certificates: Sequence[VoteCertificate | ScoreCertificate] | None = None,
    simultaneous: Simultaneous | CandidateRule | None = None,
    score_bound: ScoreBound | None = None,
    threat: ItemThreat | None = None,
    method: ItemMethod | None = None,
    name: str | None = None,
) -> xr.Dataset:
    """Prove something else from the tallies of a finished run.

    The tallies hold whatever is proven from them, but α is spent once: choose among several settings before looking
    at their results, or divide α among them.

    Parameters
    ----------
    run
        The run directory.
    alpha, budgets, bounds
        As for `certify`; what the run was certified with by default.
    certificates, simultaneous, score_bound, threat
        As for `certify`, with the same defaults, whatever the run was certified with. Certificates from scores need
        a run that counted scores.
    method
        As for `certify`. Centre smoothing needs a run that was made for it, whose votes serve every other method too.
    name
        What the result calls the method; by default the run's name, with the method that is new in brackets.

    Raises
    ------
    RunRecordError
        If the directory holds no finished run.
    """
    folder = expanded(run)
    record = load_record(folder)
    noise = noise_from_configuration(record.noise)
    settings = CertificationSettings(
        alpha=record.alpha if alpha is None else alpha,
        budgets=tuple(record.budgets if budgets is None else budgets),
        bounds=known_bounds(record.bound_names) if bounds is None else as_bounds(bounds),
        certificates=(default_certificate(noise),) if certificates is None else certificates,
        simultaneous=Bonferroni() if simultaneous is None else simultaneous,
        score_bound=EmpiricalBernstein() if score_bound is None else score_bound,
        threat=NormBall() if threat is None else threat,
    )
    return recertify_with(folder, settings, method, name)


def recertify_with(
    run: Path | str, settings: CertificationSettings, method: ItemMethod | None = None, name: str | None = None
) -> xr.Dataset:
    """Do what `recertify` does, with settings made elsewhere."""
    folder = expanded(run)
    record = load_record(folder)
    if "graph_run" in record.configuration:
        raise InvalidInputError("run", f"{folder} is a run on a graph", "Use localsmooth.graphs.recertify_graph")
    store = DirectoryStore(folder, read_only=True)
    require_same_run(record, store)
    if settings.needs_scores:
        require_normalised_scores(store)
    record = replace(record, method=_shown_name(record, method) if name is None else name)
    noise = noise_from_configuration(record.noise)
    items = load_items(record, store)
    return assemble(items, noise, record, settings, method, configuration=store.configuration)


def _shown_name(record: RunRecord, method: ItemMethod | None) -> str:
    """The run's name, and the method in brackets if it is not the one that the run was certified with."""
    certificate = record.configuration.get("certificate")
    baseline = certificate.get("baseline") if isinstance(certificate, dict) else None
    before = baseline.get("method") if isinstance(baseline, dict) else None
    now = None if method is None else method.name
    return record.method if now == before else f"{record.method} ({now or 'collective'})"
