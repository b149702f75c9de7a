"""What choosing noise asks of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from localsmooth.certificates import OutputVotes
from localsmooth.collective import Envelope
from localsmooth.datasets import ItemSet
from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout, Layout, LayoutRecipe, Remembering, item_digest
from localsmooth.models import Model
from localsmooth.noise import Gaussian, Noise
from localsmooth.results import BUDGET
from localsmooth.tasks.arrays.inputs import class_names_of, layouts_of
from localsmooth.tasks.arrays.item import certify_item, counting_groups
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import Settings
from localsmooth.tasks.stakes import Predicted
from localsmooth.tasks.targets import Target
from localsmooth.tasks.tunable import Foreseen, Trial, Tunable

__all__ = ["ArrayTrial", "TunableArrays"]

_STEPS = 41  # budgets of a curve where none are named


@dataclass(frozen=True, eq=False)
class ArrayTrial(Trial):
    """One array with the votes of a pilot.

    Parameters
    ----------
    item
        The item.
    noise, settings
        What is sampled; what is proven, with one target and one bound.
    """

    item: SampledItem
    noise: Noise
    settings: Settings

    @property
    def votes(self) -> OutputVotes:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Votes of all outputs."""
        return self.item.votes

    def certified(self, votes: OutputVotes) -> Foreseen:
        """Certify the item with these votes."""
        whole = replace(self.item, votes=votes)
        result = certify_item(whole, self.noise, self.settings.settled(votes, counting_groups(whole)))
        (curve,), (stake,) = result.curves.values(), result.stakes.values()
        item = self.item
        return Foreseen(
            np.clip(curve.certified / max(stake.total, 1e-300), 0, 1),
            Predicted(
                result.prediction.ravel().astype(np.int64),
                None if item.label is None else item.label.ravel(),
                votes.clean,
                None if item.ignored is None else item.ignored.ravel(),
                item.class_names,
                item.layout.outputs.shape,
            ),
        )


class TunableArrays(Tunable):
    """Fills in the contract for a task with a model and items."""

    model: Model
    items: ItemSet

    def looked_at(self) -> frozenset[str]:
        """Digests of the items."""
        return frozenset(item_digest(item.image) for item in self.items)

    def laid_out(self, layout: Layout | LayoutRecipe) -> list[Layout]:
        """Make the layout of each item."""
        return layouts_of(self.model, self.items, layout)

    def remembering(self, layout: Layout | LayoutRecipe, origins: frozenset[str]) -> LayoutRecipe:
        """Return a rule whose layouts remember the items."""
        return Remembering(layout, origins)

    def isotropic(self, layouts: Sequence[Layout]) -> dict[str, Layout | LayoutRecipe]:
        """One cell with the smallest level of each layout.

        Raises
        ------
        InvalidInputError
            If levels have several parameters.
        """
        if any(layout.levels.ndim > 2 for layout in layouts):
            raise InvalidInputError(
                "candidates", "levels of several parameters have no one isotropic counterpart", "Add isotropic ones"
            )
        cells = (1,) * layouts[0].inputs.labels.ndim
        smallest = np.unique([round(float(layout.levels.min()), 6) for layout in layouts]).tolist()
        return {f"isotropic {level:.4g}": GridLayout(cells, level, level) for level in smallest}

    def known(self) -> list[tuple[str, Predicted]]:
        """Names of the items, their labels, and the names of their classes."""
        names = class_names_of(self.items, self.model)
        made: list[tuple[str, Predicted]] = []
        for item in self.items:
            nothing = np.zeros(1, np.int64)
            made.append((item.name, Predicted(nothing, None if item.label is None else nothing, nothing, None, names)))
        return made

    def asked(
        self,
        settings: Settings,
        noise: Noise | None,
        target: Target,
        kind: str | None,
        proven: Sequence[Settings],
        at: float | int | None,
    ) -> tuple[Settings, Float[np.ndarray, "budgets"]]:
        """Complete the settings: with their budgets, or with some as far as the candidate that gets farthest.

        Raises
        ------
        InvalidInputError
            For baselines, and kinds of budget.
        """
        if kind not in (None, BUDGET):
            raise InvalidInputError("kind", f"got {kind!r}, and arrays have one kind of budget", "Leave it out")
        if settings.method is not None:
            raise InvalidInputError("method", "a baseline has no levels to choose", "Leave the baseline out")
        budgets = settings.budgets
        if not budgets and proven:
            farthest = max(each.largest_budget for each in proven)
            whole = all(float(budget).is_integer() for each in proven for budget in each.budgets)
            budgets = np.unique(np.linspace(0, farthest, _STEPS).round(0 if whole else 12))
        sizes = tuple(sorted({*map(float, budgets), *(() if at is None else (at,))}))  # empty: still to be proposed
        asked = replace(settings, budgets=sizes, bounds={Envelope.name: Envelope()}, targets=(target,))
        asked = asked.completed(Gaussian() if noise is None else noise)
        return asked, np.array(asked.budgets)

    def trials(self, sampled: Sequence[SampledItem], settings: Settings, noise: Noise | None) -> list[Trial]:
        """Each item with its pilot."""
        return [ArrayTrial(item, Gaussian() if noise is None else noise, settings) for item in sampled]
