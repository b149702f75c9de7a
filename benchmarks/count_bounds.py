"""What a count costs under every rule for many outputs: python benchmarks/count_bounds.py [RUN …] [--fields] [--sizes].

Finished run directories, of arrays or graphs, are certified again under each rule; `--fields` does so with made-up vote
fields (`benchmarks/vote_fields.py`) for N₂ from 128 to 10⁵, `--sizes` for 10² to 10⁶ outputs as well. `--rules` leaves
others than Bonferroni's, the automatic and those that it names out. Shown is the average certifiable radius by the
ratio (for runs by every target that they ask for) of the envelope, α = .01. What is left at the largest budget is
counted in: to leave it out favours rules that leave little there. The budgets of a run may be stretched. "none" is
Clopper–Pearson at α for each output: no promise about a count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from vote_fields import VoteField

from localsmooth.bounds import (
    Automatic,
    Bonferroni,
    CandidateVotes,
    CandidateWeights,
    CountRule,
    JointCount,
    KFamilywise,
    Sharing,
    VoteBounds,
    clopper_pearson_lower,
    complete,
    pick_k,
)
from localsmooth.certificates import gaussian_vote_eta
from localsmooth.collective import Ball, Envelope, Problem, solve
from localsmooth.metrics import average_certifiable_radius
from localsmooth.pipeline import recertify, settings_of
from localsmooth.results import budget_kinds, kind_curve
from localsmooth.tasks.arrays import Settings

ALPHA = 0.01
N_CANDIDATE = 128


@dataclass(frozen=True)
class Uncorrected:
    """Level α for each output, as if one output were all: promises nothing about counts."""

    name: ClassVar[str] = "none"
    simultaneous: ClassVar[bool] = False
    discount: int = 0

    def most_lenient_level(self, n_outputs: int, alpha: float) -> float:
        return alpha

    def lower_bounds(self, votes: np.ndarray, n: int | np.ndarray, alpha: float) -> VoteBounds:
        return VoteBounds(clopper_pearson_lower(votes, n, alpha), 0, simultaneous=False)


def rules(outputs: int, n: int, only: list[str] | None = None) -> dict[str, Sharing | Automatic]:
    """Every rule, Bonferroni first; or the two that are compared, and some others."""
    every = {
        "bonferroni": Bonferroni(),
        "weighted": CandidateWeights(),
        "k-fwer": pick_k(outputs, n, ALPHA),
        "k = 1 %": KFamilywise(max(1, outputs // 100)),
        "joint": JointCount(),
        "automatic": Automatic(),
        "joint, no fit": JointCount(fit=False),
        "joint, apart": JointCount(spare=0),
        "none": Uncorrected(),
    }
    return every if only is None else {k: rule for k, rule in every.items() if k in ("bonferroni", "automatic", *only)}


def show(title: str, values: dict[str, float], seconds: float) -> None:
    """One line: each rule's radius, and how the automatic choice compares with Bonferroni."""
    gain = values["automatic"] / max(values["bonferroni"], 1e-12) - 1
    cells = "  ".join(f"{value:13.4f}" for value in values.values())
    print(f"{title:38s}{cells}  {100 * gain:+8.1f} %  {1000 * seconds:6.0f} ms", flush=True)


def header(names: list[str]) -> None:
    print(f"{'':38s}" + "  ".join(f"{name:>13s}" for name in names) + "   automatic/bonf.  time of joint")


def field_radii(
    field: VoteField, kind: str, seed: int, only: list[str] | None = None
) -> tuple[dict[str, float], float]:
    """Radii on one made-up field, every output a target."""
    rng = np.random.default_rng(seed)
    make: Callable[[np.random.Generator], np.ndarray] = getattr(field, f"_{kind}")
    chances, weights, group = make(rng).ravel(), field.weights(), field.cells()
    votes = rng.binomial(field.samples, chances)
    first = CandidateVotes(rng.binomial(N_CANDIDATE, chances), N_CANDIDATE)
    budgets = np.linspace(0, 2.5, 51)
    made: dict[str, float] = {}
    spent = 0.0
    for name, rule in rules(votes.size, field.samples, only).items():
        start = time.perf_counter()
        if isinstance(rule, Automatic):
            rule = rule.choose(first, field.samples, ALPHA, group)
        certified = np.zeros(budgets.size)
        for way in Settings(ALPHA, (0.0,), simultaneous=rule).ways():
            how = way.sharing
            if isinstance(how, CountRule):
                bounds = how.count_bounds(votes, field.samples, way.alpha, group, first)
            else:
                bounds = complete(how, first, field.samples, way.alpha).lower_bounds(votes, field.samples, way.alpha)
            eta = gaussian_vote_eta(bounds.lower)
            solved = solve(Problem(weights, eta, group, Ball(tuple(budgets)), eta > 0), Envelope()).certified
            certified = np.maximum(certified, np.asarray(solved) - bounds.discount)
        spent = time.perf_counter() - start if name == "joint" else spent
        made[name] = sum(average_certifiable_radius(budgets, certified / votes.size))
    return made, spent


def fields(only: list[str] | None) -> None:
    """Every kind of field and number of samples, at the size of the Pascal images."""
    header(list(rules(100, 100, only)))
    for kind in ("smooth", "saturated", "mixed"):
        for n in (128, 512, 1024, 10_240, 100_000):
            show(f"{kind}, N = {n}", *field_radii(VoteField(samples=n), kind, 0, only))


def sizes(only: list[str] | None) -> None:
    """Every number of outputs."""
    header(list(rules(100, 100, only)))
    for side in (10, 32, 100, 316, 1000):
        for n in (128, 512, 1024, 10_240, 100_000):
            field = VoteField(height=side, width=side, rows=3, columns=4, samples=n)
            for kind in ("smooth", "saturated", "mixed"):
                show(f"{kind}, {side**2} outputs, N = {n}", *field_radii(field, kind, 1, only))


def run(folder: Path, stretch: float, only: list[str] | None) -> None:
    """A finished run, under every rule."""
    asked: Any = settings_of(folder)
    settings = replace(asked, bounds={"envelope": Envelope()})
    if hasattr(settings, "deletions"):
        settings = replace(
            settings,
            deletions=tuple(range(int(stretch * max(settings.deletions)) + 1)),
            additions=tuple(range(int(stretch * max(settings.additions)) + 1)),
        )
    else:
        settings = replace(settings, budgets=tuple(np.linspace(0, stretch * settings.largest_budget, 61)))
    made: dict[str, dict[str, float]] = {}
    spent = 0.0
    plain = recertify(folder, settings)
    outputs = int(plain["total"].max())
    every = rules(outputs, int(plain.attrs["n_bound"]), only)
    for name, rule in every.items():
        start = time.perf_counter()
        result = recertify(folder, replace(settings, simultaneous=rule))
        spent = time.perf_counter() - start if name == "joint" else spent
        for target in result["target"].values.tolist():
            for axis, counts in curves(result, target).items():
                key = f"{folder.name}, {target}{axis}"
                made.setdefault(key, {})[name] = counts
    header(list(every))
    for key, values in made.items():
        show(key, values, spent)


def curves(result: Any, target: str) -> dict[str, float]:
    """Radius along the budgets, and along either kind of flip."""
    total = result["total"].sel(target=target).values

    def radius(budgets: np.ndarray, certified: np.ndarray) -> float:
        return sum(average_certifiable_radius(budgets, (certified / total[:, None]).mean(axis=0)))

    made: dict[str, float] = {}
    for kind in budget_kinds(result):
        curve = kind_curve(result, kind)
        certified = curve["certified"].sel(target=target, bound="envelope").values
        made[f", {kind}"] = radius(curve["budget"].values.astype(float), certified)
    return {name: value for name, value in made.items() if value > 0}


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--stretch", type=float, default=1.5)
    parser.add_argument("--fields", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--rules", nargs="*", help="rules beside Bonferroni's and the automatic one; all by default")
    asked = parser.parse_args()
    for folder in asked.runs:
        run(folder, asked.stretch, asked.rules)
    if asked.fields:
        fields(asked.rules)
    if asked.sizes:
        sizes(asked.rules)


if __name__ == "__main__":
    main()
