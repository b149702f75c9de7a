"""Train the networks of the comparison on digit scenes, one for every noise.

    python experiments/digit_scenes/train.py --out runs/digit_scenes/models

Each is the network that comes with the package, trained further with exactly the noise under which it is certified. A
run that was killed goes on where it stopped; a network that is finished is not trained again.

The softly local networks are only trained with --soft: the network that comes with the package was trained on noise of
this kind already, two further epochs leave its noisy mIoU on validation scenes where it was (.844 to .845 at (.1, .5),
.791 to .791 at (.15, 1)), and the comparison uses it as it is.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from localsmooth.layout import GridLayout
from localsmooth.noise import Gaussian
from localsmooth.scenes import DigitScenes, Split, load_unet
from localsmooth.training import GroupNoise, OneGroup, TrainingOptions, one_cycle, train

EQUAL = (0.1, 0.2, 0.3, 0.45, 0.7, 1.0)
SOFT = ((0.1, 0.5), (0.15, 1.0), (0.2, 0.8), (0.25, 1.0), (0.3, 0.6))


@dataclass(frozen=True)
class Network:
    """A network of the comparison: the name of its checkpoint, the noise, and how many steps it gets."""

    name: str
    layout: GridLayout
    steps: int


def networks(steps: int, soft: bool) -> list[Network]:
    """All of them; strictly local ones see a quarter of the scene and nothing else."""
    made = [Network(f"isotropic-{sigma}", GridLayout((1, 1), sigma, sigma), steps) for sigma in EQUAL]
    # The loss of a sample is that of one cell in four or twelve: the gradient needs more samples.
    made += [
        Network(f"strict-{sigma}", GridLayout((2, 2), sigma, sigma, window_margin=0), 2 * steps) for sigma in EQUAL
    ]
    if soft:
        made += [Network(f"soft-{low}-{high}", GridLayout((3, 4), low, high), 2 * steps) for low, high in SOFT]
    return made


def scenes(split: Split, count: int, seed: int = 0) -> TensorDataset:
    """So many scenes of a split, in memory."""
    images, labels = DigitScenes(split, seed).stack(range(count))
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/digit_scenes/models"))
    parser.add_argument("--steps", type=int, default=125)
    parser.add_argument("--training-scenes", type=int, default=4000)
    parser.add_argument("--validation-scenes", type=int, default=48)
    parser.add_argument("--learning-rate", type=float, default=7e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--soft", action="store_true", help="train the softly local networks, too")
    parser.add_argument("--only", nargs="*", help="names of networks")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    chosen = [
        one for one in networks(arguments.steps, arguments.soft) if not arguments.only or one.name in arguments.only
    ]
    missing = [one for one in chosen if not (arguments.out / f"{one.name}.safetensors").exists()]
    if not missing:
        return
    # Another seed than the shipped checkpoint's, so that its scenes are not seen twice.
    training = scenes(Split.TRAIN, arguments.training_scenes, seed=1)
    validation = scenes(Split.VALIDATION, arguments.validation_scenes)
    batch = 32
    per_epoch = -(-len(training) // batch)
    for one in missing:
        started = time.perf_counter()
        augmentation = OneGroup(GroupNoise(one.layout, Gaussian(), bounds=(0.0, 1.0)))
        options = TrainingOptions(
            epochs=max(1, round(one.steps / per_epoch)),
            batch_size=batch,
            learning_rate=arguments.learning_rate,
            schedule=one_cycle,
            device=arguments.device,
        )
        network = load_unet().requires_grad_(True)
        folder = arguments.out / one.name
        report = train(network, training, validation, augmentation, options, directory=folder)
        (folder / "best.safetensors").rename(arguments.out / f"{one.name}.safetensors")
        losses = ", ".join(f"{loss:.3f}" for loss in report.losses)
        print(
            f"{one.name}: noisy mIoU {report.validations[0][1]:.3f} as shipped, {report.best_miou:.3f} after epoch "
            f"{report.best_epoch}; losses {losses}; {time.perf_counter() - started:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
