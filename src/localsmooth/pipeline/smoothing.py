"""From what the tallies depend on to the words that say which smoothed classifier they are of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from localsmooth.layout import Layout
from localsmooth.pipeline.record import RunRecordError, load_record
from localsmooth.results import Smoothing
from localsmooth.sampling import RunConfiguration

__all__ = ["describe_smoothing", "sampled_at"]

_SYMBOLS = {"gaussian": ("σ",), "uniform": ("λ",), "bernoulli": ("θ",), "sparse-flips": ("θ⁺", "θ⁻")}
_DIGITS = 16


def describe_smoothing(
    configuration: RunConfiguration | None, layouts: Sequence[Layout], sampled: str
) -> Smoothing | None:
    """Describe the smoothed classifier that tallies were drawn of.

    Parameters
    ----------
    configuration
        What the tallies depend on; without it, nothing is known.
    layouts
        The layout of each item.
    sampled
        When the samples were complete.
    """
    if configuration is None:
        return None
    content: Mapping[str, Any] = configuration.content
    items: Sequence[Mapping[str, Any]] = content.get("items", ())
    noise: dict[str, Any] = dict(content["noise"])
    inputs = [content["graph"]] if "graph" in content else [f"{item['content']} {item['precision']}" for item in items]
    placed = [content["layout"]] if "layout" in content else [item["layout"] for item in items]
    symbols = _SYMBOLS.get(str(noise.get("distribution")), ("level",))
    values = [layout.levels.reshape(-1, len(symbols)) for layout in layouts]
    lowest, highest = (
        [float(bound) for bound in of([of(each, axis=0) for each in values], axis=0)] for of in (np.min, np.max)
    )
    return Smoothing(
        model=_short([content["model"]["fingerprint"]]),
        data=_short(inputs),
        noise=noise,
        levels=dict(zip(symbols, zip(lowest, highest, strict=True), strict=True)),
        layout=_short(sorted(set(placed))),
        output_groups=max(layout.outputs.count for layout in layouts),
        input_groups=max(layout.inputs.count for layout in layouts),
        plan=dict(content["plan"]),
        package=f"localsmooth {metadata.version('localsmooth')}",
        sampled=sampled,
    )


def _short(texts: Sequence[object]) -> str:
    return hashlib.sha256("\n".join(map(str, texts)).encode()).hexdigest()[:_DIGITS]


def sampled_at(out: Path | None) -> str:
    """When the samples of a run that is complete were so: now, unless its directory said so before."""
    try:
        known = "" if out is None else load_record(out).sampled
    except RunRecordError:
        known = ""
    return known or datetime.now(UTC).isoformat(timespec="seconds")
