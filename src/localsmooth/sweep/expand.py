"""From a sweep file to its points."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from localsmooth.config import Configuration, ConfigurationError, parse_configuration
from localsmooth.config.explain import explain
from localsmooth.sweep.section import ComparisonSection, SweepSection

__all__ = ["Sweep", "SweepPoint", "expand", "load_sweep"]

_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")
_DIGITS = 16
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One configuration of a sweep.

    Parameters
    ----------
    method
        Name of its method.
    label
        What distinguishes it from the method's other points.
    configuration
        The whole configuration, validated.
    key
        Hash of the configuration's content and of the files that it names: the name of its result.
    run_key
        The same without what is only proven from the samples: the name of its run directory. Points that differ in
        their certificate alone share their samples.
    """

    method: str
    label: str
    configuration: Configuration
    key: str
    run_key: str

    @property
    def samples_per_output(self) -> int:
        """Noisy samples that each output is certified from, at most."""
        return self.configuration.sampling.n_candidate + self.configuration.sampling.n_bound

    @property
    def total_samples(self) -> int:
        """Model calls for one item, at most: the samples of all cells."""
        return self.samples_per_output * math.prod(self.configuration.layout.cells)


@dataclass(frozen=True, eq=False)
class Sweep:
    """A sweep file, with all its points.

    Parameters
    ----------
    section
        The file.
    points
        Its points, in the order of the methods.
    """

    section: SweepSection
    points: tuple[SweepPoint, ...]

    def of(self, methods: list[str]) -> list[SweepPoint]:
        """Points of some methods."""
        return [point for point in self.points if point.method in methods]


def load_sweep(path: Path | str) -> Sweep:
    """Read, validate and expand a sweep file; relative paths in it are relative to the file.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, is not valid, or has a point that is no valid configuration.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file.")
    if path.stat().st_size > _LARGEST_FILE:
        raise ConfigurationError(f"{path}: larger than 1 MiB, which no sweep file is.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}.") from None
    try:
        return expand(values, path.parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}:\n{error}") from None


def expand(values: Mapping[str, object], folder: Path | None = None) -> Sweep:
    """Validate a sweep given as nested mappings, and make its points.

    Parameters
    ----------
    values
        As in a sweep file.
    folder
        What relative paths are relative to; the working directory by default.

    Raises
    ------
    ConfigurationError
        Naming the method, the point and the key at fault.
    """
    try:
        section = SweepSection.model_validate(values)
    except ValidationError as error:
        raise explain(SweepSection, error) from None
    points: list[SweepPoint] = []
    digests: dict[Path, str] = {}
    for method in section.method:
        for changes in method.assignments():
            label = _label(changes)
            merged = copy.deepcopy(section.base)
            for key, value in {"name": method.name, **method.set, **changes}.items():
                _assign(merged, key, value)
            try:
                filled = _fill(merged, merged)
                configuration = parse_configuration(filled, folder)
            except ConfigurationError as error:
                raise ConfigurationError(f'method "{method.name}", {label}:\n{error}') from None
            points.append(SweepPoint(method.name, label, configuration, *_keys(configuration, digests)))
    for comparison in section.comparison:
        _check(comparison, points)
    return Sweep(section, tuple(points))


def _check(comparison: ComparisonSection, points: list[SweepPoint]) -> None:
    if comparison.equal is None:
        return
    per_output = comparison.equal == "samples per output"
    counts: dict[str, int] = {}
    for point in points:
        if point.method not in (*comparison.ours, *comparison.baselines):
            continue
        count = point.samples_per_output if per_output else point.total_samples
        known = counts.setdefault(point.method, count)
        if count != known or count != next(iter(counts.values())):
            listed = ", ".join(f"{method} {number}" for method, number in {**counts, point.method: count}.items())
            raise ConfigurationError(
                f'the comparison "{comparison.title}" promises equal {comparison.equal}, but they differ: {listed}. '
                "Change n_candidate and n_bound of a method, or leave `equal` out."
            )


def _assign(values: dict[str, Any], key: str, value: object) -> None:
    """Set a dotted key; sections that are missing are made."""
    *sections, last = key.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigurationError(f'{key}: "{section}" is no section.')
        values = inner
    values[last] = copy.deepcopy(value)


def _look_up(values: Mapping[str, Any], key: str) -> object:
    found: Any = values
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise ConfigurationError(f'"{{{key}}}" names a key that the configuration does not have.')
        found = found[part]
    return found


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    """Replace {dotted.key} in all texts by the value of that key."""
    if isinstance(value, str):
        return _NAMED.sub(lambda match: str(_look_up(values, match[1])), value)
    if isinstance(value, dict):
        return {key: _fill(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fill(inner, values) for inner in value]
    return value


def _label(changes: Mapping[str, object]) -> str:
    """The last part of each key and its value: sigma_min = 0.2, sigma_max = 0.8."""
    return ", ".join(f"{key.rsplit('.', 1)[-1]} = {value}" for key, value in changes.items()) or "as set"


def _keys(configuration: Configuration, digests: dict[Path, str]) -> tuple[str, str]:
    """Hashes of everything, and of what the samples depend on; files count by their content, not by their place."""
    whole = configuration.model_dump(mode="python")
    del whole["name"]
    drawn = {key: value for key, value in whole.items() if key != "certificate"}
    if configuration.sampling.stop_early:  # when a group stops depends on what is to be proven
        drawn = whole

    def plain(value: object) -> str:
        if not isinstance(value, Path):
            raise TypeError(f"{type(value).__name__} in a configuration")
        return _digest(value, digests)

    made = (hashlib.sha256(json.dumps(each, sort_keys=True, default=plain).encode()) for each in (whole, drawn))
    key, run_key = (each.hexdigest()[:_DIGITS] for each in made)
    return key, run_key


def _digest(path: Path, digests: dict[Path, str]) -> str:
    """Hash of a file's content, or of all files of a folder."""
    if path not in digests:
        state = hashlib.sha256()
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as stream:
                    state.update(f"{file.relative_to(path)} ".encode())
                    state.update(hashlib.file_digest(stream, "sha256").digest())
        digests[path] = state.hexdigest()
    return digests[path]
