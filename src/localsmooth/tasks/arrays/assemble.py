"""From sampled items and settings to the labelled result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from localsmooth.bounds import Sharing
from localsmooth.execution import SamplingProgress, tell_certifying
from localsmooth.noise import Noise
from localsmooth.results import ItemResult, build_dataset, certifies_beyond, consistent, finite_reach
from localsmooth.runs import RunIdentity
from localsmooth.tasks.arrays.item import certify_item, counting_groups
from localsmooth.tasks.arrays.reach import reach_of_items, reach_of_shares, with_budgets
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import Settings
from localsmooth.tasks.description import run_facts
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import RunRecord

__all__ = ["assemble", "settle_items"]


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
    settings = settings.completed(noise)
    planned = Planned(record.n_candidate, record.n_bound, record.sequence)
    reach = reach_of_items([(item.image, item.layout, item.ignored) for item in items], noise, settings, planned)
    settings = with_budgets(settings, reach, noise)
    method = settings.method
    if method is not None:
        for item in items:
            method.require(item.layout, noise)
    names = " and ".join(certificate.name for certificate in settings.certificates)
    threat = settings.threat.words(noise)
    tell = None if progress is None else progress.message
    certify = partial(certify_item, tell=tell) if method is None else method.certify
    certified: list[ItemResult] = []
    rules: list[Sharing] = []
    for item, settled in zip(items, settle_items(items, settings, record), strict=True):
        tell_certifying(progress, len(certified), len(items))
        certified.append(consistent(certify(item, noise, settled)))
        rules.append(settled.sharing)
    tell_certifying(progress, len(items), len(items))
    limit = (
        None if certifies_beyond(certified, np.array(settings.budgets) > 0) else reach_of_shares(items, noise, settings)
    )
    common = settings.common(rules)
    ours = (f"Base certificates: {names}; bounds joined over all outputs by {common.simultaneous.name}.",)
    run = run_facts(
        record,
        settings,
        [(item.layout, item.votes) for item in items],
        rules,
        configuration,
        ours if method is None else method.assumptions(common),
        one_basis=method is None,
        budgets={"budget": settings.budgets},
        norm=f"l{noise.norm}",
        bound_names=tuple(settings.bounds) if method is None else method.bound_names(settings),
        threat=threat,
        promise="" if method is None else method.promise(settings).format(threat=threat),
        reach=finite_reach({"budget": reach}),
        limit={} if limit is None else {"budget": limit},
    )
    return build_dataset(certified, run)


def settle_items(items: Sequence[SampledItem], settings: Settings, record: RunRecord) -> list[Settings]:
    """Choose a rule for each item, where that is left to the candidate stage.

    Parameters
    ----------
    items, settings, record
        As for `assemble`.
    """
    return [settings.settled(item.votes, counting_groups(item), record.extended) for item in items]
