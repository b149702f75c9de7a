"""What every collective bound must do: never count more than what an enumeration of all attacks leaves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog

from localsmooth.collective import Answer, Ball, Bound, Caps, Integer, Naive, Problem, Rows, Threat, solve

__all__ = ["BoundContract", "SmallProblem"]


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A problem that can be enumerated; the enumeration shares no code with the solvers.

    Parameters
    ----------
    weights
        W: certificates × output groups × columns.
    eta
        Thresholds: certificates × outputs.
    group
        Output group of each output.
    A, c
        Spendings b with A·b ≤ c are allowed.
    caps
        Largest spending in each column, None for no cap.
    integer
        Whether only whole numbers are spent.
    targets
        Outputs that count.
    value
        What each output counts; 1 by default.
    """

    weights: np.ndarray
    eta: np.ndarray
    group: np.ndarray
    A: np.ndarray
    c: np.ndarray
    caps: Sequence[float | int | None]
    integer: bool
    targets: np.ndarray
    value: np.ndarray | None = None

    @staticmethod
    def random(
        seed: int,
        integer: bool = False,
        certificates: int = 1,
        outputs: int | None = None,
        rows: int = 1,
        groups: int | None = None,
        columns: int | None = None,
        valued: bool = False,
    ) -> SmallProblem:
        """Make one with ties, zeros and idle groups among it.

        Parameters
        ----------
        seed
            Another seed gives another problem.
        integer, certificates, outputs, rows, groups, columns
            Its kind and sizes; by default one certificate, and few of everything else.
        valued
            Whether outputs have values of their own: whole numbers, fractions, both, or over many orders of magnitude.
        """
        r = np.random.default_rng(seed)
        groups = groups or int(r.integers(1, 4))
        columns = columns or int(r.integers(1, 4))
        outputs = int(r.integers(1, 8)) if outputs is None else outputs
        weights = r.choice([0.0, 0.5, 1.0, 2.0, 7.0], size=(certificates, groups, columns)) * r.uniform(0.5, 1.5)
        if r.random() < 0.5:
            weights = weights * r.uniform(0.5, 1.0, size=weights.shape)
        eta = np.round(r.gamma(1.5, 1.0, size=(certificates, outputs)), int(r.integers(0, 4)))
        matrix = np.ones((1, columns))
        if rows != 1:
            matrix = r.choice([0.0, 1.0, 2.0], size=(rows, columns)) + np.eye(rows, columns)
        right = r.uniform(0.1, 2.0, size=len(matrix))
        caps: list[float | int | None] = [
            None if r.random() < 0.5 else float(r.uniform(0.1, 1.0)) for _ in range(columns)
        ]
        if np.any(matrix.max(axis=0) == 0):
            matrix, right = np.concatenate([matrix, np.ones((1, columns))]), np.append(right, 1.0)
        if integer:
            matrix = np.ceil(matrix)
            right = r.integers(0, 5, size=len(matrix)).astype(float)
            caps = [int(r.integers(1, 4)) for _ in range(columns)]
        group = r.integers(0, groups, size=outputs)
        value = None
        if valued:
            value = (
                r.integers(0, 5, size=outputs).astype(float),
                r.choice([0.0, 0.1, 1 / 3, 0.25, 7.5], size=outputs),
                r.uniform(0.0, 2.0, size=outputs),
                10.0 ** r.uniform(-30, 30, size=outputs),
            )[int(r.integers(4))]
        return SmallProblem(weights, eta, group, matrix, right, caps, integer, np.arange(outputs), value)

    def build(self) -> Problem:
        """Make the problem as solvers take it."""
        threat: Threat = Rows(self.A, self.c) & Caps(self.caps)
        threat = threat & Integer() if self.integer else threat
        return Problem(self.weights, self.eta, self.group, threat, self.targets, self.value)

    @cached_property
    def optimum(self) -> int | Fraction:
        """The least number of targets that an allowed attack leaves, or the least sum of their values."""
        return self._over_whole_numbers() if self.integer else self._over_demands()

    def _sum(self, outputs: Iterable[Any]) -> int | Fraction:
        if self.value is None:
            return len(list(outputs))
        return sum((Fraction(float(self.value[n])) for n in outputs), Fraction(0))

    def _over_whole_numbers(self) -> int | Fraction:
        limits = list[int]()
        for column, cap in enumerate(self.caps):
            rows = [limit / row[column] for row, limit in zip(self.A, self.c, strict=True) if row[column] > 0]
            limits.append(int(np.floor(min([*rows, np.inf if cap is None else cap]) + 1e-12)))
        best = self._sum(self.targets)
        for spent in itertools.product(*(range(limit + 1) for limit in limits)):
            if np.all(self.A @ np.array(spent, float) <= self.c + 1e-12):
                feed = self.weights @ np.array(spent, float)
                left = (feed[:, self.group[self.targets]] < self.eta[:, self.targets]).any(axis=0)
                best = min(best, self._sum(self.targets[left]))
        return best

    def _over_demands(self) -> int | Fraction:
        """For every choice of what each group is fed, ask a linear program whether it can be paid for."""
        targets = [n for n in self.targets if np.any(self.eta[:, n] > 0)]
        groups = sorted({int(self.group[n]) for n in targets})
        options: list[list[tuple[int | Fraction, tuple[float, ...]]]] = []
        for i in groups:
            own = [n for n in targets if self.group[n] == i]
            grids = [sorted({0.0, *(float(e[n]) for n in own if np.isfinite(e[n]))}) for e in self.eta]
            choices = [
                (self._sum(n for n in own if any(e[n] > d for e, d in zip(self.eta, demand, strict=True))), demand)
                for demand in itertools.product(*grids)
            ]
            # Keep, for each count, only the demands that no other one undercuts.
            options.append(
                sorted(
                    (left, demand)
                    for left, demand in choices
                    if not any(
                        other <= left
                        and all(a <= b for a, b in zip(d, demand, strict=True))
                        and (other, d) != (left, demand)
                        for other, d in choices
                    )
                )
            )
        best = self._sum(targets)
        bounds = [(0, cap) for cap in self.caps]
        for plan in itertools.product(*options):
            if (left := sum(count for count, _ in plan)) < best and plan:
                needs = np.array([demand for _, demand in plan]).reshape(len(groups), -1)
                matrix = np.concatenate([-w[groups] for w in self.weights] + [self.A])
                right = np.concatenate([*(-needs.T), self.c])
                if linprog(np.zeros(matrix.shape[1]), matrix, right, bounds=bounds, method="highs").status == 0:
                    best = left
        return best


class BoundContract:
    """Tests of a collective bound, on small random problems whose optimum is found by enumeration."""

    bound: Bound
    """The bound."""
    optimal: bool = False
    """Whether it promises the optimum."""
    problems: int = 30
    """Random problems of each kind."""

    def _problems(self) -> list[SmallProblem]:
        seeds, made = range(self.problems), SmallProblem.random
        return [
            *(made(seed, rows=1 + seed % 3) for seed in seeds),
            *(made(1000 + seed, integer=True, rows=1 + seed % 2) for seed in seeds),
            *(made(2000 + seed, outputs=seed % 5 + 1, certificates=2, groups=2) for seed in seeds),
            *(made(3000 + seed, integer=True, certificates=2, groups=2) for seed in seeds),
            *(made(4000 + seed, rows=1 + seed % 3, valued=True) for seed in seeds),
            *(made(5000 + seed, outputs=seed % 5 + 1, certificates=2, groups=2, valued=True) for seed in seeds),
            *(made(6000 + seed, integer=True, certificates=1 + seed % 2, groups=2, valued=True) for seed in seeds),
        ]

    def _solve(self, problem: Problem) -> list[Answer]:
        """Solve with every answer proven again in exact arithmetic, which raises where it is not."""
        return list(solve(problem, self.bound, verify=True))

    def _checked(self, small: SmallProblem) -> Answer:
        (answer,) = self._solve(small.build())
        assert answer.certified <= small.optimum, f"{answer.certified} certified, and {small.optimum} left by an attack"
        assert answer.upper >= small.optimum, f"an attack is said to leave {answer.upper} of {small.optimum}"
        return answer

    def test_no_attack_leaves_less_than_is_certified(self) -> None:
        """In real and whole numbers, with one certificate per output and with several, with values and without."""
        for small in self._problems():
            answer = self._checked(small)
            if self.optimal:
                # Values without a common measure are proven to 10⁻⁹ of their sum; whole numbers exactly.
                short = Fraction(small.optimum) - Fraction(answer.certified)
                assert short <= Fraction(1e-9 * answer.total), "the optimum was promised"

    def test_it_proves_what_is_clear_without_it(self) -> None:
        """No less than each output on its own proves: a bound of 0 holds, and is of no use."""
        for small in self._problems():
            alone = solve(small.build(), Naive())[0]
            assert self._solve(small.build())[0].lower >= alone.lower - 1e-6 * min(1.0, alone.total)

    def test_curves_fall_and_begin_with_all_that_can_stand(self) -> None:
        """Without a budget nothing falls; more budget never leaves more; other budgets of the curve play no role."""
        r = np.random.default_rng(2)
        weights, group, eta = r.uniform(0.1, 3, (4, 5)), r.integers(0, 4, 40), r.gamma(2.0, 1.0, 40)
        eta[::7] = 0.0
        budgets = r.permutation(np.linspace(0, 3, 13))
        curve = self._solve(Problem(weights, eta, group, Ball(budgets)))
        ordered = [curve[int(index)].certified for index in np.argsort(budgets)]
        assert ordered[0] == np.count_nonzero(eta), "without a budget everything stands that can stand"
        assert all(one >= other for one, other in itertools.pairwise(ordered)), "more budget leaves more"
        assert ordered[-1] == 0, "a budget beyond all thresholds leaves nothing"

    def test_what_never_falls_and_what_never_stands(self) -> None:
        """Thresholds of infinity and of 0, groups that nobody can reach, and targets that are few."""
        problem = Problem(
            [[1.0, 0.0], [0.0, 0.0]], [np.inf, 0.0, 1.0, 1.0, 0.0, 2.0], [0, 0, 0, 1, 1, 0], Ball(100.0, 1)
        )
        assert self._solve(problem)[0].certified == 2
        chosen = Problem([[1.0]], [1.0, 3.0, 5.0], [0, 0, 0], Ball(2.0, 1), [0, 2])
        assert self._solve(chosen)[0].certified <= 1

    def test_targets_scaled_together_stay_as_they_are(self) -> None:
        """Other units of weights and thresholds change nothing, powers of two not even by rounding."""
        for small in self._problems()[:: max(1, self.problems // 5)]:
            scaled = SmallProblem(
                small.weights * 1024,
                small.eta * 1024,
                small.group,
                small.A,
                small.c,
                small.caps,
                small.integer,
                small.targets,
                small.value,
            )
            assert self._checked(scaled).certified == self._checked(small).certified

    def test_the_bound_may_be_used_again(self) -> None:
        """One object serves one problem after the other, and gives the same answers."""
        problems = [small.build() for small in self._problems()[:6]]
        first = [self._solve(problem)[0].certified for problem in problems]
        assert first == [self._solve(problem)[0].certified for problem in problems]
