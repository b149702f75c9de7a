"""Isotropic and localized smoothing of APPNP on a citation graph, and what each bound makes of the same tallies.

    python experiments/node_classification.py sample --data citeseer.npz --runs RUNS [--passes 50000]
    python experiments/node_classification.py table --data citeseer.npz --runs RUNS

`sample` trains and draws, and goes on where it stopped; `table` prints Markdown from whatever is complete. Every
method gets the same number of graph passes: isotropic smoothing puts all of them into one distribution, localized
smoothing shares them among its clusters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from localsmooth.bounds import Betting, CdfBand, EmpiricalBernstein
from localsmooth.certificates import ExactVotes, RenyiVotes, SparseScores
from localsmooth.collective import Exact
from localsmooth.graphs import (
    COLLECTIVE_BOUNDS,
    NetworkClassifier,
    attribute_caps,
    certify_nodes,
    flip_threat,
    node_certificates,
    sample_nodes,
)
from localsmooth.graphs.counters import node_counters
from localsmooth.graphs.run import load_data, trained_network
from localsmooth.graphs.section import GraphSection
from localsmooth.sampling import DirectoryStore, default_progress
from localsmooth.sampling.plan import SamplingPlan
from localsmooth.sampling.tally import collect_tallies

LEVELS = [(1, 0.9, 0.9), (5, 0.7, 0.9), (5, 0.5, 0.9), (1, 0.7, 0.7)]
BUDGETS = {"deletions": list(range(0, 61, 2)), "additions": list(range(21))}
SHOWN = {"deletions": (0, 4, 10, 20), "additions": (0, 1, 3, 5)}


def section(data: Path, passes: int, clusters: int, low: float, high: float) -> GraphSection:
    """The run of one smoothing distribution."""
    return GraphSection(
        data=data,
        clusters=clusters,
        deletion=(low, high),
        n_candidate=max(200, passes // (50 * clusters)),
        n_bound=passes // clusters,
    )


def directory(runs: Path, data: Path, passes: int, clusters: int, low: float, high: float) -> Path:
    """Where it is kept."""
    return runs / f"{data.stem}-{clusters}x{low}-{high}-{passes}"


def sample(data: Path, runs: Path, passes: int) -> None:
    """Train and draw what is missing."""
    for levels in LEVELS:
        place, spec = directory(runs, data, passes, *levels), section(data, passes, *levels)
        started = time.perf_counter()
        prepared = load_data(spec)
        network = trained_network(spec, prepared, place / "network.safetensors")
        trained = time.perf_counter()
        plan = SamplingPlan(spec.n_candidate, spec.n_bound, spec.seed, spec.chunk_size)
        with DirectoryStore(place / "tallies") as store:
            arguments = NetworkClassifier(network), prepared.graph, prepared.layout, plan, store
            tally = sample_nodes(*arguments, progress=default_progress())
        right = (tally.candidate == prepared.graph.labels)[prepared.split.test].mean()
        seconds = f"trained {trained - started:.0f} s, sampled {time.perf_counter() - trained:.0f} s"
        print(f"{place.name}: {seconds}, accuracy before abstention {right:.3f}", flush=True)


def table(data: Path, runs: Path, passes: int) -> None:
    """Print the tables of all complete runs."""
    for kind, budgets in BUDGETS.items():
        print(f"\n### {data.stem}: {kind}\n")
        heads = [f"ε = {budget}" for budget in SHOWN[kind]]
        print("| smoothing | N₂ per distribution | base certificate | collective | " + " | ".join(heads) + " | ACR |")
        print("|---|---|---|---|" + "---|" * (len(heads) + 1))
        for levels in LEVELS:
            place = directory(runs, data, passes, *levels)
            if (place / "tallies" / "manifest.json").exists():
                rows(data, passes, place, levels, kind, budgets)


def rows(data: Path, passes: int, place: Path, levels: tuple[int, float, float], kind: str, budgets: list[int]) -> None:
    """Print one distribution's rows."""
    spec = section(data, passes, *levels)
    prepared = load_data(spec)
    plan = SamplingPlan(spec.n_candidate, spec.n_bound, spec.seed, spec.chunk_size)
    store = DirectoryStore(place / "tallies", read_only=True)
    tally = collect_tallies(store, [prepared.layout], node_counters(), plan=plan)[0]
    nodes = prepared.split.test
    labels = prepared.graph.labels[nodes]
    threat = flip_threat(attribute_caps(prepared.graph, prepared.layout.inputs), **{kind: budgets})
    name = f"isotropic θ⁻ = {levels[1]}" if levels[0] == 1 else f"{levels[0]} clusters, θ⁻ = {levels[1]} … {levels[2]}"
    bases = {
        "scores, CDF band": {"certificates": (SparseScores(),), "score_bound": CdfBand()},
        "scores, empirical Bernstein": {"certificates": (SparseScores(),), "score_bound": EmpiricalBernstein()},
        "scores, betting": {"certificates": (SparseScores(),), "score_bound": Betting()},
        "votes, Rényi order 2": {"certificates": (RenyiVotes((2.0,)),)},
        "votes, Rényi orders 1.5 … 16": {"certificates": (RenyiVotes(),)},
        "votes, exact": {"certificates": (ExactVotes(),)},
    }
    bounds = dict(COLLECTIVE_BOUNDS) | {"exact": Exact(time_limit=20.0)}
    for label, arguments in bases.items():
        base = node_certificates(tally, prepared.layout, nodes, alpha=spec.alpha, **arguments)
        # With one cluster there is one inequality, and all collective bounds agree where there is one order.
        chosen = bounds if levels[0] > 1 else {"envelope": bounds["envelope"]}
        for bound, method in chosen.items():
            curve = certify_nodes(base, labels, threat, method)
            shown = " | ".join(f"{curve.accuracy[budgets.index(budget)]:.3f}" for budget in SHOWN[kind])
            print(f"| {name} | {tally.n:,} | {label} | {bound} | {shown} | {curve.acr(budgets):.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["sample", "table"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--methods", type=int, default=len(LEVELS), help="only the first so many of LEVELS")
    parser.add_argument("--passes", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    del LEVELS[arguments.methods :]
    torch.set_num_threads(arguments.threads)
    np.seterr(all="raise", under="ignore")
    {"sample": sample, "table": table}[arguments.command](arguments.data, arguments.runs, arguments.passes)
