"""How much of the true η each bound on scores obtains: python benchmarks/score_bounds.py.

η = ln(1 + (μ − 1/2)² / ζ) with ν = μ, at the level of one output among 2110 with α = .01; 0 where μ ≤ 1/2 cannot be
excluded. Every bound sees the same scores on the same grid. The table shows η obtained / η true, averaged over repeats.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from localsmooth.bounds import Betting, CdfBand, EmpiricalBernstein, ScoreBound, ScoreHistogram, even_thresholds

LEVEL = 0.01 / 2110
BINS = 1024
BOUNDS: tuple[ScoreBound, ...] = (CdfBand(), EmpiricalBernstein(), Betting())


@dataclass(frozen=True)
class Law:
    name: str
    mean: float
    variance: float
    draw: Callable[[np.random.Generator, int], np.ndarray]

    @property
    def eta(self) -> float:
        return float(np.log1p((self.mean - 0.5) ** 2 / self.variance))


def beta(a: float, b: float) -> Law:
    law = stats.beta(a, b)
    return Law(f"Beta({a:g},{b:g})", float(law.mean()), float(law.var()), lambda rng, n: rng.beta(a, b, n))


def two_points(low: float, high: float, share: float) -> Law:
    mean = low + share * (high - low)
    variance = share * (1 - share) * (high - low) ** 2
    return Law(
        f"{low:g} or {high:g} ({share:g})",
        mean,
        variance,
        lambda rng, n: np.where(rng.random(n) < share, high, low),
    )


LAWS = (
    beta(90, 10),
    beta(400, 8),
    beta(20, 2),
    beta(2, 1),
    beta(0.9, 0.1),
    two_points(0, 1, 0.7),
    two_points(0, 1, 0.9),
    two_points(0, 1, 0.99),
    two_points(0.375, 0.9375, 0.9),
    two_points(0.25, 0.75, 0.75),
)


def obtained(bound: ScoreBound, tally: ScoreHistogram, reference: float) -> float:
    result = bound.bounds(tally, LEVEL, reference)
    gap = np.maximum(result.mean_lower - 0.5, 0.0)
    return float(np.log1p(gap**2 / result.deviation_upper).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    spent = dict.fromkeys((bound.name for bound in BOUNDS), 0.0)
    print(f"{'law':24}{'N':>8}{'eta':>8}" + "".join(f"{bound.name:>20}" for bound in BOUNDS))
    weaker = 0
    for law in LAWS:
        for count in (1_000, 10_000, 100_000):
            tally = ScoreHistogram.of(
                np.stack([law.draw(rng, count) for _ in range(options.repeats)], axis=1), even_thresholds(BINS)
            )
            shares = []
            for bound in BOUNDS:
                start = time.perf_counter()
                shares.append(obtained(bound, tally, law.mean) / law.eta)
                spent[bound.name] += time.perf_counter() - start
            weaker += shares[2] < shares[1]
            print(f"{law.name:24}{count:8}{law.eta:8.3f}" + "".join(f"{share:20.3f}" for share in shares))
    cases = 3 * len(LAWS) * options.repeats
    print("milliseconds per output: " + ", ".join(f"{name} {1e3 * s / cases:.2f}" for name, s in spent.items()))
    print(f"betting below empirical Bernstein in {weaker} of {3 * len(LAWS)} rows")


if __name__ == "__main__":
    main()
