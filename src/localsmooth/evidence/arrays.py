"""Arrays, as the checks look at them: votes, and balls or whole flips around an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.certificates import BaseCertificates, CertifiedOutputs
from localsmooth.collective import Problem
from localsmooth.evidence.chunks import GroupVotes
from localsmooth.evidence.item import Budgets, CheckedItem, Outputs, Way
from localsmooth.evidence.kept import check_items
from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.evidence.threats import ball_fails, flips_fail
from localsmooth.noise import BinaryNoise, Noise, SparseFlips
from localsmooth.runs import DirectoryStore
from localsmooth.tasks import Alike, RunRecord, Stakes, Strategies, Task, noise_from_configuration
from localsmooth.tasks.arrays import (
    Flips,
    Kind,
    NormBall,
    SampledItem,
    Settings,
    bounded_outputs,
    drawing_charge,
    item_stakes,
)

__all__ = ["array_items"]


def array_items(
    task: type[Task[Any, Any]],
    record: RunRecord,
    store: DirectoryStore,
    settings: Settings,
    groups: Mapping[tuple[int, int], GroupVotes],
    ledger: Ledger,
) -> Sequence[CheckedItem]:
    """Read the items of a run, and compare them with its chunks.

    Parameters
    ----------
    task
        The kind of input.
    record, store, settings
        The run, and what it was certified with.
    groups
        Votes by (item, output group), from the chunks.
    ledger
        Takes down what was checked.

    Raises
    ------
    DoesNotHoldError
        At the first thing that does not hold.
    """
    with ledger.step("items"):
        items = cast("list[SampledItem]", list(task.load(record, store)))
    check_items(items, record, store, groups, ledger)
    with ledger.step("confidence bounds"):
        noise = noise_from_configuration(record.noise)
        settled = cast("Sequence[Settings]", task.settle(items, settings.completed(noise), record))
        pairs = list(zip(items, settled, strict=True))
    if type(settings.threat) not in (NormBall, Flips):
        words = settings.threat.words(noise, record.units)
        ledger.leave(f"not checked: that the collective problem allows every {words}")
    _check_drawing(pairs, noise, settings.alpha, record.n_bound, ledger)
    return [_Item(item, noise, each) for item, each in pairs]


def _check_drawing(
    pairs: Sequence[tuple[SampledItem, Settings]], noise: Noise, alpha: float, n_bound: int, ledger: Ledger
) -> None:
    """Where noise is drawn from tables on a grid: items lie on it, and alpha pays for what the tables leave open."""
    paid = 0
    for item, each in pairs:
        charge = drawing_charge(noise, item.layout, item.image.shape, n_bound)
        if charge is not None:
            with ledger.step("noise on a grid"):
                noise.require_item(torch.as_tensor(item.image))
            left = Fraction(each.alpha) + Fraction(charge)
            problem = f"{item.name}: drawing leaves {charge}, and bounds at {each.alpha} leave less of alpha = {alpha}"
            demand(left <= Fraction(alpha), "noise on a grid", problem)
            paid += 1
    if paid:
        ledger.holds("items lie on the grid of the noise, and alpha pays for what its tables leave open", paid, "items")
        ledger.note("how much tables of noise on a grid leave open is taken from their own proof")


class _Item(CheckedItem):
    def __init__(self, item: SampledItem, noise: Noise, settings: Settings) -> None:
        ignored = None if item.ignored is None else item.ignored.ravel()
        group, levels = item.layout.outputs.labels.ravel(), item.layout.levels
        self.outputs = Outputs(item.name, item.votes, group, levels, noise, ignored)
        self.settings = settings
        self.kinds = {"budget": settings.budgets}
        self._item, self._noise, self._proven = item, noise, settings

    def stakes(self) -> Mapping[str, Stakes]:
        return item_stakes(self._item, self._item.votes.candidate.astype(np.int64), self.settings.targets)

    def certify(self, way: Strategies, outputs: Alike) -> CertifiedOutputs:
        return bounded_outputs(self._item, self._noise, cast("Settings", way), outputs)

    def radius(self, alone: BaseCertificates) -> Float[np.ndarray, "outputs"] | None:
        threat, item = self._proven.threat, self._item
        known = type(threat) in (NormBall, Flips)
        return threat.radius(alone, item.image, item.layout, self._noise) if known else None

    def budgets(self) -> Budgets:
        return _Budgets(self._item, self._noise, self._proven)


class _Budgets(Budgets):
    def __init__(self, item: SampledItem, noise: Noise, settings: Settings) -> None:
        self._item, self._noise, self._settings = item, noise, settings
        columns = item.layout.inputs.count * len(noise.kinds)
        everything = settings.threat.threat(settings.budgets, item.image, item.layout, noise)
        self.sizes = everything.constraints(columns).budgets

    def problem(self, way: Way, chosen: Int[np.ndarray, "some"]) -> Problem:
        base, stakes, item, noise = way.base, way.stakes, self._item, self._noise
        sizes = [self._settings.budgets[index] for index in chosen.tolist()]
        threat = self._settings.threat.threat(sizes, item.image, item.layout, noise)
        made = Problem(base.weights, base.eta, base.group, threat, stakes.qualify, stakes.problem_value)
        kind = self._settings.threat
        problem = ""
        if type(kind) is NormBall and not isinstance(noise, BinaryNoise):
            problem = ball_fails(sizes, noise.norm, threat, made.columns)
        elif type(kind) in (NormBall, Flips):
            room = self._room(kind.kind if isinstance(kind, Flips) else Kind.ANY)
            problem = flips_fail(np.array(sizes)[:, None], np.zeros(made.columns, np.int64), room, made.constraints)
        demand(not problem, "counts", f"{item.name}: the threat is not the ball that is promised: {problem}")
        return made

    def _room(self, kind: Kind) -> Int[np.ndarray, "columns"]:
        """How many bits there are to flip in each column."""
        inputs, image = self._item.layout.inputs, self._item.image
        labels = np.broadcast_to(inputs.labels, image.shape)
        zeros, ones = (np.bincount(labels[image == bit], minlength=inputs.count) for bit in (0, 1))
        if not isinstance(self._noise, SparseFlips):
            return zeros + ones
        return np.concatenate([zeros * (kind is not Kind.DELETIONS), ones * (kind is not Kind.ADDITIONS)])
