"""What is proven about a graph's nodes: everything that can be changed without sampling again."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import ClassVar, Literal

import numpy as np

from localsmooth.baselines import SparseSmooth
from localsmooth.bounds import Automatic, CountRule, ScoreBound, Sharing
from localsmooth.certificates import RenyiVotes, ScoreCertificate, VoteCertificate
from localsmooth.collective import AnyBounds, Naive
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.tasks.graphs.threat import AttackLimits
from localsmooth.tasks.strategies import Strategies, require_few_budgets
from localsmooth.tasks.targets import Target

__all__ = ["ADDITIONS", "KINDS", "GraphSettings"]

KINDS = ("additions", "deletions")
"""Kinds of flips, each with budgets of its own."""

ADDITIONS = tuple(range(11))
"""Budgets ε⁺ that are certified where none are named."""


@dataclass(frozen=True, eq=False, init=False)
class GraphSettings(Strategies):
    """Failure probability, budgets and the strategies between tallies and certified counts.

    Parameters
    ----------
    alpha
        Probability with which the certificate may fail.
    additions, deletions
        Budgets ε⁺ and ε⁻; sorted, with 0. Each is certified alone, and so is every pair. "auto" proposes about 13, as
        far as certificates can reach with the numbers of samples, noise and α.
    certificates, bounds, simultaneous, score_bound, targets
        As in `localsmooth.Settings`; the certificate is `RenyiVotes` by default.
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

    budget_fields: ClassVar[tuple[str, ...]] = KINDS
    additions: tuple[int, ...]
    deletions: tuple[int, ...]
    limits: AttackLimits
    strictly_local: bool
    baseline: SparseSmooth | None

    def __init__(
        self,
        alpha: float,
        additions: Sequence[int] | Literal["auto"] = ADDITIONS,
        deletions: Sequence[int] | Literal["auto"] = tuple(range(41)),
        certificates: Sequence[VoteCertificate | ScoreCertificate] | None = None,
        bounds: AnyBounds | None = None,
        simultaneous: Sharing | Automatic | None = None,
        score_bound: ScoreBound | None = None,
        limits: AttackLimits | None = None,
        strictly_local: bool = False,
        baseline: SparseSmooth | None = None,
        targets: Sequence[Target | str] | None = None,
    ) -> None:
        super().__init__(alpha, certificates, bounds, simultaneous, score_bound, targets)
        if strictly_local:
            self._count_nothing()
        require_kind("limits", limits, AttackLimits, NoneType)
        require_kind("baseline", baseline, SparseSmooth, NoneType)
        self._hold(
            certificates=self.certificates or (RenyiVotes(),),
            additions=_flips("additions", additions),
            deletions=_flips("deletions", deletions),
            limits=AttackLimits() if limits is None else limits,
            strictly_local=strictly_local,
            baseline=baseline,
        )
        require_few_budgets("additions", len(self.additions) * len(self.deletions))
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
            self._hold(bounds={"naive": Naive()})

    @property
    def largest_budget(self) -> float:
        """The largest number of flips of one kind."""
        return float(max(*self.additions, *self.deletions, 0))


def _flips(name: str, given: Sequence[int] | str) -> tuple[int, ...]:
    if isinstance(given, str) or (isinstance(given, tuple) and not given):
        if given in ("auto", ()):
            return ()  # still to be proposed
        raise InvalidInputError(name, f"got {given!r}", 'Pass numbers of flips, or "auto"')
    try:
        if isinstance(given, Sequence | np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            require_few_budgets(name, len(given))
        budgets = sorted({0, *map(operator.index, given)})
    except TypeError:
        raise InvalidInputError(name, "a budget is no whole number", "Pass numbers of flips") from None
    if budgets[0] < 0:
        raise InvalidInputError(name, f"got {budgets[0]}", "Pass numbers of flips >= 0")
    return tuple(budgets)
