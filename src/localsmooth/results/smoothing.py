"""Which smoothed classifier a certificate is about, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Smoothing"]


@dataclass(frozen=True)
class Smoothing:
    """Which smoothed classifier a certificate is about, at which inputs, and from which samples.

    Parameters
    ----------
    model
        Short digest of the base classifier's fingerprint.
    data
        Short digest of the inputs of all items, or of the graph.
    noise
        Name and parameters of the noise.
    levels
        Smallest and largest noise level, by the symbol of each parameter, over all cells of all items.
    layout
        Short digest of output groups, input groups and their levels.
    output_groups, input_groups
        Number of groups; the largest ones where items differ.
    plan
        Seed and numbers of samples.
    package
        Name and version of what certified.
    sampled
        When the samples were complete: date and time in ISO 8601, UTC; empty where that was not recorded.
    """

    model: str
    data: str
    noise: dict[str, Any]
    levels: dict[str, tuple[float, float]]
    layout: str
    output_groups: int
    input_groups: int
    plan: dict[str, Any]
    package: str
    sampled: str = ""

    def facts(self) -> dict[str, str]:
        """Everything in words, by what it is about."""
        said = {key: value for key, value in self.noise.items() if key != "distribution"}
        noise = ", ".join([str(self.noise.get("distribution", "unknown")), *(_words(*entry) for entry in said.items())])
        numbers = {"n_candidate": "N₁ = {}", "n_bound": "N₂ = {}", "chunk_size": "chunks of {}"}
        plan = [words.format(self.plan[key]) for key, words in numbers.items() if key in self.plan]
        stop = [f"stopping early ({_plain(self.plan['stop'])})"] if "stop" in self.plan else []
        return {
            "Model (fingerprint)": self.model,
            "Data (digest)": self.data,
            "Noise": f"{noise}; {self.level_text()}",
            "Layout": f"{self.layout}: {self.output_groups} output groups, {self.input_groups} input groups",
            "Seed": str(self.plan.get("seed", "unknown")),
            "Sampling": ", ".join([*plan, *stop]),
            "Samples complete": self.sampled or "not recorded",
            "Certified by": self.package,
        }

    def level_text(self) -> str:
        """The noise levels, as "σ from 0.2 to 1"."""
        return ", ".join(
            f"{symbol} = {low:.6g}" if low == high else f"{symbol} from {low:.6g} to {high:.6g}"
            for symbol, (low, high) in self.levels.items()
        )

    def line(self) -> str:
        """What tells one smoothed classifier from others, in one line."""
        distribution = self.noise.get("distribution", "unknown noise")
        groups = f"{self.output_groups} × {self.input_groups} groups"
        return (
            f"model {self.model}, data {self.data}, {distribution} {self.level_text()} in {groups}, "
            f"seed {self.plan.get('seed', 'unknown')}, {self.sampled[:10] or 'undated'}, {self.package}"
        )


def _words(key: str, value: Any) -> str:
    return (key if value else f"no {key}") if isinstance(value, bool) else f"{key} {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType]
