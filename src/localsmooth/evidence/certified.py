"""Items certified by votes: every number between their tallies and their counts, checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from localsmooth.certificates import CertifiedOutputs
from localsmooth.evidence.base import BaseClaims, unchecked_certificates, unchecked_thresholds
from localsmooth.evidence.claims import Claims, unchecked_bounds
from localsmooth.evidence.counts import Claimed, KeptProof, KeptProofs, ProvenCounts
from localsmooth.evidence.item import CheckedItem, Way
from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.evidence.result_file import compare_counts
from localsmooth.results import ACCURACY, AGREEMENT, RATIO
from localsmooth.tasks import Strategies, alike, certified_ways

__all__ = ["CheckedCounts", "check_counts"]

_COUNTS = "counts"
_AGAIN = "by independent code: they were made again by the code that made them"
_CLAIMED = ("certified", "lower", "upper")


@dataclass(eq=False)
class CheckedCounts:
    """What was found on the way.

    Parameters
    ----------
    rules
        Rule for many outputs of each item.
    proofs
        The proofs that were verified.
    bounds, outputs, counts
        Numbers of confidence bounds, of outputs with their thresholds, and of counts that were checked.
    open
        Counts of which no proof was found, and which no attack contradicts, by item, target and bound.
    """

    rules: list[str] = field(default_factory=list[str])
    proofs: dict[tuple[str, str], Sequence[KeptProof]] = field(
        default_factory=dict[tuple[str, str], "Sequence[KeptProof]"]
    )
    bounds: int = 0
    outputs: int = 0
    counts: int = 0
    open: list[str] = field(default_factory=list[str])


def check_counts(
    items: Sequence[CheckedItem],
    settings: Strategies,
    result: xr.Dataset,
    again: xr.Dataset,
    known: KeptProofs,
    ledger: Ledger,
) -> CheckedCounts:
    """Check all items of a run.

    Parameters
    ----------
    items
        The items, whose votes were compared with the chunks.
    settings
        What they were certified with.
    result, again
        The result as stored, and as made again.
    known
        Proofs that were kept.
    ledger
        Takes down what was checked.

    Raises
    ------
    DoesNotHoldError
        At the first thing that does not hold.
    """
    made = CheckedCounts()
    with ledger.step("confidence bounds"):
        made.rules = [str(each.settings.sharing.name) for each in items]
        if not all(each.settings.sharing.simultaneous for each in items):
            ledger.leave("not checked: what the result promises, for its rule for many outputs promises nothing")
        unknown = sorted({what for each in items for what in _unknown(each) if what})
    if unknown:
        ledger.leave(f"not checked: {'; '.join(unknown)}, and the counts that follow, {_AGAIN}")
        compare_counts(result, again, settings, ledger)
        return made
    for what in sorted({unchecked_thresholds(each.settings.certificates) for each in items} - {""}):
        ledger.leave(f"not checked: {what}, {_AGAIN}; the counts are proven from these")
    with ledger.step(_COUNTS):
        absent = _absent(items)
    for each in items:
        with ledger.step(each.outputs.name):
            _check_item(each, result.sel(item=each.outputs.name), absent, known, made)
    ledger.holds("confidence bounds hold at their share of alpha, in whole numbers", made.bounds, "bounds")
    ledger.holds("the events behind them fail with probability alpha at most, together", len(items), "items")
    ledger.holds("weights, thresholds and radii follow from levels and bounds", made.outputs, "outputs")
    proofs = sum(map(len, made.proofs.values()))
    ledger.holds("dual proofs were verified by the kernel, in exact arithmetic", proofs, "proofs")
    ledger.holds("counts in the result are not larger than these proofs show", made.counts, "counts")
    for text in made.open:
        ledger.leave(f"not checked: {text}: no proof was found in the time that searches have")
    _note_differences(result, again, settings, ledger)
    return made


def _unknown(item: CheckedItem) -> tuple[str, str]:
    settings = item.settings
    certificates = unchecked_certificates(settings.certificates, item.outputs.noise)
    return unchecked_bounds(item.outputs, settings.sharing), certificates


def _absent(items: Sequence[CheckedItem]) -> set[str]:
    """Targets for which no output of any item counts, which results leave out unless nothing would be left."""
    total: dict[str, float] = {}
    for item in items:
        for target, stakes in item.stakes().items():
            total[target] = total.get(target, 0.0) + stakes.total
    return {target for target, worth in total.items() if worth == 0} if any(total.values()) else set()


def _check_item(
    item: CheckedItem, result: xr.Dataset, absent: Collection[str], known: KeptProofs, made: CheckedCounts
) -> None:
    """Certify one item as the pipeline does, with every number checked on the way."""
    outputs, settings = item.outputs, item.settings
    name = outputs.name
    base = BaseClaims(outputs, settings.certificates)
    claims = Claims(outputs, item.certify, base, settings.alpha)
    for kind, sizes in item.kinds.items():
        same = result[kind].values.tolist() == list(map(float, sizes))
        demand(same, _COUNTS, f"{name}: budgets are not those of the record")
    budgets = item.budgets()
    proven: dict[str, ProvenCounts] = {}
    claimed: dict[str, dict[str, Claimed]] = {}
    kept: dict[int, CertifiedOutputs] = {}
    for target, stakes in item.stakes().items():
        certified = certified_ways(settings.ways(), alike(stakes, outputs.ignored), claims.certify, kept)
        certified = [item.narrowed(each) for each in certified]
        alone = certified[0].shown.base
        radius = item.radius(alone)
        if radius is not None:
            base.check_radii(alone, radius)
        ways = [Way(each.base, stakes.left_by(each.base.prediction)) for each in certified]
        for way in ways:
            way.base.require_whole(way.stakes.values)
        if target in absent:
            continue
        claimed[target] = {str(bound): _claimed(result, target, str(bound)) for bound in result["bound"].values}
        proven[target] = ProvenCounts(ways, budgets)
        proven[target].prove(settings.bounds, claimed[target], known.get((name, target), ()))
        made.proofs[name, target] = proven[target].proofs
    claims.finish()
    demand(list(claimed) == _targets(result), _COUNTS, f"{name}: targets are not those of the record")
    for part in (ACCURACY, AGREEMENT):  # what is proven of some outputs is proven of all of them
        if part in proven and RATIO in proven:
            proven[RATIO].join(proven[part])
    for target, counts in proven.items():
        for bound, claim in claimed[target].items():
            made.counts += len(claim.certified)
            for index in counts.missing(claim):
                where = f"{name}, {target}, {bound}, {_budget(item.kinds, index)}"
                open_ = settings.bounds[bound].searches and claim.certified[index] <= counts.most(index)
                demand(open_, _COUNTS, f"{where}: {claim.certified[index]:g} is more than what is proven")
                made.open.append(where)
    made.bounds += claims.bounds
    made.outputs += base.thresholds


def _claimed(result: xr.Dataset, target: str, bound: str) -> Claimed:
    """What is claimed, over the budgets one after the other, the last kind fastest."""
    return Claimed(*(result[each].sel(target=target, bound=bound).values.ravel().tolist() for each in _CLAIMED))


def _budget(kinds: Mapping[str, Sequence[int | float]], index: int) -> str:
    """Name a budget by its number, the last kind fastest."""
    place = np.unravel_index(index, [len(sizes) for sizes in kinds.values()])
    return ", ".join(f"{kind} {sizes[at]:g}" for (kind, sizes), at in zip(kinds.items(), map(int, place), strict=True))


def _targets(result: xr.Dataset) -> list[str]:
    """Targets that an item has: others are padding, of which nothing is claimed."""
    over = ["bound", *(str(dim) for dim in result["certified"].dims if dim not in ("target", "bound"))]
    claimed = result["certified"].max(over) + result["lower"].max(over)
    known = (result["total"] > 0) | (claimed > 0) | result["upper"].notnull().any(over)
    return [str(name) for name in result["target"].values[known.values]]


def _note_differences(result: xr.Dataset, again: xr.Dataset, settings: Strategies, ledger: Ledger) -> None:
    swift = [name for name, bound in settings.bounds.items() if not bound.searches]
    mine, other = (each["certified"].sel(bound=swift).values for each in (result, again))
    if differing := int(np.count_nonzero(mine != other)):
        ledger.note(f"{differing} counts differ from those that are made again: they are proven, and may be weaker")
