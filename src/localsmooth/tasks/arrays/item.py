"""One item: from its votes to its certified counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from jaxtyping import Int

from localsmooth.certificates import BaseCertificates, CertifiedOutputs, certify_outputs
from localsmooth.collective import Bound, Overlap, Problem, Threat, certify_overlap, solve
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Noise
from localsmooth.results import CertifiedCurve, ItemResult
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import Settings
from localsmooth.tasks.asked_targets import stakes_of
from localsmooth.tasks.overlap import for_overlaps, label_pairs, require_labels
from localsmooth.tasks.stakes import Alike, Predicted, Stakes, alike, kinds_of
from localsmooth.tasks.targets import Target
from localsmooth.tasks.ways import best_curves, certified_ways

__all__ = [
    "bounded_outputs",
    "certified_curve",
    "certify_item",
    "certify_overlaps",
    "counted_outputs",
    "counting_groups",
    "item_stakes",
    "target_kinds",
]


def item_stakes(
    item: SampledItem, prediction: Int[np.ndarray, "outputs"], targets: Sequence[Target]
) -> Mapping[str, Stakes]:
    """What each target makes of an item.

    Parameters
    ----------
    item
        The item.
    prediction
        Predicted class of each output, or `ABSTAIN`.
    targets
        What is counted.
    """
    label = None if item.label is None else item.label.ravel()
    ignored = None if item.ignored is None else item.ignored.ravel()
    shape = item.layout.outputs.shape
    return stakes_of(targets, Predicted(prediction, label, item.votes.clean, ignored, item.class_names, shape))


def counted_outputs(
    item: SampledItem, prediction: Int[np.ndarray, "outputs"], targets: Sequence[Target]
) -> dict[str, Stakes]:
    """Do as `item_stakes`, for methods that count: targets whose outputs are worth 1 or nothing.

    Raises
    ------
    InvalidInputError
        If there is none.
    """
    counted = {name: stakes for name, stakes in item_stakes(item, prediction, targets).items() if stakes.counts}
    if not counted:
        raise InvalidInputError("targets", "the baseline counts outputs, and none of them is a count", "Add ratio")
    return counted


def target_kinds(item: SampledItem, targets: Sequence[Target]) -> Int[np.ndarray, "outputs"]:
    """Which outputs are worth the same to every target if their candidate stands, by number; −1 for ignored ones.

    Parameters
    ----------
    item
        The item.
    targets
        What is counted.
    """
    ignored = None if item.ignored is None else item.ignored.ravel()
    return kinds_of(item_stakes(item, item.votes.candidate.astype(np.int64), targets), ignored)


def counting_groups(item: SampledItem) -> Int[np.ndarray, "outputs"]:
    """Output group of each output, −1 for ignored ones.

    Parameters
    ----------
    item
        The item.
    """
    group = item.layout.outputs.labels.ravel()
    return group if item.ignored is None else np.where(item.ignored.ravel(), -1, group)


def certify_item(
    item: SampledItem, noise: Noise, settings: Settings, tell: Callable[[str], None] | None = None
) -> ItemResult:
    """Bound the votes, make the base certificates, and solve the collective problem for every target and bound.

    Parameters
    ----------
    item
        The item with its tallies.
    noise
        The distribution that was sampled.
    settings
        What to prove.
    tell
        Called with a line every few seconds while a bound takes long.
    """
    shape = item.layout.outputs.shape
    threat = settings.threat.threat(settings.budgets, item.image, item.layout, noise)
    say = tell and (lambda text: tell(f"{item.name}: {text}"))
    ignored = None if item.ignored is None else item.ignored.ravel()
    standing = item_stakes(item, item.votes.candidate.astype(np.int64), settings.targets)
    columns = item.layout.inputs.count
    kept: dict[int, CertifiedOutputs] = {}
    certified: CertifiedOutputs | None = None
    valued: dict[str, Stakes] = {}
    curves: dict[tuple[str, str], CertifiedCurve] = {}
    for target, stakes in standing.items():
        # Bounds on counts are made for each target, on one event that serves them all.
        made = certified_ways(settings.ways(), alike(stakes, ignored), partial(bounded_outputs, item, noise), kept)
        bases = [each.base for each in made]
        left = [stakes.left_by(base.prediction) for base in bases]

        def solved(
            way: int, name: str, bound: Bound, bases: list[BaseCertificates] = bases, left: list[Stakes] = left
        ) -> CertifiedCurve:
            return certified_curve(bases[way], left[way], threat, columns, name, bound, say)

        found = best_curves(settings.bounds, len(made), solved)
        curves |= {(target, name): curve for name, curve in found.items()}
        valued[target] = max(left, key=lambda each: each.stake.most)
        certified = made[0]
    assert certified is not None
    alone = certified.shown.base
    threshold = alone.eta if alone.eta.ndim == 1 else alone.eta.max(axis=0)
    return ItemResult(
        name=item.name,
        label=item.label,
        ignored=item.ignored,
        candidate=item.votes.candidate.reshape(shape),
        prediction=alone.prediction.reshape(shape),
        votes=item.votes.votes.reshape(shape),
        lower_probability=certified.shown.lower.reshape(shape),
        eta=threshold.reshape(shape),
        radius=settings.threat.radius(alone, item.image, item.layout, noise).reshape(shape),
        output_group=item.layout.outputs.labels,
        input_group=item.layout.inputs.labels,
        curves=curves,
        relies_on=None if alone.relies_on is None else alone.relies_on.reshape(shape),
        # A label map with channels of its own has no picture to be drawn over.
        image=item.image if item.layout.inputs.labels.ndim == item.image.ndim - 1 else None,
        clean=None if item.votes.clean is None else item.votes.clean.reshape(shape),
        stakes={target: stakes.stake for target, stakes in valued.items()},
    )


def certify_overlaps(item: SampledItem, noise: Noise, settings: Settings, bound: Bound, tolerance: float) -> Overlap:
    """Bound the votes, make the base certificates, and bound the IoU and Dice of every class.

    Parameters
    ----------
    item, noise, settings
        As for `certify_item`; targets and collective bounds play no role.
    bound, tolerance
        As for `localsmooth.collective.certify_overlap`.

    Raises
    ------
    InvalidInputError
        If there are no labels, or a baseline is to be used.
    """
    outputs = item.votes.candidate.size
    counted = np.ones(outputs, np.bool_) if item.ignored is None else ~item.ignored.ravel()
    label = require_labels(item.name, item.label, counted).ravel()
    candidate = item.votes.candidate.astype(np.int64)
    pairs = label_pairs(candidate, label, counted)
    base = bounded_outputs(item, noise, for_overlaps(settings), Alike(pairs, None)).base
    base.require_whole(pairs + 1)
    threat = settings.threat.threat(settings.budgets, item.image, item.layout, noise)
    problem = Problem(base.weights, base.eta, base.group, threat, counted)
    return certify_overlap(problem, candidate, label, None, bound, tolerance, discount=base.discount)


def bounded_outputs(item: SampledItem, noise: Noise, settings: Settings, outputs: Alike) -> CertifiedOutputs:
    """Bound the votes of an item and make the base certificates.

    Parameters
    ----------
    item, noise, settings
        As for `certify_item`.
    outputs
        Which of them are valued alike.
    """
    return certify_outputs(
        item.votes,
        noise,
        item.layout.levels,
        item.layout.outputs.labels.ravel(),
        alpha=settings.alpha,
        certificates=settings.certificates,
        simultaneous=settings.sharing,
        score_bound=settings.score_bound,
        kind=outputs.kind,
        worth=outputs.worth,
    )


def certified_curve(
    base: BaseCertificates,
    stakes: Stakes,
    threat: Threat,
    input_groups: int,
    name: str,
    bound: Bound,
    tell: Callable[[str], None] | None,
) -> CertifiedCurve:
    """What a collective bound certifies of one target.

    Parameters
    ----------
    base
        Base certificates of the outputs.
    stakes
        What they are worth.
    threat
        With the budgets.
    input_groups
        How many there are.
    name, bound
        The collective bound.
    tell
        As for `certify_item`.
    """
    if not stakes.qualify.any():
        budgets = len(threat.constraints(base.weights.shape[-1]).budgets)
        nothing = np.zeros(budgets)
        return CertifiedCurve(np.zeros(budgets, np.int64), nothing, nothing, np.zeros((budgets, input_groups)))
    base.require_whole(stakes.values)
    problem = Problem(base.weights, base.eta, base.group, threat, stakes.qualify, stakes.problem_value)
    solved = solve(problem, bound, progress=tell and (lambda step: tell(f"{name}, {step}")))
    return CertifiedCurve(
        certified=stakes.less(solved.certified, base.discount, base.spare),
        lower=stakes.less(solved.lower, base.discount, base.spare),
        upper=solved.upper.astype(np.float64),
        # Where kinds of perturbation are told apart, what is shown is their sum in each input group.
        attack=np.stack([answer.attack.reshape(-1, input_groups).sum(axis=0) for answer in solved]),
    )
