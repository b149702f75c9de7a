"""What settings hold whatever the kind of input: the failure probability, and the strategies that share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import ClassVar, TypeVar

import numpy as np
from jaxtyping import Int

from localsmooth.bounds import (
    Automatic,
    Bonferroni,
    CandidateRule,
    CountRule,
    EmpiricalBernstein,
    JointAndBonferroni,
    JointCount,
    ScoreBound,
    Sharing,
    Simultaneous,
    require_level_strategy,
)
from localsmooth.certificates import OutputVotes, ScoreCertificate, VoteCertificate
from localsmooth.collective import AnyBounds, Bound, as_bounds
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.tasks.asked_targets import as_targets
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from localsmooth.tasks.targets import Target

__all__ = ["MOST_BUDGETS", "FixedNumberError", "Strategies", "as_number", "require_few_budgets"]

MOST_BUDGETS = 100_000
"""Most budgets, or pairs of them, that may be asked about at once."""
_SMALLEST_ALPHA = 1e-60
_Some = TypeVar("_Some", bound="Strategies")


class FixedNumberError(InvalidInputError):
    """The rule that was chosen for an item does not hold at a number of samples that depends on the votes."""


@dataclass(frozen=True, eq=False, init=False)
class Strategies(ABC):
    """The failure probability and the strategies between tallies and certified counts.

    Parameters
    ----------
    alpha
        Probability with which the certificate of one item may fail.
    certificates, bounds, simultaneous, score_bound, targets
        As in `Settings`; None stands for the default of each, as does an empty tuple of certificates.

    Raises
    ------
    InvalidInputError
        For α outside (0, 1), empty lists, strategies that are none, and bounds on scores by a rule without levels.
    """

    budget_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that say which budgets are asked about, and that no event behind a certificate depends on."""
    alpha: float
    certificates: tuple[VoteCertificate | ScoreCertificate, ...]
    bounds: Mapping[str, Bound]
    simultaneous: Sharing | Automatic
    score_bound: ScoreBound
    targets: tuple[Target, ...]

    def __init__(
        self,
        alpha: float,
        certificates: Sequence[VoteCertificate | ScoreCertificate] | None,
        bounds: AnyBounds | None,
        simultaneous: Sharing | Automatic | None,
        score_bound: ScoreBound | None,
        targets: Sequence[Target | str] | None = None,
    ) -> None:
        failure = as_number("alpha", alpha)
        if not _SMALLEST_ALPHA <= failure < 1:
            raise InvalidInputError("alpha", f"got {failure}", "Pass a probability between 0 and 1, such as 0.01")
        named = DEFAULT_BOUNDS if bounds is None else as_bounds(bounds)
        if not named:
            raise InvalidInputError("bounds", "there is none", "Pass at least one collective bound")
        if isinstance(certificates, list) and not certificates:  # the empty tuple stands for the default
            raise InvalidInputError("certificates", "there is none", "Pass at least one base certificate")
        require_several("certificates", certificates or (), "base certificates")
        for one in certificates or ():
            require_kind("certificates", one, VoteCertificate, ScoreCertificate)
        require_kind("simultaneous", simultaneous, Simultaneous, CandidateRule, CountRule, Automatic, NoneType)
        require_kind("score_bound", score_bound, ScoreBound, NoneType)
        self._hold(
            alpha=failure,
            certificates=tuple(certificates or ()),
            bounds=named,
            simultaneous=Automatic() if simultaneous is None else simultaneous,
            score_bound=EmpiricalBernstein() if score_bound is None else score_bound,
            targets=as_targets(targets),
        )
        if self.needs_scores:
            self._count_nothing()
            if not isinstance(self.simultaneous, CandidateRule):  # what it makes of the candidate stage has levels
                require_level_strategy(self.simultaneous)

    def _hold(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _count_nothing(self) -> None:
        """Let the rule that is chosen automatically be Bonferroni's, where counts cannot be bounded."""
        if isinstance(self.simultaneous, Automatic):
            self._hold(simultaneous=Bonferroni())

    def counted(self: _Some) -> _Some:
        """Bound counts, where the rule is to be chosen automatically: at any number of samples that holds."""
        return replace(self, simultaneous=JointCount()) if isinstance(self.simultaneous, Automatic) else self

    def alternatives(self: _Some, *, fixed: bool) -> tuple[_Some, ...]:
        """The settings with each rule that certificates may come from, the first choice first.

        Parameters
        ----------
        fixed
            Whether the number of samples is, beforehand; counts are bounded where it is not.
        """
        if not isinstance(self.simultaneous, Automatic):
            return self.ways()
        if not fixed:
            return self.counted().ways()
        rule = JointAndBonferroni() if self._divides else JointCount()
        return *replace(self, simultaneous=rule).ways()[:2], replace(self, simultaneous=Bonferroni())

    @property
    def _divides(self) -> bool:
        """Whether α can be divided between two sets of bounds: baselines use one."""
        method = getattr(self, "method", None) or getattr(self, "baseline", None)
        return method is None and self.alpha * JointAndBonferroni.share >= _SMALLEST_ALPHA

    def ways(self: _Some) -> tuple[_Some, ...]:
        """Every way to bound counts that holds on the one event of the rule, so that the best one may stand.

        What all strata share is chosen for budgets of all sizes, and subtracted at each: few targets, and small
        budgets, are better off with strata apart.
        """
        rule = self.simultaneous
        if isinstance(rule, JointCount) and rule.spare is None:
            return self, replace(self, simultaneous=replace(rule, spare=0))
        if not isinstance(rule, JointAndBonferroni):
            return (self,)
        half = replace(self, alpha=self.alpha * rule.share)
        return self, replace(half, simultaneous=JointCount(spare=0)), replace(half, simultaneous=Bonferroni())

    def settled(
        self: _Some, votes: OutputVotes, group: Int[np.ndarray, "outputs"], extended: int | None = None
    ) -> _Some:
        """Choose the rule for an item, where it is chosen automatically.

        Parameters
        ----------
        votes
            The item's tallies.
        group
            Output group of each output that shares α; negative for those that never count.
        extended
            N₂ as the run began, if it went on with more.

        Raises
        ------
        FixedNumberError
            If the run went on or was ended, and the rule that was chosen when it began does not hold then.
        """
        if not isinstance(self.simultaneous, Automatic):
            return self
        if votes.sequence is not None:  # which holds where votes end sampling, as counts do
            return replace(self, simultaneous=JointCount())
        planned = votes.n_planned if extended is None else extended
        chosen = self.simultaneous.choose(votes.candidate_votes, planned, self.alpha, group, divide=self._divides)
        fixed = extended is None and not votes.ended
        if not fixed and isinstance(chosen, JointAndBonferroni):  # the half that still holds
            return replace(self, simultaneous=JointCount(), alpha=self.alpha * chosen.share)
        if not fixed and not isinstance(chosen, CountRule):
            raise FixedNumberError(
                "simultaneous",
                f"the outputs of an item share α by {chosen.name}, as was chosen when the run began, and that needs a "
                "number of samples that is fixed beforehand",
                'Begin a run with JointCount (many_outputs = { rule = "joint_count" }) if it shall go on after looking',
            )
        return replace(self, simultaneous=chosen)

    def common(self: _Some, rules: Sequence[Sharing]) -> _Some:
        """The settings with the rule that was chosen for all items, if it was the same.

        Parameters
        ----------
        rules
            That of each item.
        """
        return self if any(rule != rules[0] for rule in rules) else replace(self, simultaneous=rules[0])

    @property
    def sharing(self) -> Sharing:
        """The rule for many outputs, once it is settled."""
        assert not isinstance(self.simultaneous, Automatic), "the rule has not been chosen"
        return self.simultaneous

    @property
    @abstractmethod
    def largest_budget(self) -> float:
        """The largest budget of any kind."""

    @property
    def needs_scores(self) -> bool:
        """Whether scores must be counted beside votes."""
        return any(isinstance(certificate, ScoreCertificate) for certificate in self.certificates)


def require_few_budgets(field: str, number: int) -> None:
    """Refuse more budgets than anybody could look at, before they are written out.

    Parameters
    ----------
    field
        What holds them.
    number
        How many there are.

    Raises
    ------
    InvalidInputError
        If there are more than `MOST_BUDGETS`.
    """
    if number > MOST_BUDGETS:
        raise InvalidInputError(field, f"there are {number} budgets", f"Ask about at most {MOST_BUDGETS}")


def as_number(field: str, value: object) -> float:
    """Return a number as a float.

    Raises
    ------
    InvalidInputError
        If it is none, naming the field.
    """
    try:
        if isinstance(value, str | bool | np.bool_):
            raise TypeError
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(field, f"got {value!r}", "Pass numbers") from None
