"""The result of one item, as the certification computes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from localsmooth.certificates import ABSTAIN, Basis
from localsmooth.errors import InvalidInputError
from localsmooth.results.names import ACCURACY, AGREEMENT, RATIO
from localsmooth.results.run import RunInfo

__all__ = ["CertifiedCurve", "ItemResult", "Stake", "check_item", "consistent", "without_empty"]


@dataclass(frozen=True, eq=False)
class CertifiedCurve:
    """What one collective bound proves about one target, over all budgets.

    Of several kinds of budget every combination is a row, in the order of `RunInfo.budgets`, the last kind fastest.

    Parameters
    ----------
    certified
        Number of target outputs that provably keep their prediction, at each budget, or what they are worth.
    lower
        The proven value before it is rounded up to `certified`.
    upper
        Number of target outputs left by the best attack plan that was found: no certificate from the same base
        certificates can be larger. NaN where none was computed.
    attack
        Budget b_l = Σ|δ|^p that this plan spends in each input group, at each budget; of each kind, where there are
        several.
    falls
        Whether this plan breaks an output's certificate; None where that is not told.
    """

    certified: Real[np.ndarray, "budgets"]
    lower: Float[np.ndarray, "budgets"]
    upper: Float[np.ndarray, "budgets"]
    attack: Float[np.ndarray, "budgets *kinds input_groups"]
    falls: Bool[np.ndarray, "budgets *out"] | None = None

    def at_least(self, part: CertifiedCurve) -> CertifiedCurve:
        """Raise what is proven to what is proven otherwise of the same targets, or of some of them."""
        certified, lower = np.maximum(self.certified, part.certified), np.maximum(self.lower, part.lower)
        # Certificates that were made for one target can be stronger for it than those of all outputs.
        return replace(self, certified=certified, lower=lower, upper=np.maximum(self.upper, certified))


@dataclass(frozen=True)
class Stake:
    """What one target makes of one item.

    Parameters
    ----------
    most
        The most that could be certified: what all outputs are worth that qualify.
    total
        What all outputs are worth, the denominator of every share.
    counts
        Whether every output is worth 1 or nothing, so that sums are numbers of outputs.
    """

    most: float
    total: float
    counts: bool = True


@dataclass(frozen=True, eq=False)
class ItemResult:
    """Predictions, certificates and collective bounds of one item.

    Parameters
    ----------
    name
        Name of the item, unique in its run.
    label
        True classes; None for an unlabelled item.
    ignored
        Outputs that do not count (void labels, nodes outside the test set); None if all count.
    candidate
        Class that is certified, from the N₁ samples.
    prediction
        The candidate, or `ABSTAIN` where η is 0.
    votes
        How many of the N₂ samples voted for the candidate.
    lower_probability
        Simultaneous lower confidence bound q on the candidate's probability, or on its mean score where the output
        relies on scores.
    eta
        Threshold η of the base certificate.
    radius
        Certified radius of each output on its own, in the units of the budgets; 0 where it abstains. Every perturbation
        that is strictly smaller is tolerated; a method that looks no farther than the largest budget reports no more.
    output_group
        Output group of each output.
    input_group
        Input group of each spatial position of the input.
    curves
        The collective bounds, by (target, bound), such as ("ratio", "lp").
    image
        The input, channels first; None where it is not to be kept.
    relies_on
        `Basis` of each output's certificate, NOTHING where it abstains; None where all rely on votes.
    alone
        Whether an output keeps its prediction against every attack of a budget, whoever else it is aimed at; as
        `edges` and `places`, None where outputs are not drawn with their edges.
    edges
        Pairs of outputs, each once.
    places
        Where each output is drawn, in the unit square.
    clean
        What the base classifier predicts without noise; None if it was not asked.
    stakes
        What each target makes of the item; may leave out ratio and accuracy, which follow from the rest.
    """

    name: str
    label: Int[np.ndarray, "*out"] | None
    ignored: Bool[np.ndarray, "*out"] | None
    candidate: Int[np.ndarray, "*out"]
    prediction: Int[np.ndarray, "*out"]
    votes: Int[np.ndarray, "*out"]
    lower_probability: Float[np.ndarray, "*out"]
    eta: Float[np.ndarray, "*out"]
    radius: Float[np.ndarray, "*out"]
    output_group: Int[np.ndarray, "*out"]
    input_group: Int[np.ndarray, "*space"]
    curves: Mapping[tuple[str, str], CertifiedCurve]
    image: Float[np.ndarray, "channels *space"] | None = None
    relies_on: Int[np.ndarray, "*out"] | None = None
    alone: Bool[np.ndarray, "budgets *out"] | None = None
    edges: Int[np.ndarray, "edges 2"] | None = None
    places: Float[np.ndarray, "*out 2"] | None = None
    clean: Int[np.ndarray, "*out"] | None = None
    stakes: Mapping[str, Stake] = field(default_factory=dict[str, Stake])

    @property
    def counted(self) -> Bool[np.ndarray, "*out"]:
        """Outputs that count: all that are not ignored."""
        return np.ones(self.prediction.shape, dtype=bool) if self.ignored is None else ~self.ignored

    @property
    def basis(self) -> Int[np.ndarray, "*out"]:
        """`Basis` of each output's certificate."""
        votes = np.where(self.prediction == ABSTAIN, Basis.NOTHING, Basis.VOTES)
        return votes if self.relies_on is None else self.relies_on

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets of this item's curves, in the order in which they are stored."""
        return tuple(dict.fromkeys(target for target, _ in self.curves))

    def stake(self, target: str) -> Stake | None:
        """What a target makes of the item; None if that is not known."""
        if target not in (RATIO, ACCURACY):
            return self.stakes.get(target)
        alive = self.counted & (self.prediction != ABSTAIN)
        if target == ACCURACY:
            alive &= self.prediction == self.label if self.label is not None else False
        return Stake(float(alive.sum()), float(self.counted.sum()))


def consistent(item: ItemResult) -> ItemResult:
    """Let no bound prove less of all outputs than of some among them, which prove it for all."""
    curves = dict(item.curves)
    for (target, bound), part in item.curves.items():
        if target in (ACCURACY, AGREEMENT) and (RATIO, bound) in curves:
            curves[RATIO, bound] = curves[RATIO, bound].at_least(part)
    return replace(item, curves=curves)


def without_empty(items: Sequence[ItemResult]) -> list[ItemResult]:
    """Leave out targets for which no output of any item counts, so that there is no share of it; not all of them."""
    known = {target for item in items for target in item.targets}
    empty = {target for target in known if all(_is_empty(item.stake(target)) for item in items)}
    if empty == known:
        return list(items)
    return [
        replace(
            item,
            curves={key: curve for key, curve in item.curves.items() if key[0] not in empty},
            stakes={target: stake for target, stake in item.stakes.items() if target not in empty},
        )
        for item in items
    ]


def _is_empty(stake: Stake | None) -> bool:
    return stake is not None and stake.total == 0


class _Demand:
    """Raises where something about an item does not hold."""

    def __init__(self, item: str) -> None:
        self.item = item

    def __call__(self, holds: bool | np.bool_, field: str, problem: str, remedy: str) -> None:
        if not holds:
            raise InvalidInputError(f"{field} of item {self.item!r}", problem, remedy)


def check_item(item: ItemResult, run: RunInfo) -> None:
    """Refuse an item whose arrays do not fit together, are out of range or certify what cannot be certified."""
    classes, counted, demand = len(run.class_names), item.counted, _Demand(item.name)
    shape = item.prediction.shape
    for name in (
        "label",
        "ignored",
        "candidate",
        "votes",
        "lower_probability",
        "eta",
        "radius",
        "output_group",
        "basis",
        "clean",
    ):
        array = getattr(item, name)
        demand(array is None or array.shape == shape, name, "differs in shape from the prediction", "Use one shape")
    if item.image is not None:
        demand(item.image.shape[1:] == item.input_group.shape, "image", "does not fit input_group", "Channels first")
        demand(np.isfinite(item.image).all(), "image", "holds NaN or infinity", "Pass finite values")
    if item.label is not None:
        truth = item.label[counted]
        demand(
            ((truth >= 0) & (truth < classes)).all(), "label", f"is outside 0 … {classes - 1}", "Ignore other outputs"
        )
    inside = (item.candidate >= 0) & (item.candidate < classes)
    demand(inside.all(), "candidate", f"is outside 0 … {classes - 1}", "Pass classes")
    abstains = item.prediction == ABSTAIN
    demand(
        (abstains | (item.prediction == item.candidate)).all(),
        "prediction",
        "is neither the candidate nor ABSTAIN",
        "Certify the candidate or abstain",
    )
    demand(((item.votes >= 0) & (item.votes <= run.n_bound)).all(), "votes", "are outside 0 … n_bound", "Recount")
    q = item.lower_probability
    demand(((q >= 0) & (q <= 1)).all(), "lower_probability", "is outside [0, 1] or NaN", "Pass probabilities")
    demand((item.eta >= 0).all(), "eta", "is negative or NaN", "Pass thresholds >= 0")
    demand((item.radius >= 0).all(), "radius", "is negative or NaN", "Pass radii >= 0")
    demand(((item.eta > 0) == ~abstains).all(), "eta", "is not 0 exactly where it abstains", "Abstain where eta is 0")
    known = np.isin(item.basis, list(Basis)) & ((item.basis == Basis.NOTHING) == abstains)
    demand(known.all(), "relies_on", "is no basis, or not NOTHING exactly where it abstains", "Pass values of Basis")
    demand((item.radius[abstains] == 0).all(), "radius", "is positive where it abstains", "Use 0 there")
    demand((item.output_group >= 0).all(), "output_group", "is negative", "Number the groups from 0")
    demand((item.input_group >= 0).all(), "input_group", "is negative", "Number the groups from 0")
    keys = {(target, bound) for target in item.targets for bound in run.bound_names}
    demand(bool(keys) and set(item.curves) == keys, "curves", "do not cover every target and bound", "Fill them all")
    for (target, bound), curve in item.curves.items():
        field = f"curves[{target!r}, {bound!r}]"
        demand(target != ACCURACY or item.label is not None, field, "needs labels", "Leave accuracy out")
        stake = item.stake(target)
        demand(stake is not None, "stakes", f"do not say what {target!r} is worth", "Add a Stake")
        assert stake is not None
        _check_curve(curve, field, stake, run, demand)
        groups = int(item.input_group.max(initial=-1)) + 1
        demand(
            curve.attack.shape[-1] >= groups, field, "attacks fewer groups than input_group names", "One column each"
        )


def _check_curve(curve: CertifiedCurve, field: str, stake: Stake, run: RunInfo, demand: _Demand) -> None:
    rows = math.prod(map(len, run.budgets.values()))
    for array in (curve.certified, curve.lower, curve.upper, curve.attack):
        demand(len(array) == rows, field, "does not have one row per budget", "Pass one value per budget")
    kinds = (len(run.budgets),) if len(run.budgets) > 1 else ()
    demand(curve.attack.shape[1:-1] == kinds, field, "does not have one attack per kind of budget", "One row each")
    demand((curve.certified >= 0).all(), field, "certifies a negative number", "Clip at 0")
    demand(
        (curve.certified <= stake.most).all(),
        field,
        f"certifies more than the {stake.most:g} that could be certified",
        "Count ignored, abstaining and, for accuracy, wrong outputs out",
    )
    proven = not stake.counts or bool((curve.certified <= np.ceil(curve.lower)).all())
    demand(proven, field, "certifies more than it proves", "Round lower up")
    known = ~np.isnan(curve.upper)
    demand(
        (curve.certified[known] <= curve.upper[known]).all(),
        field,
        "certifies more outputs than the best attack leaves",
        "One of the two is wrong: pass NaN for an upper bound that is not an integer count",
    )
    attack = curve.attack
    demand((np.isfinite(attack) & (attack >= 0)).all(), field, "has a negative or NaN attack", "Pass budgets >= 0")
