"""The collective problem: per-prediction certificates that share one adversary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.blocks import look_up
from localsmooth.collective.kernel.arrays import Numbers, plain_numbers
from localsmooth.collective.kernel.steps import Steps, left_behind, step_functions
from localsmooth.collective.kernel.threat import Constraints, Threat
from localsmooth.collective.kernel.worth import Worth, worth_of
from localsmooth.errors import InvalidInputError

__all__ = ["Pieces", "Problem"]

_MANY = 4  # budgets from which on it pays to prepare hulls


@dataclass(frozen=True, eq=False)
class Pieces:
    """The inequalities that hold targets up: one per output group and certificate, with the targets' step function.

    Parameters
    ----------
    weights
        W of each inequality.
    steps
        Units (`Worth`) of the group's targets left, counting this inequality alone.
    owner
        Output group (position among those with targets) of each inequality.
    groups
        Number of output groups with targets.
    eta, place
        Thresholds of the targets that can stand, and the group (position) of each.
    parts
        Units of these targets; None for one each.
    """

    weights: Float[np.ndarray, "pieces columns"]
    steps: tuple[Steps, ...]
    owner: Int[np.ndarray, "pieces"]
    groups: int
    eta: Float[np.ndarray, "certificates counted"]
    place: Int[np.ndarray, "counted"]
    parts: Float[np.ndarray, "counted"] | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def within(self, stop: Int[np.ndarray, "pieces"]) -> Pieces:
        """Return the inequalities with the counts that hold where each is fed less than its left end ``stop``.

        The left ends stay the same. With one certificate per output nothing changes. With several, an output that
        one of them holds up throughout stands in the eyes of the others as well.
        """
        if len(self.eta) == 1:
            return self
        last = np.array([s.thresholds[max(int(at) - 1, 0)] for s, at in zip(self.steps, stop, strict=True)])
        held = np.any(self.eta > last.reshape(len(self.eta), -1)[:, self.place], axis=0)
        steps: list[Steps] = []
        for piece, known in enumerate(self.steps):
            certificate, group = divmod(piece, self.groups)
            members = self.place == group
            own = np.where(held, np.inf, self.eta[certificate])[members]
            order = np.argsort(own, kind="stable")
            fallen = np.searchsorted(own[order], known.thresholds, side="right")
            parts = None if self.parts is None else self.parts[members][order]
            steps.append(Steps(known.thresholds, left_behind(parts, len(own), fallen)))
        return replace(self, steps=tuple(steps))

    def standing(self, feeds: Float[np.ndarray, "pieces"]) -> Float[np.ndarray, "groups"]:
        """Return how many units of each group stand at given feeds, to floating-point accuracy."""
        if len(self.eta) == 1:
            return np.array([s.count(float(feed)) for s, feed in zip(self.steps, feeds, strict=True)])
        stands = np.any(self.eta > feeds.reshape(len(self.eta), -1)[:, self.place], axis=0)
        held = stands if self.parts is None else stands * self.parts
        return np.bincount(self.place, held, self.groups).astype(np.float64)


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """What survives the worst input: min over b of Σ v_n over the targets n with Σ_l W[i,l] b_l < η_n.

    Floating-point arguments are taken as the exact real numbers they stand for; whoever computed them must have
    rounded weights up and thresholds down. Budgets are rounded up here. Arrays of float64 are not copied: leave them
    as they are while the problem is in use.

    Parameters
    ----------
    weights
        W ≥ 0 [output groups × input columns], or [certificates × output groups × input columns] where several
        certificates hold at once: an output then falls only where every one of its inequalities is broken.
    eta
        Thresholds η ≥ 0 [outputs], or [certificates × outputs]; 0 abstains (never robust), ``inf`` never falls.
    group
        Output group of each output.
    threat
        What the adversary may do, for one budget or a list of them.
    targets
        Indices, or a mask, of the outputs that count; all by default.
    value
        What each output counts, v ≥ 0 [outputs], 1 by default, so that the answer is a number of targets.

    Raises
    ------
    InvalidInputError
        For wrong shapes, NaN, negative numbers, labels out of range, or an empty list of targets.
    """

    weights: Float[np.ndarray, "certificates groups columns"]
    eta: Float[np.ndarray, "certificates outputs"]
    group: Int[np.ndarray, "outputs"]
    threat: Threat
    targets: Int[np.ndarray, "targets"]
    value: Float[np.ndarray, "outputs"] | None

    def __init__(
        self,
        weights: Numbers,
        eta: Numbers,
        group: Numbers,
        threat: Threat,
        targets: Numbers | None = None,
        value: Numbers | None = None,
    ) -> None:
        if not isinstance(threat, Threat):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError("threat", f"is a {type(threat).__name__}", "give a Threat, Ball(budgets) say")
        matrix = _numbers("weights", weights)
        thresholds = _numbers("eta", eta, infinite=True)
        W = matrix[None] if matrix.ndim == 2 else matrix
        thresholds = thresholds[None] if thresholds.ndim == 1 else thresholds
        if W.ndim != 3:
            raise InvalidInputError("weights", f"has shape {W.shape}", "give [output groups × input columns]")
        if thresholds.ndim != 2 or len(thresholds) != len(W):
            raise InvalidInputError(
                "eta", f"has shape {thresholds.shape}", f"give [outputs], or [{len(W)} certificates × outputs]"
            )
        if len(W) == 0:
            raise InvalidInputError("weights", "holds no certificate", "give at least one")
        outputs = thresholds.shape[1]
        labels = np.asarray(group)
        if labels.shape != (outputs,):
            raise InvalidInputError(
                "group", f"has shape {labels.shape}", f"give one group for each of {outputs} outputs"
            )
        if outputs and not np.issubdtype(labels.dtype, np.integer):
            raise InvalidInputError("group", f"has type {labels.dtype}", "give whole numbers")
        if labels.dtype.kind != "i":
            labels = labels.astype(np.int64)
        if outputs and not (int(labels.min()) >= 0 and int(labels.max()) < W.shape[1]):
            raise InvalidInputError("group", f"reaches outside 0 … {W.shape[1] - 1}", "give a row of the weights")
        object.__setattr__(self, "weights", W)
        object.__setattr__(self, "eta", thresholds)
        object.__setattr__(self, "group", labels)
        object.__setattr__(self, "threat", threat)
        object.__setattr__(self, "targets", _targets(targets, outputs))
        worth = None if value is None else _numbers("value", value)
        if worth is not None and worth.shape != (outputs,):
            raise InvalidInputError(
                "value", f"has shape {worth.shape}", f"give one number for each of {outputs} outputs"
            )
        object.__setattr__(self, "value", worth)
        _ = self.constraints, self.worth  # report a threat or values that do not fit at once

    @property
    def columns(self) -> int:
        """Number of input columns."""
        return self.weights.shape[2]

    @property
    def outputs(self) -> int:
        """Number of outputs, targets or not."""
        return self.eta.shape[1]

    @cached_property
    def worth(self) -> Worth:
        """What the targets count, in whole units."""
        if self.value is None:
            return Worth(Fraction(1), None, len(self.targets))
        return worth_of(self.value[self.targets])

    @cached_property
    def constraints(self) -> Constraints:
        """The threat, spelled out for these columns."""
        return self.threat.constraints(self.columns)

    @cached_property
    def pieces(self) -> Pieces:
        """The inequalities with their step functions; groups without targets are left out."""
        return self._pieces(self.eta[:, self._counted])

    def pieces_under(self, ceilings: Float[np.ndarray, "pieces"]) -> Pieces:
        """Return the inequalities, knowing the most that each can be fed.

        With several certificates per output, an output that one of them holds up for good stands in the eyes of the
        others as well.
        """
        if len(self.weights) == 1:
            return self.pieces
        eta = self.eta[:, self._counted]
        most = ceilings.reshape(len(self.weights), -1)[:, self._place]
        return self._pieces(np.where(np.any(eta > most, axis=0), np.inf, eta))

    @cached_property
    def group_labels(self) -> Int[np.ndarray, "present"]:
        """Output groups that hold at least one robust target, in order."""
        return np.flatnonzero(np.bincount(self.group[self._counted], minlength=self.weights.shape[1]))

    @cached_property
    def enough(self) -> float:
        """A spending that breaks everything that a column without limits can break."""
        eta = self.eta[np.isfinite(self.eta)]
        weights = self.weights[self.weights > 0]
        if eta.size == 0 or weights.size == 0:
            return 1.0
        with np.errstate(over="ignore"):
            enough = float(eta.max()) / float(weights.min()) * 2
        return enough if np.isfinite(enough) else 1e300

    @cached_property
    def column_enough(self) -> Float[np.ndarray, "columns"]:
        """For each column, a spending that breaks all that the column can break, rounded up."""
        last = np.array([steps.thresholds[-1] for steps in self.pieces.steps], dtype=np.float64)
        weights = self.pieces.weights
        with np.errstate(over="ignore"):
            ratio = np.divide(last[:, None], weights, out=np.zeros_like(weights), where=weights > 0)
            return np.nextafter(ratio.max(axis=0, initial=0.0), np.inf)

    @cached_property
    def _counted(self) -> Int[np.ndarray, "counted"]:
        return self.targets[self._counts]

    @cached_property
    def _counts(self) -> Bool[np.ndarray, "targets"]:
        """Which targets can stand, and are worth something."""
        stands = np.any(self.eta[:, self.targets] > 0, axis=0)
        return stands if self.worth.parts is None else stands & (self.worth.parts > 0)

    @cached_property
    def _parts(self) -> Float[np.ndarray, "counted"] | None:
        parts = None if self.worth.parts is None else self.worth.parts[self._counts]
        return None if parts is None or bool(np.all(parts == 1)) else parts

    @cached_property
    def _place(self) -> Int[np.ndarray, "counted"]:
        groups = self.weights.shape[1]
        places = np.zeros(groups, dtype=np.int16 if groups <= 1 << 15 else np.int64)
        places[self.group_labels] = np.arange(len(self.group_labels))
        return look_up(places, self.group[self._counted])

    def _pieces(self, eta: Float[np.ndarray, "certificates counted"]) -> Pieces:
        present = self.group_labels
        # With several certificates the step functions change from budget to budget.
        hulls = len(self.weights) == 1 and len(self.constraints.budgets) >= _MANY
        steps = [part for row in eta for part in step_functions(row, self._place, len(present), hulls, self._parts)]
        weights = self.weights[:, present].reshape(len(steps), self.columns)
        return Pieces(
            weights,
            tuple(steps),
            np.tile(np.arange(len(present)), len(self.weights)),
            len(present),
            eta,
            self._place,
            self._parts,
        )


def _numbers(field: str, values: Numbers, infinite: bool = False) -> Float[np.ndarray, "..."]:
    array = plain_numbers(field, values)
    if not bool(np.all(array >= 0)):
        remedy = "give numbers ≥ 0 (infinity for what never falls)" if infinite else "give finite numbers ≥ 0"
        raise InvalidInputError(field, "holds a negative number or NaN", remedy)
    if not infinite and not bool(np.all(np.isfinite(array))):
        raise InvalidInputError(field, "holds an infinity", "give finite numbers ≥ 0")
    return array


def _targets(targets: Numbers | None, outputs: int) -> Int[np.ndarray, "targets"]:
    if targets is None:
        return np.arange(outputs)
    array = np.asarray(targets)
    if array.dtype == np.bool_:
        if array.shape != (outputs,):
            raise InvalidInputError("targets", f"is a mask of shape {array.shape}", f"give {outputs} entries")
        array = np.flatnonzero(array)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError("targets", "is empty or not a list", "name at least one output, or leave it out")
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError("targets", f"has type {array.dtype}", "give indices of outputs, or a mask")
    if not (int(array.min()) >= 0 and int(array.max()) < outputs):
        raise InvalidInputError("targets", f"reaches outside 0 … {outputs - 1}", "give indices of outputs")
    if int(np.bincount(array).max()) > 1:
        raise InvalidInputError("targets", "names an output twice", "name each output once")
    return array.astype(np.int64)
