"""`localsmooth tune`: choose groups and levels of the noise for a budget of work."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from localsmooth.cli.locality import measure_file
from localsmooth.cli.telling import Teller
from localsmooth.config import (
    AnyFile,
    AnyTuneSection,
    Configuration,
    ConfigurationError,
    load_configuration,
    naming_keys_of,
)
from localsmooth.errors import InvalidInputError
from localsmooth.execution import Until
from localsmooth.locality import Measurement, read_measurement
from localsmooth.terminal import terminal
from localsmooth.tuning import MADE_BY, Aim, Tried, Tuning, contest_of, require_beside, write_tuned
from localsmooth.tuning import tune as find

__all__ = ["tune"]

_ROWS = 12
_BUDGETS = 7
_PROMISE = (
    "What is expected is a forecast for items like those of the calibration, and no certificate.",
    "A certificate by the written file holds for the smoothed classifier that it names, however that was chosen, and",
    "from samples of its own: pilots draw from streams of other seeds. Whoever deploys it uses this file at every",
    "input, and does not tune again: levels that follow what is certified would change with it. So what is in",
    "[calibration] is refused where it is to be certified; keep it apart there, too.",
)


def tune(
    config: Path,
    work: float | None,
    time: str | None,
    floor: list[str] | None,
    target: str | None,
    at: float | None,
    flips: str | None,
    locality: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Find the noise that certifies most for a budget of work, and write the file that certifies with it."""
    told, asked = Teller(), work
    told.say(f"Tuning {config}: loading the model and what it is tried on. Nothing is kept until it ends")
    sys.path.insert(0, str(config.resolve().parent))
    out = config.with_name(f"{config.stem}-tuned.toml") if out is None else out
    require_beside(config, out)
    configuration = load_configuration(config)
    sampling, section = configuration.sampling, getattr(configuration, "tune", None) or AnyTuneSection()
    if getattr(sampling, "stop_early", False):
        raise ConfigurationError(
            f"{config}:\nsampling.stop_early: samples are foretold for fixed numbers. Leave it out."
        )
    if work is not None and time is not None:
        raise InvalidInputError("--work, --time", "both are given", "Give one")
    until = Until.parse(time)
    seconds = None if until is None or until.seconds is None else float(until.seconds)
    with tempfile.TemporaryDirectory(prefix="localsmooth-tune-") as folder, naming_keys_of(configuration, config):
        contest = contest_of(configuration, Path(folder), _measurement(config, configuration, locality, told))
        aim = Aim(
            section.target if target is None else target,
            section.at if at is None else at,
            {**section.floor, **_floors(floor or [])},
            contest.kind if flips is None else flips,
        )
        if work is None and seconds is None:
            work = contest.work if section.work is None else section.work
        found = find(
            contest.task,
            contest.settings,
            contest.candidates,
            work=work,
            seconds=seconds,
            aim=aim,
            noise=contest.noise,
            split=contest.split,
            share=section.share,
            draws=section.draws,
            seed=sampling.seed,
            chunk_size=sampling.chunk_size,
            options=sampling.options(),
            executor=configuration.execution.build(),
            trained=contest.trained,
            tell=told.say,
        )
    chosen = _command_line(work=asked, time=time, floor=floor, target=target, at=at, flips=flips, locality=locality)
    note = _note(found, config, contest.looked_at, chosen)
    write_tuned(config, out, found, contest.items, note)
    if as_json:
        print(json.dumps(_described(found, out), indent=1))
        return
    console = terminal(stderr=False)
    console.print(_table(found), soft_wrap=False)
    console.print(_curves(found), soft_wrap=False)
    for name, reason in found.left_out.items():
        console.print(f"Not tried: {name}: {reason}")
    console.print(note)
    told.say(f"Certify with it: localsmooth certify {out} --out RUN")


def _measurement(config: Path, configuration: AnyFile, locality: Path | None, told: Teller) -> Measurement | None:
    """What was measured of locality, or what is measured now where the file has such a section."""
    if locality is not None:
        return read_measurement(locality)
    if not isinstance(configuration, Configuration) or configuration.locality is None:
        return None
    told.say("Measuring locality")
    model = configuration.build_model()
    return measure_file(config, configuration, model, configuration.calibration_items())[0]


def _floors(given: list[str]) -> dict[str, float]:
    made: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            made[name] = float(value)
        except ValueError:
            raise InvalidInputError("--floor", f"got {text!r}", "Write it like mean_iou=0.9") from None
    return made


def _table(found: Tuning) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=f"Expected at {found.work:,.0f} passes an item")
    for heading in ("candidate", "groups", "N₁", "N₂", found.aim.words, *found.aim.floor, "pilot"):
        table.add_column(heading, justify="left" if heading == "candidate" else "right")
    shown = list(found.tried[:_ROWS])
    for one in shown if found.isotropic in shown else [*shown, found.isotropic]:
        plan, quality = one.entry.plan, one.forecast.quality
        mark = " (chosen)" if one is found.best else ""
        cells = [f"{quality[name]:.3f}" for name in found.aim.floor]
        groups = str(_groups(one))
        numbers = (groups, f"{plan.n_candidate:,}", f"{plan.n_bound:,}", one.forecast.expected(found.aim.at), *cells)
        table.add_row(one.entry.candidate.name + mark, *numbers, f"{one.samples} of each")
    return table


def _curves(found: Tuning) -> Table:
    """Expected shares of the choice, and of isotropic noise."""
    best = found.best.forecast
    reached = best.budgets[: max(2, int(np.count_nonzero(best.curve)) + 1)]
    places = np.unique(np.linspace(0, reached.size - 1, _BUDGETS).astype(int))
    table = Table(
        box=box.SIMPLE_HEAD,
        title="Expected certified share (in brackets: 10 % and 90 % quantiles over items and draws)",
    )
    table.add_column("ε")
    for place in places:
        table.add_column(f"{best.budgets[place]:.3g}", justify="right")
    for one in dict.fromkeys((found.best, found.isotropic)):
        seen = one.forecast
        cells = [f"{seen.curve[p]:.2f} ({seen.low[p]:.2f}–{seen.high[p]:.2f})" for p in places]
        table.add_row(one.entry.candidate.name, *cells)
    return table


def _groups(tried: Tried) -> int:
    return tried.entry.assignment.subject.layouts[0].outputs.count


def _note(found: Tuning, config: Path, looked_at: str, chosen: str) -> str:
    lines = [
        f"{MADE_BY} from {config.name}, on {looked_at}, for {found.work:,.0f} passes an item.",
        *chosen.splitlines(),
    ]
    return "\n".join([*lines, *str(found).splitlines(), *_PROMISE])


def _command_line(**given: object) -> str:
    """What was chosen on the command line, in a sentence; nothing where nothing was."""
    words = list[str]()
    for name, value in given.items():
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            words += [f"--{name}", f"{each:.15g}" if isinstance(each, float) else str(each)]
    return f"Chosen on the command line: {shlex.join(words)}" if words else ""


def _described(found: Tuning, out: Path) -> dict[str, Any]:
    def one(tried: Tried) -> dict[str, Any]:
        seen, plan = tried.forecast, tried.entry.plan
        return {
            "candidate": tried.entry.candidate.name,
            "isotropic": tried.entry.candidate.isotropic,
            "groups": _groups(tried),
            "n_candidate": plan.n_candidate,
            "n_bound": plan.n_bound,
            "work": tried.entry.work,
            "radius": seen.radius,
            "radius_error": seen.radius_error,
            "quality": dict(seen.quality),
            "quality_error": dict(seen.quality_error),
            "budgets": seen.budgets.tolist(),
            "curve": seen.curve.tolist(),
            "low": seen.low.tolist(),
            "high": seen.high.tolist(),
            "pilot": {"round": tried.round, "samples": tried.samples},
        }

    levels = found.best.entry.assignment.subject.layouts[0].levels
    return {
        "file": str(out),
        "work": found.work,
        "wanted": found.aim.words,
        "floor": dict(found.aim.floor),
        "best": one(found.best) | {"levels": levels.tolist()},
        "isotropic": one(found.isotropic),
        "tried": [one(tried) for tried in found.tried],
        "left_out": found.left_out,
        "at_edge": list(found.at_edge),
        "promise": " ".join(_PROMISE),
    }
