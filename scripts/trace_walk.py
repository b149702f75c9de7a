"""Print which files of the package an image and a graph walk through, from `certify` to the written report.

Run `python scripts/trace_walk.py`, or with `--rooms` for one line per room. A file counts as entered when a function of
it runs: what is imported beforehand, or imported and not called, does not count.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import pkgutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import localsmooth as ls
from localsmooth import graphs as lg

ROOT = Path(ls.__file__).parent


class Brightness(torch.nn.Module):
    """Two classes, dark and bright, by the mean of each pixel's neighbourhood."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return scores of shape batch × 2 × height × width."""
        mean = torch.nn.functional.avg_pool2d(batch, 3, stride=1, padding=1, count_include_pad=False)
        return torch.cat([0.5 - mean, mean - 0.5], dim=1)


def image() -> tuple[ls.ArrayTask, ls.Smoothing, Any]:
    """One picture of 8 × 12 pixels, bright on one side, on two cells."""
    picture = np.where(np.arange(12) < 6, 0.1, 0.9) * np.ones((1, 8, 1))
    model = ls.TorchModel(Brightness().eval(), bounds=(0, 1), classes=2)
    task = ls.ArrayTask(model, picture[None], (picture > 0.5).astype(np.int64))
    smoothing = ls.Smoothing(ls.GridLayout((1, 2), minimum=0.2, maximum=1.0), ls.SamplingPlan(20, 500))
    return task, smoothing, ls.Settings(alpha=0.01, budgets=[0.0, 0.2, 0.4])


def graph() -> tuple[lg.GraphTask, ls.Smoothing, Any]:
    """Sixty handwritten digits, joined to those that look alike, on two clusters."""
    digits = lg.digit_graph(per_digit=6)
    clusters = lg.spectral_clusters(digits, 2)
    layout = lg.cluster_layout(clusters, digits.adjacency, addition=(0.05, 0.05), deletion=(0.5, 0.8))
    split = lg.split_per_class(digits.labels, per_class=2)
    network = lg.APPNP(digits.width, digits.classes)
    lg.train_with_noise(network, digits, split, layout, lg.NodeTrainingOptions(learning_rate=0.01, epochs=60))
    task = lg.GraphTask(lg.NetworkClassifier(network), digits, split.test)
    settings = lg.GraphSettings(alpha=0.01, additions=range(2), deletions=range(4))
    return task, ls.Smoothing(layout, ls.SamplingPlan(50, 1000)), settings


def entered(walk: Callable[[], None]) -> list[str]:
    """Files of the package in which a function ran during the walk, in the order in which they were entered."""
    order: dict[str, None] = {}
    prefix = f"{ROOT}{os.sep}"

    def note(frame: FrameType, event: str, argument: object) -> None:
        del argument
        code = frame.f_code
        # Bodies of modules and of classes run when something is imported.
        if event != "call" or not code.co_flags & inspect.CO_NEWLOCALS:
            return
        if code.co_filename.startswith(prefix) and code.co_filename.endswith(".py"):
            order.setdefault(code.co_filename.removeprefix(prefix))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(order)


def rooms(files: Sequence[str]) -> dict[str, list[str]]:
    """Files by room, both in the order in which they were entered; a task's folder is a room of its own."""
    found: dict[str, list[str]] = {}
    for file in files:
        room, _, name = file.rpartition("/")
        found.setdefault(room or "(top)", []).append(name)
    return found


def walked(make: Callable[[], tuple[Any, ls.Smoothing, Any]]) -> list[str]:
    """Certify and report in a temporary directory."""
    task, smoothing, settings = make()
    with tempfile.TemporaryDirectory() as folder:

        def walk() -> None:
            result = ls.certify(task, smoothing, settings, run=ls.Run(f"{folder}/run", progress=ls.NoProgress()))
            ls.write_report(result, f"{folder}/report.html")

        return entered(walk)


def import_everything() -> None:
    """Import all modules whose own requirements are installed, so that no import happens on the way."""
    for module in pkgutil.walk_packages([str(ROOT)], "localsmooth."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ImportError:
            continue


def main() -> None:
    """Trace both walks and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", action="store_true", help="one line per room instead of one per file")
    shown = parser.parse_args()
    torch.set_num_threads(1)  # the same files on every machine: more threads copy the model
    import_everything()
    for name, make in (("image", image), ("graph", graph)):
        files = walked(make)
        print(f"{name}: {len(files)} files entered")
        if shown.rooms:
            for room, names in rooms(files).items():
                print(f"  {room} ({len(names)}): {', '.join(names)}")
        else:
            print("".join(f"  {number:3d} {file}\n" for number, file in enumerate(files, 1)), end="")


if __name__ == "__main__":
    main()
