from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from localsmooth.models.preprocessing import reflected_positions


@given(st.integers(1, 12), st.integers(0, 40))
def test_reflection_equals_numpy(size, extra):
    axis = np.arange(size)
    expected = np.pad(axis, (0, extra), mode="reflect")
    np.testing.assert_array_equal(reflected_positions(size, size + extra), expected)
