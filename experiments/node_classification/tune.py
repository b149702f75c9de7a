"""Tune the noise of one citation graph, and certify another with what was chosen, and with the best isotropic noise.

    python experiments/node_classification/tune.py --calibrate citeseer.npz --certify cora_ml.npz --runs RUNS

Networks are trained for every candidate on the graph that they are about, and kept in RUNS with the samples of whole
runs: called again with other `--flips`, nothing is drawn twice. Attributes of the graph that is certified are never
looked at before its noise is settled.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import localsmooth as ls
from localsmooth.certificates import ExactVotes, RenyiVotes
from localsmooth.config import GraphConfiguration, parse_configuration
from localsmooth.metrics import average_certifiable_radius
from localsmooth.results import kind_curve
from localsmooth.tasks.graphs import ClusterLayout, GraphSettings, GraphTask
from localsmooth.tuning import Candidate, Tried, cluster_candidates

BUDGETS = {"deletions": range(0, 61, 2), "additions": range(21)}
CERTIFICATES = {"deletions": RenyiVotes(), "additions": ExactVotes()}
MODEL = {"kind": "appnp", "learning_rate": 0.01, "epochs": 300, "self_training": False}
ADDITION = 0.01


def candidates() -> list[Candidate]:
    """Isotropic noise with θ⁻ = .7, .8 and .9, and θ⁻ from .7 to .9 on 3 and on 5 clusters."""
    flat = cluster_candidates([0.7, 0.8, 0.9], additions=[ADDITION], clusters=[])
    return flat + [
        one for one in cluster_candidates([0.7, 0.9], additions=[ADDITION], clusters=[3, 5]) if not one.isotropic
    ]


def settings(flips: str) -> GraphSettings:
    """What is proven: flips of one kind."""
    budgets = {kind: BUDGETS[kind] if kind == flips else [0] for kind in BUDGETS}
    return GraphSettings(
        0.01,
        budgets["additions"],
        budgets["deletions"],
        certificates=[CERTIFICATES[flips]],
        bounds=["envelope"],
        targets=["ratio", "accuracy"],
    )


def task(data: Path, rule: object, runs: Path) -> GraphTask:
    """A graph with the network that was trained on it for a candidate's noise."""
    assert isinstance(rule, ClusterLayout)
    made = parse_configuration(
        {
            "model": MODEL,
            "graph": {"data": str(data.resolve()), "clusters": rule.clusters},
            "noise": {"addition": rule.addition, "deletion": rule.deletion},
        }
    )
    assert isinstance(made, GraphConfiguration)
    prepared = made.graph.build(made.noise)
    near, far = rule.deletion
    network = made.model.build(prepared, runs / f"{data.stem}-{rule.clusters}x{near}-{far}.safetensors")
    return GraphTask(network, prepared.graph, prepared.nodes, called=data.stem)


def whole_run(data: Path, tried: Tried, found: ls.tuning.Tuning, flips: str, runs: Path) -> dict[str, float]:
    """ACR of each target on the other graph, from samples of another seed."""
    rule, plan = tried.entry.candidate.layout, tried.entry.plan
    layout = tried.entry.task.remembering(rule, found.origins)
    plan = ls.SamplingPlan(plan.n_candidate, plan.n_bound, seed=1, chunk_size=plan.chunk_size)
    place = runs / f"{data.stem} {tried.entry.candidate.name} {plan.n_candidate} {plan.n_bound}".replace(" ", "-")
    made = ls.certify(task(data, rule, runs), ls.Smoothing(layout, plan), settings(flips), run=ls.Run(place))
    curves = kind_curve(made, flips).sel(bound="envelope")
    radii: dict[str, float] = {}
    for target in ("ratio", "accuracy"):
        one = curves.sel(target=target)
        share = (one["certified"] / one["total"]).values.ravel()
        radii[target] = sum(average_certifiable_radius(np.array(BUDGETS[flips], float), share))
    return radii


def measure(calibrate: Path, certify: Path, runs: Path, work: float, flips: str, draws: int) -> None:
    """Print a row of the table in docs/results.md."""
    began = time.process_time()
    contest = candidates()
    found = ls.tune(
        task(calibrate, contest[0].layout, runs),
        settings(flips),
        contest,
        work=work,
        aim=ls.Aim(kind=flips),
        split=[0.03, 1 / 9],
        draws=draws,
        executor="serial",
        trained=lambda one: task(calibrate, one.layout, runs),
        tell=lambda text: print(text, flush=True),
    )
    localized = next((one for one in found.tried if not one.entry.candidate.isotropic), found.best)
    print(f"tuned in {time.process_time() - began:.0f} s of processor time; chosen: {found.best.entry.candidate.name}")
    for one in (localized, found.isotropic):
        radii = whole_run(certify, one, found, flips, runs)
        plan, mark = one.entry.plan, " (chosen)" if one is found.best else ""
        print(
            f"| {calibrate.stem} → {certify.stem} | {flips} | {one.entry.candidate.name}{mark} "
            f"| {plan.n_candidate} : {plan.n_bound} | {one.forecast.radius:.2f} ± {one.forecast.radius_error:.2f} "
            f"| {radii['ratio']:.2f} | {radii['accuracy']:.2f} |",
            flush=True,
        )
    print(f"{time.process_time() - began:.0f} s of processor time in all", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibrate", type=Path, required=True, help="graph that the noise is chosen on")
    parser.add_argument("--certify", type=Path, required=True, help="graph that is certified with it")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--work", type=float, default=26_000, help="passes over a graph")
    parser.add_argument("--flips", nargs="*", choices=list(BUDGETS), default=list(BUDGETS))
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.runs.mkdir(parents=True, exist_ok=True)
    for kind in arguments.flips:
        measure(arguments.calibrate, arguments.certify, arguments.runs, arguments.work, kind, arguments.draws)
