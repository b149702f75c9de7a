"""How far the certificates of items can reach."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.optimize import linprog

from localsmooth.bounds import CandidateRule, CountRule
from localsmooth.certificates import ABSTAIN, BaseCertificates
from localsmooth.collective import Naive
from localsmooth.layout import Layout, Partition
from localsmooth.noise import BinaryNoise, Noise
from localsmooth.results import ItemResult
from localsmooth.tasks.arrays.item import bounded_outputs, certified_curve, item_stakes
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import ItemMethod, Settings
from localsmooth.tasks.reach import (
    KnownVotes,
    Planned,
    budget_steps,
    cheap_bounds,
    farthest,
    settled_bounds,
    unanimous,
)
from localsmooth.tasks.stakes import alike
from localsmooth.tasks.targets import Ratio

__all__ = ["ArrayReach", "reach_of_items", "reach_of_shares", "with_budgets"]

_Counts = Callable[[str, float], float]
_NOTHING: Mapping[str, float] = MappingProxyType({})
_MOST_GUESSED = 4096  # rows of a linear program that takes milliseconds


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

    def by_bound(self, least: Mapping[str, float] = _NOTHING) -> dict[str, float]:
        """The largest budget at which each cheap collective bound, or the method, certifies anything.

        Parameters
        ----------
        least
            What is reached otherwise, by bound; returned where this does not reach farther.
        """
        settings = replace(self.settings, targets=(Ratio(),))
        item = replace(self.item, label=None, votes=self.votes)
        columns = len(self.noise.kinds) * item.layout.inputs.count
        threat = settings.threat.threat((1.0,), item.image, item.layout, self.noise).constraints(columns)
        if settings.method is None:
            cheap, names = cheap_bounds(settings.bounds, threat)
            counts, radius, together = self._collective(_reduced(item, self.votes), replace(settings, bounds=cheap))
            alone = {name for name, one in cheap.items() if isinstance(one, Naive)}
        else:
            names = {name: name for name in settings.method.bound_names(settings)}
            counts, radius = self._method(item, settings, settings.method)
            together, alone = 0.0, set(names)
        whole = isinstance(self.noise, BinaryNoise)
        # The farthest that one output reaches by itself, as far as that is known, and that all do together.
        finite = radius[np.isfinite(radius)]
        single = float(finite.max(initial=0.0))
        most = float(threat.caps.sum()) if whole else math.inf
        found: dict[str, float] = {}
        for name in dict.fromkeys(names.values()):
            start = 1.0 if whole else (single if name in alone else together or single) or 1.0
            found[name] = farthest(
                lambda budget, name=name: counts(name, budget) > 0, start, whole, most, least.get(name, 0.0)
            )
        return {name: max(found[source], least.get(name, 0.0)) for name, source in names.items()}

    def _collective(self, item: SampledItem, settings: Settings) -> tuple[_Counts, np.ndarray, float]:
        """What each collective bound certifies at a budget, each output's radius, and about where all have fallen."""
        stakes = item_stakes(item, item.votes.candidate.astype(np.int64), settings.targets)[Ratio().name]
        certified = bounded_outputs(item, self.noise, settings, alike(stakes))
        left = stakes.left_by(certified.base.prediction)

        def counts(name: str, budget: float) -> float:
            threat = settings.threat.threat((budget,), item.image, item.layout, self.noise)
            columns, bound = item.layout.inputs.count, settings.bounds[name]
            return float(certified_curve(certified.base, left, threat, columns, name, bound, None).certified[0])

        radius = settings.threat.radius(certified.base, item.image, item.layout, self.noise)
        return counts, radius, _together(certified.base, self.noise.norm)

    def _method(self, item: SampledItem, settings: Settings, method: ItemMethod) -> tuple[_Counts, np.ndarray]:
        """The same for a method that certifies in its own way."""

        @cache
        def certified(budget: float) -> ItemResult:
            return method.certify(item, self.noise, replace(settings, budgets=(budget,)))

        def counts(name: str, budget: float) -> float:
            return next(
                float(curve.certified[0]) for (_, bound), curve in certified(budget).curves.items() if bound == name
            )

        return counts, certified(0.0).radius


def _together(base: BaseCertificates, norm: int) -> float:
    """Guess where a search is to begin: what breaks every output at once; 0 for no guess."""
    counted = base.prediction != ABSTAIN
    if norm < 1 or base.gives_away or not counted.any():
        return 0.0
    rows = base.weights[..., base.group[counted], :].reshape(-1, base.weights.shape[-1])
    if len(rows) > _MOST_GUESSED:  # no limit of time: what is found must not depend on the machine
        return 0.0
    solved: Any = linprog(np.ones(rows.shape[1]), -rows, -base.eta[..., counted].ravel(), method="highs")
    return 0.0 if solved.status != 0 else float(solved.fun) ** (1 / norm)


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
        found: Mapping[str, float] = {}
        # The last gives nothing away, and from what it reaches the search among the others begins.
        for each in reversed(settings.alternatives(fixed=planned.sequence is None)):
            for item, votes in _ideals(items, noise, each, planned):
                found = ArrayReach(item, votes, noise, each).by_bound(found)
        return found


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
