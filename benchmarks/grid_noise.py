"""Time of noise on a grid beside floating point noise: the draw alone, and the draw with the demonstration's U-Net.

    python benchmarks/grid_noise.py [--repeats 15] [--grids 255 1020]

Every repeat times all contestants in turn, on one thread and in processor time, so that a busy machine slows them
alike; ratios are taken within a repeat, and medians over the repeats are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from localsmooth.layout import grid_layout
from localsmooth.noise import Gaussian, PreparedNoise, Randomness
from localsmooth.scenes import UNet

SHAPE = (64, 96)
BATCH = 32
GROUP = 7  # in the middle of the picture


def contestants(noise: Gaussian) -> tuple[Callable[[], object], Callable[[], object]]:
    """The draw of a batch, and the draw with the forward pass."""
    levels = grid_layout((3, 5), SHAPE, minimum=0.15, maximum=1.0).level_map(GROUP)
    item = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, *SHAPE)) / 255).float()
    prepared: PreparedNoise = noise.prepare(item, levels, (0.0, 1.0), 0.5)
    batch, stream = torch.empty(BATCH, 1, *SHAPE), Randomness(0, (0,))
    torch.manual_seed(0)
    network = UNet(width=16).eval()

    def draw() -> None:
        prepared.draw(batch, stream)

    def both() -> None:
        draw()
        network(batch)

    return draw, both


def seconds(work: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times / BATCH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--grids", type=int, nargs="+", default=[255, 1020], help="steps from 0 to 1")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    every = {"floating point": contestants(Gaussian())}
    for steps in arguments.grids:
        started = time.process_time()
        every[f"grid 1/{steps}"] = contestants(Gaussian(grid=1 / steps))
        print(f"grid 1/{steps}: tables and setting up took {time.process_time() - started:.2f} s, once for a run")
    draws: dict[str, list[float]] = {name: [] for name in every}
    whole: dict[str, list[float]] = {name: [] for name in every}
    with torch.inference_mode():
        for _ in range(arguments.repeats):
            for name, (draw, both) in every.items():
                draws[name].append(seconds(draw, 4))
                whole[name].append(seconds(both, 1))
    first = next(iter(every))
    for name in every:
        alone, together = (
            statistics.median(a / b for a, b in zip(times[name], times[first], strict=True)) for times in (draws, whole)
        )
        print(
            f"{name:16s} draw {1e3 * statistics.median(draws[name]):.3f} ms an image ({alone:.2f}×), "
            f"with the forward pass {1e3 * statistics.median(whole[name]):.3f} ms ({together:.3f}×)"
        )


if __name__ == "__main__":
    main()
