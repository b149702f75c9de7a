"""Settings of every kind of input share what lies between tallies and counts."""

from inspect import signature

import pytest

from localsmooth import graphs
from localsmooth.bounds import Automatic, Bonferroni, EmpiricalBernstein
from localsmooth.certificates import RenyiVotes, SparseScores
from localsmooth.tasks.arrays import Settings
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from localsmooth.tasks.strategies import Strategies

SHARED = tuple(signature(Strategies.__init__).parameters)[1:]


@pytest.mark.parametrize(("kind", "given"), [(Settings, ((0.5, 1),)), (graphs.GraphSettings, ((3, 1), (2,)))])
def test_what_is_shared_has_one_default_and_one_place(kind: type, given: tuple[tuple[float, ...], ...]) -> None:
    parameters = tuple(signature(kind).parameters)
    assert [name for name in parameters if name in SHARED] == list(SHARED)
    assert parameters[0] == "alpha"
    settings = kind(0.1, *given)
    assert settings.bounds == DEFAULT_BOUNDS
    assert settings.simultaneous == Automatic()
    assert settings.score_bound == EmpiricalBernstein()
    assert not settings.needs_scores
    by_place = kind(0.1, *given, [SparseScores()], ["lp"], Bonferroni(), EmpiricalBernstein())
    assert by_place.needs_scores
    assert list(by_place.bounds) == ["lp"]


def test_budgets_are_those_of_each_kind() -> None:
    assert Settings(0.1, (0.5, 1, 0.5)).budgets == (0.5, 1.0)
    pairs = graphs.GraphSettings(0.1, (3, 1), [2])
    assert (pairs.additions, pairs.deletions, pairs.largest_budget) == ((0, 1, 3), (0, 2), 3.0)
    assert (pairs.certificates, pairs.limits) == ((RenyiVotes(),), graphs.AttackLimits())
    assert graphs.GraphSettings(0.1).deletions == tuple(range(41))
