"""Candidates for a configuration file, and the file that says what was chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from localsmooth.config import (
    AnyFile,
    Configuration,
    ConfigurationError,
    DataSection,
    GraphConfiguration,
    GraphTuneSection,
    GridLayoutSection,
    LayoutSection,
    NoiseSection,
    TuneSection,
    load_configuration,
    one_level,
    read_toml,
    to_toml,
)
from localsmooth.datasets import ItemSet
from localsmooth.disk import write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.layout import GridLayout, Layout, derived
from localsmooth.locality import Measurement, largest_levels, read_levels, write_levels
from localsmooth.noise import Noise, SparseFlips
from localsmooth.runs import PassPlan, SamplingPlan
from localsmooth.tasks import Tunable, work_of
from localsmooth.tasks.graphs import ClusterLayout, GraphTask
from localsmooth.tuning.candidates import Candidate, number
from localsmooth.tuning.clusters import cluster_candidates
from localsmooth.tuning.search import Tuning

__all__ = ["MADE_BY", "Contest", "contest_of", "file_candidates", "require_beside", "write_tuned"]

MADE_BY = "Made by localsmooth tune"
"""How the note of a file begins that tuning may write again."""

_CLUSTERS = 5  # where the file has isotropic noise alone
_DISTURBED = (0.001, 0.003, 0.01, 0.03, 0.1)


@dataclass(frozen=True, eq=False)
class Contest:
    """What a file asks of tuning.

    Parameters
    ----------
    task
        The model, and what is looked at.
    settings
        What will be proven.
    candidates
        What to choose from.
    noise
        Family of distributions; None for the task's own default.
    work
        Passes an item that the file as it stands takes.
    split
        Shares of the samples that may choose candidates.
    looked_at
        In words.
    trained
        Makes the task with the classifier that was trained for a candidate; None where all share one.
    items
        The items that are looked at, where they are arrays.
    kind
        Kind of budget that is asked about; None for the usual one.
    """

    task: Tunable
    settings: Any
    candidates: list[Candidate]
    noise: Noise | None
    work: float
    split: list[float]
    looked_at: str
    trained: Callable[[Candidate], Tunable] | None = None
    items: ItemSet | None = None
    kind: str | None = None


def contest_of(configuration: AnyFile, folder: Path, measurement: Measurement | None = None) -> Contest:
    """Prepare what a file asks of tuning.

    Parameters
    ----------
    configuration
        The file.
    folder
        For networks that are trained on the way.
    measurement
        Of locality, where what is tuned are arrays.

    Raises
    ------
    ConfigurationError, InvalidInputError
        Naming what cannot be tuned, or a calibration that is missing or certified.
    """
    if isinstance(configuration, GraphConfiguration):
        return _graph_contest(configuration, folder, measurement)
    if not isinstance(configuration, Configuration):
        raise ConfigurationError("edges: noise is tuned for arrays and for the attributes of graphs, not for edges.")
    candidates, noise = file_candidates(configuration, measurement), configuration.noise.build()
    task = configuration.calibration_task(configuration.build_model())
    layouts = task.laid_out(configuration.layout.build(configuration.noise, configuration.data))
    work, split = _spent(configuration.sampling.build(), layouts)
    section = TuneSection() if configuration.tune is None else configuration.tune
    return Contest(
        task,
        configuration.certificate.build(noise, configuration.noise.threat()),
        candidates,
        noise,
        work,
        [split] if section.splits is None else section.splits,
        f"{len(task.items)} calibration items",
        items=task.items,
    )


def _spent(plan: SamplingPlan | PassPlan, layouts: Sequence[Layout]) -> tuple[float, float]:
    """Passes that the file takes, and its split."""
    if isinstance(plan, PassPlan):
        return float(plan.passes), plan.split
    samples = plan.n_candidate + plan.n_bound
    return samples * work_of(layouts), plan.n_candidate / samples


def _graph_contest(configuration: GraphConfiguration, folder: Path, measurement: Measurement | None) -> Contest:
    if measurement is not None:
        raise InvalidInputError("--locality", "levels of graphs do not follow from it", "Leave it out")
    section = GraphTuneSection() if configuration.tune is None else configuration.tune
    noise, clusters = configuration.noise, configuration.graph.clusters
    candidates = cluster_candidates(
        noise.deletion if section.deletions is None else section.deletions,
        additions=noise.addition if section.additions is None else section.additions,
        clusters=[clusters if clusters > 1 else _CLUSTERS] if section.clusters is None else section.clusters,
        cut=configuration.graph.cut,
    )
    own = ClusterLayout(clusters, noise.addition, noise.deletion, configuration.graph.cut)
    data = configuration.tuning_data(own.on)
    number = iter(range(len(candidates) + 1))

    def task(layout: Layout) -> GraphTask:
        file = folder / f"network-{next(number)}.safetensors"
        return GraphTask(configuration.model.build(replace(data, layout=layout), file), data.graph, data.nodes)

    def trained(candidate: Candidate) -> GraphTask:
        assert isinstance(candidate.layout, ClusterLayout)
        return task(candidate.layout.on(data.graph))

    first = task(data.layout)
    work, split = _spent(configuration.sampling.build(), [data.layout])
    return Contest(
        first,
        configuration.certificate.build(SparseFlips()),
        candidates,
        None,
        work,
        [split] if section.splits is None else section.splits,
        f"the graph {data.name}",
        trained,
        kind=section.flips,
    )


def file_candidates(configuration: Configuration, measurement: Measurement | None = None) -> list[Candidate]:
    """What a file may be changed to: levels and ratios, on several grids, and levels that follow measured locality.

    Parameters
    ----------
    configuration
        The file; its section [tune] says what to try.
    measurement
        Of locality, on the grid of its layout.

    Raises
    ------
    ConfigurationError
        If its layout is not tuned from files, or its noise does not have one smallest and one largest level.
    """
    section = TuneSection() if configuration.tune is None else configuration.tune
    layout, data = configuration.layout, configuration.data
    alone = layout.isotropic()
    if alone is None:
        kind = getattr(layout, "kind", "this one")
        raise ConfigurationError(
            f"layout.kind: files tune noise on grids of cells and windows of tokens; {kind} is tuned in Python, by "
            "ls.tune with layouts of your own."
        )
    family = _Family(configuration.noise)
    levels = family.levels(section)
    made = [
        replace(_changed(f"isotropic {number(level)}", layout, data, family, alone, level, level), isotropic=True)
        for level in levels
    ]
    if layout.groups > 1:
        made.append(_own(layout, data, configuration.noise))
    for name, keys in layout.tried(section.cells, section.window_margins):
        for level in levels:
            for ratio in section.ratios:
                far = float(f"{level * ratio:.6g}")
                if family.allows(level, far):
                    called = name.format(f"{number(level)} … {number(far)}")
                    made.append(_changed(called, layout, data, family, keys, level, far))
    return made if measurement is None else [*made, *_measured(layout, data, family, measurement)]


def write_tuned(config: Path, out: Path, tuning: Tuning, items: ItemSet | None, note: str) -> None:
    """Write the file with what was chosen, and read it again.

    Parameters
    ----------
    config
        The file that was tuned.
    out
        The file to write, in the same folder; a level matrix gets a file of its name beside it.
    tuning
        What was chosen.
    items
        What it was chosen on, where these are arrays.
    note
        What the file says about that, line by line; it begins with `MADE_BY`.

    Raises
    ------
    InvalidInputError
        If it is to lie elsewhere: paths and modules in it are looked for where it lies.
    """
    require_beside(config, out)
    values: dict[str, Any] = read_toml(config)
    candidate, plan = tuning.best.entry.candidate, tuning.plan
    changes: dict[str, Mapping[str, object]] = {**candidate.changes}
    numbers: dict[str, object] = {"n_candidate": plan.n_candidate, "n_bound": plan.n_bound}
    changes["sampling"] = numbers | {"passes": None, "split": None}
    if candidate.changes and isinstance(candidate.layout, GridLayout) and candidate.layout.levels is not None:
        assert items is not None
        file = out.with_name(f"{out.stem}-levels.npz")
        write_levels(file, derived(candidate.layout.levels.copy(), *tuning.origins), items)
        changes["layout"] = {**changes["layout"], "levels": file.name}
    for section, keys in changes.items():
        merged = {**values.get(section, {}), **keys}
        values[section] = {key: value for key, value in merged.items() if value is not None}
    values = {"name": f"tuned: {candidate.name}", **{key: value for key, value in values.items() if key != "name"}}
    text = "".join(f"# {line}\n" for line in note.splitlines()) + to_toml(values)
    write_atomically(out, text.encode("utf-8"))
    load_configuration(out)


def require_beside(config: Path, out: Path) -> None:
    """Refuse to write a file elsewhere than beside another, over it, or over one that was not made by tuning.

    Raises
    ------
    InvalidInputError
        Saying where it may be.
    """
    if out.resolve().parent != config.resolve().parent or out.resolve() == config.resolve():
        raise InvalidInputError(
            "--out", f"{out}: paths and modules are looked for beside the file", f"Name another file beside {config}"
        )
    if out.exists() and not (out.is_file() and out.read_bytes().startswith(f"# {MADE_BY}".encode())):
        raise InvalidInputError(
            "--out", f"{out} is there, and was not made by localsmooth tune", f"Name another file beside {config}"
        )


class _Family:
    """A section of noise, and its two keys of levels."""

    def __init__(self, noise: NoiseSection) -> None:
        one_level(noise)
        ends = {end: [key for key in type(noise).model_fields if key.endswith(end)] for end in ("_min", "_max")}
        if any(len(keys) != 1 for keys in ends.values()):
            raise ConfigurationError("noise.distribution: it has no keys of one smallest and one largest level.")
        self.noise, self.keys = noise, (ends["_min"][0], ends["_max"][0])

    def levels(self, section: TuneSection) -> list[float]:
        if section.levels is not None:
            return sorted(set(section.levels))
        low, high = one_level(self.noise)
        low, high = (low, high) if low < high else (low / 2, min(2 * low, 0.5 if low < 0.5 <= 2 * low else 2 * low))
        return [float(f"{level:.4g}") for level in np.geomspace(low, high, section.count)]

    def changes(self, near: float, far: float) -> dict[str, object]:
        return dict(zip(self.keys, (near, far), strict=True))

    def section(self, near: float, far: float) -> NoiseSection:
        return type(self.noise).model_validate(self.noise.model_dump() | self.changes(near, far))

    def allows(self, near: float, far: float) -> bool:
        try:
            self.section(near, far).build().validate(np.array([[near, far]]))
        except (ValidationError, InvalidInputError):
            return False
        return True


def _changed(
    name: str,
    layout: LayoutSection,
    data: DataSection,
    family: _Family,
    keys: Mapping[str, object],
    near: float,
    far: float,
) -> Candidate:
    """A layout by the file's rule on other groups, and what a file says for it."""
    kept = layout.model_dump(exclude=set(keys)) | {key: value for key, value in keys.items() if value is not None}
    made = type(layout).model_validate(kept).build(family.section(near, far), data)
    return Candidate(name, made, changes={"layout": keys, "noise": family.changes(near, far)})


def _own(layout: LayoutSection, data: DataSection, noise: NoiseSection) -> Candidate:
    """The file as it stands."""
    made, known = layout.build(noise, data), frozenset[str]()
    if isinstance(layout, GridLayoutSection) and layout.levels is not None and isinstance(made, GridLayout):
        made, known = replace(made, levels=np.array(made.levels)), read_levels(layout.levels).calibration
    return Candidate("as in the file", made, origins=known)


def _measured(grid: LayoutSection, data: DataSection, family: _Family, measurement: Measurement) -> list[Candidate]:
    """Levels at which every cell disturbs every other equally little, for several shares."""
    if not isinstance(grid, GridLayoutSection):
        raise InvalidInputError("--locality", "levels follow from it on grids of cells alone", "Leave it out")
    cells, made, known = grid.groups, list[Candidate](), list[np.ndarray]()
    if measurement.agreement.shape[1:] != (cells, cells):
        raise InvalidInputError(
            "locality", f"it was measured on {measurement.agreement.shape[1]} cells", f"Measure on the file's {cells}"
        )
    for share in _DISTURBED:
        levels = np.array(largest_levels(measurement, share))
        if not any(np.array_equal(levels, other) for other in known):
            known.append(levels)
            near, far = float(levels.min()), float(levels.max())
            one = _changed(f"by locality, {share:.1%} disturbed", grid, data, family, grid.on(grid.cells), near, far)
            assert isinstance(one.layout, GridLayout)
            made.append(replace(one, layout=replace(one.layout, levels=levels), origins=measurement.origins))
    return made
