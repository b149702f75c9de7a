"""The most that each inequality can be fed: proposed here, and proven by row multipliers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from localsmooth.collective.kernel.knapsack import knapsack_supports
from localsmooth.collective.kernel.region import Region, Supports, support_value
from localsmooth.collective.search.linear_program import LinearModel

__all__ = ["supports"]


def supports(weights: Float[np.ndarray, "pieces real"], region: Region) -> Supports:
    """Bound what each inequality can be fed: in closed form where every column has one budget, by LPs elsewhere."""
    weights = np.pad(weights, ((0, 0), (0, len(region.upper) - region.real)))
    closed = knapsack_supports(weights, region.rows, region.limits, region.upper)
    if closed is not None:
        return Supports(*closed)
    best = np.zeros((len(weights), len(region.limits)))
    values = support_value(weights, best, region)
    for piece, duals in enumerate(_prices(weights, region)):
        if duals is not None:
            value = support_value(weights[piece : piece + 1], duals[None], region)[0]
            if value < values[piece]:
                values[piece], best[piece] = value, duals
    return Supports(values, best)


def _prices(weights: Float[np.ndarray, "pieces columns"], region: Region) -> Iterator[Float[np.ndarray, "rows"] | None]:
    """Yield the row multipliers of max W_p · b for each inequality by an LP, None where it finds none."""
    rows, width = region.rows, len(region.upper)
    sizes = np.where(region.limits > 0, region.limits, np.abs(rows).max(axis=1, initial=0.0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    model = LinearModel()
    model.load(
        np.zeros(width),
        np.zeros(width),
        region.upper,
        rows / sizes[:, None],
        np.full(len(sizes), -np.inf),
        region.limits / sizes,
    )
    for row in weights:
        most = float(np.max(row, initial=0.0)) or 1.0
        model.aim(-row / most)
        solution = model.solve()
        with np.errstate(over="ignore"):
            prices = np.maximum(0.0, -solution.duals * most / sizes)
        yield prices if solution.feasible and bool(np.all(np.isfinite(prices))) else None
