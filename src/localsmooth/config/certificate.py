"""The section that says what is proven from the samples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from localsmooth.certificates import ExactVotes, RenyiVotes
from localsmooth.config.base_certificates import ExactVotesSection
from localsmooth.config.baselines import AnyBaseline
from localsmooth.config.section import Section
from localsmooth.tasks.arrays.settings import equally_spaced

__all__ = [
    "AnyRule",
    "BonferroniSection",
    "BudgetRange",
    "CertificateSection",
    "FixedThresholdHolmSection",
    "KFamilywiseSection",
    "PaperHolmSection",
    "WeightedBonferroniSection",
]


class BudgetRange(Section):
    """Equally spaced budgets."""

    start: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The smallest budget."""
    stop: float = Field(gt=0, allow_inf_nan=False)
    """The largest budget."""
    count: int = Field(ge=2, le=10_000)
    """Number of budgets."""


BaseName = Literal[
    "gaussian-votes",
    "gaussian-scores",
    "uniform-votes",
    "bernoulli-scores",
    "sparse-scores",
    "renyi-votes",
    "exact-votes",
]


class BonferroniSection(Section):
    """Every bound holds at once; alpha is shared equally."""

    rule: Literal["bonferroni"]


class KFamilywiseSection(Section):
    """At most k - 1 bounds fail, which are subtracted from every count."""

    rule: Literal["k_familywise"]
    k: int = Field(ge=1)
    """Number of failing bounds that has probability at most alpha."""


class FixedThresholdHolmSection(Section):
    """Step-down test that the votes exceed a threshold fixed beforehand (SegCertify)."""

    rule: Literal["fixed_threshold_holm"]
    tau: float = Field(gt=0.5, lt=1)
    """The threshold."""


class PaperHolmSection(Section):
    """Ranked Clopper-Pearson bounds: not simultaneous, only to reproduce published curves."""

    rule: Literal["paper_holm"]


class WeightedBonferroniSection(Section):
    """Every bound holds at once; alpha is shared by the outputs' votes in the candidate stage."""

    rule: Literal["weighted_bonferroni"]
    thresholds: list[Annotated[float, Field(gt=0, lt=1)]] | None = Field(default=None, min_length=1)
    """Label probabilities that the budgets of interest ask for; those of evenly spaced Gaussian budgets by default."""


AnyRule = Annotated[
    BonferroniSection | KFamilywiseSection | WeightedBonferroniSection | FixedThresholdHolmSection | PaperHolmSection,
    Field(discriminator="rule"),
]


def _budgets_tag(value: object) -> str:
    return "(range)" if isinstance(value, (dict, BudgetRange)) else "(values)"


Budget = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Budgets = Annotated[
    Annotated[list[Budget], Field(min_length=1), Tag("(values)")] | Annotated[BudgetRange, Tag("(range)")],
    Discriminator(_budgets_tag),
]


class CertificateSection(Section):
    """What is proven from the samples."""

    alpha: float = Field(gt=0, lt=1)
    """Probability with which an item's certificate may fail."""
    budgets: Budgets
    """Budgets ε, as a list or as equally spaced values."""
    bounds: list[Literal["naive", "lp", "envelope", "exact"]] = Field(default=["naive", "lp", "envelope"], min_length=1)
    """Collective bounds, weakest first."""
    exact_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Time limit of the exact bound, for all budgets of an item's curve together."""
    exact_gap: int = Field(default=0, ge=0)
    """Outputs by which the exact bound may fall short of the optimum."""
    base: list[BaseName] | None = Field(default=None, min_length=1)
    """Base certificates, by default the one from votes that goes with the noise; votes and scores share alpha, and each
    output relies on one of the two."""
    renyi_orders: list[Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = Field(default=None, min_length=1)
    """Orders of renyi-votes."""
    exact_votes: ExactVotesSection = Field(default_factory=ExactVotesSection)
    """Settings of exact-votes."""
    many_outputs: AnyRule = Field(default_factory=lambda: BonferroniSection(rule="bonferroni"))
    """How alpha is shared among the outputs."""
    score_bound: Literal["empirical_bernstein", "cdf_band", "betting"] = "empirical_bernstein"
    """Bound on scores, for certificates from scores."""
    baseline: AnyBaseline | None = None
    """Certify with a baseline in place of base certificates and collective bounds."""

    @model_validator(mode="after")
    def _settings_are_used(self) -> CertificateSection:
        if self.exact_votes != ExactVotesSection() and ExactVotes.name not in (self.base or ()):
            raise ValueError('exact_votes has no effect unless "exact-votes" is in base')
        if self.renyi_orders is not None and self.base is not None and RenyiVotes.name not in self.base:
            raise ValueError('renyi_orders has no effect unless "renyi-votes" is in base')
        return self

    def budget_values(self) -> list[float]:
        """All budgets, ascending."""
        if isinstance(self.budgets, BudgetRange):
            return equally_spaced(self.budgets.start, self.budgets.stop, self.budgets.count)
        return sorted(self.budgets)
