"""One item: from its votes to its certified counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int

from localsmooth.certificates import ABSTAIN, BaseCertificates, certify_outputs
from localsmooth.collective import Problem, Threat, solve
from localsmooth.noise import Noise
from localsmooth.results import ACCURACY, RATIO, CertifiedCurve, ItemResult
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.settings import Settings

__all__ = ["certify_item", "target_kinds", "target_masks"]


def target_masks(item: SampledItem, prediction: Int[np.ndarray, "outputs"]) -> dict[str, Bool[np.ndarray, "outputs"]]:
    """Outputs that can count towards each target: those not ignored and not abstaining, and the correct among them.

    Parameters
    ----------
    item
        The item.
    prediction
        Predicted class of each output, or `ABSTAIN`.
    """
    counted = np.ones(prediction.size, dtype=np.bool_) if item.ignored is None else ~item.ignored.ravel()
    targets = {RATIO: counted & (prediction != ABSTAIN)}
    if item.label is not None:
        targets[ACCURACY] = targets[RATIO] & (prediction == item.label.ravel())
    return targets


def target_kinds(item: SampledItem) -> Int[np.ndarray, "outputs"]:
    """Which outputs are targets together: 1 for those whose candidate is correct, 0 for others, −1 for ignored ones.

    Parameters
    ----------
    item
        The item.
    """
    kind = np.zeros(item.votes.candidate.size, dtype=np.int8)
    if item.label is not None:
        kind[item.votes.candidate == item.label.ravel()] = 1
    if item.ignored is not None:
        kind[item.ignored.ravel()] = -1
    return kind


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
    group = item.layout.outputs.labels.ravel()
    certified = certify_outputs(
        item.votes,
        noise,
        item.layout.levels,
        group,
        alpha=settings.alpha,
        certificates=settings.certificates,
        simultaneous=settings.simultaneous,
        score_bound=settings.score_bound,
        kind=target_kinds(item),
    )
    base, alone = certified.base, certified.shown.base
    threshold = alone.eta if alone.eta.ndim == 1 else alone.eta.max(axis=0)
    threat = settings.threat.threat(settings.budgets, item.image, item.layout, noise)
    say = tell and (lambda text: tell(f"{item.name}: {text}"))
    curves = {
        (target, name): curve
        for target, mask in target_masks(item, base.prediction).items()
        for name, curve in _curves(base, mask, threat, item.layout.inputs.count, settings, say).items()
    }
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
    )


def _curves(
    base: BaseCertificates,
    mask: Bool[np.ndarray, "outputs"],
    threat: Threat,
    input_groups: int,
    settings: Settings,
    tell: Callable[[str], None] | None,
) -> dict[str, CertifiedCurve]:
    """Certified counts of one target set under every collective bound."""
    budgets = len(settings.budgets)
    if not mask.any():
        nothing = np.zeros(budgets)
        empty = CertifiedCurve(np.zeros(budgets, np.int64), nothing, nothing, np.zeros((budgets, input_groups)))
        return dict.fromkeys(settings.bounds, empty)
    base.require_whole(mask)
    problem = Problem(base.weights, base.eta, base.group, threat, mask)
    made: dict[str, CertifiedCurve] = {}
    for name, bound in settings.bounds.items():
        solved = solve(problem, bound, progress=tell and (lambda step, name=name: tell(f"{name}, {step}")))
        made[name] = CertifiedCurve(
            certified=np.maximum(solved.certified - base.discount, 0),
            lower=np.maximum(solved.lower - base.discount, 0.0),
            upper=solved.upper.astype(np.float64),
            # Where kinds of perturbation are told apart, what is shown is their sum in each input group.
            attack=np.stack([answer.attack.reshape(-1, input_groups).sum(axis=0) for answer in solved]),
        )
    return made
