"""Items that are arrays, certified by votes: every number between their tallies and their counts, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
import torch
import xarray as xr

from localsmooth.certificates import CertifiedOutputs
from localsmooth.collective import Threat
from localsmooth.evidence.chunks import GroupVotes
from localsmooth.evidence.claims import Claims, unchecked_claims
from localsmooth.evidence.counts import Claimed, KeptProof, KeptProofs, ProvenCounts, Way, ball_fails
from localsmooth.evidence.kept import check_items
from localsmooth.evidence.ledger import Ledger, demand
from localsmooth.evidence.result_file import compare_counts
from localsmooth.noise import Noise
from localsmooth.results import ACCURACY, AGREEMENT, RATIO
from localsmooth.runs import DirectoryStore
from localsmooth.tasks import RunRecord, Task, alike, certified_ways, noise_from_configuration
from localsmooth.tasks.arrays import NormBall, SampledItem, Settings, drawing_charge, item_stakes

__all__ = ["CheckedArrays", "check_arrays"]

_COUNTS = "counts"
_AGAIN = "by independent code: they were made again by the code that made them"


@dataclass(eq=False)
class CheckedArrays:
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


def check_arrays(
    task: type[Task[Any, Any]],
    record: RunRecord,
    store: DirectoryStore,
    settings: Settings,
    groups: Mapping[tuple[int, int], GroupVotes],
    result: xr.Dataset,
    again: xr.Dataset,
    known: KeptProofs,
    ledger: Ledger,
) -> CheckedArrays:
    """Check all items of a run.

    Parameters
    ----------
    task
        The kind of input.
    record, store, settings
        The run, and what it was certified with.
    groups
        Votes by (item, output group), from the chunks.
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
    made = CheckedArrays()
    with ledger.step("items"):
        items = cast("list[SampledItem]", list(task.load(record, store)))
    check_items(items, record, store, groups, ledger)
    with ledger.step("confidence bounds"):
        noise = noise_from_configuration(record.noise)
        settled = cast("Sequence[Settings]", task.settle(items, settings.completed(noise), record))
        made.rules = [str(each.sharing.name) for each in settled]
        if not all(each.sharing.simultaneous for each in settled):
            ledger.leave("not checked: what the result promises, for its rule for many outputs promises nothing")
        pairs = list(zip(items, settled, strict=True))
        unknown = sorted({what for item, each in pairs if (what := unchecked_claims(item, noise, each))})
    if unknown:
        ledger.leave(f"not checked: {'; '.join(unknown)}, and the counts that follow, {_AGAIN}")
        compare_counts(result, again, settings, ledger)
        return made
    if not isinstance(settings.threat, NormBall):
        ledger.leave(f"not checked: that the collective problem allows every {result.attrs['threat']}")
    _check_drawing(pairs, noise, settings.alpha, record.n_bound, ledger)
    for item, each in pairs:
        with ledger.step(item.name):
            _check_item(item, noise, each, result.sel(item=item.name), known, made)
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


def _check_item(
    item: SampledItem,
    noise: Noise,
    settings: Settings,
    result: xr.Dataset,
    known: KeptProofs,
    made: CheckedArrays,
) -> None:
    """Certify one item as the pipeline does, with every number checked on the way."""
    claims = Claims(item, noise, settings.alpha)
    ignored = None if item.ignored is None else item.ignored.ravel()
    budgets: list[float] = result["budget"].values.tolist()
    demand(budgets == list(settings.budgets), _COUNTS, f"{item.name}: budgets are not those of the record")

    def threat(sizes: Sequence[float]) -> Threat:
        return settings.threat.threat(sizes, item.image, item.layout, noise)

    ball = isinstance(settings.threat, NormBall)
    if ball:
        problem = ball_fails(budgets, noise.norm, threat(budgets), item.layout.levels.shape[1])
        demand(not problem, _COUNTS, f"{item.name}: the threat is not the ball that is promised: {problem}")
    proven: dict[str, ProvenCounts] = {}
    claimed: dict[str, dict[str, Claimed]] = {}
    kept: dict[int, CertifiedOutputs] = {}
    for target, stakes in item_stakes(item, item.votes.candidate.astype(np.int64), settings.targets).items():
        certified = certified_ways(settings.ways(), alike(stakes, ignored), claims.certify, kept)
        if ball:
            alone = certified[0].shown.base
            claims.check_radii(certified[0], settings.threat.radius(alone, item.image, item.layout, noise))
        ways = [Way(each.base, stakes.left_by(each.base.prediction)) for each in certified]
        for way in ways:
            way.base.require_whole(way.stakes.values)
        claimed[target] = {
            str(name): Claimed(*(result[each].sel(target=target, bound=name).values.tolist() for each in _CLAIMED))
            for name in result["bound"].values
        }
        proven[target] = ProvenCounts(ways, budgets, threat)
        proven[target].prove(settings.bounds, claimed[target], known.get((item.name, target), ()))
        made.proofs[item.name, target] = proven[target].proofs
    claims.finish()
    demand(list(claimed) == _targets(result), _COUNTS, f"{item.name}: targets are not those of the record")
    for part in (ACCURACY, AGREEMENT):  # what is proven of some outputs is proven of all of them
        if part in proven and RATIO in proven:
            proven[RATIO].join(proven[part])
    for target, counts in proven.items():
        for name, claim in claimed[target].items():
            made.counts += len(budgets)
            for index in counts.missing(claim):
                where = f"{item.name}, {target}, {name}, budget {budgets[index]:g}"
                open_ = settings.bounds[name].searches and claim.certified[index] <= counts.most(index)
                demand(open_, _COUNTS, f"{where}: {claim.certified[index]:g} is more than what is proven")
                made.open.append(where)
    made.bounds += claims.bounds
    made.outputs += claims.thresholds


_CLAIMED = ("certified", "lower", "upper")


def _targets(result: xr.Dataset) -> list[str]:
    """Targets that an item has: others are padding, of which nothing is claimed."""
    claimed = result["certified"].max(["bound", "budget"]) + result["lower"].max(["bound", "budget"])
    known = (result["total"] > 0) | (claimed > 0) | result["upper"].notnull().any(["bound", "budget"])
    return [str(name) for name in result["target"].values[known.values]]


def _note_differences(result: xr.Dataset, again: xr.Dataset, settings: Settings, ledger: Ledger) -> None:
    swift = [name for name, bound in settings.bounds.items() if not bound.searches]
    mine, other = (each["certified"].sel(bound=swift).values for each in (result, again))
    if differing := int(np.count_nonzero(mine != other)):
        ledger.note(f"{differing} counts differ from those that are made again: they are proven, and may be weaker")
