"""What a training run keeps on disk, so that it goes on where it was killed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save as serialised
from torch import nn

from localsmooth.disk import expanded, write_atomically
from localsmooth.errors import LocalsmoothError

__all__ = ["History", "TrainingStore", "TrainingStoreError"]

_STATE = "training.pt"
_BEST = "best.safetensors"


class TrainingStoreError(LocalsmoothError):
    """A training directory belongs to another run, or is damaged."""


@dataclass
class History:
    """What has happened so far.

    Parameters
    ----------
    step
        Steps that are done.
    losses
        Mean loss of each finished epoch.
    validations
        (epoch, mIoU) of each validation; epoch 0 is the network as it was given.
    best_epoch, best_miou
        The validation whose weights are kept.
    running
        Sum of the losses of the epoch that is under way.
    """

    step: int = 0
    losses: list[float] = field(default_factory=list[float])
    validations: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    best_epoch: int = 0
    best_miou: float = -1.0
    running: float = 0.0


class TrainingStore:
    """One directory per training run: its state, and the best weights as safetensors.

    Parameters
    ----------
    directory
        Made if it does not exist.
    settings
        What the run depends on; a directory with other settings is refused.
    """

    def __init__(self, directory: Path | str, settings: Mapping[str, Any]) -> None:
        self.directory = expanded(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._settings = {name: str(value) for name, value in settings.items()}

    @property
    def best(self) -> Path:
        """The best weights so far, as `TorchModel` configurations load them."""
        return self.directory / _BEST

    def save(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        best: Mapping[str, torch.Tensor] | None,
        history: History,
    ) -> None:
        """Keep the state; a crash while writing leaves the one before."""
        state = {
            "settings": self._settings,
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "best": None if best is None else dict(best),
            "history": asdict(history),
        }
        content = io.BytesIO()
        torch.save(state, content)
        write_atomically(self.directory / _STATE, content.getvalue())

    def save_best(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Write the best weights."""
        kept = {name: value.detach().cpu().contiguous().clone() for name, value in weights.items()}
        write_atomically(self.best, serialised(kept))

    def load(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, device: str
    ) -> tuple[History, dict[str, torch.Tensor] | None]:
        """Bring network and optimizer to the kept state; a fresh history if there is none.

        Raises
        ------
        TrainingStoreError
            If the directory holds another run, or its state cannot be read.
        """
        path = self.directory / _STATE
        if not path.exists():
            return History(), None
        try:
            state = torch.load(path, map_location=device, weights_only=True)
            settings, history = state["settings"], TypeAdapter(History).validate_python(state["history"])
            differing = sorted(
                name for name in {*settings, *self._settings} if settings.get(name) != self._settings.get(name)
            )
        except (ValidationError, KeyError, TypeError, RuntimeError, ValueError, EOFError, OSError) as error:
            raise TrainingStoreError(f"{path} cannot be read ({error}). Delete the directory to start anew") from error
        except Exception as error:  # torch's own UnpicklingError for anything that is not plain tensors
            raise TrainingStoreError(f"{path} is no training state ({error})") from error
        if differing:
            name = differing[0]
            raise TrainingStoreError(
                f"{self.directory} holds a run with other settings: {name} is {settings.get(name)}, and "
                f"{self._settings.get(name)} was asked for. Use another directory"
            )
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        return history, state["best"]
