"""Images per second of the sampling engine beside the bare forward pass and beside a plain loop.

    python benchmarks/sampling.py [--repeats 5] [--threads 2] [--cpu-time]

Every repeat times all contestants in turn, and ratios are taken within a repeat, so that a busy machine slows them
alike; medians over the repeats are printed. With --cpu-time, one thread works and its processor time is measured in
place of the time on the wall: for machines that are busy otherwise.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from localsmooth.execution import sample
from localsmooth.layout import Layout, grid_layout, isotropic_layout, windowed
from localsmooth.models import TorchModel
from localsmooth.noise import Gaussian
from localsmooth.runs import DirectoryStore, SamplingPlan
from localsmooth.sampling import SamplingOptions, calibrate
from localsmooth.scenes import UNet

SIGMA = (0.15, 1.0)
CELLS = (3, 5)
FORWARD = "bare forward pass"
Clock = Callable[[], float]


def forward(model: TorchModel, shape: tuple[int, ...], batch_size: int, images: int) -> None:
    """The model alone, on the same numbers again and again."""
    batch = torch.rand(batch_size, *shape)
    with torch.inference_mode():
        for start in range(0, images, batch_size):
            model(batch[: images - start])


def engine(model: TorchModel, item: torch.Tensor, layout: Layout, batch_size: int, images: int) -> None:
    """All of `sample` but the calibration, with a store on the disk: `images` samples over all groups and stages."""
    per_group = images // layout.outputs.count
    candidate = min(64, per_group // 2)
    # Chunks as long runs have them: many in each stage, so that every core has one.
    plan = SamplingPlan(candidate, per_group - candidate, chunk_size=max(1, min(128, per_group // 8)))
    options = SamplingOptions(batch_size=batch_size, channels_last=model.channels_last, check_model=False)
    with tempfile.TemporaryDirectory() as folder, DirectoryStore(folder) as store:
        sample(model, [item], [layout], Gaussian(), plan, store, options=options)


def plain_loop(model: TorchModel, item: torch.Tensor, layout: Layout, images: int, batch_size: int = 64) -> None:
    """What one writes first, for one output group: whole images, argmax of everything, one-hot votes, a fixed batch."""
    sigma = torch.as_tensor(layout.level_map(0), dtype=torch.float32)
    counts = torch.zeros(*layout.outputs.shape, model.classes, dtype=torch.int64)
    with torch.inference_mode():
        for _ in range(0, images, batch_size):
            noisy = item + sigma * torch.randn(batch_size, *item.shape)
            labels = model(noisy).argmax(dim=1)
            counts += torch.nn.functional.one_hot(labels, model.classes).sum(dim=0)


def compare(name: str, width: int, shape: tuple[int, int], per_group: int, repeats: int, clock: Clock) -> None:
    module = UNet(width=width).eval()
    model = TorchModel(module, bounds=(0.0, 1.0), classes=11)
    item = torch.rand(1, *shape)
    grid = grid_layout(CELLS, shape, minimum=SIGMA[0], maximum=SIGMA[1])
    window = windowed(grid, margin=8, align=8)
    parameters = sum(p.numel() for p in module.parameters())
    print(f"\n{name}: U-Net of width {width}, {parameters:,} parameters, images of {shape[0]}x{shape[1]}")

    whole = calibrate(model, (1, *shape), seconds=20.0, largest=64, clock=clock)
    print(f"  whole images: {whole.summary()}")
    crop = window.view(7).inputs
    assert crop is not None
    window_shape = tuple(s.stop - s.start for s in crop)
    cropped = calibrate(model, (1, *window_shape), seconds=10.0, largest=128, clock=clock)
    print(f"  windows of {window_shape[0]}x{window_shape[1]}: {cropped.summary()}")
    assert isinstance(whole.model, TorchModel)
    assert isinstance(cropped.model, TorchModel)
    fast, size = whole.model, whole.batch_size.samples
    fast_crop, crop_size = cropped.model, cropped.batch_size.samples

    isotropic = isotropic_layout(SIGMA[0], shape, shape)
    few, many = 4 * per_group, grid.outputs.count * per_group
    contestants: dict[str, tuple[int, Callable[[int], object]]] = {
        FORWARD: (few, lambda n: forward(fast, (1, *shape), size, n)),
        "engine, one group": (few, lambda n: engine(fast, item, isotropic, size, n)),
        "engine, 3x5 grid": (many, lambda n: engine(fast, item, grid, size, n)),
        "bare forward pass, windows": (many, lambda n: forward(fast_crop, (1, *window_shape), crop_size, n)),
        "engine, 3x5 grid, windows": (many, lambda n: engine(fast_crop, item, window, crop_size, n)),
        "plain loop, batch 64": (64 * max(1, few // 64), lambda n: plain_loop(model, item, grid, n)),
    }
    per_image: dict[str, list[float]] = {key: [] for key in contestants}
    for _ in range(repeats):
        for key, (images, work) in contestants.items():
            started = clock()
            work(images)
            per_image[key].append((clock() - started) / images)
    for key, durations in per_image.items():
        print(f"  {key:32s} {1 / statistics.median(durations):9.1f} images/s")

    def ratio(numerator: str, denominator: str) -> float:
        return statistics.median(a / b for a, b in zip(per_image[numerator], per_image[denominator], strict=True))

    print(f"  time of the engine / of the bare forward pass, one group: {ratio('engine, one group', FORWARD):.3f}")
    print(f"  time of the engine / of the bare forward pass, 3x5 grid:  {ratio('engine, 3x5 grid', FORWARD):.3f}")
    speedup = ratio("plain loop, batch 64", "engine, 3x5 grid, windows")
    print(f"  images/s of engine, windows and calibration / of the plain loop: {speedup:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--small", type=int, default=256, help="samples per output group with the small network")
    parser.add_argument("--large", type=int, default=8, help="samples per output group with the large network")
    arguments = parser.parse_args()
    threads = 1 if arguments.cpu_time else arguments.threads
    if threads is not None:
        torch.set_num_threads(threads)
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    kind = "processor" if arguments.cpu_time else "wall"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {kind} time")
    compare("small", 16, (64, 96), arguments.small, arguments.repeats, clock)
    compare("large", 72, (192, 256), arguments.large, arguments.repeats, clock)


if __name__ == "__main__":
    main()
