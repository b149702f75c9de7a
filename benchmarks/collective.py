"""Time the collective bounds, side by side, in one process.

    python benchmarks/collective.py [--parts relaxed exact paper scaling] [--plot docs/collective_scaling.png]

Parts: *relaxed* naive, lp and envelope over a curve of 81 budgets, at Pascal and at Cityscapes scale; *exact* branch
and bound on the three fields; *paper* the published linear program written in cvxpy, solved by Clarabel and HiGHS,
beside ours; *scaling* time over the number of outputs and of groups.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time

import numpy as np
from vote_fields import CITYSCAPES, PASCAL

from localsmooth.collective import Ball, Envelope, Exact, LinearProgram, Naive, Problem, solve

KINDS = ("smooth", "saturated", "mixed")


def memory() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def relaxed() -> None:
    print("\nlp and envelope, 81 budgets in [0, 4], one curve (median of 3), ms a budget; certified ratio at ε = .5")
    for name, field in (("Pascal", PASCAL), ("Cityscapes", CITYSCAPES)):
        for kind in KINDS:
            weights, eta, group = field.problem(kind)
            before = memory()
            problem = Problem(weights, eta, group, Ball(np.linspace(0, 4, 81)))
            cells = []
            for bound in (Naive(), LinearProgram(), Envelope()):
                spent = []
                for _ in range(3):
                    start = time.perf_counter()
                    curve = solve(problem, bound)
                    spent.append((time.perf_counter() - start) / len(curve) * 1e3)
                value = curve.certified[10] / len(eta)
                cells.append(f"{type(bound).__name__} {statistics.median(spent):6.1f} ms ({value:.4f})")
            print(f"  {name:10} {kind:9} {'  '.join(cells)}  +{memory() - before:.0f} MB")


def exact(seconds: float) -> None:
    print(f"\nexact, at most {seconds:g} s a budget: certified ratio, ratio under the best attack, seconds")
    for kind, share in (("smooth", 0.001), ("saturated", 0.001), ("mixed", 0.01)):
        weights, eta, group = PASCAL.problem(kind)
        spent = []
        for budget in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0):
            problem = Problem(weights, eta, group, Ball(budget))
            envelope = solve(problem, Envelope())[0]
            before, start = memory(), time.perf_counter()
            answer = solve(problem, Exact(gap=int(share * len(eta)), time_limit=seconds))[0]
            spent.append(time.perf_counter() - start)
            print(
                f"  {kind:9} ε = {budget:3.1f}  envelope {envelope.certified / len(eta):.4f}  exact "
                f"{answer.certified / len(eta):.4f} … {answer.upper / len(eta):.4f} (gap {answer.gap / len(eta):.2%})  "
                f"{spent[-1]:6.2f} s  +{memory() - before:.0f} MB  {answer.status.name}",
                flush=True,
            )
        print(f"  {kind:9} median {statistics.median(spent):.2f} s, worst {max(spent):.2f} s")


def paper(budgets: tuple[float, ...] = (0.3, 0.5)) -> None:
    import cvxpy

    print("\nthe published linear program in cvxpy (a variable per distinct threshold), and ours")
    weights, eta, group = PASCAL.problem("smooth")
    for budget in budgets:
        spent = []
        for _ in range(5):
            start = time.perf_counter()
            problem = Problem(weights, eta, group, Ball(budget))
            ours = solve(problem, LinearProgram())[0]
            spent.append(time.perf_counter() - start)
        own = statistics.median(spent)
        start = time.perf_counter()
        solve(problem, LinearProgram())
        again = time.perf_counter() - start
        print(f"  ε = {budget}: ours {ours.lower:.4f} in {own:.3f} s alone, {again:.3f} s once sorted", flush=True)
        for solver in ("HIGHS", "CLARABEL"):
            start = time.perf_counter()
            b = cvxpy.Variable(weights.shape[1], nonneg=True)
            total, rows = 0, [cvxpy.sum(b) <= budget**2]
            for cell in range(len(weights)):
                values, counts = np.unique(eta[(group == cell) & (eta > 0)], return_counts=True)
                safe = values > weights[cell].max() * budget**2
                total += counts[safe].sum()
                if np.any(~safe):
                    fallen = cvxpy.Variable(int((~safe).sum()), nonneg=True)
                    rows.append(fallen >= 1 - (1 / values[~safe]) * (weights[cell] @ b))
                    total = total + counts[~safe] @ fallen
            value = cvxpy.Problem(cvxpy.Minimize(total), rows).solve(solver=solver)
            theirs = time.perf_counter() - start
            off = abs(value - ours.lower) / len(eta)
            print(
                f"           cvxpy {solver:8} {value:.4f} in {theirs:.2f} s: {theirs / again:.0f} × ours; "
                f"differs by {off:.1e} of the outputs; peak {memory():.0f} MB",
                flush=True,
            )


def scaling(plot: str | None) -> None:
    print("\nenvelope over outputs (15 groups) and groups (10⁵ outputs), 20 budgets: ms a budget, and s to prepare")
    rng = np.random.default_rng(0)
    series: dict[str, list[tuple[int, float, float]]] = {"outputs": [], "groups": []}
    cases = [("outputs", 10**k, 15) for k in range(3, 8)] + [("groups", 10**5, g) for g in (1, 4, 16, 64, 144, 256)]
    for axis, outputs, groups in cases:
        side = max(1, int(np.sqrt(groups)))
        place = np.stack([np.arange(groups) // side, np.arange(groups) % side])
        distance = np.abs(place[:, :, None] - place[:, None, :]).max(axis=0)
        weights = 1 / (0.15 + 0.85 * distance / max(1, distance.max())) ** 2
        eta = np.maximum(0.0, rng.normal(3, 1.5, outputs))
        problem = Problem(weights, eta, rng.integers(0, groups, outputs), Ball(np.linspace(0.05, 1, 20)))
        start = time.perf_counter()
        _ = problem.pieces
        prepared = time.perf_counter() - start
        start = time.perf_counter()
        solve(problem, Envelope())
        spent = (time.perf_counter() - start) / 20 * 1e3
        number = outputs if axis == "outputs" else groups
        series[axis].append((number, spent, prepared))
        print(f"  {axis:8} {number:>9}: {spent:8.1f} ms a budget, {prepared:6.2f} s to prepare", flush=True)
    if plot:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
        for axis, (name, points) in zip(axes, series.items(), strict=True):
            axis.loglog([p[0] for p in points], [p[1] for p in points], "o-", color="#2b6cb0")
            axis.set_xlabel(f"number of {name}")
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("envelope, ms a budget")
        figure.savefig(plot, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("relaxed", "exact", "paper", "scaling")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of exact, per budget")
    parser.add_argument("--plot", help="write the scaling plot to this file")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, numpy {np.__version__}, load {os.getloadavg()[0]:.1f}")
    if "relaxed" in options.parts:
        relaxed()
    if "exact" in options.parts:
        exact(options.seconds)
    if "paper" in options.parts:
        paper()
    if "scaling" in options.parts:
        scaling(options.plot)


if __name__ == "__main__":
    main()
