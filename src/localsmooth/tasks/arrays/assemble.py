"""From sampled items and settings to the labelled result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.bounds import Sharing
from localsmooth.collective import Bound
from localsmooth.execution import SamplingProgress, tell_certifying
from localsmooth.noise import Noise
from localsmooth.results import (
    ItemOverlap,
    ItemResult,
    RunInfo,
    build_dataset,
    build_overlaps,
    certifies_beyond,
    consistent,
    finite_reach,
    without_empty,
)
from localsmooth.runs import RunIdentity
from localsmooth.tasks.arrays.item import certify_item, certify_overlaps, counting_groups, item_stakes
from localsmooth.tasks.arrays.reach import reach_of_items, reach_of_shares, with_budgets
from localsmooth.tasks.arrays.reserve import drawing_charge, drawing_words, less_reserve
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import Settings
from localsmooth.tasks.asked_targets import left_out_words
from localsmooth.tasks.description import run_facts
from localsmooth.tasks.overlap import about_overlaps, for_overlaps, measured_iou
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import RunRecord

__all__ = ["assemble", "assemble_overlaps", "settle_items"]


def assemble(
    items: Sequence[SampledItem],
    noise: Noise,
    record: RunRecord,
    settings: Settings,
    configuration: RunIdentity | None = None,
    progress: SamplingProgress | None = None,
) -> xr.Dataset:
    """Certify every item and build the data set.

    Parameters
    ----------
    items
        The items with their tallies.
    noise
        The distribution that was sampled.
    record
        How the tallies came about.
    settings
        What to prove.
    configuration
        What the tallies depend on.
    progress
        Told how many items are certified, if it is a `CertifyingProgress`.
    """
    settings, reach = _completed(items, noise, record, settings)
    method = settings.method
    if method is not None:
        for item in items:
            method.require(item.layout, noise)
    tell = None if progress is None else progress.message
    certify = partial(certify_item, tell=tell) if method is None else method.certify
    certified: list[ItemResult] = []
    rules: list[Sharing] = []
    for item, settled in zip(items, settle_items(items, noise, settings, record), strict=True):
        tell_certifying(progress, len(certified), len(items))
        certified.append(consistent(certify(item, noise, settled)))
        rules.append(settled.sharing)
    tell_certifying(progress, len(items), len(items))
    every, certified = {target for item in certified for target in item.targets}, without_empty(certified)
    limit = (
        None if certifies_beyond(certified, np.array(settings.budgets) > 0) else reach_of_shares(items, noise, settings)
    )
    run = _facts(items, noise, record, settings, rules, configuration, reach=finite_reach({"budget": reach}))
    told = {target for item in certified for target in item.targets}
    weighed = {name for item in items for name in _weighed(item, settings)}
    run = replace(run, assumptions=(*run.assumptions, *left_out_words(settings.targets, told, weighed, every - told)))
    return build_dataset(certified, run if limit is None else replace(run, limit={"budget": limit}))


def _weighed(item: SampledItem, settings: Settings) -> list[str]:
    """Targets that are no counts, where a baseline counts."""
    if settings.method is None:
        return []
    stakes = item_stakes(item, item.votes.candidate.astype(np.int64), settings.targets)
    return [name for name, each in stakes.items() if not each.counts]


def assemble_overlaps(
    items: Sequence[SampledItem],
    noise: Noise,
    record: RunRecord,
    settings: Settings,
    configuration: RunIdentity | None,
    bound: Bound,
    tolerance: float,
    tell: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Certify IoU and Dice of every item and build the data set.

    Parameters
    ----------
    items, noise, record, settings, configuration
        As for `assemble`.
    bound, tolerance
        As for `localsmooth.collective.certify_overlap`.
    tell
        Told which item is next.
    """
    settings = _completed(items, noise, record, for_overlaps(settings))[0]
    made: list[ItemOverlap] = []
    each = settle_items(items, noise, settings, record)
    for item, settled in zip(items, each, strict=True):
        if tell is not None:
            tell(f"{item.name}: IoU and Dice")
        found = certify_overlaps(item, noise, settled, bound, tolerance)
        counted = np.ones(item.votes.candidate.size, np.bool_) if item.ignored is None else ~item.ignored.ravel()
        assert item.label is not None
        predicted = {"candidate": item.votes.candidate, "clean": item.votes.clean}
        measured = {
            name: measured_iou(each.astype(np.int64), item.label.ravel(), counted, len(record.class_names))
            for name, each in predicted.items()
            if each is not None
        }
        made.append(ItemOverlap(item.name, found, measured))
    run = _facts(items, noise, record, settings, [settled.sharing for settled in each], configuration)
    return build_overlaps(made, about_overlaps(run, bound))


def _completed(
    items: Sequence[SampledItem], noise: Noise, record: RunRecord, settings: Settings
) -> tuple[Settings, Mapping[str, float]]:
    """Settings with certificates and budgets filled in, and how far certificates can reach."""
    settings = settings.completed(noise)
    planned = Planned(record.n_candidate, record.n_bound, record.sequence)
    parts = [(item.image, item.layout, item.ignored) for item in items]
    reach = reach_of_items(parts, noise, less_reserve(settings, _charges(items, noise, record)[0]), planned)
    return with_budgets(settings, reach, noise), reach


def _facts(
    items: Sequence[SampledItem],
    noise: Noise,
    record: RunRecord,
    settings: Settings,
    rules: Sequence[Sharing],
    configuration: RunIdentity | None,
    **more: Any,
) -> RunInfo:
    method, threat, common = settings.method, settings.threat.words(noise, record.units), settings.common(rules)
    names = " and ".join(certificate.name for certificate in settings.certificates)
    charge = max((each for each in _charges(items, noise, record) if each is not None), default=None)
    ours = (f"Base certificates: {names}; bounds joined over all outputs by {common.simultaneous.name}.",)
    return run_facts(
        record,
        settings,
        [(item.layout, item.votes) for item in items],
        rules,
        configuration,
        (*(ours if method is None else method.assumptions(common)), *drawing_words(noise, charge)),
        one_basis=method is None,
        budgets={"budget": settings.budgets},
        norm=f"l{noise.norm}",
        bound_names=tuple(settings.bounds) if method is None else method.bound_names(settings),
        threat=threat,
        drawing_charge=charge,
        promise="" if method is None else method.promise(settings).format(threat=threat),
        **more,
    )


def settle_items(items: Sequence[SampledItem], noise: Noise, settings: Settings, record: RunRecord) -> list[Settings]:
    """What is proven of each item: with its share of α, and with a rule, where that is left to the candidate stage.

    Parameters
    ----------
    items, noise, settings, record
        As for `assemble`.

    Raises
    ------
    InvalidInputError
        If drawing from tables leaves more than what is set aside of α.
    """
    return [
        less_reserve(settings, charge).settled(item.votes, counting_groups(item), record.extended)
        for item, charge in zip(items, _charges(items, noise, record), strict=True)
    ]


def _charges(items: Sequence[SampledItem], noise: Noise, record: RunRecord) -> list[float | None]:
    made = {
        (id(item.layout), item.image.shape): drawing_charge(noise, item.layout, item.image.shape, record.n_bound)
        for item in {(id(item.layout), item.image.shape): item for item in items}.values()
    }
    return [made[id(item.layout), item.image.shape] for item in items]
