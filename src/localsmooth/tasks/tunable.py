"""What choosing noise asks of a kind of input: what there is to look at, and what votes would certify of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from localsmooth.certificates import OutputVotes
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.noise import Noise
from localsmooth.tasks.stakes import Predicted
from localsmooth.tasks.targets import Target

__all__ = ["Foreseen", "Trial", "Tunable"]


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What an item would certify with some votes.

    Parameters
    ----------
    share
        Certified share of the target at each budget, in [0, 1].
    predicted
        Predictions, abstentions among them.
    """

    share: Float[np.ndarray, "budgets"]
    predicted: Predicted


class Trial(ABC):
    """An item with the votes of a pilot.

    Attributes
    ----------
    votes
        Votes of the outputs that share α; those of the pilot are in its candidate stage.
    """

    votes: OutputVotes

    @abstractmethod
    def certified(self, votes: OutputVotes) -> Foreseen:
        """Bound and certify other votes of the same outputs, as a run would.

        Parameters
        ----------
        votes
            Of a whole run that is foretold.
        """


class Tunable(ABC):
    """A task whose noise can be chosen by looking at its items, which are not certified then.

    A candidate is a layout, or a rule that makes one. Only the task knows what that is for its items.
    """

    @abstractmethod
    def looked_at(self) -> frozenset[str]:
        """Digests of the items, as layouts remember what they were computed from."""

    @abstractmethod
    def laid_out(self, layout: Layout | LayoutRecipe) -> list[Layout]:
        """Make the layout of each item.

        Raises
        ------
        InvalidInputError
            If the layout or the rule is not for such items.
        """

    @abstractmethod
    def remembering(self, layout: Layout | LayoutRecipe, origins: frozenset[str]) -> Layout | LayoutRecipe:
        """Return the layout, or the rule, so that what is made of it certifies none of some items.

        Parameters
        ----------
        layout
            What was chosen.
        origins
            Digests of the items.
        """

    @abstractmethod
    def isotropic(self, layouts: Sequence[Layout]) -> Mapping[str, Layout | LayoutRecipe]:
        """The isotropic counterpart of each layout, by name: its smallest levels everywhere.

        Parameters
        ----------
        layouts
            Of the first item, by each candidate.

        Raises
        ------
        InvalidInputError
            If they have none.
        """

    @abstractmethod
    def known(self) -> Sequence[tuple[str, Predicted]]:
        """Name of each item, and its outputs with their labels, if it has any, before anything was predicted."""

    @abstractmethod
    def asked(
        self,
        settings: Any,
        noise: Noise | None,
        target: Target,
        kind: str | None,
        proven: Sequence[Any],
        at: float | int | None,
    ) -> tuple[Any, Float[np.ndarray, "budgets"]]:
        """Settings of one target and one kind of budget, by the envelope, and the budgets.

        Parameters
        ----------
        settings
            What will be proven.
        noise
            What is sampled; None for the task's own default.
        target
            What is counted.
        kind
            Kind of budget, such as "deletions" of graphs; None for the only one, or the last that is asked about.
        proven
            Settings of all candidates with their budgets filled in: where none are named, the same are for all.
        at
            A budget that is among them, if any.

        Raises
        ------
        InvalidInputError
            For settings that cannot be foretold, and budgets of no such kind.
        """

    @abstractmethod
    def trials(self, sampled: Any, settings: Any, noise: Noise | None) -> list[Trial]:
        """What is foretold from: each item with the votes of a pilot.

        Parameters
        ----------
        sampled
            What an assignment collected of the pilot.
        settings
            From `asked`.
        noise
            As for `asked`.
        """
