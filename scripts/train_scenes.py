"""Train the U-Net of the embedded default with Gaussian noise, and measure it on held-out scenes.

    python scripts/train_scenes.py                    # train, write the checkpoint, evaluate
    python scripts/train_scenes.py --evaluate-only --sigma-min 0.25 --sigma-max 1.0

The checkpoint in the package was trained with the default options.

The noise is that of the certification: isotropic, or localized on a 3×4 grid of cells, where the level is
``sigma_min`` in one cell, the focus, and grows linearly with the Chebyshev distance between cells. Levels are drawn
anew for every sample, so that one network suits many levels; `localsmooth.training` trains for one level matrix.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import save_file
from torch import Tensor, nn

from localsmooth.layout import Grid, chebyshev
from localsmooth.metrics import accuracy, confusion_matrix, mean_iou
from localsmooth.scenes import CHECKPOINT, CLASS_NAMES, SCENE_SHAPE, DigitScenes, Split, UNet, load_unet

GRID = Grid((3, 4))


def cell_geometry() -> tuple[Int[Tensor, "height width"], Float[Tensor, "cells cells"]]:
    """Cell of every pixel, and the Chebyshev distance between each two cells."""
    cells = GRID.partition(SCENE_SHAPE).labels
    return torch.from_numpy(cells.astype(np.int64)), torch.from_numpy(chebyshev(GRID.positions())).float()


def localized_levels(
    focus: Int[Tensor, "batch"], sigma_min: Float[Tensor, "batch"], sigma_max: Float[Tensor, "batch"]
) -> Float[Tensor, "batch 1 height width"]:
    """Noise level of every pixel: ``sigma_min`` in the focus, ``sigma_max`` at the grid's greatest distance from it."""
    cells, distances = cell_geometry()
    fraction = (distances / distances.max())[focus]
    levels = sigma_min[:, None] + (sigma_max - sigma_min)[:, None] * fraction
    return levels[:, cells][:, None]


def training_noise(
    batch: int, sigma_min: float, sigma_max: float, generator: torch.Generator
) -> tuple[Float[Tensor, "batch 1 height width"], Float[Tensor, "batch height width"]]:
    """Noise for one batch, a third isotropic and the rest localized, and the weight of every pixel's loss."""
    n_isotropic = batch // 3
    n_localized = batch - n_isotropic
    isotropic = torch.rand(n_isotropic, generator=generator) * 1.3 * sigma_min
    near = (0.5 + 0.7 * torch.rand(n_localized, generator=generator)) * sigma_min
    far = near + torch.rand(n_localized, generator=generator) * (1.2 * sigma_max - near)
    focus = torch.randint(GRID.count, (n_localized,), generator=generator)
    levels = torch.cat([isotropic[:, None, None, None].expand(-1, 1, *SCENE_SHAPE), localized_levels(focus, near, far)])
    # Outside the focus nothing is predicted in use, but there is signal to learn from while the noise is weak.
    cells, _ = cell_geometry()
    inside = cells == focus[:, None, None]
    weights = torch.cat([torch.ones(n_isotropic, *SCENE_SHAPE), torch.where(inside, 4.0, 0.1)])
    return levels * torch.randn(levels.shape, generator=generator), weights


def train(arguments: argparse.Namespace) -> UNet:
    """Train from scratch; the same arguments give the same network on the same machine."""
    torch.manual_seed(arguments.seed)
    generator = torch.Generator().manual_seed(arguments.seed)
    started = time.perf_counter()
    images, labels = (
        torch.from_numpy(array)
        for array in DigitScenes(Split.TRAIN, arguments.seed).stack(range(arguments.training_scenes))
    )
    print(f"{len(images)} training scenes drawn in {time.perf_counter() - started:.0f} s", flush=True)
    network = UNet(batch_norm=True).to(memory_format=torch.channels_last).train()  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=arguments.learning_rate, total_steps=arguments.steps, pct_start=0.15
    )
    loss_of = nn.CrossEntropyLoss(reduction="none")
    running = 0.0
    for step in range(1, arguments.steps + 1):
        chosen = torch.randint(len(images), (arguments.batch,), generator=generator)
        noise, weights = training_noise(arguments.batch, arguments.sigma_min, arguments.sigma_max, generator)
        # Under full noise from the start the network only learns that most pixels are background.
        strength = min(1.0, step / (0.4 * arguments.steps))
        noisy = (images[chosen] + strength * noise).contiguous(memory_format=torch.channels_last)
        loss = (loss_of(network(noisy), labels[chosen]) * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item()
        if step % arguments.report_every == 0:
            seconds = time.perf_counter() - started
            print(f"step {step}, loss {running / arguments.report_every:.4f}, {seconds:.0f} s", flush=True)
            running = 0.0
    return network.fused()


@torch.inference_mode()
def majority_vote(
    network: nn.Module, image: Float[Tensor, "1 height width"], levels: Tensor, samples: int, generator: torch.Generator
) -> Int[Tensor, "height width"]:
    """Most frequent label of each pixel over Gaussian noise of the given levels."""
    noise = levels * torch.randn(samples, *image.shape, generator=generator)
    votes = network(image + noise).argmax(dim=1)
    return nn.functional.one_hot(votes, len(CLASS_NAMES)).sum(dim=0).argmax(dim=-1)


def evaluate(network: nn.Module, arguments: argparse.Namespace, split: Split) -> None:
    """Print clean mIoU and mIoU of single noisy predictions and of majority votes, isotropic and localized."""
    network = network.eval().to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    generator = torch.Generator().manual_seed(arguments.seed)
    images, labels = DigitScenes(split, seed=1).stack(range(arguments.test_scenes))
    sigma_min, sigma_max = torch.tensor([arguments.sigma_min]), torch.tensor([arguments.sigma_max])
    cells, _ = cell_geometry()
    with torch.inference_mode():
        clean = network(torch.from_numpy(images)).argmax(dim=1).numpy()
    single, isotropic, localized = (np.zeros_like(labels) for _ in range(3))
    for i, image in enumerate(torch.from_numpy(images)):
        single[i] = majority_vote(network, image, sigma_min, 1, generator).numpy()
        isotropic[i] = majority_vote(network, image, sigma_min, arguments.samples, generator).numpy()
        for focus in range(GRID.count):
            levels = localized_levels(torch.tensor([focus]), sigma_min, sigma_max)
            vote = majority_vote(network, image, levels, arguments.samples, generator)
            localized[i][cells == focus] = vote[cells == focus].numpy()
    print(f"{split.value}: {len(images)} scenes, {arguments.samples} samples a vote")
    for name, predicted in (
        ("clean", clean),
        (f"one sample, isotropic {arguments.sigma_min}", single),
        (f"majority vote, isotropic {arguments.sigma_min}", isotropic),
        (f"majority vote, localized {arguments.sigma_min} to {arguments.sigma_max}", localized),
    ):
        counted = np.ones(labels.shape, dtype=bool)
        miou = mean_iou(confusion_matrix(predicted, labels, counted, len(CLASS_NAMES)))
        print(f"  {name}: mIoU {miou:.3f}, accuracy {accuracy(predicted, labels, counted):.4f}", flush=True)


def main() -> None:
    """Train and evaluate, or only evaluate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sigma-min", type=float, default=0.35)
    parser.add_argument("--sigma-max", type=float, default=1.4)
    parser.add_argument("--steps", type=int, default=2600)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=6e-3)
    parser.add_argument("--training-scenes", type=int, default=8000)
    parser.add_argument("--test-scenes", type=int, default=32)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--report-every", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, default=CHECKPOINT)
    parser.add_argument("--evaluate-only", action="store_true", help="evaluate the checkpoint as it is")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.evaluate_only:
        network = train(arguments)
        weights = {name: value.contiguous() for name, value in network.state_dict().items()}
        save_file(weights, arguments.checkpoint)
    network = load_unet(arguments.checkpoint)
    print(f"{sum(parameter.numel() for parameter in network.parameters())} parameters", flush=True)
    for split in (Split.VALIDATION, Split.TEST):
        evaluate(network, arguments, split)


if __name__ == "__main__":
    main()
