"""Certified intersection over union (IoU) and Dice of each class, over everything that one adversary can do.

Fix a class c. Among the targets, D in all, P have label c. At a spending b, a target that is certified keeps its
prediction; of any other nothing is known: it may take every label. With the true and false positives TP and FP, and the
missed FN = P − TP,

    IoU = TP / (TP + FP + FN) = TP / (P + FP).

*What b leaves.* Let A(b) be the number of certified targets with label c and prediction c, and B(b) that of certified
targets with another label and a prediction other than c. The first are true positives, whatever the rest does, and the
second no false ones: TP ≥ A(b) and FP ≤ (D − P) − B(b). IoU rises in TP and falls in FP, so that
IoU ≥ A(b) / (D − B(b)). An outcome attains it: all targets of label c that are not certified take another label, all
others that are not certified take c.

*Over all b*, IoU ≥ t holds if and only if A(b) + t · B(b) ≥ t · D for all b: a collective problem in which targets
count 1, t and 0. So *every* t tried proves something. If L ≤ A(b) + t · B(b) for all b, then A(b) / (D − B(b)) is at
least (L − t · B(b)) / (D − B(b)), whose derivative in B(b) has the sign of L − t · D. Hence, for all b,

    IoU ≥ L / D ≥ t                               if L ≥ t · D (B = 0 is worst), and
    IoU ≥ (L − t · B(0)) / (D − B(0))             otherwise (B = B(0), where nothing is spent, is worst).

The search takes t from the best attack known, A(b) / (D − B(b)) (Dinkelbach 1967: where that is the optimum and L
exact, L = t · D proves it), and bisects between what was proven and what was not once attacks get no better.

*Dice* = 2 TP / (2 TP + FP + FN) = 2 · IoU / (1 + IoU) for every outcome: divide by TP + FP + FN. It rises in IoU, so
that the least Dice over all spendings and outcomes is 2t / (1 + t), t the least IoU, and bounds and attacks of one are
those of the other. (Without the detour: Dice ≥ 2 A / (A + D − B), so that Dice ≥ s if and only if
(2 − s) · A + s · B ≥ s · D for all b. With s = 2t / (1 + t) that is the condition for IoU times 2 / (1 + t).)

*Certificates that are true of counts.* Let up to d certificates be wrong besides (k-FWER), whichever they are. Then,
for some i + j ≤ d, TP ≥ A(b) − i and FP ≤ (D − P) − B(b) + j; (A − i) / (D − B + j) is least for i = d: A + B ≤ D. So
all of the above holds with L − d for L and max(0, A − d) for A in attacks. Bounds on counts per stratum, of outputs
that share label and prediction (`JointCount`), need no more: if in every stratum no more outputs fail than certificates
say, in one and the same event for all strata and all b, then A(b) and B(b), which are sums over whole strata, bound TP
and FP as they are; which outputs of a stratum fail plays no role in either.

*The mean over classes* is, at every b, at least the mean of the classes' minima. It need not be attained: no attack
need be the worst for all classes, and a target can become a false positive of one class only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.collective.kernel.arrays import Number, Numbers
from localsmooth.collective.kernel.attack import standing
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.threat import Constraints, Threat
from localsmooth.collective.kernel.verify import CertificateError
from localsmooth.collective.kernel.worth import rounded_down, rounded_up
from localsmooth.collective.search.names import AnyBound
from localsmooth.collective.solving import solve
from localsmooth.errors import InvalidInputError, require_kind, require_whole_number

__all__ = ["Overlap", "certify_overlap"]

_ROUNDS = 40
_STEPS = 2**24
_FINEST = 1e-6


@dataclass(frozen=True, eq=False)
class Overlap:
    """Bounds on IoU and Dice, per class and budget, and in the mean; NaN for classes that no target has as its label.

    Parameters
    ----------
    classes
        The classes.
    iou
        Proven: whatever the adversary does, the IoU of the class is at least that. Rounded down.
    iou_upper
        What the best attack found leaves, if all that it breaks turns against the class: the certificate cannot be
        improved beyond it. Rounded up.
    attack
        What that attack spends in each column.
    mean_iou_upper
        What one attack leaves of the mean over the classes that are labels, if each target that it breaks takes the
        next class. Rounded up.
    mean_dice_upper
        The same attacks' least mean of Dice.
    """

    classes: Int[np.ndarray, "classes"]
    iou: Float[np.ndarray, "classes budgets"]
    iou_upper: Float[np.ndarray, "classes budgets"]
    attack: Float[np.ndarray, "classes budgets columns"]
    mean_iou_upper: Float[np.ndarray, "budgets"]
    mean_dice_upper: Float[np.ndarray, "budgets"]

    @property
    def dice(self) -> Float[np.ndarray, "classes budgets"]:
        """Proven: the Dice of each class is at least that. Rounded down."""
        return _each(self.iou, lambda t: rounded_down(_dice(t)))

    @property
    def dice_upper(self) -> Float[np.ndarray, "classes budgets"]:
        """What the best attack found leaves. Rounded up."""
        return _each(self.iou_upper, lambda t: rounded_up(_dice(t)))

    @property
    def mean_iou(self) -> Float[np.ndarray, "budgets"]:
        """Proven: the mean IoU over the classes that are labels is at least that. Rounded down."""
        return _means(self.iou)

    @property
    def mean_dice(self) -> Float[np.ndarray, "budgets"]:
        """Proven: the mean Dice over the classes that are labels is at least that. Rounded down."""
        return _means(self.dice)


def certify_overlap(
    problem: Problem,
    predictions: Numbers,
    labels: Numbers,
    classes: Numbers | None = None,
    bound: AnyBound | None = None,
    tolerance: Number = 1e-3,
    verify: bool = False,
    discount: int = 0,
) -> Overlap:
    """Bound the IoU and Dice of each class over all attacks, for each budget of the threat.

    Parameters
    ----------
    problem
        Certificates of the outputs and threat; its targets are the outputs that count, right or wrong (leave out
        those whose label is to be ignored). Without values.
    predictions
        The class that each output keeps while it is certified, a whole number [outputs]; that of an output that
        abstains (η = 0) plays no role.
    labels
        The true class of each output.
    classes
        The classes of interest, which are put in order; those among the targets' labels by default.
    bound
        How hard to try, as for `solve`. A time limit is for each t that is tried; a gap counts fractions of targets.
    tolerance
        Width of IoU at which to stop between what was proven and what was not, at least 10⁻⁶.
    verify
        Prove every bound that is used again in exact rational arithmetic.
    discount
        Number of certificates that may be wrong besides, whichever they are (`BaseCertificates.discount`).

    Raises
    ------
    InvalidInputError
        For arrays of other shapes, labels that are no whole numbers, a problem with values, and whatever is of another
        kind than described.
    CertificateError
        If a bound and an attack contradict each other, or exact arithmetic does not confirm a bound.
    """
    require_kind("problem", problem, Problem)
    require_whole_number("discount", discount, 0, "Pass a number of certificates, or leave it out")
    if problem.value is not None:
        raise InvalidInputError("problem", "has values", "leave `value` out: here all targets count alike")
    if not isinstance(tolerance, Real) or not tolerance >= _FINEST:
        raise InvalidInputError("tolerance", f"is {tolerance!r}", f"give a number ≥ {_FINEST}")
    targets = problem.targets
    predicted = _classes("predictions", predictions, problem.outputs)[targets]
    true = _classes("labels", labels, problem.outputs)[targets]
    present = np.unique(true)
    named = present if classes is None else np.unique(_classes("classes", classes))
    budgets = len(problem.constraints.budgets)
    settled = _Settled(problem, float(tolerance), bound, verify, int(discount))
    shape = (len(named), budgets)
    iou, upper, attack = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros((*shape, problem.columns))
    for place, name in enumerate(named.tolist()):
        if name in present:
            found = settled.curve((true == name) & (predicted == name), (true != name) & (predicted != name))
            for budget, (low, high, spending) in enumerate(found):
                iou[place, budget], upper[place, budget] = rounded_down(low), rounded_up(high)
                attack[place, budget] = spending
    chosen = np.intersect1d(named, present)
    means = np.full((2, budgets), 1.0 if len(chosen) else np.nan)
    for budget in range(budgets) if len(chosen) else ():
        for spending in [*attack[:, budget], np.zeros(problem.columns)]:
            left = _turned(true, predicted, standing(problem, spending), present, chosen)
            for row, values in enumerate((left, [_dice(one) for one in left])):
                means[row, budget] = min(means[row, budget], rounded_up(sum(values, Fraction(0)) / len(left)))
    return Overlap(named, iou, upper, attack, means[0], means[1])


_Bounds = tuple[Fraction, Fraction, np.ndarray]
"""A proven least ratio, that of an attack, and the attack."""


@dataclass(frozen=True, eq=False)
class _Settled:
    """Least ratios A(b) / (D − B(b)) of one problem."""

    problem: Problem
    tolerance: float
    bound: AnyBound | None
    verify: bool
    discount: int

    def _left(
        self, stands: Bool[np.ndarray, "targets"], hit: Bool[np.ndarray, "targets"], spared: Bool[np.ndarray, "targets"]
    ) -> Fraction:
        """What is left where some targets stand."""
        top = max(int(np.count_nonzero(stands & hit)) - self.discount, 0)
        return Fraction(top, len(hit) - int(np.count_nonzero(stands & spared)))

    def curve(self, hit: Bool[np.ndarray, "targets"], spared: Bool[np.ndarray, "targets"]) -> list[_Bounds]:
        """Bound the least ratio at every budget; bounds serve smaller budgets, and attacks larger ones.

        Parameters
        ----------
        hit, spared
            Which targets count for A and for B.
        """
        budgets = self.problem.constraints.budgets
        found: dict[int, _Bounds] = {}
        for index in sorted(range(len(budgets)), key=lambda i: tuple(np.sort(budgets[i])[::-1]), reverse=True):
            wider = [found[other][0] for other in found if bool(np.all(budgets[other] >= budgets[index]))]
            found[index] = self._least(index, hit, spared, max(wider, default=Fraction(0)))
        shared: list[_Bounds] = []
        for index in range(len(budgets)):
            inside = [found[other] for other in found if bool(np.all(budgets[other] <= budgets[index]))]
            _, high, attack = min(inside, key=lambda bounds: bounds[1])
            if found[index][0] > high:
                raise CertificateError("a bound on an overlap lies above an attack: please report it")
            shared.append((found[index][0], high, attack))
        return shared

    def _least(
        self, index: int, hit: Bool[np.ndarray, "targets"], spared: Bool[np.ndarray, "targets"], low: Fraction
    ) -> _Bounds:
        problem, whole, threat = self.problem, len(hit), _At(self.problem.constraints, index)
        attack = np.zeros(problem.columns)
        stands = standing(problem, attack)
        most = int(np.count_nonzero(stands & spared))
        high = failed = t = self._left(stands, hit, spared)
        for _ in range(_ROUNDS):
            if low >= high:
                break
            value = np.zeros(problem.outputs)
            value[problem.targets] = t.denominator * hit + t.numerator * spared
            weighted = Problem(problem.weights, problem.eta, problem.group, threat, problem.targets, value)
            answer = solve(weighted, self.bound, self.verify)[0]
            proven = Fraction(answer.certified) / t.denominator - self.discount
            if proven >= t * whole:
                low = max(low, proven / whole)
            else:
                low, failed = max(low, (proven - t * most) / (whole - most)), min(failed, t)
            stands = standing(problem, answer.attack)
            left = self._left(stands, hit, spared)
            if left < high:
                high = failed = t = left
                attack = answer.attack
            elif failed - low <= self.tolerance:
                break
            else:
                t = Fraction(round((low + failed) / 2 * _STEPS), _STEPS)
        return low, high, attack


@dataclass(frozen=True)
class _At(Threat):
    """A threat at one of its budgets."""

    whole: Constraints
    index: int

    def constraints(self, columns: int) -> Constraints:
        whole, index = self.whole, self.index
        return Constraints(whole.rows, whole.budgets[index : index + 1], whole.caps, whole.integer, whole.limits)


def _turned(
    true: Int[np.ndarray, "targets"],
    predicted: Int[np.ndarray, "targets"],
    stands: Bool[np.ndarray, "targets"],
    present: Int[np.ndarray, "present"],
    chosen: Int[np.ndarray, "chosen"],
) -> list[Fraction]:
    """Return the IoU of some classes where what does not stand takes the class after its own, none if there is one."""
    place = np.searchsorted(present, true)
    after = np.where(len(present) > 1, present[(place + 1) % len(present)], present[0] - 1)
    turned = np.where(stands, predicted, after)
    right = turned == true
    ratios: list[Fraction] = []
    for name in chosen:
        either = np.count_nonzero((turned == name) | (true == name))
        ratios.append(Fraction(int(np.count_nonzero(right & (true == name))), int(either)))
    return ratios


def _classes(name: str, values: object, number: int | None = None) -> Int[np.ndarray, "_"]:
    wanted = "give whole numbers" if number is None else f"give {number} whole numbers"
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:  # rows of different lengths
        raise InvalidInputError(name, f"is no array ({error})", wanted) from error
    shaped = array.ndim == 1 if number is None else array.shape == (number,)
    if not shaped or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise InvalidInputError(name, f"has shape {array.shape} and type {array.dtype}", wanted)
    return array.astype(np.int64)


def _dice(iou: Fraction) -> Fraction:
    return 2 * iou / (1 + iou)


def _each(
    values: Float[np.ndarray, "classes budgets"], change: Callable[[Fraction], float]
) -> Float[np.ndarray, "classes budgets"]:
    changed = [math.nan if math.isnan(value) else change(Fraction(value)) for value in values.ravel().tolist()]
    return np.array(changed, dtype=np.float64).reshape(values.shape)


def _means(values: Float[np.ndarray, "classes budgets"]) -> Float[np.ndarray, "budgets"]:
    known = [[Fraction(value) for value in column if not math.isnan(value)] for column in values.T.tolist()]
    return np.array([rounded_down(sum(some, Fraction(0)) / len(some)) if some else math.nan for some in known])
