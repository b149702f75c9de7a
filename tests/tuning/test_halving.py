"""Who stays in the contest, with forecasts that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import localsmooth as ls
from localsmooth.errors import InvalidInputError
from localsmooth.execution import SamplingSummary
from localsmooth.tuning import Aim, Candidate, Entry, Forecast, Pilots, Tried, halved, isotropic_candidates, planned
from localsmooth.tuning.outlook import Outlook


@cache
def entry() -> Entry:
    model = ls.CallableModel(
        lambda batch: (batch[:, 0] > 0.5).astype(np.int64),
        name="m",
        bounds=None,
        classes=2,
        output=ls.OutputKind.LABELS,
    )
    task, settings = ls.ArrayTask(model, np.zeros((1, 1, 4, 4), np.float32)), ls.Settings(0.1, [0.0, 0.5])
    return Pilots(task, settings, ls.Gaussian(), 0, 64, [0.1]).enter(isotropic_candidates([0.3])[0], 1000)


def contest(
    names: list[str],
    outcome: Callable[[str, int], tuple[float, float]],
    floor: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[list[Tried], list[tuple[int, float, list[str]]]]:
    """The order in the end, and who was tried in each round, with which share."""
    rounds: dict[int, tuple[float, list[str]]] = {}
    whole = entry()
    layout = whole.candidate.layout

    def attempt(one: Entry, share: float, number: int) -> Tried:
        name = one.candidate.name
        rounds.setdefault(number, (share, []))[1].append(name)
        score, quality = outcome(name, number)
        line = np.zeros(1)
        seen = Forecast(line, line, line, line, score, 0.0, np.array([score]), {"accuracy": quality}, {"accuracy": 0.0})
        return Tried(one, seen, number, 12)

    entries = [replace(whole, candidate=Candidate(name, layout, name.startswith("iso"))) for name in names]
    order = halved(entries, attempt, Aim(floor={"accuracy": floor}), 0.1, say)
    return order, [(number, share, tried) for number, (share, tried) in rounds.items()]


def names(order: list[Tried]) -> list[str]:
    return [one.entry.candidate.name for one in order]


def test_the_better_half_stays_with_pilots_of_twice_the_size() -> None:
    several = ["iso", *(f"local {k}" for k in range(9))]
    scores = {"iso": 0.1, **{f"local {k}": 1.0 + k for k in range(9)}}
    order, rounds = contest(several, lambda name, _: (scores[name], 1.0))
    assert [len(tried) for _, _, tried in rounds] == [10, 6, 4, 3, 2]
    assert all("iso" in tried for _, _, tried in rounds)
    shares = [share for _, share, _ in rounds]
    assert shares[-1] == 0.1
    assert all(before < after or after == 0.05 for before, after in pairwise(shares))
    assert names(order)[0] == "local 8"
    assert len(order) == 10
    assert names(contest(several, lambda name, _: (-scores[name], 1.0))[0])[0] == "iso"


def test_rounds_are_known_beforehand_where_isotropic_noise_is_not_behind() -> None:
    for count in (1, 2, 3, 4, 10, 21):
        several = ["local", "iso", *(f"local {k}" for k in range(count - 2))][:count]
        scores = {name: float(-place) for place, name in enumerate(several)}
        _, rounds = contest(several, lambda name, _, scores=scores: (scores[name], 1.0))
        assert planned(count, 0.1) == [(len(tried), share) for _, share, tried in rounds]


def test_what_is_left_is_told_by_what_pilots_took() -> None:
    said: list[str] = []
    now = [0.0]
    whole = entry()
    total = whole.plan.n_candidate + whole.plan.n_bound
    outlook = Outlook([whole] * 3, 0.1, said.append, lambda: now[0])
    assert said == [
        "3 candidates: about 5 pilots in 2 rounds, together about 350 passes an item (a whole run takes 1,000)"
    ]
    watched = outlook.watch(whole, 1)
    now[0] = 500.0  # the model's trial
    watched.start(50, 0)
    for now[0], done in ((505.0, 25.0), (511.0, 40.0), (520.0, 50.0)):
        watched.within(done, 50.0)
    watched.finish(SamplingSummary(50, 20.0, (), None, None, None))
    now[0] = 523.0  # the forecast
    outlook.done(watched, whole, total // 20, 1)
    # Four pilots are left, two of 50 passes and two of 100: 300 passes at 20 s for 50, and 3 s for each forecast.
    assert said[1:] == ["Round 1: isotropic 0.3: 40 of 50 passes", "About 0:02:12 for the 4 pilots or so that are left"]
    outlook.done(watched, whole, total // 20, 1)
    assert len(said) == 3, "once a round"


def test_the_last_pilots_decide() -> None:
    """What won by luck gives way to isotropic noise."""
    order, _ = contest(["iso", "a", "b", "c"], lambda name, number: (2.0 if name == "a" and number < 3 else 1.0, 1.0))
    assert names(order)[0] in ("iso", "a")
    order, _ = contest(["iso", "a"], lambda name, _: (1.0 if name == "iso" else 0.5, 1.0))
    assert names(order) == ["iso", "a"]


def test_whoever_misses_the_floor_in_the_end_gives_way_to_the_next() -> None:
    def outcome(name: str, number: int) -> tuple[float, float]:
        good = {"iso": 0.1, "a": 3.0, "b": 2.0, "c": 1.0}[name]
        quality = {"iso": 0.2, "a": 0.9 if number < 3 else 0.4, "b": 0.9, "c": 0.9}[name]
        return good, quality

    order, rounds = contest(["iso", "a", "b", "c"], outcome, 0.5)
    assert names(order)[0] == "b"
    assert sorted(names(order)) == ["a", "b", "c", "iso"]
    assert rounds[-1][2][:2] == ["a", "iso"]
    with pytest.raises(InvalidInputError, match=r"no candidate reaches it; the nearest, a, has accuracy 0\.400"):
        contest(["iso", "a"], lambda name, _: (1.0, {"iso": 0.3, "a": 0.4}[name]), 0.5)


def test_a_floor_that_none_reaches_is_told_from_the_first_round_on() -> None:
    said: list[str] = []
    grows = {1: 0.4, 2: 0.6}
    contest(["iso", "a", "b", "c"], lambda name, number: (1.0, grows.get(number, 0.9)), 0.5, said.append)
    assert len(said) == 1
    assert "None reaches the floor so far: the nearest, iso, has accuracy 0.400" in said[0]
