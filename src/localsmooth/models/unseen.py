"""Whether a model keeps something of the first input that it is shown.

What depends on that is another classifier for whoever starts the program at a perturbed input.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch

from localsmooth.errors import InvalidInputError

__all__ = ["Replicable", "Unseen"]


@runtime_checkable
class Replicable(Protocol):
    """A model that copies are made of."""

    def replica(self) -> Any:
        """Return a copy, or the model itself where there is nothing to copy."""
        ...

    def shared_with_replicas(self) -> str:
        """What calls could change and copies share, in words; empty where nothing is known to be."""
        ...

    def weight_digests(self) -> dict[str, str]:
        """Digests of the weights, which no call may change."""
        ...


Kept = TypeVar("Kept", bound=Replicable)


@dataclass(frozen=True, eq=False)
class Unseen(Generic[Kept]):
    """A model as it was before it was called.

    Parameters
    ----------
    model
        The model.
    called
        What errors and warnings call it.
    untouched
        A copy that has seen as little. None where there is none.
    problem
        Why there is none that could be told apart from the model, in words; empty where there is one, or nothing to
        copy.
    weights
        Digests of its weights.
    """

    model: Kept
    called: str
    untouched: Kept | None
    problem: str
    weights: dict[str, str]

    @classmethod
    def of(cls, model: Kept, called: str = "model") -> Unseen[Kept]:
        """Copy a model that has not been called."""
        problem = ""
        try:
            untouched = model.replica()
        except Exception as error:  # copying runs the model's own code
            untouched, problem = model, f"it cannot be copied ({error})"
        if untouched is not model and (shared := model.shared_with_replicas()):
            untouched, problem = model, f"its copies would share {shared}"
        return cls(model, called, None if untouched is model else untouched, problem, model.weight_digests())

    def require_same_weights(self) -> None:
        """Refuse a model whose weights have changed since.

        Raises
        ------
        InvalidInputError
            Naming the first weight that has.
        """
        now = self.model.weight_digests()
        if changed := sorted(name for name, digest in self.weights.items() if now.get(name) != digest):
            problem = f"its weight {changed[0]} changes while it predicts"
            raise InvalidInputError(self.called, problem, "Fix the weights before: train elsewhere")

    def after(
        self, other: torch.Tensor, own: torch.Tensor, predict: Callable[[Kept, torch.Tensor], torch.Tensor]
    ) -> torch.Tensor | None:
        """What a copy says of an input after it was shown another one first.

        Parameters
        ----------
        other, own
            Batches.
        predict
            Calls the model.

        Returns
        -------
        torch.Tensor | None
            Its prediction of `own`; None where that cannot be found out.

        Warns
        -----
        UserWarning
            If it cannot, and why.
        """
        if self.problem:
            self._warn(self.problem)
        if self.untouched is None:
            return None
        try:
            predict(self.untouched, other)
            return predict(self.untouched, own)
        except Exception as error:  # where the model itself did not fail
            self._warn(f"a copy of it fails ({type(error).__name__}: {error})")
            return None

    def _warn(self, problem: str) -> None:
        warnings.warn(
            f"{self.called}: {problem}, so that what it keeps of its first input would go unnoticed. Predictions must "
            "not depend on what it was shown before",
            UserWarning,
            stacklevel=5,
        )
