"""The sections that say how the risk is shared among many outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from localsmooth.bounds import (
    Automatic,
    Bonferroni,
    CandidateWeights,
    FixedThresholdHolm,
    JointAndBonferroni,
    JointCount,
    KFamilywise,
    PaperHolm,
)
from localsmooth.config.section import Section

__all__ = [
    "AnyRule",
    "AutomaticSection",
    "BonferroniSection",
    "FixedThresholdHolmSection",
    "JointAndBonferroniSection",
    "JointCountSection",
    "KFamilywiseSection",
    "PaperHolmSection",
    "WeightedBonferroniSection",
]


class AutomaticSection(Section):
    """Joint count and Bonferroni, half of alpha each, or Bonferroni alone, as the candidate stage says."""

    rule: Literal["automatic"]

    def build(self) -> Automatic:
        """Make the rule."""
        return Automatic()


class BonferroniSection(Section):
    """Every bound holds at once; alpha is shared equally."""

    rule: Literal["bonferroni"]

    def build(self) -> Bonferroni:
        """Make the rule."""
        return Bonferroni()


class KFamilywiseSection(Section):
    """At most k - 1 bounds fail, which are subtracted from every count."""

    rule: Literal["k_familywise"]
    k: int = Field(ge=1)
    """Number of failing bounds that has probability at most alpha."""

    def build(self) -> KFamilywise:
        """Make the rule."""
        return KFamilywise(self.k)


class FixedThresholdHolmSection(Section):
    """Step-down test that the votes exceed a threshold fixed beforehand (SegCertify)."""

    rule: Literal["fixed_threshold_holm"]
    tau: float = Field(gt=0.5, lt=1)
    """The threshold."""

    def build(self) -> FixedThresholdHolm:
        """Make the rule."""
        return FixedThresholdHolm(self.tau)


class PaperHolmSection(Section):
    """Ranked Clopper-Pearson bounds: not simultaneous, only to reproduce published curves."""

    rule: Literal["paper_holm"]

    def build(self) -> PaperHolm:
        """Make the rule."""
        return PaperHolm()


class WeightedBonferroniSection(Section):
    """Every bound holds at once; alpha is shared by the outputs' votes in the candidate stage."""

    rule: Literal["weighted_bonferroni"]
    thresholds: list[Annotated[float, Field(gt=0, lt=1)]] | None = Field(default=None, min_length=1)
    """Label probabilities that the budgets of interest ask for; those of evenly spaced Gaussian budgets by default."""

    def build(self) -> CandidateWeights:
        """Make the rule."""
        return CandidateWeights() if self.thresholds is None else CandidateWeights(tuple(self.thresholds))


class JointCountSection(Section):
    """The certified counts hold, and no single bound; there is hardly a price for many outputs."""

    rule: Literal["joint_count"]
    spare: int | None = Field(default=None, ge=0)
    """Outputs to subtract from every count; chosen by what promises the most unless given."""

    def build(self) -> JointCount:
        """Make the rule."""
        return JointCount(spare=self.spare)


class JointAndBonferroniSection(Section):
    """Joint count and Bonferroni, half of alpha each: the better count stands for every target and budget."""

    rule: Literal["joint_and_bonferroni"]

    def build(self) -> JointAndBonferroni:
        """Make the rule."""
        return JointAndBonferroni()


AnyRule = Annotated[
    AutomaticSection
    | BonferroniSection
    | KFamilywiseSection
    | WeightedBonferroniSection
    | JointCountSection
    | JointAndBonferroniSection
    | FixedThresholdHolmSection
    | PaperHolmSection,
    Field(discriminator="rule"),
]
