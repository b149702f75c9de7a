"""One call for a whole curve of budgets."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.answer import Answer, Curve, Status
from localsmooth.collective.kernel.attack import survivors
from localsmooth.collective.kernel.dual import DualPoint, evaluate
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.proof import Leaf, Proof
from localsmooth.collective.kernel.verify import CertificateError
from localsmooth.collective.kernel.verify import verify as check
from localsmooth.collective.search.bound import Bound, Outcome, Solver
from localsmooth.collective.search.candidates import estimates, fit, simple_attacks
from localsmooth.collective.search.envelope import Envelope
from localsmooth.collective.search.names import AnyBound, as_bound
from localsmooth.collective.search.progress import Reporter, Tell
from localsmooth.collective.search.setting import Setting, setting_at

__all__ = ["solve"]


def solve(problem: Problem, bound: AnyBound | None = None, verify: bool = False, progress: Tell | None = None) -> Curve:
    """Certify how many targets, or how much of their value, survives every attack, for each budget of the threat.

    Parameters
    ----------
    problem
        Certificates and threat.
    bound
        How hard to try: `Naive`, `LinearProgram`, `Envelope` (the default), `Exact` or `Milp`, or its name.
    verify
        Prove every answer again in exact rational arithmetic; the proven value is in ``Answer.verified``. What bounds
        from outside the package say is always proven again.

    progress
        Called every few seconds with a `Progress`: the budget at work, what is proven and the gap; ``print`` will do.

    Returns
    -------
    Curve
        One answer per budget. A budget that allows more never has a larger count than one that allows less.

    Raises
    ------
    InvalidInputError
        Where the problem is not well posed.
    CertificateError
        If exact arithmetic does not confirm an answer, or a bound and an attack contradict each other.
    """
    bound = Envelope() if bound is None else as_bound(bound)
    budgets = problem.constraints.budgets
    deadline = None if bound.time_limit is None else time.perf_counter() + float(bound.time_limit)
    # What leaves the floating-point range bounds nothing: infinities and NaN are turned against the certificate.
    with np.errstate(over="ignore", invalid="ignore"):
        drafts = _drafts(problem, bound.solver(problem), deadline, progress)
        _share(drafts, budgets)
        answers = [_finish(problem, index, draft) for index, draft in enumerate(drafts)]
        if verify or not _own(bound):
            answers = [check(problem, answer) for answer in answers]
    return Curve(tuple(answers), budgets)


def _own(bound: Bound) -> bool:
    """Whether the package's own tests speak for a bound: its solver's word for what it proved is taken."""
    return type(bound).__module__.partition(".")[0] == __name__.partition(".")[0]


@dataclass(eq=False)
class _Draft:
    """An answer in the making, in units of value: shared between budgets before it is handed out."""

    lower: float
    upper: int
    status: Status
    seconds: float
    attack: Float[np.ndarray, "columns"]
    prices: Float[np.ndarray, "rows"]
    proof: Proof
    claimed: float | None

    @property
    def certified(self) -> int:
        return max(0, math.ceil(self.lower))


def _drafts(problem: Problem, solver: Solver, deadline: float | None, progress: Tell | None) -> list[_Draft]:
    """Solve every budget, the most generous first: its lines hold for the smaller ones."""
    budgets = problem.constraints.budgets
    order = sorted(range(len(budgets)), key=lambda index: tuple(np.sort(budgets[index])[::-1]), reverse=True)
    found: dict[int, _Draft] = {}
    reporter = None if progress is None else Reporter(progress, len(order), problem.worth)
    settings = {index: setting_at(problem, index) for index in order}
    lost: list[int] = []
    for index in reversed(order):
        # The first budget that breaks everything settles all the more generous ones.
        start = time.perf_counter()
        beaten = next((other for other in lost if bool(np.all(budgets[other] <= budgets[index]))), None)
        if beaten is not None:
            attacks = [found[beaten].attack]
        else:
            attacks = _promising(settings[index], simple_attacks(settings[index]), most_left=0.0)
        if attacks:
            draft = _draft(settings[index], _nothing(settings[index]), attacks, start)
            if draft.upper == 0:
                lost.append(index)
                found[index] = draft
    for position, index in enumerate(order):
        if index in found:
            continue
        start = time.perf_counter()
        remaining = len([other for other in order[position:] if other not in found])
        # Each budget gets an equal share of the time that is left.
        slot = None if deadline is None else start + max(0.0, deadline - start) / max(1, remaining)
        if reporter is not None:
            solver.tell = partial(reporter.report, len(found) + 1)
        outcome = solver.solve(settings[index], slot)
        attacks = [*outcome.attacks, *_promising(settings[index], simple_attacks(settings[index]))]
        found[index] = _draft(settings[index], outcome, attacks, start)
    return [found[index] for index in range(len(budgets))]


def _promising(
    setting: Setting, attacks: list[Float[np.ndarray, "columns"]], most: int = 4, most_left: float = np.inf
) -> list[Float[np.ndarray, "columns"]]:
    """Return the few attacks that would break most, and leave little enough, if the threat allowed them."""
    if not attacks:
        return []
    left = estimates(setting, np.array(attacks))
    order = np.argsort(left, kind="stable")
    return [attacks[index] for index in order[:most] if left[index] <= most_left]


def _nothing(setting: Setting) -> Outcome:
    point = DualPoint.idle(setting.pieces, setting.region, setting.cell)
    lower = evaluate(setting.pieces, setting.region, setting.cell, point)
    return Outcome(lower, Leaf((point,)), [], np.zeros(len(setting.region.limits)))


def _draft(setting: Setting, outcome: Outcome, attacks: list[Float[np.ndarray, "columns"]], start: float) -> _Draft:
    problem = setting.problem
    best, left = _best(setting, attacks)
    prices = np.zeros(problem.constraints.budgets.shape[1])
    prices[setting.region.kept] = outcome.prices[: len(setting.region.kept)]
    proof = Proof(setting.index, setting.supports.values, setting.supports.multipliers, outcome.root)
    lower = max(0.0, outcome.lower)
    return _Draft(lower, left, outcome.status, time.perf_counter() - start, best, prices, proof, outcome.claimed)


def _best(setting: Setting, attacks: list[Float[np.ndarray, "columns"]]) -> tuple[Float[np.ndarray, "columns"], int]:
    """Return the attack that leaves the fewest targets, counted exactly, from the most promising few."""
    problem = setting.problem
    fitted = [np.zeros(problem.columns)]
    fitted.extend(spending for attack in attacks if (spending := fit(setting, attack)) is not None)
    promise = estimates(setting, np.array(fitted))
    # Estimates may be off by the targets that sit on their threshold, so the best few are counted exactly.
    tried = [fitted[index] for index in np.argsort(promise, kind="stable")[:4]]
    counts = [survivors(problem, attack) for attack in tried]
    best = int(np.argmin(counts))
    return tried[best], counts[best]


def _share(drafts: list[_Draft], budgets: Float[np.ndarray, "budgets rows"]) -> None:
    """Let a bound hold for every smaller budget, and an attack for every larger one."""
    for index, draft in enumerate(drafts):
        wider = np.flatnonzero(np.all(budgets >= budgets[index], axis=1))
        narrower = np.flatnonzero(np.all(budgets <= budgets[index], axis=1))
        best = max(wider, key=lambda other: drafts[other].lower)
        if drafts[best].lower > draft.lower:
            draft.lower, draft.proof = drafts[best].lower, drafts[best].proof
        worst = min(narrower, key=lambda other: drafts[other].upper)
        if drafts[worst].upper < draft.upper:
            draft.upper, draft.attack = drafts[worst].upper, drafts[worst].attack


def _finish(problem: Problem, index: int, draft: _Draft) -> Answer:
    certified, worth = draft.certified, problem.worth
    if certified > draft.upper:
        raise CertificateError(
            f"a bound of {certified} lies above an attack that leaves {draft.upper}: please report it"
        )
    return Answer(
        worth.least(certified),
        float(worth.least(draft.lower)),
        worth.most(draft.upper),
        Status.EXACT if certified == draft.upper and not worth.lost else draft.status,
        draft.seconds,
        draft.attack,
        draft.prices,
        problem,
        index,
        draft.proof,
        claimed=None if draft.claimed is None else draft.claimed * float(worth.unit),
    )
