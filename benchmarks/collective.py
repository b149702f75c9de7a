"""Time the collective bounds, side by side, in one process.

    python benchmarks/collective.py [--parts relaxed exact paper scaling] [--plot docs/collective_scaling.png]

Parts: *relaxed* naive, lp and envelope over a curve of 81 budgets, at Pascal and at Cityscapes scale; *exact* branch
and bound on the three fields; *paper* the published linear program written in cvxpy, solved by Clarabel and HiGHS,
beside ours; *scaling* time over the number of outputs and of groups.
The last two count processor time, which other work on the machine disturbs less. *paper* needs the extra *compare*:
pip install -e '.[compare]'.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import statistics
import time
from importlib.util import find_spec

import numpy as np
from vote_fields import CITYSCAPES, PASCAL

from localsmooth.collective import Ball, Envelope, Exact, LinearProgram, Naive, Problem, solve

PUBLISHED_NEEDS = ("cvxpy", "clarabel")
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


def published(
    weights: np.ndarray, eta: np.ndarray, group: np.ndarray, budget: float, solver: str, merge: bool
) -> float:
    """Solve the published linear program in cvxpy, with a variable per output in reach (at most 2 767 a group).

    ``merge`` gives outputs of the same threshold one variable, which helps the solver where there are many votes alike.
    """
    import cvxpy

    b = cvxpy.Variable(weights.shape[1], nonneg=True)
    total, rows = 0, [cvxpy.sum(b) <= budget**2]
    for cell in range(len(weights)):
        values, counts = np.unique(eta[(group == cell) & (eta > 0)], return_counts=True)
        if not merge:
            values, counts = np.repeat(values, counts), np.ones(counts.sum())
        safe = values > weights[cell].max() * budget**2
        total += counts[safe].sum()
        if np.any(~safe):
            fallen = cvxpy.Variable(int((~safe).sum()), nonneg=True)
            rows.append(fallen >= 1 - (1 / values[~safe]) * (weights[cell] @ b))
            total = total + counts[~safe] @ fallen
    return float(cvxpy.Problem(cvxpy.Minimize(total), rows).solve(solver=solver))


def paper(solvers: list[str], budgets: tuple[float, ...] = (0.3, 0.5), repeats: int = 3) -> None:
    print(
        "\nthe published linear program in cvxpy, beside ours from scratch and within a curve of 41 budgets in [0, 1]"
    )
    print("a variable of theirs stands for a threshold, or for an output")
    print(f"(processor time, {repeats} repeats in turn; medians, median ratios; load {os.getloadavg()[0]:.1f})")
    for kind in KINDS:
        weights, eta, group = PASCAL.problem(kind)
        solve(Problem(weights, eta, group, Ball(0.4)), LinearProgram())
        for budget, solver, merge in itertools.product(budgets, solvers, (True, False)):
            cold, curve, theirs = [], [], []
            for _ in range(1 if solver == "HIGHS" else repeats):
                single = []
                for _ in range(5):
                    start = time.process_time()
                    ours = solve(Problem(weights, eta, group, Ball(budget)), LinearProgram())[0]
                    single.append(time.process_time() - start)
                cold.append(statistics.median(single))
                start = time.process_time()
                solve(Problem(weights, eta, group, Ball(np.linspace(0, 1, 41))), LinearProgram())
                curve.append((time.process_time() - start) / 41)
                start = time.process_time()
                value = published(weights, eta, group, budget, solver, merge)
                theirs.append(time.process_time() - start)
            mine = [statistics.median(part) * 1e3 for part in (cold, curve)]
            ratios = [statistics.median(a / b for a, b in zip(theirs, own, strict=True)) for own in (cold, curve)]
            print(
                f"  {kind:9} ε = {budget}: ours {mine[0]:5.1f} ms from scratch, {mine[1]:5.1f} ms in a curve; "
                f"{solver:8} per {'threshold' if merge else 'output   '} {statistics.median(theirs):.2f} s: "
                f"{ratios[0]:.0f} × and {ratios[1]:.0f} ×; differs by {abs(value - ours.lower) / len(eta):.1e} of the "
                f"outputs; peak {memory():.0f} MB",
                flush=True,
            )


def scaling(plot: str | None) -> None:
    print("\nenvelope over outputs (15 groups) and groups (10⁵ outputs), 40 budgets: processor time")
    rng = np.random.default_rng(0)
    series: dict[str, list[tuple[int, float, float]]] = {"outputs": [], "groups": []}
    cases = [("outputs", 10**k, 15) for k in range(3, 8)] + [("groups", 10**5, g) for g in (1, 4, 16, 64, 144, 256)]
    for axis, outputs, groups in cases:
        side = max(1, int(np.sqrt(groups)))
        place = np.stack([np.arange(groups) // side, np.arange(groups) % side])
        distance = np.abs(place[:, :, None] - place[:, None, :]).max(axis=0)
        weights = 1 / (0.15 + 0.85 * distance / max(1, distance.max())) ** 2
        eta, group = np.maximum(0.0, rng.normal(3, 1.5, outputs)), rng.integers(0, groups, outputs)
        start = time.process_time()
        problem = Problem(weights, eta, group, Ball(np.linspace(0.05, 1, 40)))
        _ = problem.pieces
        prepared = time.process_time() - start
        spent = []
        for _ in range(3):
            start = time.process_time()
            solve(problem, Envelope())
            spent.append((time.process_time() - start) / 40 * 1e3)
        number, median = outputs if axis == "outputs" else groups, statistics.median(spent)
        series[axis].append((number, median, prepared * 1e3))
        print(
            f"  {axis:8} {number:>9}: {median:6.1f} ms a budget, {prepared:7.3f} s to sort and prepare",
            flush=True,
        )
    if plot:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
        for axis, (name, points) in zip(axes, series.items(), strict=True):
            axis.loglog([p[0] for p in points], [p[1] for p in points], "o-", color="#2b6cb0", label="each budget")
            axis.loglog(
                [p[0] for p in points], [p[2] for p in points], "s--", color="#999999", label="once: sort, hulls"
            )
            axis.set_xlabel(f"number of {name}")
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("envelope, ms")
        axes[0].legend()
        figure.savefig(plot, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("relaxed", "exact", "paper", "scaling")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of exact, per budget")
    solvers = ("CLARABEL", "HIGHS")
    parser.add_argument("--solvers", nargs="+", choices=solvers, default=solvers, help="for the part 'paper'")
    parser.add_argument("--plot", help="write the scaling plot to this file")
    options = parser.parse_args()
    if "paper" in options.parts and (missing := [name for name in PUBLISHED_NEEDS if find_spec(name) is None]):
        parser.error(
            f"the part 'paper' needs {' and '.join(missing)}: pip install -e '.[compare]', or leave it out "
            "(--parts relaxed exact scaling)"
        )
    print(f"{os.cpu_count()} cores, numpy {np.__version__}, load {os.getloadavg()[0]:.1f}")
    if "relaxed" in options.parts:
        relaxed()
    if "exact" in options.parts:
        exact(options.seconds)
    if "paper" in options.parts:
        paper(options.solvers)
    if "scaling" in options.parts:
        scaling(options.plot)


if __name__ == "__main__":
    main()
