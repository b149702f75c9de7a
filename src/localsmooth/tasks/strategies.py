"""What settings hold whatever the kind of input: the failure probability, and the strategies that share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import TypeVar

import numpy as np
from jaxtyping import Int

from localsmooth.bounds import (
    Automatic,
    Bonferroni,
    CandidateRule,
    CountRule,
    EmpiricalBernstein,
    JointCount,
    ScoreBound,
    Sharing,
    Simultaneous,
)
from localsmooth.certificates import OutputVotes, ScoreCertificate, VoteCertificate
from localsmooth.collective import AnyBounds, Bound, Envelope, as_bounds
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from localsmooth.tasks.targets import Target, as_targets

__all__ = ["FixedNumberError", "Strategies", "as_number"]

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
        For α outside (0, 1), empty lists, and strategies that are none.
    """

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

    def _hold(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _count_nothing(self) -> None:
        """Let the rule that is chosen automatically be Bonferroni's, where counts cannot be bounded."""
        if isinstance(self.simultaneous, Automatic):
            self._hold(simultaneous=Bonferroni())

    def counted(self: _Some) -> _Some:
        """Bound counts, where the rule is to be chosen automatically: at any number of samples that holds."""
        return self.alternatives()[0]

    def alternatives(self: _Some) -> tuple[_Some, ...]:
        """The settings with each rule that certificates may come from, the first choice first."""
        if not isinstance(self.simultaneous, Automatic):
            return (self, *(replace(other, bounds=self.bounds) for other in self.apart()))
        counted = replace(self, simultaneous=JointCount())
        return *counted.alternatives(), replace(self, simultaneous=Bonferroni())

    def apart(self: _Some) -> tuple[_Some, ...]:
        """The other way to count, strata apart, where both are open: on the same event, so that the better one holds.

        What all strata share is chosen for budgets of all sizes, and subtracted at each: few targets, and small
        budgets, are better off without. For the second look the search for exact answers is left out.
        """
        rule = self.simultaneous
        if not isinstance(rule, JointCount) or rule.spare is not None:
            return ()
        swift = {name: Envelope() if one.searches else one for name, one in self.bounds.items()}
        return (replace(self, simultaneous=replace(rule, spare=0), bounds=swift),)

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
        chosen = self.simultaneous.choose(votes.candidate_votes, planned, self.alpha, group)
        if (extended is not None or votes.ended) and not isinstance(chosen, CountRule):
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


def as_number(field: str, value: object) -> float:
    """Return a number as a float.

    Raises
    ------
    InvalidInputError
        If it is none, naming the field.
    """
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(field, f"got {value!r}", "Pass numbers") from None
