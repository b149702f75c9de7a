"""What counts as numbers at the door (arrays, nested sequences, single numbers), and what rounding can do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["TINY", "UNIT", "Number", "Numbers"]

Number = float | int | np.number[Any]
Numbers = np.ndarray | Sequence[Any] | Number

UNIT = 2.0**-53
"""Largest relative error of one rounding."""
TINY = 2.0**-1074
"""What one product can lose where it underflows."""
