"""The section that says what `localsmooth tune` looks for, and among what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from localsmooth.config.section import Section

__all__ = ["AnyTuneSection", "GraphTuneSection", "TuneSection"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


Share = Annotated[float, Field(gt=0, lt=1)]
Flip = Annotated[float, Field(ge=0, lt=1)]


class AnyTuneSection(Section):
    """What `localsmooth tune` looks for, whatever the kind of input."""

    work: Positive | None = None
    """Passes an item, all output groups and both stages together, a window by its share of the input; by default
    what the file as it stands takes. Of a graph every pass is over the whole."""
    target: str = "ratio"
    """What is counted, as in `certificate.targets`."""
    at: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Budget at which the certified share is to be large; by default the average certifiable radius is."""
    floor: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    """Least quality of the smoothed predictions, such as `{ mean_iou = 0.9 }`: by `mean_iou` or a target's name."""
    splits: list[Share] | None = Field(default=None, min_length=1)
    """Shares of the samples that may choose candidates (N₁): the best is found for every candidate, from the same
    pilots. By default that of `[sampling]`."""
    share: Share = 0.1
    """Size of the last pilots, as a share of a whole run."""
    draws: int = Field(default=3, ge=1)
    """Whole runs that are foretold from each pilot of an item."""


class TuneSection(AnyTuneSection):
    """What `localsmooth tune` looks for, and among what; not used otherwise."""

    levels: list[Positive] | None = Field(default=None, min_length=1)
    """Levels in an output's own cell; by default as `count` says."""
    count: int = Field(default=5, ge=2, le=100)
    """Number of these levels, in equal ratios from the smallest to the largest of `[noise]`."""
    ratios: list[Annotated[float, Field(gt=1, allow_inf_nan=False)]] = Field(default=[1.5, 2.5, 4.0], min_length=1)
    """Level in the farthest cell over that in the own one."""
    cells: list[Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]] | None = None
    """Grids to try; by default that of `[layout]`, and one of half as many cells along each axis. Of tokens numbers of
    windows, such as `[[2], [4]]`."""
    window_margins: list[Annotated[int, Field(ge=0)]] | None = None
    """Margins of windows to try, beside none; by default that of `[layout]`, if it has one."""


class GraphTuneSection(AnyTuneSection):
    """What `localsmooth tune` looks for on a graph, and among what; not used otherwise."""

    flips: Literal["additions", "deletions"] | None = None
    """Flips of which budgets are asked about, those of the other kind being 0; by default deletions, unless
    `[certificate]` has none above 0."""
    deletions: list[Flip] | None = Field(default=None, min_length=1)
    """Probabilities θ⁻, of which each is tried everywhere, and any two in the own cluster and the farthest; by default
    both of `[noise]`."""
    additions: list[Flip] | None = Field(default=None, min_length=1)
    """The same for θ⁺."""
    clusters: list[Annotated[int, Field(gt=1)]] | None = Field(default=None, min_length=1)
    """Numbers of clusters to try, beside one; by default that of `[graph]`, or 5 where that is 1."""
