"""A plain training loop: noise, loss, Adam, validation, best weights, and a state to go on from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import confusion_matrix, mean_iou
from localsmooth.models import describe_module, tensor_digest
from localsmooth.seeds import torch_seeded
from localsmooth.training.losses import IGNORED, CrossEntropy, Loss
from localsmooth.training.noise import Augmentation
from localsmooth.training.options import TrainingOptions
from localsmooth.training.state import History, TrainingStore

__all__ = ["LabelledData", "TrainingProgress", "TrainingReport", "train", "validation_miou"]

_ORDER, _DROPOUT = 104, 105


@runtime_checkable
class LabelledData(Protocol):
    """Images and label maps of one size: any map-style torch data set, such as `TensorDataset(images, labels)`."""

    def __len__(self) -> int:
        """Number of images."""
        ...

    def __getitem__(self, index: int, /) -> tuple[torch.Tensor, ...]:
        """Image (channels × spatial axes, in the space of the noise) and label map (`IGNORED` where it has none)."""
        ...


@runtime_checkable
class TrainingProgress(Protocol):
    """Told about the training as it goes."""

    def __call__(self, step: int, steps: int, loss: float, miou: float | None) -> None:
        """After each step: its number, how many there are, its loss, and the mIoU where it was followed by one."""
        ...


@dataclass(frozen=True)
class TrainingReport:
    """What happened.

    Parameters
    ----------
    losses
        Mean loss of each epoch.
    validations
        (epoch, mIoU) of each validation; epoch 0 is the network as it was given.
    best_epoch, best_miou
        The validation whose weights the network has now.
    """

    losses: tuple[float, ...]
    validations: tuple[tuple[int, float], ...]
    best_epoch: int
    best_miou: float


def train(
    network: nn.Module,
    training: LabelledData,
    validation: LabelledData,
    augmentation: Augmentation,
    options: TrainingOptions,
    *,
    loss: Loss | None = None,
    directory: Path | str | None = None,
    progress: TrainingProgress | None = None,
) -> TrainingReport:
    """Train in place; on return the network is in evaluation mode with the weights of the best validation mIoU.

    The network as it was given counts as epoch 0, so that it never ends up worse. Every random choice follows from
    the seeds and the number of the step alone: a run that was killed goes on from its last kept state and, on the same
    machine with the same number of threads, ends with the same weights to the last bit.

    Parameters
    ----------
    network
        Returns scores (batch, classes, *outputs), or what torchvision or Hugging Face networks return, at the
        resolution of the labels. Noise is added in the space of the images: normalisation belongs to the network.
    training, validation
        Images and label maps.
    augmentation
        How noise enters: `OneGroup`, `AllGroups` or `VariedLayouts`.
    options
        See `TrainingOptions`.
    loss
        Cross-entropy by default.
    directory
        Where the state and the best weights (`best.safetensors`) are kept.
    progress
        Told about every step.

    Raises
    ------
    InvalidInputError
        If a data set is empty, or the network's outputs do not fit the labels, or the loss is not finite.
    TrainingStoreError
        If the directory belongs to another run.
    """
    for name, data in (("training", training), ("validation", validation)):
        if len(data) == 0:
            raise InvalidInputError(name, "there are no images", "Pass at least one")
    loss = CrossEntropy() if loss is None else loss
    network.to(options.device)
    optimizer = torch.optim.Adam(network.parameters(), options.learning_rate, weight_decay=options.weight_decay)
    store = None
    if directory is not None:
        store = TrainingStore(directory, _settings(network, training, augmentation, options, loss))
    history, best = (History(), None) if store is None else store.load(network, optimizer, options.device)
    per_epoch = math.ceil(len(training) / options.batch_size)
    steps = per_epoch * options.epochs
    if not history.validations:  # training that only makes things worse gives back what it was given
        best = _validate(network, validation, augmentation, options, history, best, 0)
    while history.step < steps:
        step = history.step
        epoch, place = divmod(step, per_epoch)
        order = np.random.default_rng(np.random.SeedSequence(options.seed, spawn_key=(_ORDER, epoch)))
        chosen = order.permutation(len(training))[place * options.batch_size : (place + 1) * options.batch_size]
        value = _step(network, optimizer, training, chosen, augmentation, options, loss, step, step / steps)
        history.step += 1
        history.running += value
        miou = None
        if place == per_epoch - 1:
            history.losses.append(history.running / per_epoch)
            history.running = 0.0
            if (epoch + 1) % options.validate_every == 0 or epoch + 1 == options.epochs:
                best = _validate(network, validation, augmentation, options, history, best, epoch + 1)
                miou = history.validations[-1][1]
        if store is not None and (history.step % options.checkpoint_every == 0 or history.step == steps):
            store.save(network, optimizer, best, history)
        if progress is not None:
            progress(history.step, steps, value, miou)
    assert best is not None
    if store is not None:
        store.save_best(best)
    network.load_state_dict(best)
    network.eval()
    return TrainingReport(
        tuple(history.losses), tuple(history.validations), history.best_epoch, float(history.best_miou)
    )


def _validate(
    network: nn.Module,
    data: LabelledData,
    augmentation: Augmentation,
    options: TrainingOptions,
    history: History,
    best: dict[str, torch.Tensor] | None,
    epoch: int,
) -> dict[str, torch.Tensor] | None:
    """Add a validation to the history; the network's weights if it is the best, else what was best before."""
    miou = validation_miou(network, data, augmentation, options)
    history.validations.append((epoch, miou))
    if not miou > history.best_miou:
        return best
    history.best_epoch, history.best_miou = epoch, miou
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _step(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: LabelledData,
    chosen: np.ndarray,
    augmentation: Augmentation,
    options: TrainingOptions,
    loss: Loss,
    step: int,
    done: float,
) -> float:
    network.train()
    for group in optimizer.param_groups:
        group["lr"] = options.learning_rate * options.schedule(done)
    seed = int(np.random.SeedSequence(options.seed, spawn_key=(_DROPOUT, step)).generate_state(1)[0])
    with torch_seeded(seed, options.device):
        images, labels = _stack(data, chosen.tolist(), options.device)
        value = augmentation.loss(network, images, labels, loss, step)
        number = float(value.detach())
        if not math.isfinite(number):
            raise InvalidInputError(
                "loss",
                f"step {step} has loss {number}",
                "Lower the learning rate, or look for NaN in images and network",
            )
        optimizer.zero_grad()
        value.backward()
    optimizer.step()
    return number


def validation_miou(
    network: nn.Module, data: LabelledData, augmentation: Augmentation, options: TrainingOptions
) -> float:
    """Mean IoU of single noisy predictions, every output under its own group's noise; the same noise every time.

    Parameters
    ----------
    network
        As for `train`; left in evaluation mode.
    data
        Images and label maps.
    augmentation
        Whose noise is drawn.
    options
        For batch size and device.
    """
    network.eval()
    confusion: np.ndarray | None = None
    with torch.inference_mode():
        for number, start in enumerate(range(0, len(data), options.batch_size)):
            stop = min(start + options.batch_size, len(data))
            images, labels = _stack(data, range(start, stop), options.device)
            scores = augmentation.noise.validation_scores(network, images, labels, number)
            truth, predicted = labels.cpu().numpy(), scores.argmax(dim=1).cpu().numpy()
            part = confusion_matrix(predicted, truth, truth != IGNORED, scores.shape[1])
            confusion = part if confusion is None else confusion + part
    assert confusion is not None
    return mean_iou(confusion)


def _stack(data: LabelledData, indices: range | list[int], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    pairs = [data[index] for index in indices]
    images, labels = (torch.stack([pair[place] for pair in pairs]).to(device) for place in (0, 1))
    return images, labels.long()


def _settings(
    network: nn.Module,
    training: LabelledData,
    augmentation: Augmentation,
    options: TrainingOptions,
    loss: Loss,
) -> Mapping[str, Any]:
    """What the weights depend on, to tell runs apart."""
    image, labels = training[0][:2]
    noise = augmentation.noise
    start = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        start.update(f"{name} {tensor_digest(value)}".encode())
    return {
        "network": hashlib.sha256(describe_module(network).encode()).hexdigest(),
        "initial weights": start.hexdigest(),
        "images": len(training),
        "layout": noise.layout(tuple(image.shape), tuple(labels.shape)).digest(),
        "noise": dict(noise.noise.configuration()),
        "noise seed": noise.seed,
        "augmentation": augmentation.name,
        **({"told": "levels"} if noise.told else {}),
        "loss": loss,
        "epochs": options.epochs,
        "batch size": options.batch_size,
        "learning rate": options.learning_rate,
        "weight decay": options.weight_decay,
        "schedule": _name(options.schedule),
        "seed": options.seed,
    }


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
