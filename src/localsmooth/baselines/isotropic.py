"""What the baselines have in common: one noise level, and results in the format of every other method."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates import ABSTAIN, Basis
from localsmooth.collective import Constraints, Threat
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import Noise
from localsmooth.results import CertifiedCurve, ItemResult
from localsmooth.tasks import Stakes
from localsmooth.tasks.arrays import ItemThreat, NormBall, SampledItem

__all__ = ["counted_curve", "item_result", "require_isotropic", "require_norm_ball", "require_one_ball"]


def require_isotropic(method: str, layout: Layout, noise: Noise, family: type[Noise] | tuple[type[Noise], ...]) -> None:
    """Refuse anything but one level of the right noise for all inputs and outputs.

    Raises
    ------
    InvalidInputError
        Naming the noise or the levels.
    """
    if not isinstance(noise, family):
        families = family if isinstance(family, tuple) else (family,)
        raise InvalidInputError(
            "noise",
            f"{method} is not defined for {type(noise).__name__} noise",
            f"Use {' or '.join(one.__name__ for one in families)}",
        )
    first = layout.levels[0, 0]
    if not (np.isfinite(first).all() and bool((layout.levels == first).all())):
        raise InvalidInputError(
            "layout",
            f"{method} takes isotropic noise, and the level matrix holds different levels",
            "Use cells [1, 1], or the same smallest and largest level",
        )


def require_norm_ball(method: str, threat: ItemThreat) -> None:
    """Refuse a threat that the method would not look at: its result would speak of it, and hold for the ball alone.

    Raises
    ------
    InvalidInputError
        If it is anything but a norm ball.
    """
    if not isinstance(threat, NormBall):
        raise InvalidInputError("threat", f"{method} holds for l2 balls", "Leave the threat out")


def require_one_ball(method: str, threat: Threat, columns: int) -> Constraints:
    """Spell out a threat that is one ball over all columns, with caps.

    Raises
    ------
    InvalidInputError
        If the threat has other rows, or limits the number of attacked groups.
    """
    constraints = threat.constraints(columns)
    if constraints.limits or constraints.rows.shape[0] != 1 or not bool((constraints.rows == 1).all()):
        raise InvalidInputError(
            "threat", f"{method} takes one budget for all perturbations together", "Use a norm ball, or Flips"
        )
    return constraints


def counted_curve(
    counts: Int[np.ndarray, "budgets"], spent: Float[np.ndarray, "budgets"], groups: int
) -> CertifiedCurve:
    """Counts that an attack of the whole budget attains, wherever it is spent: shown in the first input group.

    Parameters
    ----------
    counts
        Certified outputs at each budget.
    spent
        Σ|δ|^p at each budget.
    groups
        Number of input groups.
    """
    attack = np.zeros((counts.size, groups))
    attack[:, 0] = spent
    whole = counts.astype(np.float64)
    return CertifiedCurve(counts, whole, whole, attack)


def item_result(
    item: SampledItem,
    *,
    prediction: Int[np.ndarray, "outputs"],
    lower: Float[np.ndarray, "outputs"],
    eta: Float[np.ndarray, "outputs"],
    radius: Float[np.ndarray, "outputs"],
    curves: Mapping[tuple[str, str], CertifiedCurve],
    counted: Mapping[str, Stakes],
    basis: Basis = Basis.VOTES,
) -> ItemResult:
    """Put what a baseline says about an item into the common format.

    Parameters
    ----------
    item
        The item with its tallies.
    prediction, lower, eta, radius
        As in `ItemResult`, in flat order.
    curves
        The certified counts, by target and bound.
    counted
        What each of the targets makes of the outputs.
    basis
        What the outputs that do not abstain rely on.
    """
    shape = item.layout.outputs.shape
    return ItemResult(
        name=item.name,
        label=item.label,
        ignored=item.ignored,
        candidate=item.votes.candidate.reshape(shape),
        prediction=prediction.reshape(shape),
        votes=item.votes.votes.reshape(shape),
        lower_probability=lower.reshape(shape),
        eta=eta.reshape(shape),
        radius=radius.reshape(shape),
        output_group=item.layout.outputs.labels.astype(np.int64),
        input_group=item.layout.inputs.labels.astype(np.int64),
        curves=curves,
        relies_on=np.where(prediction == ABSTAIN, Basis.NOTHING, basis).reshape(shape),
        image=item.image if item.layout.inputs.labels.ndim == item.image.ndim - 1 else None,
        clean=None if item.votes.clean is None else item.votes.clean.reshape(shape),
        stakes={target: stakes.stake for target, stakes in counted.items()},
    )
