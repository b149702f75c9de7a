"""What counts as numbers at the door: arrays, nested sequences and single numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Number", "Numbers"]

Number = float | int | np.number[Any]
Numbers = np.ndarray | Sequence[Any] | Number
