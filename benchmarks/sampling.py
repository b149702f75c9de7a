"""Images per second of the sampling engine beside the bare forward pass and beside a plain loop.

    python benchmarks/sampling.py [--repeats 5] [--threads 2] [--large-images 32]

Every repeat times all contestants in turn, and ratios are taken within a repeat, so that a busy machine slows them
alike; medians over the repeats are printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from localsmooth.layout import Layout, grid_layout, isotropic_layout, windowed
from localsmooth.models import TorchModel
from localsmooth.noise import Gaussian
from localsmooth.sampling import DirectoryStore, SamplingOptions, SamplingPlan, calibrate, sample
from localsmooth.scenes import UNet

SIGMA = (0.15, 1.0)
CELLS = (3, 5)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def forward(model: TorchModel, shape: tuple[int, ...], batch_size: int, images: int) -> None:
    """The model alone, on the same numbers again and again."""
    batch = torch.rand(batch_size, *shape)
    with torch.inference_mode():
        for start in range(0, images, batch_size):
            model(batch[: images - start])


def engine(model: TorchModel, item: torch.Tensor, layout: Layout, batch_size: int, images: int) -> None:
    """All of `sample` but the calibration, with a store on the disk: `images` samples over all groups and stages."""
    per_group = images // layout.outputs.count
    plan = SamplingPlan(max(1, per_group // 10), per_group - max(1, per_group // 10))
    options = SamplingOptions(batch_size=batch_size, channels_last=model.channels_last, check_model=False)
    with tempfile.TemporaryDirectory() as folder, DirectoryStore(folder) as store:
        sample(model, [item], [layout], Gaussian(), plan, store, options=options)


def plain_loop(model: TorchModel, item: torch.Tensor, layout: Layout, images: int, batch_size: int = 64) -> None:
    """What one writes first: whole images, argmax of everything, one-hot votes, a fixed batch size."""
    for group in range(layout.outputs.count):
        sigma = torch.as_tensor(layout.level_map(group), dtype=torch.float32)
        counts = torch.zeros(*layout.outputs.shape, model.classes, dtype=torch.int64)
        left = images // layout.outputs.count
        with torch.inference_mode():
            while left:
                size = min(batch_size, left)
                noisy = item + sigma * torch.randn(size, *item.shape)
                labels = model(noisy).argmax(dim=1)
                counts += torch.nn.functional.one_hot(labels, model.classes).sum(dim=0)
                left -= size


def compare(name: str, width: int, shape: tuple[int, int], images: int, repeats: int) -> None:
    module = UNet(width=width).eval()
    model = TorchModel(module, bounds=(0.0, 1.0), classes=11)
    item = torch.rand(1, *shape)
    grid = grid_layout(CELLS, shape, minimum=SIGMA[0], maximum=SIGMA[1])
    window = windowed(grid, margin=8, align=8)
    parameters = sum(p.numel() for p in module.parameters())
    print(
        f"\n{name}: U-Net of width {width} ({parameters:,} parameters), {shape[0]}x{shape[1]}, {images} images a repeat"
    )

    whole = calibrate(model, (1, *shape), seconds=20.0, largest=64)
    print(f"  whole images: {whole.summary()}")
    crop = window.view(7).inputs
    assert crop is not None
    window_shape = tuple(s.stop - s.start for s in crop)
    cropped = calibrate(model, (1, *window_shape), seconds=10.0, largest=128)
    print(f"  windows of {window_shape[0]}x{window_shape[1]}: {cropped.summary()}")
    assert isinstance(whole.model, TorchModel)
    assert isinstance(cropped.model, TorchModel)
    fast, size = whole.model, whole.batch_size.samples
    fast_crop, crop_size = cropped.model, cropped.batch_size.samples

    isotropic = isotropic_layout(SIGMA[0], shape, shape)
    contestants: dict[str, Callable[[], object]] = {
        "bare forward pass": lambda: forward(fast, (1, *shape), size, images),
        "engine, one group": lambda: engine(fast, item, isotropic, size, images),
        "engine, 3x5 grid": lambda: engine(fast, item, grid, size, images),
        "bare forward pass, windows": lambda: forward(fast_crop, (1, *window_shape), crop_size, images),
        "engine, 3x5 grid, windows": lambda: engine(fast_crop, item, window, crop_size, images),
        "plain loop, 3x5 grid, batch 64": lambda: plain_loop(model, item, grid, images),
    }
    taken: dict[str, list[float]] = {key: [] for key in contestants}
    for repeat in range(repeats + 1):
        for key, work in contestants.items():
            duration = seconds(work)
            if repeat:  # the first round warms up
                taken[key].append(duration)
    for key, durations in taken.items():
        print(f"  {key:32s} {images / statistics.median(durations):9.1f} images/s")

    def ratio(numerator: str, denominator: str) -> float:
        return statistics.median(a / b for a, b in zip(taken[numerator], taken[denominator], strict=True))

    print(f"  engine / forward, one group:   {ratio('engine, one group', 'bare forward pass'):.3f} of its time")
    print(f"  engine / forward, 3x5 grid:    {ratio('engine, 3x5 grid', 'bare forward pass'):.3f} of its time")
    speedup = ratio("plain loop, 3x5 grid, batch 64", "engine, 3x5 grid, windows")
    print(f"  windows and calibration against the plain loop: {speedup:.2f}x the images/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--small-images", type=int, default=960)
    parser.add_argument("--large-images", type=int, default=60)
    arguments = parser.parse_args()
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    compare("small", 16, (64, 96), arguments.small_images, arguments.repeats)
    compare("large", 72, (192, 256), arguments.large_images, arguments.repeats)


if __name__ == "__main__":
    main()
