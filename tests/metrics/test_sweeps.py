import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from localsmooth.metrics import pareto_front


@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.just(2)), elements=st.integers(0, 4)))
def test_front_against_its_definition(scores: np.ndarray):
    expected = [
        not any(all(other >= point) and any(other > point) for other in scores)
        for point in scores
    ]  # fmt: skip
    np.testing.assert_array_equal(pareto_front(scores), np.array(expected, dtype=bool))


def test_equal_points_stand_together_and_nan_never_does():
    scores = np.array([[1.0, 1.0], [1.0, 1.0], [np.nan, 9.0], [0.0, 2.0], [0.5, 0.5]])
    np.testing.assert_array_equal(pareto_front(scores), [True, True, False, True, False])
