"""Which smoothed classifier a certificate is about, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["SmoothedClassifier"]

_DIGITS = 16


@dataclass(frozen=True)
class SmoothedClassifier:
    """Which smoothed classifier a certificate is about, at which inputs, and from which samples.

    Parameters
    ----------
    model
        Fingerprint of the base classifier, as its `fingerprint()` says; hexadecimal SHA-256, like all digests here.
    data
        Digest of the input, or of the digests of all inputs; of the graph.
    noise
        Name and parameters of the noise.
    levels
        Smallest and largest noise level, by the symbol of each parameter, over all cells of all items but for inputs
        that are hidden.
    layout
        Digest of output groups, input groups, their levels and what each group sees, as `Layout.digest()` says; of the
        digests, where items differ.
    output_groups, input_groups
        Number of groups; the largest ones where items differ.
    plan
        Seed and numbers of samples.
    package
        Name and version of what certified.
    sampled
        When the samples were complete: date and time in ISO 8601, UTC; empty where that was not recorded.
    hidden
        Whether some inputs are hidden from some outputs, by masks, windows or infinite levels.
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
    hidden: bool = False

    def facts(self) -> dict[str, str]:
        """Everything in words, by what it is about."""
        said = {key: value for key, value in self.noise.items() if key != "distribution"}
        noise = ", ".join([str(self.noise.get("distribution", "unknown")), *(_words(*entry) for entry in said.items())])
        numbers = {"n_candidate": "N₁ = {}", "n_bound": "N₂ = {}", "chunk_size": "chunks of {}"}
        plan = [words.format(self.plan[key]) for key, words in numbers.items() if key in self.plan]
        stop = ["stopping early"] if "stop" in self.plan else []
        hidden = ", some inputs hidden from some outputs" if self.hidden else ""
        return {
            "Model (fingerprint)": _short(self.model),
            "Data (digest)": _short(self.data),
            "Noise": f"{noise}; {self.level_text()}",
            "Layout": f"{_short(self.layout)}: {_groups(self.output_groups, 'output')}, "
            f"{_groups(self.input_groups, 'input')}{hidden}",
            "Seed": str(self.plan.get("seed", "unknown")),
            "Sampling": ", ".join([*plan, *stop]),
            "Samples complete": self.sampled or "not recorded",
            "Certified by": self.package,
        }

    def level_text(self) -> str:
        """The noise levels, as "σ from 0.2 to 1"."""
        said = ", ".join(
            f"{symbol} = {low:.6g}" if low == high else f"{symbol} from {low:.6g} to {high:.6g}"
            for symbol, (low, high) in self.levels.items()
        )
        return said.replace("inf", "∞")

    def line(self) -> str:
        """What tells one smoothed classifier from others, in one line."""
        distribution = self.noise.get("distribution", "unknown noise")
        groups = f"{self.output_groups} × {self.input_groups} groups{', inputs hidden' if self.hidden else ''}"
        return (
            f"model {_short(self.model)}, data {_short(self.data)}, {distribution} {self.level_text()} in {groups}, "
            f"seed {self.plan.get('seed', 'unknown')}, {self.sampled[:10] or 'undated'}, {self.package}"
        )


def _short(digest: str) -> str:
    return digest[:_DIGITS]


def _groups(count: int, kind: str) -> str:
    return f"{count} {kind} group{'s' if count > 1 else ''}"


def _words(key: str, value: Any) -> str:
    return (key if value else f"no {key}") if isinstance(value, bool) else f"{key} {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType]
