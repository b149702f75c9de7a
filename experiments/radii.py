"""Average certifiable radii of a sweep by every target that its results count, as a Markdown table.

    python experiments/radii.py SWEEP.toml --out DIRECTORY [--targets ratio balanced …] [--figures FOLDER]

Reads what `localsmooth sweep SWEEP.toml --out DIRECTORY` has finished, and samples nothing. Each collective bound has a
column; the radius by a baseline's own bound stands in each of them. A radius is the lower Riemann sum and the part
beyond the largest budget; `ratio at 0` is the share certified at budget 0 by the strongest bound. Baselines count
outputs, and have nothing where outputs are weighed. `rule` is how the outputs of an item shared α. Figures show one
comparison by one target each: TARGET-1.svg, ….
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

from localsmooth.metrics import OperatingPoint, average_certifiable_radius, mean_curve
from localsmooth.report import save_figure
from localsmooth.results import kind_curve
from localsmooth.sweep import Sweep, SweepFolder, load_sweep, operating_point, read_outcomes, sweep_page


def results(
    sweep: Sweep, folder: SweepFolder, tail: bool
) -> list[tuple[str, str, xr.Dataset, dict[str, OperatingPoint]]]:
    """Method, setting, result and numbers by target of every finished point."""
    made: list[tuple[str, str, xr.Dataset, dict[str, OperatingPoint]]] = []
    for point in sweep.points:
        whole = folder.read(point)
        if whole is None:
            continue
        dataset = kind_curve(whole, sweep.flips if sweep.on_graph else None)
        names = [str(name) for name in dataset["target"].values]
        numbers = {name: operating_point(point, dataset, sweep.quality, name)[0] for name in names}
        if not tail:
            numbers = {name: replace(one, radii=lower_sums(dataset, name)) for name, one in numbers.items()}
        made.append((point.method, point.label, dataset, numbers))
    return made


def lower_sums(dataset: xr.Dataset, target: str) -> dict[str, float]:
    """Radius by every bound up to the largest budget."""
    total, budgets = dataset["total"].sel(target=target).values, dataset["budget"].values.astype(np.float64)
    curves = {
        str(bound): mean_curve(dataset["certified"].sel(target=target, bound=bound).values, total)
        for bound in dataset["bound"].values
    }
    return {bound: average_certifiable_radius(budgets, curve).value for bound, curve in curves.items()}


def at(dataset: xr.Dataset, target: str, budget: float) -> str:
    """Share certified at a budget by the strongest bound; empty where the target is not counted."""
    if target not in dataset["target"].values:
        return ""
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
    parser.add_argument("--no-tail", action="store_true", help="leave out what lies beyond the largest budget")
    parser.add_argument("--figures", type=Path, help="folder for a figure of every comparison by every target")
    asked = parser.parse_args()
    sweep = load_sweep(asked.sweep)
    found = results(sweep, SweepFolder(asked.out), not asked.no_tail)
    targets = asked.targets or list(dict.fromkeys(name for row in found for name in row[3]))
    localized = [point.bounds for point in sweep.points if point.bounds is not None]
    bounds = list(dict.fromkeys(name for names in localized for name in names)) or ["own bound"]
    heads = [f"{target}, {bound}" for target in targets for bound in bounds]
    heads += [f"{target} at {budget:g}" for target in targets for budget in asked.at]
    print(f"| method | setting | samples per output | {sweep.quality} | rule | " + " | ".join(heads) + " |")
    print("| --- | --- | ---: | ---: | --- |" + " ---: |" * len(heads))
    for method, label, dataset, numbers in found:
        first = next(iter(numbers.values()))
        facts = [method, label, f"{first.samples_per_output:,}", f"{first.quality:.3f}", rule(dataset)]
        cells = [radius(numbers.get(target), bound, asked.digits) for target in targets for bound in bounds]
        cells += [at(dataset, target, budget) for target in targets for budget in asked.at]
        print("| " + " | ".join(facts + cells) + " |")
    if asked.figures is not None:
        draw(sweep, SweepFolder(asked.out), targets, asked.figures)


def draw(sweep: Sweep, folder: SweepFolder, targets: list[str], place: Path) -> None:
    """Save a figure of every comparison by every target, of the points whose results count it."""
    place.mkdir(parents=True, exist_ok=True)
    for target in targets:
        by_target = replace(sweep, section=sweep.section.model_copy(update={"target": target}))
        page = sweep_page(by_target, read_outcomes(by_target, folder))
        for number, sides in enumerate(page.sides, start=1):
            methods = {name: points for name, points in sides.methods.items() if points}
            save_figure(page.figure(methods), place / f"{target.replace('/', '-')}-{number}.svg")


def radius(numbers: OperatingPoint | None, bound: str, digits: int) -> str:
    """A radius as text; empty where the target is not counted."""
    if numbers is None:
        return ""
    return f"{numbers.radii.get(bound, max(numbers.radii.values())):.{digits}f}"


def rule(dataset: xr.Dataset) -> str:
    """How the outputs shared α, from what the result says it rests on."""
    text = str(dataset.attrs["assumptions"])
    mixed = re.search(r"bound the votes \((.*?)\)", text)
    names = ("joint_and_bonferroni", "joint_count", "bonferroni")
    return mixed.group(1) if mixed else "/".join(name for name in names if re.search(rf"\b{name}\b", text))


if __name__ == "__main__":
    main()
