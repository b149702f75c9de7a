"""What settings hold whatever the kind of input: the failure probability, and the strategies that share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType

from localsmooth.bounds import (
    Bonferroni,
    CandidateRule,
    CountRule,
    EmpiricalBernstein,
    ScoreBound,
    Sharing,
    Simultaneous,
)
from localsmooth.certificates import ScoreCertificate, VoteCertificate
from localsmooth.collective import AnyBounds, Bound, as_bounds
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from localsmooth.tasks.targets import Target, as_targets

__all__ = ["Strategies", "as_number"]

_SMALLEST_ALPHA = 1e-60


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
    simultaneous: Sharing
    score_bound: ScoreBound
    targets: tuple[Target, ...]

    def __init__(
        self,
        alpha: float,
        certificates: Sequence[VoteCertificate | ScoreCertificate] | None,
        bounds: AnyBounds | None,
        simultaneous: Sharing | None,
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
        require_kind("simultaneous", simultaneous, Simultaneous, CandidateRule, CountRule, NoneType)
        require_kind("score_bound", score_bound, ScoreBound, NoneType)
        self._hold(
            alpha=failure,
            certificates=tuple(certificates or ()),
            bounds=named,
            simultaneous=Bonferroni() if simultaneous is None else simultaneous,
            score_bound=EmpiricalBernstein() if score_bound is None else score_bound,
            targets=as_targets(targets),
        )

    def _hold(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

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
