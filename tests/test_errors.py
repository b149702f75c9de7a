"""Arguments of another kind are refused."""

from __future__ import annotations

import pytest

from localsmooth.errors import InvalidInputError, require_kind


@pytest.mark.parametrize("value", [True, False])
def test_truth_is_no_number(value: bool) -> None:
    with pytest.raises(InvalidInputError, match=r"sigma: got a bool\. Pass a int or float"):
        require_kind("sigma", value, int, float)
    require_kind("clamp", value, bool)
    require_kind("anything", value, object)


def test_classes_are_no_objects() -> None:
    with pytest.raises(InvalidInputError, match="got the class int"):
        require_kind("sigma", int, int)
