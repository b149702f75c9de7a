"""From a finished run alone, without the model: every step from tallies to counts, once more."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError, require_kind
from localsmooth.evidence.arrays import array_items
from localsmooth.evidence.certified import CheckedCounts, check_counts
from localsmooth.evidence.chunks import GroupVotes, StoredPlan, read_chunks
from localsmooth.evidence.counts import KeptProofs
from localsmooth.evidence.item import CheckedItem
from localsmooth.evidence.ledger import Checked, Ledger, Verification, demand
from localsmooth.evidence.result_file import compare_counts, compare_facts, made_again
from localsmooth.pipeline import candidates_from, open_tallies, settings_of
from localsmooth.results import load_result
from localsmooth.runs import OUTPUT_GROUPS, DirectoryStore
from localsmooth.tasks import RunRecord, Task, load_record, require_same_run, task_of
from localsmooth.tasks.arrays import ArrayTask

__all__ = ["TRUSTED", "Evidence", "walk"]

_GRAPHS = "graphs"

TRUSTED = (
    "the model that was sampled is the one with this fingerprint, and computes one function of its input",
    "random bits were independent and uniform, and samples were drawn with them as the configuration says",
    "tallies are what the model predicted: nobody drew again until they were to their liking",
    "items that a run which was ended does not certify had not been sampled: nobody dropped those they did not like",
    "labels, clean predictions, names, units, and which outputs are ignored",
    "when and on what samples were drawn, what they cost, and what drawing some of them again has shown",
    "the attacks that a result shows, and what they leave (upper, attack, falls): they promise nothing",
    "how far a result says that certificates could reach (reach, limit): these are forecasts",
    "alpha, budgets, targets and rule were chosen before these tallies were looked at",
    "the assumptions about noise, layout and threat, and that this program is right",
)
"""What no verification from a run alone can show."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a walk through a run has read and shown.

    Parameters
    ----------
    verification
        What was checked.
    record, store, result
        The run.
    tallies
        SHA-256 of all its chunks.
    rules
        Rule for many outputs of each item; empty where that is not known.
    proofs
        Verified proofs by item and target.
    open
        Counts of which no proof was found, and which no attack contradicts.
    compared
        Whether the result was compared with anything: not where the record cannot give back what was asked.
    """

    verification: Verification
    record: RunRecord
    store: DirectoryStore
    result: xr.Dataset
    tallies: str
    rules: Sequence[str]
    proofs: KeptProofs
    open: Sequence[str]
    compared: bool


def walk(
    run: str | os.PathLike[str],
    tell: Callable[[Checked], None] | None = None,
    kept: Callable[[Path], KeptProofs] | None = None,
) -> Evidence:
    """Check a finished run, from the bytes of its files to the counts of its result.

    Parameters
    ----------
    run
        The run directory.
    tell
        Told each line as it comes.
    kept
        Reads proofs that were kept with the run, if there are any.

    Raises
    ------
    DoesNotHoldError
        At the first thing that does not hold.
    InvalidInputError
        If `run` is no path of a directory.
    """
    require_kind("run", run, str, os.PathLike)
    folder = expanded(run)
    if not folder.is_dir():
        raise InvalidInputError("run", f"{folder} is no directory", "Name the directory of a finished run")
    ledger = Ledger(tell)
    with ledger.step("record"):
        record = load_record(folder)
        store = DirectoryStore(folder, read_only=True)
        require_same_run(record, store)
        assert store.configuration is not None
        task = task_of(record.task)
    ledger.holds("record and configuration have their checksums and belong together", 2, "files")
    with ledger.step("chunks"):
        tallied = open_tallies(folder, store)
        counts = tallied.get_array(OUTPUT_GROUPS)
        demand(counts.shape == (len(record.item_names),), "chunks", "the numbers of output groups are damaged")
        taken = candidates_from(tallied) == record.candidates
        demand(taken, "record", "it says otherwise than the tallies which model chose the candidates")
        plan = StoredPlan.of(store.configuration.content, counts.tolist(), record.begun)
    groups, tallies = read_chunks(tallied, plan, ledger)
    with ledger.step("result"):
        result = load_result(folder / "result.nc")
    ledger.holds("the result has its checksum and is consistent in itself", len(result.variables), "variables")
    found = CheckedCounts()
    settings = _settings(folder, ledger)
    if settings is not None:
        again = made_again(folder, settings, record, ledger)
        compare_facts(result, again, ledger)
        items = _items(task, record, store, settings, groups, ledger)
        if items is not None:
            with ledger.step("proofs"):
                known = {} if kept is None else kept(folder)
            found = check_counts(items, settings, result, again, known, ledger)
        else:
            compare_counts(result, again, settings, ledger)
    return Evidence(
        ledger.close(TRUSTED),
        record,
        store,
        result,
        tallies,
        found.rules,
        found.proofs,
        found.open,
        settings is not None,
    )


def _items(
    task: type[Task[Any, Any]],
    record: RunRecord,
    store: DirectoryStore,
    settings: Any,
    groups: Mapping[tuple[int, int], GroupVotes],
    ledger: Ledger,
) -> Sequence[CheckedItem] | None:
    """The items as they are checked by independent code; None where there is no such code."""
    baseline = getattr(settings, "method", None) or getattr(settings, "baseline", None)
    if baseline is None and issubclass(task, ArrayTask):
        return array_items(task, record, store, settings, groups, ledger)
    if baseline is None and record.task == _GRAPHS:
        from localsmooth.evidence.graphs import graph_items  # which arrays do without

        return graph_items(task, record, store, settings, groups, ledger)
    what = record.task if baseline is None else f"the baseline {baseline.name}"
    ledger.leave(
        f"not checked: sums of chunks, bounds and counts of {what} by independent code: the result was made "
        "again from what the run keeps, by the code that made it"
    )
    return None


def _settings(folder: Path, ledger: Ledger) -> Any:
    """What the run was certified with; None where its record cannot give that back."""
    with ledger.step("record"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        settings = settings_of(folder)
    for warning in told:
        ledger.leave(f"not checked: anything in the result. {warning.message}")
    return None if told else settings
