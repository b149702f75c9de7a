"""What is proven from the tallies: everything that can be changed without sampling again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from localsmooth.bounds import Bonferroni, CandidateRule, EmpiricalBernstein, ScoreBound, Simultaneous
from localsmooth.certificates import ScoreCertificate, VoteCertificate
from localsmooth.collective import Bound, as_bounds
from localsmooth.errors import InvalidInputError
from localsmooth.pipeline.registry import DEFAULT_BOUNDS
from localsmooth.pipeline.threat import ItemThreat, NormBall

__all__ = ["CertificationSettings", "equally_spaced", "short_decimal"]

_SMALLEST_ALPHA = 1e-60
_LAST_BITS = 4  # a grid rounds its step, each multiple of it, and the sum with its start


def short_decimal(value: float) -> float:
    """Return the decimal of at most 12 digits that lies a few units in the last place away, or else the value.

    A grid's 0.30000000000000004 is meant to be 0.3, and is looked up as that.
    """
    nearest = float(f"{value:.12g}")
    return nearest if abs(nearest - value) <= _LAST_BITS * math.ulp(value) else value


def equally_spaced(start: float, stop: float, count: int) -> list[float]:
    """Return equally spaced budgets, as short decimals where they are meant to be."""
    return [short_decimal(float(value)) for value in np.linspace(start, stop, count)]


@dataclass(frozen=True, eq=False)
class CertificationSettings:
    """Failure probability, budgets and the strategies between tallies and certified counts.

    Parameters
    ----------
    alpha
        Probability with which the certificate of one item may fail.
    budgets
        Perturbation sizes ε, in the units of the input; sorted, duplicates dropped, and those that a grid such as
        `numpy.linspace` missed by its last bits taken as the short decimals that they stand for.
    certificates
        Base certificates; votes and scores share α, and each output relies on one of the two.
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
        object.__setattr__(self, "budgets", tuple(sorted({short_decimal(float(b)) for b in self.budgets})))

    @property
    def needs_scores(self) -> bool:
        """Whether scores must be counted beside votes."""
        return any(isinstance(certificate, ScoreCertificate) for certificate in self.certificates)
