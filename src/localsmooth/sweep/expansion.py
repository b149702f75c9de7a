"""From a sweep file to its points."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import ValidationError

from localsmooth.config import (
    AnyFile,
    Configuration,
    ConfigurationError,
    GraphConfiguration,
    explain,
    import_plugins,
    parse_configuration,
    read_toml,
    target_names,
)
from localsmooth.disk import expanded
from localsmooth.sweep.keys import point_keys
from localsmooth.sweep.point import SweepPoint
from localsmooth.sweep.section import ComparisonSection, SweepSection

__all__ = ["Sweep", "expand", "load_sweep"]

_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")


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

    @property
    def on_graph(self) -> bool:
        """Whether the points are on a graph whose attributes are perturbed, with budgets of two kinds of flips."""
        return isinstance(self.points[0].configuration, GraphConfiguration)

    @property
    def quality(self) -> Literal["miou", "accuracy"]:
        """The quality that is asked for, or the usual one."""
        on_images = isinstance(self.points[0].configuration, Configuration)
        return self.section.quality or ("miou" if on_images else "accuracy")

    @property
    def flips(self) -> Literal["deletions", "additions"]:
        """The flips that radii on a graph are about."""
        return self.section.flips or "deletions"

    def of(self, methods: list[str]) -> list[SweepPoint]:
        """Points of some methods."""
        return [point for point in self.points if point.method in methods]


def load_sweep(path: Path | str) -> Sweep:
    """Read, validate and expand a sweep file; relative paths in it are relative to the file, plugins are imported.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, is not valid, or has a point that is no valid configuration.
    """
    path = expanded(path)
    values = read_toml(path)
    try:
        base = values.get("base")
        import_plugins(cast("dict[str, Any]", base) if isinstance(base, dict) else {})
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
        known: dict[str, str] = {}
        for changes in method.assignments():
            label = _label(changes)
            try:
                configuration = _configuration(section.base, {"name": method.name, **method.set, **changes}, folder)
                if configuration.sampling.passes is not None:
                    raise ConfigurationError(
                        "sampling.passes: a sweep compares numbers of samples. Say n_candidate and n_bound."
                    )
                point = SweepPoint(method.name, label, configuration, *point_keys(configuration, digests))
                if point.key in known:
                    raise ConfigurationError(f"this is the same as {known[point.key]}. Leave one of them out.")
            except ConfigurationError as error:
                raise ConfigurationError(f'method "{method.name}", {label}:\n{error}') from None
            known[point.key] = label
            points.append(point)
    _require_comparable(points)
    for point in points:
        _require_labels(point)
        _require_target(point, section.target)
    sweep = Sweep(section, tuple(points))
    _require_flips(sweep)
    for comparison in section.comparison:
        _require_equal(comparison, points)
    return sweep


def _configuration(base: Mapping[str, Any], changes: Mapping[str, object], folder: Path | None) -> AnyFile:
    """The base with dotted keys changed, as a validated configuration."""
    merged = copy.deepcopy(dict(base))
    for key, value in changes.items():
        _assign(merged, key, value)
    return parse_configuration(_fill(merged, merged), folder)


def _require_labels(point: SweepPoint) -> None:
    """Refuse items without labels before anything is sampled: the quality of a point could not be told."""
    if not point.configuration.labelled:
        raise ConfigurationError(
            f'method "{point.method}", {point.label}:\ndata.labels: they are missing, and points are compared by their '
            "quality. Name the labels of the items."
        )


def _require_target(point: SweepPoint, target: str) -> None:
    """Refuse a target that a point's result would lack."""
    named = target_names(point.configuration.certificate.targets)
    if target not in named:
        raise ConfigurationError(
            f'method "{point.method}", {point.label}:\ncertificate.targets: radii are those of "{target}", and counted '
            f"are {', '.join(named)}. Name it there, or change `target`."
        )


def _require_comparable(points: list[SweepPoint]) -> None:
    """Refuse what cannot stand in one table: graphs beside images, and points without a collective bound in common."""
    first = points[0]
    for point in points:
        if type(point.configuration) is not type(first.configuration):
            raise ConfigurationError(
                f'"{first.method}" and "{point.method}": they are on different kinds of input. Make a sweep for each.'
            )
    named = [point for point in points if point.bounds is not None]
    if named and not set.intersection(*(set(point.bounds or ()) for point in named)):
        listed = "; ".join(sorted({f"{point.method}: {', '.join(point.bounds or ())}" for point in named}))
        raise ConfigurationError(
            f"certificate.bounds: the points have no bound in common by which they could be compared ({listed})."
        )


def _require_flips(sweep: Sweep) -> None:
    if sweep.section.flips is not None and not sweep.on_graph:
        raise ConfigurationError("flips: only points on a graph (attributes, not edges) have them. Leave the key out.")
    for point in sweep.points:
        if isinstance(point.configuration, GraphConfiguration):
            budgets: list[int] = getattr(point.configuration.certificate, sweep.flips)
            if max(budgets) == 0:
                raise ConfigurationError(
                    f'method "{point.method}", {point.label}:\ncertificate.{sweep.flips}: there is no budget above 0, '
                    f"but radii are over {sweep.flips}. Name some, or change `flips`."
                )


def _require_equal(comparison: ComparisonSection, points: list[SweepPoint]) -> None:
    if comparison.equal in (None, "work"):
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
