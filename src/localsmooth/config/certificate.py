"""The section that says what is proven from the samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from localsmooth.bounds import SCORE_BOUNDS
from localsmooth.certificates import (
    SCORE_CERTIFICATES,
    VOTE_CERTIFICATES,
    ExactVotes,
    RenyiVotes,
    ScoreCertificate,
    VoteCertificate,
)
from localsmooth.collective import BOUNDS, Bound, Exact
from localsmooth.config.base_certificates import ExactVotesSection
from localsmooth.config.baselines import AnyBaseline
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.rules import AnyRule, AutomaticSection
from localsmooth.config.section import Named, Section
from localsmooth.config.targets import AnyTarget, make_targets
from localsmooth.config.threats import AnyThreat
from localsmooth.noise import Noise
from localsmooth.tasks import MOST_BUDGETS, default_certificate
from localsmooth.tasks.arrays import ItemMethod, ItemThreat, Settings, equally_spaced

__all__ = ["BaseName", "BudgetRange", "CertificateSection", "StrategySection"]

AnyCertificate = VoteCertificate | ScoreCertificate
BoundName = Annotated[str, Named((BOUNDS,))]
BaseName = Annotated[str, Named((VOTE_CERTIFICATES, SCORE_CERTIFICATES))]


class BudgetRange(Section):
    """Equally spaced budgets."""

    start: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The smallest budget."""
    stop: float = Field(gt=0, allow_inf_nan=False)
    """The largest budget."""
    count: int = Field(ge=2, le=MOST_BUDGETS)
    """Number of budgets."""

    @model_validator(mode="after")
    def _ascends(self) -> BudgetRange:
        if self.start >= self.stop:
            raise ValueError("start must be below stop")
        return self


def _budgets_tag(value: object) -> str:
    if isinstance(value, str):
        return "(auto)"
    return "(range)" if isinstance(value, (dict, BudgetRange)) else "(values)"


Budget = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Budgets = Annotated[
    Annotated[list[Budget], Field(min_length=1), Tag("(values)")]
    | Annotated[BudgetRange, Tag("(range)")]
    | Annotated[Literal["auto"], Tag("(auto)")],
    Discriminator(_budgets_tag),
]


class StrategySection(Section):
    """What is proven from the samples, whatever they are samples of."""

    arguments: ClassVar[Mapping[str, str]] = {
        "of": "targets",
        "background": "targets",
        "weights": "targets",
        "simultaneous": "many_outputs",
    }

    alpha: float = Field(gt=0, lt=1)
    """Probability with which an item's certificate may fail."""
    bounds: list[BoundName] = Field(default=["naive", "lp", "envelope"], min_length=1)
    """Collective bounds, weakest first."""
    exact_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Time limit of the exact bound, for all budgets of an item together."""
    exact_gap: int = Field(default=0, ge=0)
    """Outputs by which the exact bound may fall short of the optimum."""
    base: list[BaseName] | None = Field(default=None, min_length=1)
    """Base certificates, by default the one from votes that goes with the noise; votes and scores share alpha, and each
    output relies on one of the two."""
    renyi_orders: list[Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = Field(default=None, min_length=1)
    """Orders of renyi-votes."""
    exact_votes: ExactVotesSection = Field(default_factory=ExactVotesSection)
    """Settings of exact-votes; many samples deserve more `vectors`."""
    many_outputs: AnyRule = Field(default_factory=lambda: AutomaticSection(rule="automatic"))
    """How alpha is shared among the outputs."""
    score_bound: Literal["empirical_bernstein", "cdf_band", "betting"] = "empirical_bernstein"
    """Bound on scores, for certificates from scores."""
    targets: list[AnyTarget] | None = Field(default=None, min_length=1)
    """What is counted: `"ratio"` (all that keep their prediction), `"accuracy"` (correct ones), `"agreement"` (with the
    model without noise), `"balanced"` (recall, averaged over the classes), `"foreground"` (all but class 0),
    `"class:NAME"`, and tables. By default ratio and accuracy, without labels ratio and agreement."""

    @model_validator(mode="after")
    def _settings_are_used(self) -> StrategySection:
        if self.exact_votes != ExactVotesSection() and ExactVotes.name not in (self.base or ()):
            raise ValueError('exact_votes has no effect unless "exact-votes" is in base')
        if self.renyi_orders is not None and self.base is not None and RenyiVotes.name not in self.base:
            raise ValueError('renyi_orders has no effect unless "renyi-votes" is in base')
        return self

    def collective_bounds(self) -> dict[str, Bound]:
        """Make the bounds, by the names they get in the result."""
        exact = Exact(self.exact_gap, self.exact_seconds)
        return {name: exact if name == Exact.name else BOUNDS[name]() for name in self.bounds}

    def certificates(self, noise: Noise) -> tuple[AnyCertificate, ...]:
        """Make the base certificates.

        Raises
        ------
        ConfigurationError
            If orders are given to certificates that have none.
        """
        if self.base is not None:
            return tuple(map(self._certificate, self.base))
        default = default_certificate(noise)
        if self.renyi_orders is None:
            return (default,)
        if not isinstance(default, RenyiVotes):
            raise ConfigurationError(
                f"certificate.renyi_orders: it has no effect, since {default.name} go with this noise. Leave it out, "
                "or use noise that flips bits."
            )
        return (self._certificate(default.name),)

    def _certificate(self, name: str) -> AnyCertificate:
        if name == RenyiVotes.name and self.renyi_orders is not None:
            return RenyiVotes(tuple(self.renyi_orders))
        if name == ExactVotes.name:
            return self.exact_votes.build()
        return VOTE_CERTIFICATES[name]() if name in VOTE_CERTIFICATES else SCORE_CERTIFICATES[name]()


class CertificateSection(StrategySection):
    """What is proven from the samples."""

    budgets: Budgets
    """Budgets ε, as a list, as equally spaced values, or "auto" for about 13 from 0 to as far as certificates can
    reach."""
    baseline: AnyBaseline | None = None
    """Certify with a baseline in place of base certificates and collective bounds."""
    threat: AnyThreat | None = None
    """What the adversary may do with a budget; by default all that the norm of the noise allows."""

    def budget_values(self) -> list[float] | Literal["auto"]:
        """All budgets, ascending, or "auto"."""
        if self.budgets == "auto":
            return "auto"
        if isinstance(self.budgets, BudgetRange):
            return equally_spaced(self.budgets.start, self.budgets.stop, self.budgets.count)
        return sorted(self.budgets)

    def build(self, noise: Noise, threat: ItemThreat | None = None) -> Settings:
        """Make what is proven from the tallies.

        Parameters
        ----------
        noise
            What was sampled.
        threat
            What the adversary may do where this section does not say so.

        Raises
        ------
        ConfigurationError
            If keys do not go with the noise.
        """
        return Settings(
            alpha=self.alpha,
            budgets=self.budget_values(),
            certificates=self.certificates(noise),
            bounds=self.collective_bounds(),
            simultaneous=self.many_outputs.build(),
            score_bound=SCORE_BOUNDS[self.score_bound](),
            threat=threat if self.threat is None else self.threat.build(),
            targets=make_targets(self.targets),
            method=self.method(),
        )

    def method(self) -> ItemMethod | None:
        """Make the baseline; None where there is none.

        Raises
        ------
        ConfigurationError
            If keys say how localized smoothing is certified, which a baseline would not heed.
        """
        if self.baseline is None:
            return None
        keys = ("bounds", "base", "renyi_orders", "score_bound", "exact_seconds", "exact_gap")
        # A run's record spells the defaults out.
        unheeded = [key for key in keys if getattr(self, key) != type(self).model_fields[key].default]
        if unheeded:
            raise ConfigurationError(
                f"certificate.{unheeded[0]}: the baseline {self.baseline.method} takes no such key."
            )
        return self.baseline.build()
