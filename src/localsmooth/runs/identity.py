"""What a run is known by: everything that its tallies depend on, and the hash of that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

__all__ = ["RunIdentity", "chosen_digest", "digest"]


@dataclass(frozen=True, eq=False)
class RunIdentity:
    """What tallies depend on and nothing else, as JSON; those with different ones must never be mixed.

    Unlike a file's `Configuration`, which says all that a user asks for: its α, budgets and executor change no tally. A
    store keeps this in its manifest, and is refused to whoever comes with another.

    Parameters
    ----------
    content
        Nested mappings with string keys, sequences, strings, finite numbers, booleans and None.
    first
        How many samples the bound stage was planned to have at first, where the run got more after it had begun;
        `content` has the number of now.
    """

    content: Mapping[str, object]
    first: int | None = None

    @cached_property
    def text(self) -> str:
        """Canonical JSON: sorted keys, no spaces."""
        return json.dumps(self.content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def seal(self) -> str:
        """What files of the run are sealed with: the hash that the run began with, however many samples it has now."""
        return self.sha256 if self.first is None else self._with_samples(self.first).sha256

    @property
    def samples(self) -> int | None:
        """Planned samples of the bound stage; None where the content has no plan."""
        plan = self.content.get("plan")
        number = cast("Mapping[str, object]", plan).get("n_bound") if isinstance(plan, Mapping) else None
        return number if isinstance(number, int) else None

    def _with_samples(self, number: int) -> RunIdentity:
        plan = cast("Mapping[str, object]", self.content["plan"])
        return RunIdentity({**self.content, "plan": {**plan, "n_bound": number}})

    def grown_to(self, wanted: RunIdentity) -> RunIdentity | None:
        """Return this run with another one's samples; None unless those are more and nothing else differs.

        With a stopping rule, all chunks of the fewer samples must be of full size: the rule heard the votes of each.
        """
        before, now = self.samples, wanted.samples
        if before is None or now is None or now <= before or self._with_samples(now).sha256 != wanted.sha256:
            return None
        plan = cast("Mapping[str, Any]", self.content["plan"])
        if "stop" in plan and before % plan["chunk_size"]:
            return None
        return RunIdentity(wanted.content, before if self.first is None else self.first)

    def leaves(self) -> dict[str, object]:
        """All entries by their dotted names."""
        return dict(_leaves(json.loads(self.text), ""))

    def differences(self, other: RunIdentity) -> list[str]:
        """Dotted names of the entries in which two descriptions differ."""
        mine, theirs = self.leaves(), other.leaves()
        absent = object()
        return sorted(k for k in mine.keys() | theirs.keys() if mine.get(k, absent) != theirs.get(k, absent))


def _leaves(value: object, name: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, inner in cast("dict[str, object]", value).items():
            yield from _leaves(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(cast("list[object]", value)):
            yield from _leaves(inner, f"{name}[{index}]")
    else:
        yield name, value


def digest(array: np.ndarray) -> str:
    """Hexadecimal SHA-256 of an array's type, shape and content."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    state = hashlib.sha256(f"{little.dtype.str}{little.shape}".encode())
    state.update(little.data if little.size else b"")
    return state.hexdigest()


def chosen_digest(chosen: Mapping[str, np.ndarray]) -> str:
    """Hexadecimal SHA-256 of what a candidate stage chose; empty for nothing."""
    if not chosen:
        return ""
    lines = "".join(f"{name} {digest(array)}\n" for name, array in sorted(chosen.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
