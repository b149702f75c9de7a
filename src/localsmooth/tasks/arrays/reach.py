"""How far the certificates of items can reach."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from localsmooth.bounds import CandidateRule, CountRule
from localsmooth.layout import Layout, Partition
from localsmooth.noise import BinaryNoise, Noise
from localsmooth.tasks.arrays.item import certify_item
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import Settings
from localsmooth.tasks.reach import (
    KnownVotes,
    Planned,
    budget_steps,
    cheap_bounds,
    farther,
    farthest,
    settled_bounds,
    unanimous,
)
from localsmooth.tasks.targets import Ratio

__all__ = ["ArrayReach", "reach_of_items", "reach_of_shares", "with_budgets"]


@dataclass(frozen=True, eq=False)
class ArrayReach:
    """An item whose bounds are known, certified at any budget.

    Parameters
    ----------
    item
        The item; all that its certificates look at, save votes.
    votes
        Votes with known bounds.
    noise, settings
        What is sampled and proven.
    """

    item: SampledItem
    votes: KnownVotes
    noise: Noise
    settings: Settings

    def by_bound(self) -> dict[str, float]:
        """The largest budget at which each cheap collective bound, or the method, certifies anything."""
        method, settings = self.settings.method, replace(self.settings, targets=(Ratio(),))
        item = replace(self.item, label=None, votes=self.votes)
        columns = len(self.noise.kinds) * item.layout.inputs.count
        threat = settings.threat.threat((1.0,), item.image, item.layout, self.noise).constraints(columns)
        if method is not None:
            names = {name: name for name in method.bound_names(settings)}
        else:
            item = _reduced(item, self.votes)
            cheap, names = cheap_bounds(settings.bounds, threat)
            settings = replace(settings, bounds=cheap)
        known: dict[float, dict[str, int | float]] = {}

        def certified(name: str, budget: float) -> bool:
            if budget not in known:
                asked = replace(settings, budgets=(budget,))
                certify = certify_item if method is None else method.certify
                curves = certify(item, self.noise, asked).curves
                known[budget] = {bound: curve.certified[0] for (_, bound), curve in curves.items()}
            return bool(known[budget][name] > 0)

        whole = isinstance(self.noise, BinaryNoise)
        start = 1.0 if whole else self._start(item, settings)
        most = float(threat.caps.sum()) if whole else math.inf
        found = {
            name: farthest(lambda budget, name=name: certified(name, budget), start, whole, most)
            for name in dict.fromkeys(names.values())
        }
        return {name: found[source] for name, source in names.items()}

    def _start(self, item: SampledItem, settings: Settings) -> float:
        """The farthest that one output reaches by itself, as far as that is known."""
        asked = replace(settings, budgets=(0.0,))
        certify = certify_item if settings.method is None else settings.method.certify
        radius = np.asarray(certify(item, self.noise, asked).radius)
        finite = radius[np.isfinite(radius)]
        return float(finite.max(initial=0.0)) or 1.0


def _reduced(item: SampledItem, votes: KnownVotes) -> SampledItem:
    """The same with those outputs alone that decide whether anything is certified."""
    group = item.layout.outputs.labels.ravel()
    few = settled_bounds(votes, group)
    outputs = Partition(group[few].astype(np.int32))
    layout = Layout(outputs, item.layout.inputs, item.layout.levels)
    return replace(item, layout=layout, votes=votes.part(few), ignored=None)


def reach_of_items(
    items: Sequence[tuple[np.ndarray, Layout, np.ndarray | None]], noise: Noise, settings: Settings, planned: Planned
) -> dict[str, float]:
    """How far the certificates of some items can reach, by collective bound; empty where that cannot be told.

    Parameters
    ----------
    items
        Input, layout and ignored outputs of each. Items that share a layout are taken for one, unless noise is on bits,
        where the reach depends on the input, or a rule counts outputs, those that are not ignored.
    noise
        What is sampled.
    settings
        What is proven, completed.
    planned
        How often is drawn.
    """
    method = settings.method
    if settings.needs_scores or (
        method is not None and (method.draws or isinstance(settings.simultaneous, CandidateRule))
    ):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what rules have to say, they say when the votes are bounded
        return farther(
            ArrayReach(item, votes, noise, each).by_bound()
            for each in settings.alternatives(fixed=planned.sequence is None)
            for item, votes in _ideals(items, noise, each, planned)
        )


def _ideals(
    items: Sequence[tuple[np.ndarray, Layout, np.ndarray | None]], noise: Noise, settings: Settings, planned: Planned
) -> Iterator[tuple[SampledItem, KnownVotes]]:
    """Those of the items that differ, with all votes for one class."""
    counting = isinstance(settings.simultaneous, CountRule)
    distinct: dict[int, tuple[np.ndarray, Layout, np.ndarray | None]] = {}
    for index, (image, layout, ignored) in enumerate(items):
        apart = isinstance(noise, BinaryNoise) or (counting and ignored is not None)
        distinct[index if apart else id(layout)] = (image, layout, ignored if counting else None)
    for image, layout, ignored in distinct.values():
        flat = None if ignored is None else ignored.ravel()
        votes = unanimous(layout.outputs.labels.ravel(), planned, settings, flat)
        if settings.method is not None:  # it bounds them in its own way
            votes = replace(votes, known=None)
        yield SampledItem("ideal", image, None, ignored, layout, votes, class_names=("0",)), votes


def reach_of_shares(items: Sequence[SampledItem], noise: Noise, settings: Settings) -> float | None:
    """How far certificates would reach if the shares of votes were the probabilities: what more samples lead to.

    Parameters
    ----------
    items
        With their tallies.
    noise, settings
        As for `reach_of_items`.

    Returns
    -------
    float or None
        The largest budget; None where there is none, or it cannot be told.
    """
    method = settings.method
    if settings.needs_scores or (method is not None and method.draws):
        return None
    made: list[float] = []
    for item in items:
        votes = KnownVotes.of_shares(item.votes, None if item.ignored is None else ~item.ignored.ravel())
        made.append(max(ArrayReach(item, votes, noise, settings.counted()).by_bound().values(), default=0.0))
    largest = max(made, default=math.inf)
    return None if math.isinf(largest) else largest


def with_budgets(settings: Settings, reach: Mapping[str, float], noise: Noise) -> Settings:
    """Propose budgets where none are named.

    Raises
    ------
    InvalidInputError
        If there are none to propose.
    """
    if settings.budgets:
        return settings
    return replace(settings, budgets=budget_steps(reach, isinstance(noise, BinaryNoise)))
