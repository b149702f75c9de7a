"""What rules that end sampling early save: python benchmarks/sampling_rules.py RUN … [--target ratio] [--gain 0.02].

Finished runs of arrays whose chunks are kept are sampled again on paper: every rule sees the votes of the first chunks
of each output group, and says when it has enough. Nothing is drawn. All counts are joint counts at all of α, which hold
at every number of samples at once, also where it differs among output groups and was chosen by looking at votes; so
rules differ by what they stop and not by what they pay for looking. Rules are

* fixed: every group gets as many samples; the plan as a whole, and shares of it;
* decided: a group stops when each of its outputs is (`StopWhenDecided`), for all budgets or the largest only;
* settled: an item stops when its last doubling gained less than `--gain` of its radius;
* settled by group: a group stops when taking away the later half of its samples costs less than its share of that.

Shown are the samples of the bound stage, weighted by what a window shows, and the average certifiable radius (lower sum
on the budgets given, with what is left at the largest, by the envelope), each as a share of the whole plan's; and what
a fixed plan takes for the same radius, so that the last column is what the rule saves at an equal count.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from localsmooth.bounds import JointCount
from localsmooth.certificates import OutputVotes
from localsmooth.collective import Envelope
from localsmooth.metrics import average_certifiable_radius
from localsmooth.noise import Noise
from localsmooth.pipeline import settings_of
from localsmooth.runs import ChunkRecord, DirectoryStore, SamplingPlan, Stage
from localsmooth.tasks import RunRecord, StopWhenDecided, as_targets, load_record, noise_from_configuration
from localsmooth.tasks.arrays import SampledItem, Settings, certify_item
from localsmooth.tasks.arrays.sampled import load_items
from localsmooth.tasks.stopping import with_goals

_FIRST = 4  # rounds before a rule looks
_RATIO = 1.5  # of rounds at one look and the next


@dataclass(eq=False)
class Drawn:
    """An item with its votes after every round of chunks, and what is certified of it.

    Parameters
    ----------
    item
        The item.
    votes, n
        Votes of each output, and samples of each group, after 0, 1, … rounds.
    cost
        Passes over the item that a sample of each group takes.
    noise, settings
        What was sampled, and is proven.
    """

    item: SampledItem
    votes: Int[np.ndarray, "rounds outputs"]
    n: Int[np.ndarray, "rounds"]
    cost: Float[np.ndarray, "groups"]
    noise: Noise
    settings: Settings

    def __post_init__(self) -> None:
        self.group = self.item.layout.outputs.labels.ravel()
        self._known: dict[tuple[int, ...], float] = {}

    @property
    def rounds(self) -> int:
        """How many there are."""
        return self.n.size - 1

    def work(self, taken: Int[np.ndarray, "groups"]) -> float:
        """Passes over the item, of so many rounds of each group."""
        return float(self.cost @ self.n[taken])

    def radius(self, taken: Int[np.ndarray, "groups"]) -> float:
        """Certify so many rounds of each group."""
        key = tuple(taken.tolist())
        if key not in self._known:
            rounds, outputs = taken[self.group], np.arange(self.group.size)
            before = self.item.votes
            votes = OutputVotes(
                before.candidate,
                self.votes[rounds, outputs],
                self.n[rounds],
                candidate_votes=before.candidate_votes,
                planned=int(self.n[-1]),
                clean=before.clean,
                ended=True,
            )
            result = certify_item(replace(self.item, votes=votes), self.noise, self.settings)
            ((name, _), curve) = next(iter(result.curves.items()))
            share = curve.certified / result.stakes[name].total
            self._known[key] = float(sum(average_certifiable_radius(np.array(self.settings.budgets), share)))
        return self._known[key]

    def all(self, rounds: int) -> Int[np.ndarray, "groups"]:
        """So many rounds of every group."""
        return np.full(self.cost.size, rounds)

    def looks(self) -> list[int]:
        """Rounds at which rules look."""
        made = [_FIRST]
        while made[-1] < self.rounds:
            made.append(min(self.rounds, max(made[-1] + 1, round(made[-1] * _RATIO))))
        return made


Rule = Callable[[int, Drawn], Int[np.ndarray, "groups"]]
"""Rounds of each group that an item, which has a number, gets."""


def decided(goals: StopWhenDecided) -> Rule:
    """Stop groups whose outputs are decided."""

    def taken(index: int, drawn: Drawn) -> Int[np.ndarray, "groups"]:
        made = drawn.all(drawn.rounds)
        for group in range(made.size):
            own = drawn.votes[:, drawn.group == group]
            for rounds in range(1, drawn.rounds):
                if goals.decided(index, group, own[rounds], int(drawn.n[rounds])):
                    made[group] = rounds
                    break
        return made

    return taken


def settled(gain: float) -> Rule:
    """Stop items whose last doubling gained little."""

    def taken(index: int, drawn: Drawn) -> Int[np.ndarray, "groups"]:
        for rounds in drawn.looks():
            now = drawn.radius(drawn.all(rounds))
            if now > 0 and now - drawn.radius(drawn.all(rounds // 2)) < gain * now:
                return drawn.all(rounds)
        return drawn.all(drawn.rounds)

    return taken


def settled_by_group(gain: float) -> Rule:
    """Stop groups whose last doubling gained little for its work."""

    def taken(index: int, drawn: Drawn) -> Int[np.ndarray, "groups"]:
        made, going = drawn.all(0), np.ones(drawn.cost.size, np.bool_)
        share = drawn.cost / drawn.cost.sum()
        for rounds in drawn.looks():
            made[going] = rounds
            now = drawn.radius(made)
            for group in np.flatnonzero(going):
                half = made.copy()
                half[group] //= 2
                going[group] = now == 0 or now - drawn.radius(half) >= gain * now * share[group]
            if not going.any():
                break
        return made

    return taken


def read(folder: Path, target: str, budgets: list[float] | None) -> tuple[list[Drawn], RunRecord]:
    """A finished run with the votes of its chunks."""
    record, store, asked = load_record(folder), DirectoryStore(folder, read_only=True), settings_of(folder)
    noise = noise_from_configuration(record.noise)
    settings = replace(
        asked,
        budgets=tuple(np.linspace(0, asked.largest_budget, 36)) if budgets is None else tuple(budgets),
        bounds={"envelope": Envelope()},
        targets=as_targets([target]),
        simultaneous=JointCount(),
    ).completed(noise)
    chunks: dict[int, list[ChunkRecord]] = {}
    for chunk in store.records():
        if chunk.chunk.stage == Stage.BOUND.value:
            chunks.setdefault(chunk.chunk.item, []).append(chunk)
    made: list[Drawn] = []
    for index, item in enumerate(load_items(record, store)):
        own, groups = chunks[index], item.layout.outputs.labels.ravel()
        sizes = {one.chunk.index: one.n for one in own}
        votes = np.zeros((len(sizes) + 1, groups.size), np.int64)
        for one in own:
            votes[one.chunk.index + 1, groups == one.chunk.group] = one.counts["votes.votes"]
        elements = np.bincount(item.layout.inputs.labels.ravel(), minlength=item.layout.inputs.count)
        cost = np.isfinite(item.layout.levels) @ (elements / elements.sum())
        n = np.cumsum([0, *(sizes[number] for number in sorted(sizes))])
        made.append(Drawn(item, votes.cumsum(axis=0), n, cost, noise, settings))
    return made, record


def goals(drawn: list[Drawn], record: RunRecord, only: bool) -> StopWhenDecided:
    """What each group would have to reach."""
    plan = SamplingPlan(record.n_candidate, int(drawn[0].n[-1]), stop=StopWhenDecided(largest_budget_only=only))
    layouts = [one.item.layout for one in drawn]
    made = with_goals(plan, layouts, drawn[0].noise, drawn[0].settings).stop
    assert isinstance(made, StopWhenDecided)
    return made


def compare(folder: Path, target: str, budgets: list[float] | None, gains: list[float]) -> None:
    """A table of one run."""
    drawn, record = read(folder, target, budgets)
    whole = sum(one.work(one.all(one.rounds)) for one in drawn)
    best = sum(one.radius(one.all(one.rounds)) for one in drawn)
    works, radii = [0.0], [0.0]  # of fixed plans
    for rounds in sorted({*drawn[0].looks(), 1, 2, 3}):
        works.append(sum(one.work(one.all(rounds)) for one in drawn) / whole)
        radii.append(sum(one.radius(one.all(rounds)) for one in drawn) / best)
    rules: dict[str, Rule] = {
        "decided": decided(goals(drawn, record, False)),
        "decided, largest budget": decided(goals(drawn, record, True)),
    }
    for gain in gains:
        rules |= {f"settled, {gain:g}": settled(gain), f"settled by group, {gain:g}": settled_by_group(gain)}
    print(f"{folder.name}: {len(drawn)} items, {whole / len(drawn):.0f} passes, radius {best / len(drawn):.4f}")
    print("fixed plans, work: radius  " + "  ".join(f"{w:.3f}: {r:.3f}" for w, r in zip(works, radii, strict=True)))
    print("| rule | work | radius | fixed plan for that radius | saved at equal count |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, rule in rules.items():
        taken = [rule(index, one) for index, one in enumerate(drawn)]
        work = sum(one.work(each) for one, each in zip(drawn, taken, strict=True)) / whole
        radius = sum(one.radius(each) for one, each in zip(drawn, taken, strict=True)) / best
        equal = float(np.interp(radius, np.maximum.accumulate(radii), works))
        print(f"| {name} | {work:.3f} | {radius:.3f} | {equal:.3f} | {1 - work / equal:+.0%} |", flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--target", default="ratio")
    parser.add_argument("--budgets", nargs="*", type=float, help="by default 36 up to the run's largest")
    parser.add_argument("--gain", nargs="*", type=float, default=[0.05, 0.02, 0.01])
    asked = parser.parse_args()
    for folder in asked.runs:
        compare(folder, asked.target, asked.budgets, asked.gain)


if __name__ == "__main__":
    main()
