"""Train one U-Net for all layouts on digit scenes: it is told the noise, whichever that is.

    python scripts/train_told_scenes.py --out runs/told_unet.safetensors
    python scripts/train_told_scenes.py --untold --out runs/untold_unet.safetensors     # the same without the channel

Layouts are drawn anew for every sample: the grid, the cell whose outputs count, the levels near and far and how they
grow; some samples are isotropic, without noise, or hide what is far, and some batches show windows only.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file, save_file
from torch import nn

from localsmooth.models import encoded_levels
from localsmooth.scenes import SCENE_SHAPE, DigitScenes, Split, UNet

_MOST_CELLS = (5, 6)
_STRIDE = 8


@dataclass(frozen=True)
class Drawn:
    """Noise levels of a batch, inf where hidden, and whose outputs count."""

    levels: Float[np.ndarray, "batch height width"]
    own: Bool[np.ndarray, "batch height width"]
    cells: Float[np.ndarray, " batch"]


def draw_layouts(batch: int, generator: np.random.Generator) -> Drawn:
    """Draw a layout, one of its cells, and the levels that it sees, for every sample."""
    isotropic = generator.random(batch) < 0.25
    near = np.exp(generator.uniform(math.log(0.08), math.log(0.6), batch))
    near = np.where(isotropic, np.exp(generator.uniform(math.log(0.06), math.log(1.1), batch)), near)
    far = np.minimum(near * np.exp(generator.uniform(0, math.log(5), batch)), np.maximum(1.6, near))
    power = np.where(generator.random(batch) < 0.6, 1.0, generator.uniform(0.5, 2.0, batch))
    farther = np.zeros((batch, *SCENE_SHAPE))  # from the cell whose outputs count, in cells
    most = np.zeros(batch)
    cells = np.ones(batch)
    place: list[np.ndarray] = []
    for axis, (size, largest) in enumerate(zip(SCENE_SHAPE, _MOST_CELLS, strict=True)):
        count = np.where(isotropic, 1, generator.integers(1, largest + 1, batch))
        own = generator.integers(0, count)
        index = np.arange(size) * count[:, None] // size
        away = np.abs(index - own[:, None])
        farther = np.maximum(farther, away[:, :, None] if axis == 0 else away[:, None, :])
        most, cells = np.maximum(most, count - 1), cells * count
        place.append(index)
    fraction = (farther / np.maximum(most, 1)[:, None, None]) ** power[:, None, None]
    levels = near[:, None, None] + (far - near)[:, None, None] * fraction
    # Levels that follow no rule, as measured or tuned ones.
    uneven = np.exp(np.where(generator.random((batch, 1, 1)) < 0.2, 0.4, 0.0) * generator.normal(size=(batch, 5, 6)))
    levels = levels * uneven[np.arange(batch)[:, None, None], place[0][:, :, None], place[1][:, None, :]]
    levels[generator.random(batch) < 0.03] = 0.0
    hides = (generator.random(batch) < 0.08)[:, None, None] & (farther > generator.integers(0, 2, batch)[:, None, None])
    return Drawn(np.where(hides, np.inf, levels), farther == 0, cells)


def windows(own: Bool[np.ndarray, "batch height width"], generator: np.random.Generator) -> list[tuple[slice, slice]]:
    """For every sample a window of one size that shows some of the outputs that count, at multiples of the stride."""
    sizes = [int(generator.integers(3, size // _STRIDE + 1)) * _STRIDE for size in SCENE_SHAPE]
    made: list[tuple[slice, slice]] = []
    for mask in own:
        centre = [int(np.median(axis)) for axis in np.nonzero(mask)]
        crop: list[slice] = []
        for middle, size, whole in zip(centre, sizes, SCENE_SHAPE, strict=True):
            first, last = max(0, middle - size + 1), min(whole - size, middle)
            start = int(generator.integers(-(-first // _STRIDE), last // _STRIDE + 1)) * _STRIDE
            crop.append(slice(start, start + size))
        made.append((crop[0], crop[1]))
    return made


def deformed(
    images: Float[torch.Tensor, "batch 1 height width"],
    labels: Int[torch.Tensor, "batch height width"],
    generator: torch.Generator,
) -> tuple[Float[torch.Tensor, "batch 1 height width"], Int[torch.Tensor, "batch height width"]]:
    """Turn, stretch and shear every scene a little: there are a thousand digits to learn from."""

    def between(largest: float) -> torch.Tensor:
        return (2 * torch.rand(len(images), generator=generator) - 1) * largest

    angle, shear = between(0.2), between(0.2)
    tall, wide = 1 + between(0.15), 1 + between(0.15)
    height, width = SCENE_SHAPE
    ratio = height / width
    # Coordinates of grid_sample run from −1 to 1 along both axes, whatever their lengths are.
    first = torch.stack([wide * angle.cos(), ratio * (shear - angle.sin()), between(0.1)], dim=1)
    second = torch.stack([angle.sin() / ratio, tall * angle.cos(), between(0.1)], dim=1)
    grid = nn.functional.affine_grid(torch.stack([first, second], dim=1), list(images.shape), align_corners=False)
    moved = nn.functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    truth = nn.functional.grid_sample(
        labels[:, None].float(), grid, mode="nearest", padding_mode="reflection", align_corners=False
    )
    return moved, truth[:, 0].long()


def train(arguments: argparse.Namespace) -> UNet:
    """Train; the same arguments give the same network on the same machine."""
    torch.manual_seed(arguments.seed)
    generator = np.random.default_rng(arguments.seed)
    noise_generator = torch.Generator().manual_seed(arguments.seed)
    started = time.perf_counter()
    images, labels = (
        torch.from_numpy(array)
        for array in DigitScenes(Split.TRAIN, arguments.scenes_seed).stack(range(arguments.training_scenes))
    )
    print(f"{len(images)} training scenes drawn in {time.perf_counter() - started:.0f} s", flush=True)
    network = UNet(channels=1 if arguments.untold else 2, batch_norm=arguments.start is None)
    if arguments.start is not None:
        network.load_state_dict(load_file(arguments.start))
    network = network.to(memory_format=torch.channels_last).train()  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=arguments.learning_rate, total_steps=arguments.steps, pct_start=0.15
    )
    loss_of = nn.CrossEntropyLoss(reduction="none")
    running = 0.0
    for step in range(1, arguments.steps + 1):
        chosen = torch.randint(len(images), (arguments.batch,), generator=noise_generator)
        drawn = draw_layouts(arguments.batch, generator)
        # Under full noise from the start the network only learns that most pixels are background.
        levels = drawn.levels * (1.0 if arguments.start else min(1.0, step / (0.3 * arguments.steps)))
        clean, truth = images[chosen], labels[chosen]
        if arguments.deform:
            clean, truth = deformed(clean, truth, noise_generator)
        told = torch.from_numpy(encoded_levels(levels, (0.0, 1.0)))[:, None]
        hidden = torch.from_numpy(np.isinf(levels))[:, None]
        scale = torch.from_numpy(np.where(np.isinf(levels), 0.0, levels).astype(np.float32))[:, None]
        noisy = torch.where(hidden, 0.5, clean)
        noisy = noisy + scale * torch.randn(noisy.shape, generator=noise_generator)
        inputs = noisy if arguments.untold else torch.cat([noisy, told], dim=1)
        # Outside its cell nothing is predicted in use, but there is signal to learn from while the noise is weak.
        inside = torch.from_numpy(np.clip(drawn.cells / 3, 1, 8).astype(np.float32))[:, None, None]
        weights = torch.where(torch.from_numpy(drawn.own), inside, 0.1) * ~hidden[:, 0]
        if generator.random() < 0.25:
            crops = windows(drawn.own, generator)
            inputs, truth, weights = (
                torch.stack([one[..., rows, columns] for one, (rows, columns) in zip(every, crops, strict=True)])
                for every in (inputs, truth, weights)
            )
        scores = network(inputs.contiguous(memory_format=torch.channels_last))
        loss = (loss_of(scores, truth) * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item()
        if step % arguments.report_every == 0:
            seconds = time.perf_counter() - started
            print(f"step {step}, loss {running / arguments.report_every:.4f}, {seconds:.0f} s", flush=True)
            running = 0.0
            keep(network.fused(), arguments.out)
            network.train()
    return network.fused()


def keep(network: nn.Module, path: Path) -> None:
    """Write the weights."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, path)


def main() -> None:
    """Train, and write the weights: now and then, and at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=6e-3)
    parser.add_argument("--training-scenes", type=int, default=12000)
    parser.add_argument("--report-every", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenes-seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="weights to go on from, without batch normalisation")
    parser.add_argument("--deform", action="store_true", help="turn, stretch and shear the scenes")
    parser.add_argument("--untold", action="store_true", help="without the channel of levels")
    parser.add_argument("--out", type=Path, default=Path("runs/told_unet.safetensors"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    keep(train(arguments), arguments.out)


if __name__ == "__main__":
    main()
