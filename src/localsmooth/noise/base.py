"""The contract of a smoothing distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.noise.randomness import Randomness

__all__ = ["Noise", "PreparedNoise"]


class PreparedNoise(ABC):
    """The distribution of one output group around one item, ready to draw on the item's device."""

    @abstractmethod
    def draw(self, out: torch.Tensor, randomness: Randomness) -> None:
        """Overwrite `out` with independent samples, one per leading index.

        The samples depend on the stream's state alone: drawing 1 + 6 samples gives the same tensors as drawing 7.

        Parameters
        ----------
        out
            Shape (samples, *item), on the item's device.
        randomness
            The stream to draw from.
        """


class Noise(ABC):
    """A family of smoothing distributions, one per output group, indexed by the layout's levels."""

    distribution: ClassVar[str]
    """Name of the family, in configuration files and stored runs."""

    certificate: ClassVar[str] = ""
    """Name of the base certificate from votes that goes with the family where none is named; empty if none does."""

    norm: int
    """The p of the budget Σ_d |x'_d − x_d|^p spent in an input group (0 counts changed elements)."""

    kinds: tuple[str, ...] = ("changes",)
    """Kinds of perturbation that the weights tell apart; the columns of W are all input groups of the first kind,
    then all of the second."""

    @abstractmethod
    def validate(self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]) -> None:
        """Refuse levels that are not parameters of this family.

        Raises
        ------
        InvalidInputError
            Naming `levels` and the admissible range.
        """

    @abstractmethod
    def weights(
        self, levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    ) -> Float[np.ndarray, "output_groups columns"]:
        """Certificate weights W, rounded up: output n of group i is robust while W[i]·b < η_n.

        Columns are input groups, or input groups per kind of perturbation where the family tells kinds apart.
        Hidden inputs (level inf) have weight 0. A weight may be infinite where a single change is never tolerated
        (binary data that are not perturbed at all); base certificates replace it by an equivalent finite one.
        """

    def suited(
        self,
        items: Sequence[torch.Tensor],
        levels: Sequence[Float[np.ndarray, "_ _ ..."]],
    ) -> Noise:
        """Settle what a family leaves to the items of a run; most leave nothing.

        Parameters
        ----------
        items
            All of them, as the model gets them.
        levels
            Level matrices, one for each item: output groups × input groups × parameters, if there are several.
        """
        del items, levels
        return self

    @classmethod
    def of_run(cls, **parameters: object) -> Noise:
        """Make the noise again from the parameters that its `configuration` gave, with nothing left to settle."""
        return cls(**parameters)

    def require_item(self, item: torch.Tensor) -> None:  # noqa: B027 (few families ask for anything)
        """Refuse items around which the noise cannot be drawn, before anything is sampled.

        Parameters
        ----------
        item
            The whole item.

        Raises
        ------
        InvalidInputError
            Saying what it should be like.
        """

    def drawing_error(
        self,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        sizes: Int[np.ndarray, "input_groups"],
    ) -> float | None:
        """Bound on the total variation distance between a sample of every output group, as drawn, and as certified.

        None for families whose draws are taken for what they stand for.

        Parameters
        ----------
        levels
            The level matrix.
        sizes
            Elements of each input group.
        """
        del levels, sizes
        return None

    @abstractmethod
    def prepare(
        self,
        item: torch.Tensor,
        level_map: Float[np.ndarray, "..."],
        bounds: tuple[float, float] | None,
        hidden_value: float,
    ) -> PreparedNoise:
        """Set up the distribution around one item.

        Parameters
        ----------
        item
            The (cropped) item, on the device where samples are wanted.
        level_map
            Level of each element, in the shape of the item or of its trailing axes (then parameters, if any).
        bounds
            The model's declared input bounds, for families that clamp.
        hidden_value
            Constant that replaces inputs of level inf.
        """

    @abstractmethod
    def configuration(self) -> Mapping[str, object]:
        """Name and parameters, as stored with a run (JSON-compatible)."""
