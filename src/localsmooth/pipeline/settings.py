"""What is proven from the tallies: everything that can be changed without sampling again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localsmooth.bounds import Bonferroni, CandidateRule, EmpiricalBernstein, ScoreBound, Simultaneous
from localsmooth.certificates import ScoreCertificate, VoteCertificate
from localsmooth.collective import Bound, as_bounds
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.registry import DEFAULT_BOUNDS
from localsmooth.pipeline.threat import ItemThreat, NormBall

__all__ = ["CertificationSettings"]

_SMALLEST_ALPHA = 1e-60


@dataclass(frozen=True, eq=False)
class CertificationSettings:
    """Failure probability, budgets and the strategies between tallies and certified counts.

    Parameters
    ----------
    alpha
        Probability with which the certificate of one item may fail.
    budgets
        Perturbation sizes ε, in the units of the input; sorted, duplicates dropped.
    certificates
        Base certificates; all hold at once (votes and scores share α), and each output relies on the best for it.
    bounds
        Collective bounds by the names they get in the result, weakest first.
    simultaneous
        How the risk is shared among the outputs of one item.
    score_bound
        Bound on scores, for certificates that need it.
    threat
        What the adversary may do with a budget.

    Raises
    ------
    InvalidInputError
        For α outside (0, 1), and missing, negative or infinite budgets.
    """

    alpha: float
    budgets: tuple[float, ...]
    certificates: Sequence[VoteCertificate | ScoreCertificate]
    bounds: Mapping[str, Bound] = field(default_factory=lambda: DEFAULT_BOUNDS)
    simultaneous: Simultaneous | CandidateRule = field(default_factory=Bonferroni)
    score_bound: ScoreBound = field(default_factory=EmpiricalBernstein)
    threat: ItemThreat = field(default_factory=NormBall)

    def __post_init__(self) -> None:
        if not _SMALLEST_ALPHA <= self.alpha < 1:
            raise InvalidInputError("alpha", f"got {self.alpha}", "Pass a probability between 0 and 1, such as 0.01")
        object.__setattr__(self, "alpha", float(self.alpha))
        if not self.budgets or not all(0 <= b < math.inf for b in self.budgets):
            raise InvalidInputError(
                "budgets", "there is none, or one is negative, infinite or NaN", "Pass at least one finite ε >= 0"
            )
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        if not self.bounds:
            raise InvalidInputError("bounds", "there is none", "Pass at least one collective bound")
        if not self.certificates:
            raise InvalidInputError("certificates", "there is none", "Pass at least one base certificate")
        object.__setattr__(self, "budgets", tuple(sorted({float(b) for b in self.budgets})))

    @property
    def needs_scores(self) -> bool:
        """Whether scores must be counted beside votes."""
        return any(isinstance(certificate, ScoreCertificate) for certificate in self.certificates)
