"""What a large volume costs in memory and time, stage by stage.

    python benchmarks/volume.py [--outputs 100000 1000000 10000000]

One 3-D volume, a model of one 1x1x1 convolution into four classes, a grid of 4x4x4 cells with windows of 4 voxels
around them, 16 samples for candidates and 64 for votes, certified in one process without a run directory; each size in
a process of its own. Before the first stage the model, the volume and the layout are in place. In bytes an output: the
most memory that a stage needs on top of what its predecessors left, the most that the process holds above its start,
and what is left when the stage is over.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

import localsmooth as ls
from localsmooth.certificates.combined import OutputVotes, certify_outputs
from localsmooth.execution import sample
from localsmooth.sampling import SamplingOptions

Result = TypeVar("Result")

CLASSES, CELLS, MARGIN, SIGMA = 4, (4, 4, 4), 4, (0.2, 0.6)
PLAN = ls.SamplingPlan(16, 64, seed=0, chunk_size=16)
ALPHA, BUDGETS = 0.01, tuple(float(b) for b in np.linspace(0.0, 1.0, 11))


def memory(field: str) -> int:
    """VmRSS or VmHWM (the largest VmRSS since `forget`) of this process, in bytes; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


class Meter:
    """Prints a line for each stage."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        self.start = self.settle()

    def settle(self) -> int:
        """Give back what is free, and begin a new peak."""
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        return memory("VmRSS")

    def stage(self, name: str, work: Callable[[], Result]) -> Result:
        before = self.settle()
        started = time.perf_counter(), time.process_time()
        made = work()
        wall, own = time.perf_counter() - started[0], time.process_time() - started[1]
        peak = memory("VmHWM")
        after = self.settle()
        own_peak, whole, left = ((m) / self.outputs for m in (peak - before, peak - self.start, after - self.start))
        print(
            f"  {name:32s} {own_peak:8.1f} {whole:8.1f} {left:8.1f}   {wall:7.2f} s, {own:7.2f} s of processor time",
            flush=True,
        )
        return made


def array_bytes(*roots: Any) -> int:
    """Bytes of all arrays below some objects, each buffer once."""
    buffers: dict[int, int] = {}

    def visit(value: Any) -> None:
        if isinstance(value, np.ndarray):
            base = value
            while isinstance(base.base, np.ndarray):
                base = base.base
            buffers[id(base)] = base.nbytes
        elif is_dataclass(value):
            for field in fields(value):
                visit(getattr(value, field.name))
        elif isinstance(value, dict):
            for inner in value.values():
                visit(inner)

    for root in roots:
        visit(root)
    return sum(buffers.values())


def measure(outputs: int) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    side = round(outputs ** (1 / 3))
    shape = (side, side, side)
    network = nn.Sequential(nn.AvgPool3d(3, 1, 1), nn.Conv3d(1, CLASSES, 1)).eval()
    model = ls.TorchModel(network, bounds=(0.0, 1.0), classes=CLASSES)
    axis = np.linspace(0, 3 * np.pi, side, dtype=np.float32)
    volume = (0.5 + 0.5 * np.sin(axis)[:, None, None] * np.sin(axis)[:, None] * np.sin(axis))[None]
    layout = ls.layout.windowed(ls.layout.grid_layout(CELLS, shape, minimum=SIGMA[0], maximum=SIGMA[1]), MARGIN)
    options = SamplingOptions(batch_size=1, channels_last=False)
    print(f"\n{side}^3 = {volume.size} outputs, load {os.getloadavg()[0]:.1f}")
    print(f"  {'bytes an output':32s} {'stage':>8s} {'at most':>8s} {'left':>8s}")
    meter = Meter(volume.size)
    tallies = meter.stage(
        "sampling",
        lambda: sample(model, [volume], [layout], ls.Gaussian(), PLAN, options=options, executor=ls.SerialExecutor()),
    )
    tally = tallies[0]
    votes = OutputVotes(tally.candidate, tally.votes, tally.n, None, None, None)
    group = layout.outputs.labels.ravel()
    certified = meter.stage(
        "bounds and base certificates",
        lambda: certify_outputs(
            votes,
            ls.Gaussian(),
            layout.levels,
            group,
            alpha=ALPHA,
            certificates=(ls.certificates.GaussianVotes(),),
            simultaneous=ls.Bonferroni(),
            score_bound=ls.bounds.EmpiricalBernstein(),
        ),
    )
    base = certified.base
    kept = {"tallies": array_bytes(tally), "thresholds and predictions": array_bytes(base.eta, base.prediction)}
    shown = " + ".join(f"{size / volume.size:.1f} ({name})" for name, size in kept.items())
    print(f"  held on to: {shown} = {sum(kept.values()) / volume.size:.1f} bytes an output")
    print(f"  for the result besides: {array_bytes(certified.lower) / volume.size:.1f} (lower bounds)")
    curve = meter.stage(
        "collective problem, 11 budgets",
        lambda: ls.solve(ls.Problem(base.weights, base.eta, base.group, ls.Ball(BUDGETS, 2), base.eta > 0)).certified,
    )
    print(f"  certified: {curve.tolist()}")
    del tallies, tally, votes, group, certified, base
    meter.stage(
        "everything, with the result",
        lambda: ls.certify(
            ls.ArrayTask(model, [volume]),
            ls.Smoothing(layout, PLAN),
            ls.Settings(ALPHA, BUDGETS),
            run=ls.Run(options=options, executor="serial"),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    arguments = parser.parse_args()
    if len(arguments.outputs) == 1:
        measure(arguments.outputs[0])
        return
    for outputs in arguments.outputs:
        subprocess.run([sys.executable, __file__, "--outputs", str(outputs)], check=True)


if __name__ == "__main__":
    main()
