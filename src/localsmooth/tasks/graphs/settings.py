"""What is proven about a graph's nodes: everything that can be changed without sampling again."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from types import NoneType

from localsmooth.baselines import SparseSmooth
from localsmooth.bounds import (
    Bonferroni,
    CandidateRule,
    CountRule,
    EmpiricalBernstein,
    ScoreBound,
    Sharing,
    Simultaneous,
)
from localsmooth.certificates import RenyiVotes, ScoreCertificate, VoteCertificate
from localsmooth.collective import Bound, Naive, as_bounds
from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.tasks.graphs.threat import AttackLimits
from localsmooth.tasks.registry import DEFAULT_BOUNDS

__all__ = ["GraphSettings"]


@dataclass(frozen=True, eq=False)
class GraphSettings:
    """Failure probability, budgets and the strategies between tallies and certified counts.

    Parameters
    ----------
    alpha
        Probability with which the certificate may fail.
    additions, deletions
        Budgets ε⁺ and ε⁻; sorted, with 0. Each is certified alone, and so is every pair.
    certificates
        Base certificates; votes and scores share α, and each node relies on one of the two.
    bounds
        Collective bounds by the names they get in the result, weakest first.
    simultaneous
        How the risk is shared among the certified nodes; `JointCount` promises counts alone.
    score_bound
        Bound on scores, for certificates that need it.
    limits
        What the adversary is denied besides.
    strictly_local
        Use that attributes outside a node's receptive field cannot matter (Schuchardt et al. 2021). Needs a
        classifier whose depth is known.
    baseline
        Count the nodes that tolerate every mix of flips, each on its own, in place of collective bounds: needs the
        same noise everywhere. `certificates` (from votes) still say how far each node's certificate reaches.

    Raises
    ------
    InvalidInputError
        For α outside (0, 1), negative budgets, empty lists, and settings that a baseline would not heed.
    """

    alpha: float
    additions: Sequence[int] = tuple(range(11))
    deletions: Sequence[int] = tuple(range(41))
    certificates: Sequence[VoteCertificate | ScoreCertificate] = (RenyiVotes(),)
    bounds: Mapping[str, Bound] = field(default_factory=lambda: DEFAULT_BOUNDS)
    simultaneous: Sharing = field(default_factory=Bonferroni)
    score_bound: ScoreBound = field(default_factory=EmpiricalBernstein)
    limits: AttackLimits = field(default_factory=AttackLimits)
    strictly_local: bool = False
    baseline: SparseSmooth | None = None

    def __post_init__(self) -> None:
        require_several("certificates", self.certificates, "base certificates")
        for one in self.certificates:
            require_kind("certificates", one, VoteCertificate, ScoreCertificate)
        for name, kinds in (
            ("alpha", (Real,)),
            ("simultaneous", (Simultaneous, CandidateRule, CountRule)),
            ("score_bound", (ScoreBound,)),
            ("limits", (AttackLimits,)),
            ("baseline", (SparseSmooth, NoneType)),
        ):
            require_kind(name, getattr(self, name), *kinds)
        if not 1e-60 <= self.alpha < 1:
            raise InvalidInputError("alpha", f"got {self.alpha}", "Pass a probability between 0 and 1, such as 0.01")
        for name in ("additions", "deletions"):
            try:
                budgets = sorted({0, *(operator.index(budget) for budget in getattr(self, name))})
            except TypeError:
                raise InvalidInputError(name, "a budget is no whole number", "Pass numbers of flips") from None
            if budgets[0] < 0:
                raise InvalidInputError(name, f"got {budgets[0]}", "Pass numbers of flips >= 0")
            object.__setattr__(self, name, tuple(budgets))
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        for name in ("certificates", "bounds"):
            if not getattr(self, name):
                raise InvalidInputError(name, "there is none", "Pass at least one")
        if self.strictly_local and isinstance(self.simultaneous, CountRule):
            raise InvalidInputError(
                "strictly_local",
                f"{self.simultaneous.name} counts nodes of which the same is asked, and each has a field of its own",
                "Share alpha by Bonferroni, or leave receptive fields out",
            )
        if self.baseline is not None:
            if not all(isinstance(certificate, VoteCertificate) for certificate in self.certificates):
                raise InvalidInputError("certificates", f"{self.baseline.name} counts votes", "Leave scores out")
            if self.strictly_local or self.limits != AttackLimits():
                raise InvalidInputError(
                    "baseline",
                    f"{self.baseline.name} knows neither receptive fields nor limits per node or cluster",
                    "Leave these out, or certify without the baseline",
                )
            object.__setattr__(self, "bounds", {"naive": Naive()})

    @property
    def needs_scores(self) -> bool:
        """Whether certificates from scores are asked for."""
        return any(isinstance(certificate, ScoreCertificate) for certificate in self.certificates)

    @property
    def largest_budget(self) -> float:
        """The largest number of flips of one kind."""
        return float(max(self.additions[-1], self.deletions[-1]))
