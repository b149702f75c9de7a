"""The network that is told the noise against the shipped one: mIoU and balanced accuracy of the smoothed classifier.

    python experiments/digit_scenes/told.py [--scenes 48] [--seed 7] [--only "0.3 … 0.6"] [--model told]
    python experiments/digit_scenes/told.py --matching --model told --scenes 300     # what noise costs which quality

Majority of 16 votes on 3×4 cells. *Told, wrongly*: the same network and noise, but it is told one level everywhere, the
geometric mean of the levels. In brackets: how many digits are read wrongly, and the mIoU if they were not, everything
else being as it is.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy import ndimage

from localsmooth.datasets import Item, ItemSet
from localsmooth.execution import sample_subject
from localsmooth.layout import GridLayout
from localsmooth.metrics import confusion_matrix, mean_iou
from localsmooth.models import Adapter, Model, TorchModel
from localsmooth.noise import Gaussian
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.scenes import CLASS_NAMES, TOLD_CHECKPOINT, DigitScenes, Split, load_unet
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import ArrayTask, Settings

LEVELS = ((0.15, 1.0), (0.2, 0.8), (0.3, 0.6), (0.25, 1.0))
WINDOWS = ((0.3, 0.6), (0.25, 1.0))
MATCHING = (0.2, 0.25, 0.275, 0.3, 0.35, 0.4, 0.45), ((0.2, 0.4), (0.25, 0.5), (0.3, 0.6))
"""Isotropic noise, and levels in windows, as they are held against each other on scenes that chose nothing."""
VOTES = 16
OPTIONS = SamplingOptions(batch_size=16, channels_last=True, check_model=False)


class ToldOneLevel(TorchModel):
    """A network that is told the geometric mean of the levels everywhere; nothing of what is hidden."""

    def under(self, levels: np.ndarray | float) -> Adapter:
        """The same, told their mean."""
        levels = np.asarray(levels, dtype=np.float64)
        shown = np.isfinite(levels)
        with np.errstate(divide="ignore"):  # no noise at all
            mean = np.exp(np.log(levels[shown]).mean())
        return super().under(np.where(shown, mean, np.inf))


def models() -> dict[str, Model]:
    """The three that are compared."""
    return {
        "shipped": TorchModel(load_unet(), bounds=(0.0, 1.0), classes=len(CLASS_NAMES)),
        "told": TorchModel(load_unet(TOLD_CHECKPOINT), bounds=(0.0, 1.0), classes=len(CLASS_NAMES), told=True),
        "told, wrongly": ToldOneLevel(
            load_unet(TOLD_CHECKPOINT), bounds=(0.0, 1.0), classes=len(CLASS_NAMES), told=True
        ),
    }


def empty() -> np.ndarray:
    """A confusion matrix of nothing."""
    return np.zeros((len(CLASS_NAMES), len(CLASS_NAMES)), np.int64)


@dataclass
class Quality:
    """How good a smoothed classifier is over some scenes."""

    confusion: np.ndarray = field(default_factory=empty)
    read_right: np.ndarray = field(default_factory=empty)
    """Confusion if every digit that is found were taken for the one that it is."""
    misread: int = 0
    digits: int = 0

    def count(self, predicted: np.ndarray, label: np.ndarray) -> None:
        """Add a scene."""
        everywhere, classes = np.ones(label.shape, np.bool_), len(CLASS_NAMES)
        right = predicted.copy()
        places = np.zeros(label.shape, np.int32)
        digits = int(ndimage.label(label > 0, output=places))  # pyright: ignore[reportArgumentType]
        for place in range(1, digits + 1):
            digit = places == place
            read = predicted[digit & (predicted > 0)]
            self.misread += not read.size or np.bincount(read).argmax() != label[digit][0]
            # Wherever the outline is not met, too.
            around = np.asarray(ndimage.binary_dilation(digit, iterations=2), np.bool_)
            right[around & (predicted > 0)] = label[digit][0]
        self.digits += digits
        self.confusion += confusion_matrix(predicted, label, everywhere, classes)[:, :classes]
        self.read_right += confusion_matrix(right, label, everywhere, classes)[:, :classes]

    def __str__(self) -> str:
        """MIoU, recall averaged over the classes, and what reading costs."""
        there = self.confusion.sum(axis=1)
        recall = np.mean(np.diag(self.confusion)[there > 0] / there[there > 0])
        whole = f"{mean_iou(self.confusion):.3f}, {recall:.3f}"
        return f"{whole} ({self.misread} of {self.digits}, {mean_iou(self.read_right):.3f})"


def quality(model: Model, items: ItemSet, layout: GridLayout) -> Quality:
    """How good it is over all scenes."""
    # Nothing is certified: the plan is one with which it could be, and one sample of its second stage is drawn.
    plan, drawn = SamplingPlan(VOTES, 1024, 0, VOTES), SamplingPlan(VOTES, 1, 0, VOTES)
    settings = Settings(alpha=0.01, budgets=(0.0,))
    assignment = ArrayTask(model, items).assign(Smoothing(layout, plan, Gaussian()), settings, OPTIONS, None)
    tallies = sample_subject(assignment.subject, drawn, options=OPTIONS)
    found = Quality()
    for item in assignment.collect(tallies):
        assert item.label is not None
        found.count(item.votes.candidate.reshape(item.label.shape), item.label)
    return found


def in_windows(levels: tuple[float, float]) -> tuple[str, GridLayout]:
    """Levels on 3×4 cells that are shown with a margin, and how the table calls them."""
    name = f"{levels[0]:g} … {levels[1]:g}, windows with a margin of 8"
    return name, GridLayout((3, 4), *levels, window_margin=8, window_align=8)


def rows(matching: bool) -> list[tuple[str, GridLayout]]:
    """What is tried."""
    if matching:
        isotropic = [(f"isotropic {level:g}", GridLayout((1, 1), level, level)) for level in MATCHING[0]]
        return isotropic + [in_windows(levels) for levels in MATCHING[1]]
    whole = [(f"{near:g} … {far:g}", GridLayout((3, 4), near, far)) for near, far in LEVELS]
    return whole + [in_windows(levels) for levels in WINDOWS]


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scenes", type=int, default=48, help="how many")
    parser.add_argument("--seed", type=int, default=7, help="of the test scenes")
    parser.add_argument("--only", default="", help="rows whose name contains that")
    parser.add_argument("--model", help="one of the three alone")
    parser.add_argument("--matching", action="store_true", help="isotropic noise and windows")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    source = DigitScenes(Split.TEST, seed=asked.seed)
    compared = {name: model for name, model in models().items() if asked.model in (None, name)}
    made = [source.scene(index) for index in range(asked.scenes)]
    seen = ItemSet([Item(i, f"scene {i}", one.image, one.labels) for i, one in enumerate(made)], CLASS_NAMES)
    print("| levels | " + " | ".join(compared) + " |\n| --- |" + " --- |" * len(compared), flush=True)
    for name, layout in rows(asked.matching):
        if asked.only in name:
            cells = (str(quality(model, seen, layout)) for model in compared.values())
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
