"""What may be written on the command line. What a command does is imported when it is called, which takes seconds."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from localsmooth.disk import expanded

__all__ = ["COMMANDS", "BoundName", "Log", "Place"]


class Log(StrEnum):
    """How progress is told."""

    TEXT = "text"
    JSON = "json"


class Place(StrEnum):
    """Where samples are drawn."""

    SERIAL = "serial"
    THREADS = "threads"
    PROCESSES = "processes"
    RAY = "ray"


class BoundName(StrEnum):
    """Names of the bounds, weakest first."""

    NAIVE = "naive"
    LP = "lp"
    ENVELOPE = "envelope"
    EXACT = "exact"
    MILP = "milp"


COMMANDS: list[Callable[..., None]] = []
"""In the order in which help lists them."""


def _command(signature: Callable[..., None]) -> Callable[..., None]:
    """Make a command that calls the function of this name in the module of this name, with `~` in paths expanded."""

    @functools.wraps(signature)
    def call(**arguments: Any) -> None:
        module = importlib.import_module(f"localsmooth.cli.{signature.__name__}")
        getattr(module, signature.__name__)(**{name: _at_home(value) for name, value in arguments.items()})

    COMMANDS.append(call)
    return call


def _at_home(value: Any) -> Any:
    if isinstance(value, list):
        return [_at_home(each) for each in value]
    return expanded(value) if isinstance(value, Path) else value


_TIME: Any = typer.Option(
    "--time",
    help="End sampling after so long, such as 90s, 10min or 1h30min, and certify what is complete. Needs a rule that "
    "allows looking, such as joint_count; the default becomes it.",
    show_default=False,
)
_UNTIL_INTERRUPTED: Any = typer.Option(
    "--until-interrupted", help="End sampling at Ctrl-C, and certify what is complete; a second one gives up."
)
_UNTIL_SETTLED: Any = typer.Option(
    "--until-settled",
    help="Draw no more samples of an item once doubling them raised its certified count by less than a share, such as "
    "2%, in the mean over the budgets. A run that is resumed looks anew, and may draw more than it would have.",
    show_default=False,
)


@_command
def certify(
    config: Annotated[Path, typer.Argument(help="Configuration file (TOML).", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Run directory; an interrupted run in it goes on.")],
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="Address for finished chunks, such as s3://bucket/run.  [default: the run directory]"
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option("--part", help="Share of the work, such as 1/2, for machines without a disk in common."),
    ] = None,
    executor: Annotated[
        Place | None,
        typer.Option("--executor", help="Where samples are drawn, in place of the file's section [execution]."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Number of threads, processes or actors.")] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option("--gpus-per-worker", help="GPUs for each process or actor, such as 1 or 0.5.")
    ] = None,
    address: Annotated[str | None, typer.Option("--address", help='Of a running Ray cluster, or "auto".')] = None,
    time: Annotated[str | None, _TIME] = None,
    until_interrupted: Annotated[bool, _UNTIL_INTERRUPTED] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, as `localsmooth plan` does, and write nothing.")
    ] = False,
    replay: Annotated[
        int | None,
        typer.Option("--replay", help="Samples to draw again at the end, to compare their labels.", min=0),
    ] = None,
    until_settled: Annotated[str | None, _UNTIL_SETTLED] = None,
    log: Annotated[Log, typer.Option("--log", help="Progress for people, or everything as lines of JSON.")] = Log.TEXT,
) -> None:
    """Sample a model on some items, or on a graph, and certify them; the result is RUN/result.nc."""


@_command
def plan(
    config: Annotated[Path, typer.Argument(help="Configuration file (TOML).", show_default=False)],
    seconds: Annotated[float, typer.Option("--seconds", help="Time for the timing of the model.")] = 4.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what certifying would take in passes, time and memory, how far it reaches, and what the model still sees."""


@_command
def recertify(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.", show_default=False)],
    alpha: Annotated[float | None, typer.Option("--alpha", help="Failure probability per item.")] = None,
    budgets: Annotated[str | None, typer.Option("--budgets", help="0,0.5,1 or start:stop:count, or auto.")] = None,
    additions: Annotated[str | None, typer.Option("--additions", help="Budgets of added bits, for a graph.")] = None,
    deletions: Annotated[str | None, typer.Option("--deletions", help="Budgets of deleted bits, for a graph.")] = None,
    bound: Annotated[list[str] | None, typer.Option("--bound", help="Collective bound; may be repeated.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="What is counted, such as balanced or class:NAME; may be repeated."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="File with a [certificate] section to use instead of the run's.")
    ] = None,
    shown: Annotated[
        str | None,
        typer.Option("--name", help="What reports call it. [default: the run's name, and the method if it is another]"),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="File to write. [default: RUN/recertified.nc]")] = None,
) -> None:
    """Certify again from the tallies of a finished run, without sampling."""


@_command
def overlap(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run with labels.", show_default=False)],
    item: Annotated[
        list[str] | None, typer.Option("--item", help="Name or number of an item; may be repeated. [default: all]")
    ] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Failure probability per item.")] = None,
    budgets: Annotated[str | None, typer.Option("--budgets", help="0,0.5,1 or start:stop:count, or auto.")] = None,
    additions: Annotated[str | None, typer.Option("--additions", help="Budgets of added bits, for a graph.")] = None,
    deletions: Annotated[str | None, typer.Option("--deletions", help="Budgets of deleted bits, for a graph.")] = None,
    bound: Annotated[BoundName, typer.Option("--bound", help="How hard to try.")] = BoundName.ENVELOPE,
    tolerance: Annotated[float, typer.Option("--tolerance", help="Width of IoU at which to stop searching.")] = 1e-3,
    config: Annotated[
        Path | None, typer.Option("--config", help="File with a [certificate] section to use instead of the run's.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="File to write, .nc or .csv. [default: RUN/overlap.nc]")
    ] = None,
) -> None:
    """Certify the IoU and Dice of every class from the tallies of a finished run, without sampling."""


@_command
def verify(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.", show_default=False)],
    certificate: Annotated[
        Path | None, typer.Argument(help="Certificate of it, to be checked with it.", show_default=False)
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="Ed25519 key (PEM) that CERTIFICATE.sig must be by.")
    ] = None,
    log: Annotated[Log, typer.Option("--log", help="In words, or as lines of JSON.")] = Log.TEXT,
) -> None:
    """Check a finished run from its files alone, without the model: every step from tallies to counts.

    Exit status 0: everything holds; 1: something does not, and is named; 3: what was checked holds, and some was not.
    """


@_command
def export(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.", show_default=False)],
    certificate: Annotated[Path, typer.Argument(help="File to write, such as certificate.json.", show_default=False)],
    key: Annotated[
        Path | None, typer.Option("--key", help="Ed25519 key (PEM) to sign it with, into CERTIFICATE.sig.")
    ] = None,
    log: Annotated[Log, typer.Option("--log", help="In words, or as lines of JSON.")] = Log.TEXT,
) -> None:
    """Verify a finished run and write its certificate: what is promised, of which run, in one short file."""


@_command
def extend(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.", show_default=False)],
    samples: Annotated[
        int, typer.Option("--samples", help="Samples of the bound stage per output group, those it has included.")
    ],
    config: Annotated[
        Path | None,
        typer.Option("--config", help="The run's file, beside which modules lie; what the run kept of it by default."),
    ] = None,
    time: Annotated[str | None, _TIME] = None,
    until_interrupted: Annotated[bool, _UNTIL_INTERRUPTED] = False,
    until_settled: Annotated[str | None, _UNTIL_SETTLED] = None,
    log: Annotated[Log, typer.Option("--log", help="Progress for people, or everything as lines of JSON.")] = Log.TEXT,
) -> None:
    """Add samples to a finished run and certify it again; needs a rule that allows looking, such as joint_count."""


@_command
def transfer(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.", show_default=False)],
    model: Annotated[Path, typer.Option("--model", help="File with the section [model] of the new model (TOML).")],
    samples: Annotated[int, typer.Option("--samples", help="Samples of the new model per output group.", min=1)],
    out: Annotated[Path, typer.Option("--out", help="Run directory of the transfer; an interrupted one goes on.")],
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Seed of its samples.  [default: follows from the run and the model]", min=0),
    ] = None,
    log: Annotated[Log, typer.Option("--log", help="Progress for people, or everything as lines of JSON.")] = Log.TEXT,
) -> None:
    """Certify another version of a run's model (int8, pruned, other precision) with the run's candidates."""


@_command
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories or result files.", show_default=False)],
    to: Annotated[Path | None, typer.Option("--to", help="Page to write. [default: report.html in the run]")] = None,
    pdf: Annotated[Path | None, typer.Option("--pdf", help="The same for an appendix: a PDF file to write.")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for figures in PDF and PNG.")] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "Collective robustness certificate",
) -> None:
    """Write a self-contained HTML page that shows one run or compares several, and a PDF file on request."""


@_command
def runs(
    place: Annotated[str, typer.Argument(help="Folder with runs, a run, or an address.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List stored runs with their progress, cost and what is missing; every chunk is read and checked."""


@_command
def merge(
    into: Annotated[str, typer.Argument(metavar="A", help="Run that receives the chunks.", show_default=False)],
    others: Annotated[list[str], typer.Argument(metavar="B...", help="Runs to take from.", show_default=False)],
) -> None:
    """Add to run A the chunks that it lacks and B has: same configuration, same seed, disjoint or equal chunks."""


@_command
def sweep(
    config: Annotated[Path, typer.Argument(help="Sweep file (TOML).", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Directory of the sweep; finished points in it are kept.")],
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Points at once, one thread each. [default: one per core]", min=0)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points and what they cost, run nothing.")
    ] = False,
) -> None:
    """Certify a grid of configurations and compare methods over all their settings; --jobs 0 runs one at a time."""


@_command
def tune(
    config: Annotated[
        Path, typer.Argument(help="Configuration file (TOML) with calibration items.", show_default=False)
    ],
    work: Annotated[
        float | None, typer.Option("--work", help="Passes an item that certifying may take.  [default: the file's]")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", help="Time an item in place of --work, such as 90s or 10min.")
    ] = None,
    floor: Annotated[
        list[str] | None,
        typer.Option("--floor", help="Least quality, such as mean_iou=0.9, balanced=0.8 or agreement=0.9; repeatable."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="What is counted, such as ratio, balanced or class:NAME.")
    ] = None,
    at: Annotated[
        float | None, typer.Option("--at", help="Budget whose certified share counts, in place of the ACR.")
    ] = None,
    flips: Annotated[
        str | None, typer.Option("--flips", help="Of graphs, budgets of which flips count: deletions or additions.")
    ] = None,
    locality: Annotated[
        Path | None,
        typer.Option(
            "--locality",
            help="Measured locality to take levels from: measurement.npz. [default: measured where the file has "
            "[locality]]",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write, beside the other.  [default: CONFIG-tuned.toml]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find the noise that certifies most for a budget of work, and write the file that certifies with it."""


@_command
def locality(
    config: Annotated[
        Path, typer.Argument(help="Configuration file (TOML) with calibration items.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="Directory for the page, figures and measurement.npz.")],
) -> None:
    """Measure how much noise in one cell disturbs the predictions of another; `tune` takes levels from it."""


@_command
def solve(
    problem: Annotated[Path, typer.Argument(help="A problem, or a JSON list of problems: a .json or .npz file.")],
    bound: Annotated[BoundName, typer.Option(help="How hard to try.")] = BoundName.ENVELOPE,
    gap: Annotated[
        float | None, typer.Option(help="Targets by which 'exact' may fall short of the optimum; 0 by default.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for 'exact' and 'milp', all budgets together; 60 by default.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Prove every answer again in exact arithmetic.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print answers as JSON.")] = False,
) -> None:
    """Certify how many predictions survive one adversary, from per-prediction certificates.

    A problem has weights (output groups × input columns), eta and group (one number per output), A (rows × input
    columns) and c (a number per row, or budgets × rows), and optionally targets, caps and integer.
    """


@_command
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the two runs and the page.")] = Path(
        "localsmooth-demo"
    ),
) -> None:
    """Certify a segmentation of handwritten digits, with localized and with isotropic noise, and show both."""
