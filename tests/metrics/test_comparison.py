"""Fronts and dominance against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsmooth.errors import InvalidInputError
from localsmooth.metrics import OperatingPoint, dominates, dominations, front


def point(quality: float, lp: float, exact: float, method: str = "m") -> OperatingPoint:
    return OperatingPoint(method, f"{quality}, {lp}", quality, {"lp": lp, "exact": exact}, 10, 10)


levels = st.integers(0, 4).map(float)
points = st.lists(st.builds(point, levels, levels, levels), max_size=8)


@given(points, points)
def test_dominations_against_their_definition(losers: list[OperatingPoint], winners: list[OperatingPoint]) -> None:
    for bound, other in (("lp", None), ("exact", "lp")):
        found = dominations(losers, winners, bound, other)
        assert [one.loser for one in found] == losers
        for one in found:
            radius = one.loser.radii[other or bound]
            better = [
                (winner.radii[bound], winner.quality)
                for winner in winners
                if winner.quality >= one.loser.quality
                and winner.radii[bound] >= radius
                and (winner.quality, winner.radii[bound]) != (one.loser.quality, radius)
            ]
            assert (one.winner is None) == (not better)
            if one.winner is None:
                assert (one.quality_gain, one.radius_gain) == (0, 0)
            else:
                assert (one.winner.radii[bound], one.winner.quality) == max(better)
                assert one.quality_gain == one.winner.quality - one.loser.quality >= 0
                assert one.radius_gain == one.winner.radii[bound] - radius >= 0
                assert one.quality_gain + one.radius_gain > 0


@given(points)
def test_front_against_its_definition(several: list[OperatingPoint]) -> None:
    expected = [one for one in several if not any(dominates(other, one, "lp") for other in several)]
    found = front(several, "lp")
    assert sorted(found, key=id) == sorted(expected, key=id)
    assert [one.quality for one in found] == sorted((one.quality for one in found), reverse=True)
    # Along a front, quality is paid for with radius.
    assert [one.radii["lp"] for one in found] == sorted(one.radii["lp"] for one in found)


@given(points)
def test_dominance_is_a_strict_order(several: list[OperatingPoint]) -> None:
    for one in several:
        assert not dominates(one, one, "lp")
        for other in several:
            assert not (dominates(one, other, "lp") and dominates(other, one, "lp"))


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InvalidInputError, match="quality"):
        point(float("nan"), 1.0, 1.0)
    with pytest.raises(InvalidInputError, match="lp"):
        point(1.0, float("nan"), 1.0)
    assert front([point(1.0, 1.0, 1.0)], "naive") == []
    with pytest.raises(InvalidInputError, match="none called naive"):
        dominations([point(1.0, 1.0, 1.0)], [point(0.0, 1.0, 1.0)], "naive")
    with pytest.raises(InvalidInputError, match="quality"):
        point(float("inf"), 1.0, 1.0)
