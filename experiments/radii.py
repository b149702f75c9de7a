"""Average certifiable radii of a sweep by every target that its results count, as a Markdown table.

    python experiments/radii.py SWEEP.toml --out DIRECTORY [--targets ratio balanced …] [--digits 3]

Reads what `localsmooth sweep SWEEP.toml --out DIRECTORY` has finished, and samples nothing. Where several collective
bounds were asked for, each has a column of its own; a baseline has its own bound in the last of them. A radius is the
lower Riemann sum and the part beyond the largest budget. `share at 0` is what is certified at budget 0.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

from localsmooth.metrics import OperatingPoint, mean_curve
from localsmooth.results import kind_curve
from localsmooth.sweep import Sweep, SweepFolder, load_sweep
from localsmooth.sweep.outcome import operating_point


def results(sweep: Sweep, folder: SweepFolder) -> list[tuple[str, str, xr.Dataset, dict[str, OperatingPoint]]]:
    """Method, setting, result and numbers by target of every finished point."""
    made: list[tuple[str, str, xr.Dataset, dict[str, OperatingPoint]]] = []
    for point in sweep.points:
        whole = folder.read(point)
        if whole is None:
            continue
        dataset = kind_curve(whole, sweep.flips if sweep.on_graph else None)
        names = [str(name) for name in dataset["target"].values]
        numbers = {name: operating_point(point, dataset, sweep.quality, name)[0] for name in names}
        made.append((point.method, point.label, dataset, numbers))
    return made


def at(dataset: xr.Dataset, target: str, budget: float) -> str:
    """Share certified at a budget by the strongest bound."""
    total = dataset["total"].sel(target=target).values
    curves = dataset["certified"].sel(target=target).max("bound").transpose("item", "budget").values
    index = int(np.flatnonzero(np.isclose(dataset["budget"].values, budget))[0])
    return f"{mean_curve(curves, total)[index]:.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--targets", nargs="*", help="by default all of them")
    parser.add_argument("--at", nargs="*", type=float, default=[0.0], help="budgets whose shares are shown as well")
    parser.add_argument("--digits", type=int, default=3)
    asked = parser.parse_args()
    sweep = load_sweep(asked.sweep)
    found = results(sweep, SweepFolder(asked.out))
    targets = asked.targets or list(dict.fromkeys(name for row in found for name in row[3]))
    bounds = list(dict.fromkeys(name for row in found for name in next(iter(row[3].values())).radii))
    heads = [f"{target}, {bound}" for target in targets for bound in bounds]
    heads += [f"{target} at {budget:g}" for target in targets for budget in asked.at]
    print("| method | setting | N₂ | " + sweep.quality + " | rule | " + " | ".join(heads) + " |")
    print("| --- | --- | ---: | ---: | --- |" + " ---: |" * len(heads))
    for method, label, dataset, numbers in found:
        first = next(iter(numbers.values()))
        cells = [
            f"{numbers[target].radii[bound]:.{asked.digits}f}" if bound in numbers[target].radii else ""
            for target in targets
            for bound in bounds
        ]
        cells += [at(dataset, target, budget) for target in targets for budget in asked.at]
        facts = [method, label, f"{first.samples_per_output}", f"{first.quality:.3f}", rule(dataset)]
        print("| " + " | ".join(facts + cells) + " |")


def rule(dataset: xr.Dataset) -> str:
    """How the outputs shared α, as the result says it."""
    return str(dataset.attrs.get("simultaneous", ""))


if __name__ == "__main__":
    main()
