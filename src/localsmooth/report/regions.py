"""Label maps as a few rectangles, and codes of single outputs, for the page's script to draw."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["ABSTAINS", "IGNORED", "WRONG", "fall_codes", "group_rectangles"]

WRONG = 0x4000
"""Bit of an output whose prediction is wrong."""
ABSTAINS = 0xFFFE
IGNORED = 0xFFFF


def fall_codes(
    radius: Float[np.ndarray, "rows columns"],
    abstains: Bool[np.ndarray, "rows columns"],
    ignored: Bool[np.ndarray, "rows columns"],
    wrong: Bool[np.ndarray, "rows columns"],
    budgets: Float[np.ndarray, "budgets"],
) -> dict[str, Any]:
    """For each output the index of the first budget that reaches its radius, or what else there is to say about it.

    The codes are unsigned 16-bit numbers, low byte first, row by row, in base 64.
    """
    first = np.minimum(np.searchsorted(budgets, radius, side="left"), WRONG - 1).astype(np.uint16)
    codes = np.where(wrong, first | WRONG, first)
    codes = np.where(abstains, ABSTAINS, codes)
    codes = np.where(ignored, IGNORED, codes).astype("<u2")
    rows, columns = codes.shape
    return {"rows": rows, "columns": columns, "codes": base64.b64encode(codes.tobytes()).decode("ascii")}


def group_rectangles(groups: Int[np.ndarray, "rows columns"]) -> list[list[int]]:
    """Rectangles (group, top, left, height, width) that cover a label map; equal runs of adjacent rows are joined.

    What has a negative number belongs to no group, and is not covered.
    """
    open_runs: dict[tuple[int, int, int], list[int]] = {}
    done: list[list[int]] = []
    for top, row in enumerate(groups):
        starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        ends = np.append(starts[1:], len(row))
        runs = {(int(row[a]), int(a), int(b - a)) for a, b in zip(starts, ends, strict=True) if row[a] >= 0}
        done.extend(open_runs.pop(run) for run in open_runs.keys() - runs)
        for run in runs:
            if run in open_runs:
                open_runs[run][3] += 1
            else:
                group, left, width = run
                open_runs[run] = [group, top, left, 1, width]
    return sorted([*done, *open_runs.values()])
