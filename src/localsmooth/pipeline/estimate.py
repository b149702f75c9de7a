"""What is told of a run before it: its size, its time, how far it reaches, and what the model still sees."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from localsmooth.pipeline.looks import Sight

__all__ = ["Estimate"]

_MEBI = 1 << 20


@dataclass(frozen=True)
class Estimate:
    """What a run will take. Nothing in it is a certificate, and nothing that was drawn for it is used for one.

    Parameters
    ----------
    items, groups
        Number of items, and of output groups in all of them.
    samples
        Calls of the model, a sample each; at most so many where groups may stop early. None where a method draws its
        samples in its own way.
    passes
        The same in passes over a whole item: a window counts by its share of the item.
    stops_early
        Whether groups may do with fewer.
    rate
        Passes per second that were measured; None if none were.
    timed
        Passes that were timed.
    memory
        Largest memory of one process while they were, in bytes; None if not known.
    disk
        Bytes that finished chunks will take, about; None if not known.
    reach
        How far certificates can reach, in words; empty where that cannot be told.
    scale
        What ε = 1 amounts to, in words; empty where ε needs none.
    notes
        What else the user should know, such as the batch size that was chosen.
    sights
        What the model still sees, by level of the noise.
    unseen
        Why nothing is said about that, where nothing is.
    n_candidate, n_bound
        N₁ and N₂, samples of each output group in both stages.
    """

    items: int
    groups: int
    samples: int | None
    passes: float | None
    stops_early: bool
    rate: float | None
    timed: float
    memory: int | None
    disk: int | None
    reach: str
    scale: str = ""
    notes: tuple[str, ...] = ()
    sights: tuple[Sight, ...] = ()
    unseen: str = ""
    n_candidate: int | None = None
    n_bound: int | None = None

    @property
    def seconds(self) -> float | None:
        """Time that sampling will take at the measured rate; certifying comes on top. None if it is not known."""
        return None if self.passes is None or not self.rate else self.passes / self.rate

    def __str__(self) -> str:
        """What `localsmooth plan` says."""
        lines = [f"{_several(self.items, 'item')}, {_several(self.groups, 'output group')} in all"]
        if self.samples is not None and self.n_candidate is not None:
            lines.append(f"Samples: N₁ = {self.n_candidate:,} and N₂ = {self.n_bound:,} of each output group")
        if self.samples is not None and self.passes is not None:
            most = "at most " if self.stops_early else ""
            passes = "" if round(self.passes) == self.samples else f", as much work as {self.passes:,.0f} whole passes"
            lines.append(f"Model: {most}{self.samples:,} forward passes{passes}")
        if self.seconds is not None and self.rate is not None:
            lines.append(
                f"Time: about {_duration(self.seconds)} of sampling, at the {self.rate:,.1f} passes/s measured over "
                f"{self.timed:,.0f} passes (each over a whole item, noise and counting included); certifying comes "
                "on top"
            )
        if self.memory is not None:
            lines.append(f"Memory: {self.memory / _MEBI:,.0f} MiB a process")
        if self.disk is not None:
            lines.append(f"Disk: {self.disk / _MEBI:,.1f} MiB of tallies")
        lines += [text for text in (self.reach, self.scale) if text]
        lines += self.notes
        lines += [f"In calibration, {sight}" for sight in self.sights]
        lines += [self.unseen] if self.unseen else []
        return "\n".join(lines)


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))
