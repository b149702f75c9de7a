"""What tuning foretells from a pilot, against whole runs.

    python experiments/digit_scenes/foretold.py RUN … [--targets ratio balanced] [--share .1]

For every finished run that `localsmooth certify` made: pilots of the same items and settings, of `--share` of the
samples and from seeds that no run has, and the average certifiable radius by the envelope that
`localsmooth.tuning.foretell` expects of a whole run, item by item, beside that of the run itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from localsmooth.collective import Envelope
from localsmooth.config import Configuration, parse_configuration
from localsmooth.metrics import average_certifiable_radius
from localsmooth.noise import Noise
from localsmooth.pipeline import recertify
from localsmooth.runs import SamplingPlan
from localsmooth.tasks import as_targets, load_record, work_of
from localsmooth.tasks.arrays import ArrayTask
from localsmooth.tuning import Aim, Candidate, Pilots, foretell


def compare(folder: Path, targets: list[str], share: float, draws: int) -> None:
    """One line for each target."""
    record = load_record(folder)
    configuration = parse_configuration(record.configuration)
    assert isinstance(configuration, Configuration)
    task, smoothing, settings = configuration.prepare(folder, print)
    assert isinstance(task, ArrayTask)
    settings = replace(settings, bounds={"envelope": Envelope()})
    plan, noise, layout = smoothing.plan, smoothing.noise, smoothing.layout
    assert isinstance(noise, Noise)
    assert isinstance(plan, SamplingPlan)
    assert not isinstance(layout, Sequence)
    total, whole = plan.n_candidate + plan.n_bound, Candidate("the whole run", layout)
    pilots = Pilots(task, settings, noise, plan.seed, plan.chunk_size, [plan.n_candidate / total])
    entry = pilots.enter(whole, work_of(task.laid_out(layout)) * (total + 0.5))
    pilot = pilots.draw(entry, round(share * total), 1)
    for target in targets:
        result = recertify(folder, targets=[target], bounds={"envelope": Envelope()})
        counts, most = result["certified"].isel(target=0, bound=0).values, result["total"].isel(target=0).values
        budgets = result["budget"].values.astype(np.float64)
        found = np.array([sum(average_certifiable_radius(budgets, row)) for row in counts / most[:, None]])
        asked, sizes = task.asked(settings, noise, as_targets([target])[0], None, (), None)
        made = foretell(task.trials(pilot, asked, noise), sizes, plan, Aim(target), draws, 1)
        cells = [", ".join(f"{value:.3f}" for value in values) for values in (found, made.radii)]
        cells.append(", ".join(f"{value:+.1f}" for value in 100 * (made.radii / found - 1)))
        cells.append(f"{100 * (made.radius / found.mean() - 1):+.1f}")
        print(f"| {folder.name} | {target} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--targets", nargs="*", default=["ratio", "balanced"])
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--draws", type=int, default=3)
    asked = parser.parse_args()
    print("| run | target | ACR, item by item | expected | error, % | of the mean, % |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for folder in asked.runs:
        compare(folder, asked.targets, asked.share, asked.draws)


if __name__ == "__main__":
    main()
