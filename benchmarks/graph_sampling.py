"""How fast noisy graphs are drawn and classified, and where the time goes.

    python benchmarks/graph_sampling.py [--data citeseer.npz] [--samples 400]

Times the sparse sampler on one thread (noise, first layer, propagation, tally), with and without the compiled loop,
and beside it the plain way: a dense matrix of uniform numbers per sample and a dense first layer, in torch.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import torch

from localsmooth.layout import Layout
from localsmooth.models import OutputKind
from localsmooth.sampling import CountingScope, Predictions
from localsmooth.sampling.region import Region
from localsmooth.tasks.graphs import (
    APPNP,
    AttributedGraph,
    AttributeNoise,
    CompiledThinning,
    NetworkClassifier,
    NumpyThinning,
    cluster_layout,
    digit_graph,
    largest_component,
    load_npz,
    metis_clusters,
    node_counters,
    normalized_adjacency,
    random_stream,
)
from localsmooth.tasks.graphs.thinning import best_thinning

PARTS = ("noise", "first layer", "propagation", "tally")


def sparse(graph: AttributedGraph, layout: Layout, network: APPNP, samples: int, batch: int, thinning: type) -> None:
    members = layout.outputs.members(0)
    prepared = NetworkClassifier(network).prepare(graph, members)
    levels = layout.level_map(0)[prepared.inputs]
    noise = AttributeNoise(graph.attributes[prepared.inputs].tocsr(), levels[:, 0], levels[:, 1], thinning)
    region = Region(None, np.zeros(0), (members.size,), (slice(0, members.size),), None)
    chosen = {"candidate": torch.zeros(members.size, dtype=torch.int32)}
    scope = CountingScope(region.shape, network.classes, torch.device("cpu"), samples, chosen)
    running = [counter.start(scope) for counter in node_counters().bound]
    stream = random_stream(0, (1,))
    spent = np.zeros(4)
    for turn in range(-3, samples // batch):
        marks = [time.process_time()]
        drawn = [noise.draw(stream) for _ in range(batch)]
        marks.append(time.process_time())
        hidden = prepared.first_layer(noise, drawn)
        marks.append(time.process_time())
        scores = prepared.tail(hidden)
        marks.append(time.process_time())
        predictions = Predictions(scores, region, OutputKind.LOGITS, network.classes, batch)
        for accumulator in running:
            accumulator.update(predictions)
        marks.append(time.process_time())
        if turn >= 0:
            spent += np.diff(marks)
    count = samples // batch * batch
    shares = ", ".join(f"{part} {share:.0%}" for part, share in zip(PARTS, spent / spent.sum(), strict=True))
    print(f"{thinning.__name__:16s} batch {batch:2d}: {count / spent.sum():6.1f} graphs per CPU second ({shares})")


def dense(graph: AttributedGraph, layout: Layout, network: APPNP, samples: int) -> None:
    adjacency = normalized_adjacency(torch.from_numpy(graph.edge_index), graph.nodes)
    bits = torch.from_numpy(graph.attributes.toarray())
    levels = torch.from_numpy(layout.level_map(0)).to(torch.float32)
    flip = torch.where(bits, levels[:, 1:], levels[:, :1])
    spent = np.zeros(4)
    for turn in range(-1, samples):
        marks = [time.process_time()]
        noisy = (bits ^ (torch.rand(bits.shape) < flip)).to(torch.float32)
        marks.append(time.process_time())
        hidden = noisy @ network.weight + network.offset
        marks.append(time.process_time())
        scores = network.tail(hidden, adjacency)
        marks.append(time.process_time())
        scores.softmax(1).argmax(1)
        marks.append(time.process_time())
        if turn >= 0:
            spent += np.diff(marks)
    shares = ", ".join(f"{part} {share:.0%}" for part, share in zip(PARTS, spent / spent.sum(), strict=True))
    print(f"{'dense torch':16s} batch  1: {samples / spent.sum():6.1f} graphs per CPU second ({shares})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--samples", type=int, default=400)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    graph = digit_graph() if arguments.data is None else largest_component(load_npz(arguments.data))
    print(f"{graph.nodes} nodes, {graph.width} attributes, {graph.ones} ones, {graph.edges} edges")
    torch.manual_seed(0)
    network = APPNP(graph.width, graph.classes).eval()
    layout = cluster_layout(metis_clusters(graph, 5), graph.adjacency, addition=(0.01, 0.01), deletion=(0.1, 0.9))
    with torch.inference_mode():
        for batch in (1, 4, 8, 16):
            sparse(graph, layout, network, arguments.samples, batch, best_thinning())
        if best_thinning() is CompiledThinning:
            sparse(graph, layout, network, arguments.samples // 4, 8, NumpyThinning)
        dense(graph, layout, network, max(4, arguments.samples // 40))
    print(f"largest memory in use: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
