"""The section that says how many samples are drawn, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from localsmooth.config.section import Section
from localsmooth.runs import PassPlan, SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import ScoreCounting, StopWhenDecided

__all__ = ["NUMBERS", "SamplingSection", "require_numbers", "with_samples"]

NUMBERS = ("n_candidate", "n_bound")
"""Keys of the numbers of samples."""


def require_numbers(said: Sequence[str], passes: float | None, split: float | None) -> None:
    """Refuse a section that says both numbers of samples and the work that they follow from, or neither.

    Parameters
    ----------
    said
        Which of n_candidate and n_bound it says.
    passes, split
        The work, and how it is split.

    Raises
    ------
    ValueError
        Naming the keys.
    """
    if passes is not None and said:
        raise ValueError(f"passes: numbers of samples follow from it; leave {' and '.join(said)} out")
    missing = [name for name in NUMBERS if name not in said]
    if passes is None and missing:
        raise ValueError(f"{missing[0]} is missing: say n_candidate and n_bound, or passes")
    if split is not None and passes is None:
        raise ValueError("split has no effect without passes")


def with_samples(sampling: Mapping[str, Any], n_candidate: int, n_bound: int) -> dict[str, Any]:
    """The keys of a section, with another number of samples.

    Parameters
    ----------
    sampling
        The keys, as a run keeps them.
    n_candidate
        N₁ of the run, where its numbers followed from passes.
    n_bound
        The new N₂.
    """
    if sampling.get("passes") is None:
        return {**sampling, "n_bound": n_bound}
    plain = {name: value for name, value in sampling.items() if name not in ("passes", "split")}
    return {**plain, "n_candidate": n_candidate, "n_bound": n_bound}


class SamplingSection(Section):
    """How many samples, and how they are drawn."""

    n_candidate: int | None = Field(default=None, ge=1)
    """N₁, samples per output group to choose the candidates."""
    n_bound: int | None = Field(default=None, ge=1)
    """N₂, further samples per output group to bound the candidates' probabilities."""
    passes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """In place of these two, the passes that an item may take, both stages and all output groups together: as many
    samples as they afford. A pass over a window counts by the share of the item that the window is."""
    split: float | None = Field(default=None, gt=0, lt=1)
    """With `passes`, the share of the samples that choose candidates; 1/9 by default."""
    seed: int = Field(default=0, ge=0)
    """Seed of all noise."""
    chunk_size: int = Field(default=128, ge=1)
    """Samples that are stored together; what an interruption can lose."""
    stop_early: bool = False
    """Stop an output group once each output is certified for the largest budget or hopeless; for votes only."""
    stop_for: Literal["all-budgets", "largest-budget"] = "all-budgets"
    """What counts as hopeless with stop_early: to certify no budget, or not to certify the largest one."""
    batch_size: int | None = Field(default=None, ge=1)
    """Samples per forward pass; measured before the run by default."""
    channels_last: bool | None = None
    """Memory order of torch models; measured before the run by default."""
    precision: Literal["float32", "float16", "bfloat16"] = "float32"
    """Precision in which a torch model is evaluated; it is part of what is certified."""
    compile: bool = False
    """Run a torch model through torch.compile."""
    replay: int = Field(default=0, ge=0)
    """Samples of the bound stage to draw again at the end, one by one on one thread, to compare their labels."""
    scores: Literal["moments", "histogram"] | None = None
    """Count the candidates' scores too, for certificates from scores; by default where those are asked for."""
    score_grid: int | None = Field(default=None, ge=2, le=4096)
    """Grid steps in [0, 1] to which scores are rounded down: by default 1024 for moments, 128 for a histogram."""

    @model_validator(mode="after")
    def _settings_are_used(self) -> SamplingSection:
        said = [name for name in NUMBERS if getattr(self, name) is not None]
        require_numbers(said, self.passes, self.split)
        if self.stop_for != "all-budgets" and not self.stop_early:
            raise ValueError("stop_for has no effect without stop_early = true")
        if self.score_grid is not None and self.scores is None:
            raise ValueError('score_grid has no effect without scores = "moments" or "histogram"')
        return self

    def build(self) -> SamplingPlan | PassPlan:
        """Make the sampling plan, or the work that it follows from."""
        only = self.stop_for == "largest-budget"
        stop = StopWhenDecided(largest_budget_only=only) if self.stop_early else None
        if self.passes is not None:
            return PassPlan(self.passes, self.split or PassPlan.split, self.seed, self.chunk_size, stop)
        assert self.n_candidate is not None
        assert self.n_bound is not None
        return SamplingPlan(self.n_candidate, self.n_bound, self.seed, self.chunk_size, stop)

    def options(self) -> SamplingOptions:
        """Make the options of execution."""
        return SamplingOptions(batch_size=self.batch_size, channels_last=self.channels_last, replay=self.replay)

    def score_counting(self) -> ScoreCounting | None:
        """Make the way scores are counted, where this section says so."""
        if self.scores is None:
            return None
        return ScoreCounting(self.scores, self.score_grid or (1024 if self.scores == "moments" else 128))
