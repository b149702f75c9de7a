"""What a run directory keeps of a graph, so that it can be certified again without data file and model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from localsmooth.certificates import OutputVotes
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.runs import Store
from localsmooth.tasks.graphs.graph import AttributedGraph, graph_from_arrays
from localsmooth.tasks.record import RunRecord, RunRecordError
from localsmooth.tasks.votes import DAMAGED, keep_layout, keep_votes, kept_layout, kept_votes

__all__ = ["SampledGraph", "load_graph", "save_graph"]


@dataclass(frozen=True, eq=False)
class SampledGraph:
    """A graph with the tallies of its nodes.

    Parameters
    ----------
    graph
        The clean graph.
    layout
        The layout that the sampler read.
    nodes
        The nodes that are certified.
    votes
        Votes and scores of all nodes.
    places
        Where each node is drawn.
    depth
        Hops over which the base classifier sees; None where it is not known.
    """

    graph: AttributedGraph
    layout: Layout
    nodes: Int[np.ndarray, "certified"]
    votes: OutputVotes
    places: Float[np.ndarray, "nodes 2"]
    depth: int | None = None


def save_graph(sampled: SampledGraph, store: Store) -> None:
    """Keep graph, layout and certified nodes beside the tallies."""
    graph, layout = sampled.graph, sampled.layout
    half = sp.triu(graph.adjacency, format="coo")
    store.put_array("graph-edges", np.stack([half.row, half.col]).astype(np.int64))
    store.put_array("graph-ones", graph.attributes.indices.astype(np.int64))
    store.put_array("graph-pointers", graph.attributes.indptr.astype(np.int64))
    store.put_array("graph-width", np.array([graph.width], dtype=np.int64))
    store.put_array("graph-labels", graph.labels)
    store.put_array("graph-nodes", sampled.nodes.astype(np.int64))
    store.put_array("graph-depth", np.array([-1 if sampled.depth is None else sampled.depth], dtype=np.int64))
    store.put_array("graph-places", sampled.places)
    keep_layout(layout, 0, store)
    keep_votes(sampled.votes, 0, store)


def load_graph(record: RunRecord, store: Store) -> SampledGraph:
    """Read back what `save_graph` kept.

    Raises
    ------
    RunRecordError
        If graph or layout are not those of the tallies.
    StoreError
        If something is missing or damaged.
    """
    kept = {
        name: store.get_array(f"graph-{name}")
        for name in ("width", "depth", "pointers", "ones", "labels", "edges", "nodes", "places")
    }
    try:
        width, depth = (int(kept[name].item()) for name in ("width", "depth"))
        labels, nodes = kept["labels"], kept["nodes"]
        bits = sp.csr_array(
            (np.ones(kept["ones"].size, np.bool_), kept["ones"], kept["pointers"]), shape=(labels.size, width)
        )
        bits.check_format()
        graph = graph_from_arrays(kept["edges"], bits, labels, class_names=tuple(record.class_names))
    except (ValueError, TypeError, InvalidInputError) as error:
        raise RunRecordError(f"the kept arrays make no graph ({error}). {DAMAGED}") from error
    if not (
        nodes.ndim == 1
        and nodes.size
        and nodes.dtype.kind in "iu"
        and bool(((nodes >= 0) & (nodes < graph.nodes)).all())
        and np.unique(nodes).size == nodes.size
        and kept["places"].shape == (graph.nodes, 2)
    ):
        raise RunRecordError(f"the nodes that are kept are not some of this graph's, each once. {DAMAGED}")
    layout = kept_layout(0, store)
    content = {} if store.configuration is None else dict(store.configuration.content)
    if (content.get("graph"), content.get("layout")) != (graph.digest(), layout.digest()):
        raise RunRecordError(
            "The stored graph is not the one that was sampled. Run the same certification into this "
            "directory again: the tallies are kept"
        )
    votes = kept_votes(record, 0, store, graph.nodes)
    return SampledGraph(graph, layout, nodes, votes, kept["places"], None if depth < 0 else depth)
