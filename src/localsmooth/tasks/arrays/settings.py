"""What is proven from the tallies: everything that can be changed without sampling again."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import ClassVar, Literal

import numpy as np

from localsmooth.bounds import Automatic, ScoreBound, Sharing
from localsmooth.certificates import OutputVotes, ScoreCertificate, VoteCertificate
from localsmooth.collective import AnyBounds
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.execution import SamplingProgress
from localsmooth.layout import Layout
from localsmooth.noise import Noise
from localsmooth.results import ItemResult
from localsmooth.runs import SamplingPlan, Store
from localsmooth.sampling import SamplingOptions, Subject
from localsmooth.tasks.arrays.sampled import SampledItem
from localsmooth.tasks.arrays.threat import ItemThreat, NormBall
from localsmooth.tasks.registry import default_certificate
from localsmooth.tasks.strategies import Strategies, as_number, require_few_budgets
from localsmooth.tasks.targets import Target

__all__ = ["Drawn", "ItemMethod", "Settings", "equally_spaced", "short_decimal"]

AUTO = "auto"
"""Stands for budgets that are proposed from how far certificates can reach, before anything is drawn."""
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
class Drawn:
    """What was drawn for one item.

    Parameters
    ----------
    votes
        Candidates and votes.
    further
        What else a method needs, by name; kept with the run.
    """

    votes: OutputVotes
    further: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


class ItemMethod(ABC):
    """Certifies one item from its tallies; a baseline is one of these."""

    name: str
    """Name in configuration files."""
    draws: bool = False
    """Whether it draws samples in a way of its own."""
    counts: bool = False
    """Whether it can use rules that bound counts of outputs, and no single output."""
    rounds: bool = True
    """Whether it holds where the base classifier rounds its input to a grid."""
    further: tuple[str, ...] = ()
    """Names of what `draw` returns beside votes."""

    def adjust(self, settings: Settings) -> Settings:
        """Return the settings as the method uses them, so that checks and records speak of these."""
        return settings

    @abstractmethod
    def require(self, layout: Layout, noise: Noise) -> None:
        """Refuse a layout or a noise that the method does not hold for.

        Raises
        ------
        InvalidInputError
            Naming what does not fit.
        """

    @abstractmethod
    def bound_names(self, settings: Settings) -> tuple[str, ...]:
        """Names of the bounds that `certify` fills in, weakest first."""

    def draw(
        self,
        subject: Subject,
        plan: SamplingPlan,
        store: Store,
        settings: Settings,
        options: SamplingOptions,
        progress: SamplingProgress,
    ) -> list[Drawn]:
        """Draw samples for all items in a way of its own, where `draws` says so.

        Parameters
        ----------
        subject, plan, store, options, progress
            As in `localsmooth.execution.sample_subject`.
        settings
            What will be proven.

        Raises
        ------
        NotImplementedError
            Where the method counts votes.
        """
        raise NotImplementedError(f"{self.name} counts votes")

    @abstractmethod
    def certify(self, item: SampledItem, noise: Noise, settings: Settings) -> ItemResult:
        """Certify one item.

        Parameters
        ----------
        item
            The item with its tallies.
        noise
            The distribution that was sampled.
        settings
            What to prove, after `adjust`.
        """

    @abstractmethod
    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Sentences that the promise rests on, and what it does not say."""

    def promise(self, settings: Settings) -> str:
        """What holds with probability 1 − α, where it is not the usual; {threat} stands for the threat's words."""
        del settings
        return ""


@dataclass(frozen=True, eq=False, init=False)
class Settings(Strategies):
    """Failure probability, budgets and the strategies between tallies and certified counts.

    Parameters
    ----------
    alpha
        Probability with which the certificate of one item may fail.
    budgets
        Perturbation sizes ε, in the units of the input; sorted, duplicates dropped, and those that a grid such as
        `numpy.linspace` missed by its last bits taken as the short decimals that they stand for. "auto" proposes
        about 13, from 0 to as far as certificates can reach with the numbers of samples, noise and α.
    certificates
        Base certificates; by default the one from votes that goes with the noise. Where both votes and scores are
        named they share α, and each output relies on one of the two (the variable `relies_on` of the result says on
        which): its promise is about the class with the most votes, or about the one with the largest mean score.
    bounds
        Collective bounds, weakest first: names such as ``["lp", "exact"]``, bounds, or a mapping from the names that
        they get in the result; naive, lp and envelope by default.
    simultaneous
        How α is shared among the outputs: by default `Automatic`, which is `JointAndBonferroni` (counts alone are
        promised) unless the candidate stage says that Bonferroni promises more; Bonferroni where there are scores.
    score_bound
        Bound on scores, for certificates that need them.
    threat
        What the adversary may do with a budget; by default perturbations in the norm of the noise.
    method
        A baseline of `localsmooth.baselines`, in place of the collective problem over base certificates.
    targets
        What is counted: names such as ``["ratio", "balanced"]``, or objects of `localsmooth.tasks` such as
        ``Foreground(("sky",))`` or ``Weighted(weights)``. By default the ratio, and the accuracy where there are labels
        or else the agreement with the clean model. Baselines leave out targets that are no counts.

    Raises
    ------
    InvalidInputError
        For α outside (0, 1), missing, negative, infinite or too many budgets, and strategies that are none.
    """

    budget_fields: ClassVar[tuple[str, ...]] = ("budgets",)
    budgets: tuple[float, ...]
    threat: ItemThreat
    method: ItemMethod | None

    def __init__(
        self,
        alpha: float,
        budgets: Sequence[float | int] | np.ndarray | Literal["auto"],
        certificates: Sequence[VoteCertificate | ScoreCertificate] | None = None,
        bounds: AnyBounds | None = None,
        simultaneous: Sharing | Automatic | None = None,
        score_bound: ScoreBound | None = None,
        threat: ItemThreat | None = None,
        method: ItemMethod | None = None,
        targets: Sequence[Target | str] | None = None,
    ) -> None:
        super().__init__(alpha, certificates, bounds, simultaneous, score_bound, targets)
        # The empty tuple stands for budgets that are still to be proposed.
        if isinstance(budgets, Sequence | np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            require_few_budgets("budgets", budgets.size if isinstance(budgets, np.ndarray) else len(budgets))
        later = budgets == AUTO if isinstance(budgets, str) else isinstance(budgets, tuple) and not budgets
        given = () if later else np.atleast_1d(np.asarray(budgets, dtype=object))
        sizes = [as_number("budgets", budget) for budget in given]
        if not (sizes or later) or not all(0 <= size < math.inf for size in sizes):
            raise InvalidInputError(
                "budgets", "there is none, or one is negative, infinite or NaN", "Pass at least one finite ε >= 0"
            )
        require_kind("threat", threat, ItemThreat, NoneType)
        require_kind("method", method, ItemMethod, NoneType)
        self._hold(
            budgets=tuple(sorted({short_decimal(size) for size in sizes})),
            threat=NormBall() if threat is None else threat,
            method=method,
        )
        if method is not None and not method.counts:
            self._count_nothing()

    def completed(self, noise: Noise) -> Settings:
        """Name the certificate that goes with the noise if none is named, and let a baseline adjust the rest.

        Raises
        ------
        InvalidInputError
            If a baseline cannot be used with the rest.
        """
        if self.method is not None and not self.threat.one_ball:
            raise InvalidInputError(
                "threat",
                f"{self.method.name} holds for balls around the whole item",
                "Leave the threat out, or certify without the baseline",
            )
        made = self if self.certificates else replace(self, certificates=(default_certificate(noise),))
        return made if made.method is None else made.method.adjust(made)

    @property
    def largest_budget(self) -> float:
        """The last of the budgets; 0 where they are still to be proposed."""
        return max(self.budgets, default=0.0)
