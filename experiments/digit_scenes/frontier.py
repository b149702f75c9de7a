"""The most that noise certifies at each quality, at equal work: localized and isotropic noise on digit scenes.

    python experiments/digit_scenes/frontier.py --out runs/digit_scenes/frontier.jsonl [--only told] [--pilot 400]
    python experiments/digit_scenes/frontier.py --out runs/digit_scenes/frontier.jsonl --table
    python experiments/digit_scenes/frontier.py --out … --overlap --only "windows 8, told, 0.25 … 0.5"

Every setting gets a pilot of as many passes over each scene, from which `localsmooth.tuning.foretold` draws what whole
runs of several sizes would see, and certifies that: by the envelope, α = .01, the rule that is chosen by default.
`WORKS` are passes over a scene; the last one is so large that nothing more is left to be gained by samples. What was
measured already is read from the file, and kept. What is foretold for 16,200 passes is within 2 % of what whole runs
certify, in the mean over three scenes (`docs/results_scenes.md`).

The scenes are the first four of the test scenes 4 to 63 on which both networks have a mIoU of at least .945 without
noise: on others no noise can be asked for .94. None of them was looked at before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from localsmooth.bounds import Bonferroni
from localsmooth.collective import Envelope
from localsmooth.datasets import Item, ItemSet
from localsmooth.layout import GridLayout
from localsmooth.metrics import average_certifiable_radius, confusion_matrix, mean_iou
from localsmooth.models import TorchModel
from localsmooth.noise import Gaussian
from localsmooth.sampling import SamplingOptions
from localsmooth.scenes import CLASS_NAMES, TOLD_CHECKPOINT, DigitScenes, Split, load_unet
from localsmooth.tasks.arrays import ArrayTask, SampledItem, Settings, certify_item, counting_groups
from localsmooth.tasks.arrays.item import certify_overlaps
from localsmooth.tuning import Candidate, Pilots, foretold

SCENES = (7, 9, 20, 22)
WORKS = (13_824, 122_880, 122_880_000)
BUDGETS = np.linspace(0, 3, 41)
OVERLAP_BUDGETS = (0.0, 0.3, 0.6, 0.9)
FLOORS = (0.85, 0.9, 0.92, 0.93, 0.94)
ISOTROPIC = (0.15, 0.2, 0.25, 0.3)
SPLIT = 1 / 9  # of the samples, that choose candidates
OPTIONS = SamplingOptions(batch_size=16, channels_last=True, check_model=False)


@dataclass(frozen=True)
class Setting:
    """One way to smooth.

    Parameters
    ----------
    method
        What it is one of.
    layout
        Groups and levels.
    told
        Whether the network is the one that is told the noise.
    """

    method: str
    layout: GridLayout
    told: bool = True

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.method}, {self.layout.minimum:g} … {self.layout.maximum:g}"


def settings() -> list[Setting]:
    """All that are compared, what matters most first."""

    def grid(cells: tuple[int, int], low: float, high: float, margin: int | None = None) -> GridLayout:
        return GridLayout(cells, low, high, window_margin=margin, window_align=8)

    made = [Setting("isotropic, told", grid((1, 1), level, level)) for level in ISOTROPIC]
    for low, high in ((0.2, 0.4), (0.15, 0.3), (0.25, 0.5), (0.25, 0.3), (0.2, 0.7), (0.3, 0.6)):
        made.append(Setting("3×4, windows 8, told", grid((3, 4), low, high, 8)))
    for low, high in ((0.15, 0.3), (0.2, 0.4)):
        made.append(Setting("4×6, windows 8, told", grid((4, 6), low, high, 8)))
    made.append(Setting("3×4, windows 8, shipped", grid((3, 4), 0.15, 0.3, 8), told=False))
    made += [Setting("isotropic, told", grid((1, 1), level, level)) for level in (0.45, 0.35, 0.275)]
    return made


def drawn(setting: Setting, scenes: Sequence[int], passes: int) -> tuple[list[SampledItem], float]:
    """A pilot of a setting, and the passes that a sample of all of its groups takes."""
    network = load_unet(TOLD_CHECKPOINT) if setting.told else load_unet()
    source = DigitScenes(Split.TEST)
    made = [(index, source.scene(index)) for index in scenes]
    items = ItemSet([Item(index, f"scene {index}", one.image, one.labels) for index, one in made], CLASS_NAMES)
    model = TorchModel(network, bounds=(0.0, 1.0), classes=len(CLASS_NAMES), told=setting.told)
    proven = Settings(alpha=0.01, budgets=BUDGETS)
    pilots = Pilots(ArrayTask(model, items), proven, Gaussian(), 0, 128, [SPLIT], OPTIONS)
    entry = pilots.enter(Candidate(setting.name, setting.layout), WORKS[0])
    each = entry.work / (entry.plan.n_candidate + entry.plan.n_bound)
    return pilots.draw(entry, round(passes / each), 1), each


@dataclass(frozen=True)
class Row:
    """What is foretold of a setting, by passes over a scene: mIoU and radii; and how long that took."""

    name: str
    method: str
    quality: dict[str, float]
    balanced: dict[str, float]
    ratio: dict[str, float]
    seconds: float


def measured(setting: Setting, scenes: Sequence[int], passes: int) -> Row:
    """Draw a pilot of a setting, and foretell whole runs from it."""
    begun, generator = time.perf_counter(), np.random.default_rng(0)
    items, each = drawn(setting, scenes, passes)
    row = Row(setting.name, setting.method, {}, {}, {}, 0.0)
    for work in WORKS:
        total, targets = int(work / each), ("balanced", "ratio")
        first = max(1, round(SPLIT * total))
        # Where nothing more is left to be gained by samples all rules agree, and Bonferroni's takes the least time.
        rule = Bonferroni() if work == WORKS[-1] else None
        proven = Settings(0.01, BUDGETS, bounds="envelope", simultaneous=rule, targets=targets).completed(Gaussian())
        curves: dict[str, list[np.ndarray]] = {target: [] for target in targets}
        confusion = np.zeros((len(CLASS_NAMES), len(CLASS_NAMES) + 1), np.int64)
        for item in items:
            whole = replace(item, votes=foretold(item.votes, first, total - first, generator))
            made = certify_item(whole, Gaussian(), proven.settled(whole.votes, counting_groups(whole)))
            assert made.label is not None
            confusion += confusion_matrix(
                made.prediction, made.label, np.ones(made.label.shape, np.bool_), len(CLASS_NAMES)
            )
            for target in targets:
                curves[target].append(made.curves[target, "envelope"].certified / made.stakes[target].total)
        row.quality[str(work)] = mean_iou(confusion)
        for target, radii in (("balanced", row.balanced), ("ratio", row.ratio)):
            radii[str(work)] = float(sum(average_certifiable_radius(BUDGETS, np.mean(curves[target], axis=0))))
    return replace(row, seconds=time.perf_counter() - begun)


def certified_miou(setting: Setting, scenes: Sequence[int], passes: int) -> np.ndarray:
    """Certified mean IoU at `OVERLAP_BUDGETS`, in the mean over scenes, as foretold for the first of `WORKS`."""
    items, each = drawn(setting, scenes, passes)
    total, generator = int(WORKS[0] / each), np.random.default_rng(0)
    first = max(1, round(SPLIT * total))
    proven = Settings(0.01, OVERLAP_BUDGETS).completed(Gaussian())
    made: list[np.ndarray] = []
    for item in items:
        whole = replace(item, votes=foretold(item.votes, first, total - first, generator))
        settled = proven.settled(whole.votes, counting_groups(whole))
        made.append(certify_overlaps(whole, Gaussian(), settled, Envelope(), 0.01).mean_iou)
    return np.mean(made, axis=0)


def read(path: Path) -> dict[str, Row]:
    """What was measured already, by name."""
    if not path.is_file():
        return {}
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    return {row.name: row for row in rows}


def table(rows: Sequence[Row]) -> None:
    """All settings; then the best of each method at every floor."""
    works = [f"{work:,}" for work in WORKS[:-1]] + ["∞"]
    print("| setting | " + " | ".join(f"mIoU, balanced, ratio at {work}" for work in works) + " |")
    print("| --- |" + " --- |" * len(works))
    for row in rows:
        cells = (f"{row.quality[w]:.3f}, {row.balanced[w]:.3f}, {row.ratio[w]:.3f}" for w in map(str, WORKS))
        print(f"| {row.name} | " + " | ".join(cells) + " |")
    for work, word in zip(map(str, WORKS), works, strict=True):
        print(f"\nBest balanced radius at {word} passes, by floor of the mIoU there (and its setting):\n")
        print("| method | " + " | ".join(f"≥ {floor:g}" for floor in FLOORS) + " |")
        print("| --- |" + " --- |" * len(FLOORS))
        for method in dict.fromkeys(row.method for row in rows):
            own = [row for row in rows if row.method == method]
            cells = list[str]()
            for floor in FLOORS:
                good = [row for row in own if row.quality[work] >= floor]
                best = max(good, key=lambda row: row.balanced[work], default=None)
                level = "" if best is None else best.name.removeprefix(method + ", ")
                cells.append("none" if best is None else f"{best.balanced[work]:.3f} ({level})")
            print(f"| {method} | " + " | ".join(cells) + " |")


def main() -> None:
    """Measure what is missing, and print what there is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="settings whose name contains that")
    parser.add_argument("--pilot", type=int, default=400, help="passes over each scene")
    parser.add_argument("--scenes", type=int, nargs="*", default=SCENES)
    parser.add_argument("--overlap", action="store_true", help="certified mIoU of the settings in place of radii")
    parser.add_argument("--table", action="store_true", help="print what was measured, and measure nothing")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.overlap:
        for setting in settings():
            if asked.only in setting.name:
                print(setting.name, certified_miou(setting, asked.scenes, asked.pilot).round(3), flush=True)
        return
    known = read(asked.out)
    for setting in () if asked.table else settings():
        if asked.only in setting.name and setting.name not in known:
            row = measured(setting, asked.scenes, asked.pilot)
            known[row.name] = row
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            with asked.out.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(f"{row.name}: {row.quality}, {row.balanced}, {row.seconds:.0f} s", flush=True)
    table([known[setting.name] for setting in settings() if setting.name in known])


if __name__ == "__main__":
    main()
