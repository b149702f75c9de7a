"""Isotropic and localized smoothing on a citation graph, and what each bound makes of the same tallies.

    python experiments/node_classification/compare.py sample --data citeseer.npz --runs RUNS [--samples 25000]
    python experiments/node_classification/compare.py table --data citeseer.npz --runs RUNS [--samples 25000]

`sample` trains and draws, and goes on where it stopped; `table` prints Markdown from whatever is complete. Localized
smoothing draws so many samples for each cluster. Isotropic smoothing is drawn twice: with as many samples for each
output, and with as many graph passes in total.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from localsmooth.bounds import Betting, Bonferroni, CdfBand, EmpiricalBernstein, ScoreBound
from localsmooth.certificates import ExactVotes, RenyiVotes, ScoreCertificate, SparseScores, VoteCertificate
from localsmooth.collective import Exact, solve
from localsmooth.config import GraphConfiguration, parse_configuration
from localsmooth.execution import default_progress
from localsmooth.metrics import average_certifiable_radius
from localsmooth.runs import DirectoryStore, StoreError
from localsmooth.sampling import collect_tallies
from localsmooth.tasks.graphs import (
    attribute_caps,
    flip_threat,
    sample_nodes,
)
from localsmooth.tasks.graphs.certified_nodes import bounded_nodes
from localsmooth.tasks.graphs.problem import node_problem
from localsmooth.tasks.graphs.sampler import SCORE_BINS, node_counters
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.votes import collected_votes

CLUSTERS = 5
# Clusters, and the deletion probabilities of an output's own cluster and of the farthest.
METHODS = [(1, 0.9, 0.9), (CLUSTERS, 0.7, 0.9), (CLUSTERS, 0.5, 0.9), (1, 0.7, 0.7)]
MODELS = {"appnp": {"kind": "appnp"}, "gcn": {"kind": "gcn", "hidden": [64] * 5}}
BUDGETS = {"deletions": list(range(61)), "additions": list(range(21))}
SHOWN = {"deletions": (0, 4, 10, 20), "additions": (0, 1, 3, 5)}


Levels = tuple[int, float, float]


@dataclass(frozen=True)
class Task:
    """What all runs have in common."""

    data: Path
    model: str
    runs: Path
    samples: int
    only: list[str]

    def name(self, levels: Levels) -> str:
        """What files of a method are called."""
        model = "" if self.model == "appnp" else f"-{self.model}"
        return f"{self.data.stem}{model}-{levels[0]}x{levels[1]}-{levels[2]}"

    def methods(self) -> list[tuple[Levels, int]]:
        """Every method that was asked for, with its number of samples for each distribution."""
        equal_outputs = [(levels, self.samples) for levels in METHODS]
        equal_passes = [(levels, self.samples * CLUSTERS) for levels in METHODS if levels[0] == 1]
        every = equal_outputs + equal_passes
        return [(at, n) for at, n in every if not self.only or any(part in self.name(at) for part in self.only)]


def configuration(task: Task, samples: int, levels: Levels) -> GraphConfiguration:
    """The run of one smoothing distribution; what it does not say is the paper's choice and the default."""
    clusters, low, high = levels
    made = parse_configuration(
        {
            "model": MODELS[task.model],
            "graph": {"data": str(task.data.resolve()), "clusters": clusters},
            "noise": {"addition": (0.01, 0.01), "deletion": (low, high)},
            "sampling": {"n_candidate": max(200, samples // 50), "n_bound": samples},
        }
    )
    assert isinstance(made, GraphConfiguration)
    return made


def sample(task: Task) -> None:
    """Train and draw what is missing."""
    for levels, number in task.methods():
        asked = configuration(task, number, levels)
        started = time.perf_counter()
        prepared = asked.graph.build(asked.noise)
        classifier = asked.model.build(prepared, task.runs / f"{task.name(levels)}.safetensors")
        trained = time.perf_counter()
        place = task.runs / f"{task.name(levels)}-{number}"
        with DirectoryStore(place) as store:
            arguments = classifier, prepared.graph, prepared.layout, asked.sampling.build(), store
            tally = sample_nodes(*arguments, progress=default_progress())
        right = (tally.candidate == prepared.graph.labels)[prepared.split.test].mean()
        seconds = f"trained {trained - started:.0f} s, sampled {time.perf_counter() - trained:.0f} s"
        print(f"{place.name}: {seconds}, accuracy before abstention {right:.3f}", flush=True)


def table(task: Task, seconds: float, bases: list[str]) -> None:
    """Print the tables of all complete runs."""
    for kind in BUDGETS:
        print(f"\n### {task.data.stem}, {task.model}: {kind}\n")
        heads = [f"ε = {budget}" for budget in SHOWN[kind]]
        print("| smoothing | N₂ per distribution | base certificate | collective | " + " | ".join(heads) + " | ACR |")
        print("|---|---|---|---|" + "---|" * (len(heads) + 1))
        for levels, number in task.methods():
            if (task.runs / f"{task.name(levels)}-{number}" / "manifest.json").exists():
                rows(task, number, levels, kind, seconds, bases)


def rows(task: Task, samples: int, levels: Levels, kind: str, seconds: float, chosen: list[str]) -> None:
    """Print one distribution's rows."""
    budgets = BUDGETS[kind]
    asked = configuration(task, samples, levels)
    prepared = asked.graph.build(asked.noise)
    store = DirectoryStore(task.runs / f"{task.name(levels)}-{samples}", read_only=True)
    try:
        tally = collect_tallies(store, [prepared.layout], node_counters(), plan=asked.sampling.build())[0]
    except StoreError:
        return  # not complete yet
    nodes = prepared.split.test
    votes = collected_votes(tally, ScoreCounting("histogram", SCORE_BINS), None)
    right = np.flatnonzero(votes.candidate[nodes] == prepared.graph.labels[nodes])
    threat = flip_threat(attribute_caps(prepared.graph, prepared.layout.inputs), **{kind: budgets})
    name = f"isotropic θ⁻ = {levels[1]}" if levels[0] == 1 else f"{levels[0]} clusters, θ⁻ = {levels[1]} … {levels[2]}"
    bernstein = EmpiricalBernstein()
    bases: dict[str, tuple[VoteCertificate | ScoreCertificate, ScoreBound]] = {
        "scores, CDF band": (SparseScores(), CdfBand()),
        "scores, empirical Bernstein": (SparseScores(), bernstein),
        "scores, betting": (SparseScores(), Betting()),
        "votes, Rényi order 2": (RenyiVotes((2.0,)), bernstein),
        "votes, Rényi orders 1.5 … 16": (RenyiVotes(), bernstein),
        "votes, exact": (ExactVotes(), bernstein),
        "exact votes, 10 000 vectors": (ExactVotes(vectors=10_000), bernstein),
    }
    bounds = dict(DEFAULT_BOUNDS) | {"exact": Exact(time_limit=seconds)}
    for label, (certificate, score_bound) in bases.items():
        if not any(part in label for part in chosen):
            continue
        base = bounded_nodes(
            votes,
            prepared.layout,
            nodes,
            alpha=asked.certificate.alpha,
            certificates=[certificate],
            score_bound=score_bound,
            simultaneous=Bonferroni(),
        ).base
        counted = node_problem(base, threat, right[base.prediction[right] >= 0])
        # With one cluster an attack is a number of flips, and the exact bound is there at once.
        tried = bounds if levels[0] > 1 else {"exact": bounds["exact"]}
        for bound, method in tried.items():
            accuracy = np.maximum(solve(counted.problem, method).certified - base.discount, 0) / nodes.size
            shown = " | ".join(f"{accuracy[budgets.index(budget)]:.3f}" for budget in SHOWN[kind])
            acr = average_certifiable_radius(np.array(budgets, dtype=np.float64), accuracy).value
            print(f"| {name} | {tally.n:,} | {label} | {bound} | {shown} | {acr:.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["sample", "table"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=25_000, help="N₂ of each distribution")
    parser.add_argument("--model", choices=list(MODELS), default="appnp", help="APPNP, or a GCN of six layers")
    parser.add_argument("--only", nargs="*", default=[], help="methods whose name contains one of these: 5x0.5-0.9")
    parser.add_argument("--bases", nargs="*", default=[""], help="base certificates whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the exact bound, for each curve")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    np.seterr(all="raise", under="ignore")
    task = Task(arguments.data, arguments.model, arguments.runs, arguments.samples, arguments.only)
    if arguments.command == "sample":
        sample(task)
    else:
        table(task, arguments.seconds, arguments.bases)
