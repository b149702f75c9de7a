"""One call from a graph and its classifier to a labelled result, and again from what is stored."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int

from localsmooth.bounds import require_certifiable
from localsmooth.certificates import ScoreCertificate
from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError
from localsmooth.execution import Executor, ExecutorName, Part, SamplingProgress, tell_certifying
from localsmooth.graphs.classifier import NodeClassifier
from localsmooth.graphs.counters import SCORE_BINS
from localsmooth.graphs.graph import AttributedGraph
from localsmooth.graphs.positions import node_positions
from localsmooth.graphs.result import graph_result
from localsmooth.graphs.sampler import sample_nodes
from localsmooth.graphs.settings import GraphSettings
from localsmooth.graphs.store import GRAPH_ADDITIONS, GRAPH_RUN, SampledGraph, is_graph_run, load_graph, save_graph
from localsmooth.layout import Layout
from localsmooth.noise import SparseFlips
from localsmooth.pipeline.keeping import naming_keys, open_tallies, plain_configuration, run_stores, save_result
from localsmooth.pipeline.record import (
    RunRecord,
    load_record,
    require_normalised_scores,
    require_same_run,
    save_record,
)
from localsmooth.pipeline.scores import ScoreCounting
from localsmooth.pipeline.smoothing import sampled_at
from localsmooth.runs import DirectoryStore, SamplingPlan
from localsmooth.sampling import SamplingOptions

__all__ = ["certify_graph", "chosen_nodes", "recertify_graph", "require_classifier"]

UNITS = "attribute bits"


def certify_graph(
    classifier: NodeClassifier,
    graph: AttributedGraph,
    layout: Layout,
    nodes: Int[np.ndarray, "nodes"] | Bool[np.ndarray, "nodes"],
    *,
    plan: SamplingPlan,
    settings: GraphSettings,
    out: str | os.PathLike[str] | None = None,
    name: str = "localized",
    graph_name: str = "graph",
    configuration: Mapping[str, Any] | None = None,
    options: SamplingOptions | None = None,
    executor: Executor | ExecutorName | None = None,
    progress: SamplingProgress | None = None,
    store: str | None = None,
    part: Part | None = None,
) -> xr.Dataset:
    """Sample what is missing and certify nodes against added and deleted attribute bits.

    Parameters
    ----------
    classifier
        The base classifier, such as `NetworkClassifier(network)`.
    graph
        The clean graph.
    layout
        From `cluster_layout` or `isotropic_node_layout`.
    nodes
        Nodes that are certified, chosen without looking at their tallies: their numbers, or a mask over all nodes.
    plan
        How many samples per output group, and from which seed.
    settings
        What to prove.
    out
        Run directory, as in `localsmooth.certify`: a run that was interrupted goes on there, the result is written to
        `result.nc`, and an earlier one with other contents is kept as `result-1.nc` and so on.
    name
        What reports call the method.
    graph_name
        What reports call the graph.
    configuration
        Everything that was asked for, as plain JSON values, for the record.
    options, executor, progress, store, part
        As in `localsmooth.certify`.

    Returns
    -------
    xarray.Dataset
        A result with one item; besides what every result has, the table `joint_certified` over (ε⁺, ε⁻), and the
        adversary's plans. Its curve over `budget` is for deletions (for additions, if only those have budgets).

    Raises
    ------
    InvalidInputError
        Naming what cannot be used.
    StoreError
        If the run directory belongs to another run, or something in it cannot be used.
    FaultyPredictionError
        If the classifier returns scores that are not finite.
    """
    require_classifier(classifier)
    chosen = chosen_nodes(nodes, graph.nodes)
    if graph.classes > classifier.classes:
        raise InvalidInputError(
            "classifier", f"it has {classifier.classes} classes, the graph {graph.classes}", "Use one for this graph"
        )
    if not any(isinstance(certificate, ScoreCertificate) for certificate in settings.certificates):
        require_certifiable(plan.n_bound, settings.alpha, chosen.size, strategy=settings.simultaneous)
    plain = plain_configuration(configuration)
    folder = None if out is None else expanded(out)
    with run_stores(folder, store) as stores:
        kept, tallied = stores
        with naming_keys(tallied, plain):
            tally = sample_nodes(
                classifier,
                graph,
                layout,
                plan,
                tallied,
                options=options,
                executor=executor,
                progress=progress,
                part=part,
            )
        stores.join()
        places = node_positions(graph.adjacency, layout.inputs.labels.astype(np.int64))
        sampled = SampledGraph(graph, layout, chosen, tally, places, classifier.depth)
        chunks = tallied.finished().values()
        record = RunRecord(
            method=name,
            item_names=[graph_name],
            item_layouts=[0],
            class_names=_class_names(graph, classifier.classes),
            labelled=True,
            ignore_label=None,
            noise=dict(SparseFlips().configuration()),
            scores=ScoreCounting("histogram", SCORE_BINS),
            n_candidate=plan.n_candidate,
            n_bound=plan.n_bound,
            units=UNITS,
            input_bounds=None,
            seconds=sum(chunk.seconds for chunk in chunks),
            batch_size=max(1, *(chunk.batch_size for chunk in chunks)),
            device="cpu",
            precision="float32",
            versions=_versions(),
            alpha=settings.alpha,
            budgets=[float(budget) for budget in settings.deletions],
            bound_names=list(settings.bounds),
            configuration={**plain, GRAPH_RUN: True, GRAPH_ADDITIONS: [int(budget) for budget in settings.additions]},
            sampled=sampled_at(folder),
        )
        tell_certifying(progress, 0, 1)
        result = graph_result(
            sampled, settings, record, tallied.configuration, None if progress is None else progress.message
        )
        if folder is not None:
            save_graph(sampled, kept)
            save_record(record, folder)
            save_result(result, folder)
    return result


def recertify_graph(run: str | os.PathLike[str], settings: GraphSettings) -> xr.Dataset:
    """Prove something else from the tallies of a finished run, without sampling.

    The tallies hold whatever is proven from them, but α is spent once: choose among several settings before looking
    at their results, or divide α among them.

    Parameters
    ----------
    run
        A run directory of `certify_graph`.
    settings
        What to prove.

    Raises
    ------
    RunRecordError
        If the directory holds no finished run on a graph.
    """
    folder = expanded(run)
    record = load_record(folder)
    if not is_graph_run(record):
        raise InvalidInputError("run", f"{folder} is not a run on a graph", "Use localsmooth.recertify")
    store = DirectoryStore(folder, read_only=True)
    require_same_run(record, store)
    if any(isinstance(certificate, ScoreCertificate) for certificate in settings.certificates):
        require_normalised_scores(store)
    sampled = load_graph(record, store, open_tallies(folder, store))
    return graph_result(sampled, settings, record, store.configuration)


def require_classifier(classifier: object) -> None:
    """Refuse a bare network.

    Raises
    ------
    InvalidInputError
        Naming what to wrap it in.
    """
    if not isinstance(classifier, NodeClassifier):
        raise InvalidInputError(
            "classifier",
            f"{type(classifier).__name__} is no node classifier",
            "Wrap it: NetworkClassifier(network) for GCN and APPNP, EdgeIndexClassifier(module, classes) for others",
        )


def chosen_nodes(nodes: np.ndarray, total: int) -> Int[np.ndarray, "chosen"]:
    """Return the numbers of the nodes that are certified, each once.

    Raises
    ------
    InvalidInputError
        If there is none, a number is out of range, or the array is neither numbers nor a mask over all nodes.
    """
    given = np.asarray(nodes)
    if given.dtype == np.bool_:
        if given.shape != (total,):
            raise InvalidInputError(
                "nodes", f"a mask of shape {given.shape}", f"Pass one entry for each of {total} nodes"
            )
        given = np.flatnonzero(given)
    if given.size == 0:
        raise InvalidInputError("nodes", "there is none to certify", "Name at least one node")
    if not np.issubdtype(given.dtype, np.integer):
        raise InvalidInputError("nodes", f"{given.dtype} names no nodes", "Pass node numbers, or a boolean mask")
    if int(given.min()) < 0 or int(given.max()) >= total:
        raise InvalidInputError("nodes", f"one is not in 0 … {total - 1}", "Name nodes of the graph")
    return np.unique(given.astype(np.int64))


def _class_names(graph: AttributedGraph, classes: int) -> list[str]:
    named = list(graph.class_names)
    return named + [f"class {number}" for number in range(len(named), classes)]


def _versions() -> dict[str, str]:
    packages = ("localsmooth", "torch", "numpy", "scipy", "highspy")
    return {"python": platform.python_version()} | {package: metadata.version(package) for package in packages}
