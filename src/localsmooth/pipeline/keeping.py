"""What keeps a run directory from losing or mixing up anything: earlier results, and what the run was asked for."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import xarray as xr

from localsmooth.bounds import JointAndBonferroni, JointCount
from localsmooth.disk import expanded, write_atomically
from localsmooth.errors import InvalidInputError, LocalsmoothError
from localsmooth.results import load, run_info, save, set_aside
from localsmooth.runs import (
    DirectoryStore,
    FewerSamplesError,
    FileStore,
    MemoryStore,
    OtherRunError,
    RunIdentity,
    Store,
    StoreError,
    interrupted_words,
    is_address,
    open_store,
)
from localsmooth.tasks import CHOSEN, FINISHED, RunRecord, interrupted_extension, load_record

__all__ = [
    "RunStores",
    "interruption",
    "naming_interruption",
    "naming_keys",
    "open_tallies",
    "plain_configuration",
    "remembered_store",
    "run_stores",
    "save_result",
]

_NAME = "configuration.json"
_STORE = "store.json"
_LARGEST_FILE = 1 << 26
# What is proven may differ between runs on the same tallies.
_N_CANDIDATE, _N_BOUND, _PASSES = "sampling.n_candidate", "sampling.n_bound", "sampling.passes"
_NUMBERS = {_N_CANDIDATE, _N_BOUND, _PASSES, "sampling.split"}
_AFTERWARDS = ("name", "certificate")


def plain_configuration(configuration: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configuration as JSON will give it back.

    Raises
    ------
    InvalidInputError
        If it is not plain JSON.
    """
    try:
        return json.loads(json.dumps(dict(configuration or {}), allow_nan=False))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError("configuration", f"it is not plain JSON ({error})", "Pass JSON values") from None


class RunStores(NamedTuple):
    """Where a run keeps what it can be certified again from, and where its chunks; often the same."""

    kept: Store
    tallied: Store

    def join(self) -> None:
        """Let a directory belong to the run whose chunks are kept elsewhere."""
        if self.kept is not self.tallied and isinstance(self.tallied, FileStore) and self.tallied.configuration:
            self.kept.begin(self.tallied.configuration)


@contextmanager
def run_stores(out: Path | None, address: str | None) -> Generator[RunStores]:
    """Open the stores of a run; its directory remembers where its chunks are kept, for calls that do not say so.

    Parameters
    ----------
    out
        The run directory; None keeps everything in memory.
    address
        Another place for chunks; by default the one that the directory remembers, or else the directory.

    Raises
    ------
    StoreError
        If one of them cannot be used, they hold different runs, or the place that is remembered must be named.
    """
    with ExitStack() as stack:
        kept: Store = MemoryStore() if out is None else stack.enter_context(DirectoryStore(out))
        if out is not None and address is None:
            address = remembered_store(out)
        if address is None:
            if out is not None and (out / FINISHED).exists() and not kept.finished():
                raise StoreError(
                    f"{out} holds a finished run, but none of its chunks: they are kept elsewhere. Name the place "
                    "(--store), or use another run directory to draw them again"
                )
            yield RunStores(kept, kept)
            return
        tallied = stack.enter_context(open_store(address))
        if isinstance(kept, FileStore):
            if not kept.untouched:
                kept.require_belongs_to(tallied, may_grow=True)
            if out is not None:
                _require_nowhere_else(out, tallied)
                _remember(out, address, tallied)
        yield RunStores(kept, tallied)


def open_tallies(folder: Path, kept: DirectoryStore) -> FileStore:
    """Open the chunks of a finished run for reading, wherever they are kept.

    Raises
    ------
    StoreError
        If they cannot be read, are of another run, or it is not remembered how they are reached.
    """
    address = remembered_store(folder)
    if address is None:
        return kept
    tallied = open_store(address, read_only=True)
    kept.require_belongs_to(tallied)
    return tallied


def _remember(out: Path, address: str, tallied: FileStore) -> None:
    known = expanded(address).resolve() if not is_address(address) else address
    # Names and passwords in an address are nobody else's: then only the place is remembered, and must be named.
    secret = is_address(address) and "@" in urlsplit(address).netloc
    content = {"store": None if secret else str(known), "place": re.sub(r"(?<=://)[^/]*@", "", tallied.files.place)}
    write_atomically(out / _STORE, json.dumps(content, indent=1).encode())


def _require_nowhere_else(out: Path, tallied: FileStore) -> None:
    """Refuse an empty place where the directory remembers another one with chunks: all would be drawn again."""
    if tallied.configuration is not None:
        return
    try:
        address = remembered_store(out)
        drawn = address is not None and not open_store(address, read_only=True).untouched
    except (StoreError, InvalidInputError):
        return  # what is not remembered, or cannot be reached, is of no use
    if drawn:
        raise StoreError(
            f"the chunks of {out} are kept at {address}, and {tallied.files.place} holds none. Name that place, or "
            "none (--store), or use another run directory to draw them again"
        )


def remembered_store(out: Path) -> str | None:
    """Where a run directory's chunks are kept; None if in the directory itself.

    Raises
    ------
    StoreError
        If it remembers that they are elsewhere, and not how the place is reached.
    """
    path = out / _STORE
    if not path.exists():
        return None
    content = _read(path)
    address, place = content.get("store"), content.get("place")
    if isinstance(address, str):
        return address
    if isinstance(place, str):
        raise StoreError(
            f"the chunks of {out} are kept at {place}, under an address that is not stored. Name it again (--store)"
        )
    raise StoreError(f"{path} is damaged, and says where the chunks are kept. Name the place again (--store)")


def interruption(folder: Path) -> str:
    """What to do where extending the finished run in a directory was interrupted; empty elsewhere.

    Parameters
    ----------
    folder
        The directory; where its chunks are kept elsewhere, they are not looked at.
    """
    try:
        samples = interrupted_extension(load_record(folder), DirectoryStore(folder, read_only=True).configuration)
    except LocalsmoothError:
        return ""
    return "" if samples is None else interrupted_words(folder, samples)


@contextmanager
def naming_interruption(out: Path | None, earlier: RunRecord | None, store: Store) -> Generator[None]:
    """Say what goes on with an extension that was interrupted, where fewer samples are asked for.

    Parameters
    ----------
    out
        The run directory; None for none.
    earlier
        Its record; None if nothing is finished there.
    store
        Where the chunks are kept.

    Raises
    ------
    OtherRunError
        In place of the one from sampling.
    """
    try:
        yield
    except FewerSamplesError:
        samples = None if earlier is None else interrupted_extension(earlier, store.configuration)
        if out is None or samples is None:
            raise
        raise OtherRunError(interrupted_words(out, samples)) from None


@contextmanager
def naming_keys(store: Store, configuration: Mapping[str, Any]) -> Generator[None]:
    """Keep a new run's configuration, and name its keys where the tallies turn out to be of another one.

    Parameters
    ----------
    store
        The run's store; only directories keep anything.
    configuration
        What the user asked for, as plain JSON; empty if not known.

    Raises
    ------
    OtherRunError
        In place of the one from sampling, with the keys and values that differ, where both configurations are known;
        a `FewerSamplesError` in place of one.
    """
    if not isinstance(store, DirectoryStore) or not configuration:
        yield
        return
    path = store.path / _NAME
    before = None if store.configuration is None or store.untouched else store.configuration.samples
    if before is None:
        write_atomically(path, json.dumps(configuration, indent=1, allow_nan=False).encode())
    ended = False
    try:
        try:
            yield
            ended = True
        finally:  # where the run got more samples, the file says how many, whatever became of them
            now = None if before is None else store.configuration
            if now is not None and (now.samples != before or (ended and _lags(path, configuration, now))):
                write_atomically(path, json.dumps(configuration, indent=1, allow_nan=False).encode())
    except OtherRunError as error:
        kept = _read(path)
        if isinstance(error, FewerSamplesError):  # a process that was killed did not write how many there are now
            kept = _with_samples(kept, store.configuration)
        changes = _changes(kept, configuration)
        if not changes:
            raise
        if numbers := _other_numbers(kept, configuration):
            raise type(error)(f"{store.path} {numbers}, or use another run directory") from None
        if isinstance(error, FewerSamplesError):  # whatever else the file says otherwise is of no account
            raise
        shown = "; ".join(changes[:8]) + (f"; and {len(changes) - 8} more" if len(changes) > 8 else "")
        raise OtherRunError(
            f"{store.path} holds tallies of another configuration: {shown}. Tallies of different distributions must "
            "not be mixed. Use another run directory, or restore the configuration"
        ) from None


def _read(path: Path) -> dict[str, Any]:
    """The configuration that a directory was begun with; empty where it cannot be known."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return {}
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _with_samples(kept: dict[str, Any], now: RunIdentity | None) -> dict[str, Any]:
    """What a directory was begun with, with the samples that it has now; those that follow from passes stay."""
    sampling = kept.get("sampling")
    if now is None or not isinstance(sampling, dict) or not isinstance(sampling.get("n_bound"), int):
        return kept
    return {**kept, "sampling": {**sampling, "n_bound": now.samples}}


def _lags(path: Path, wanted: Mapping[str, Any], now: RunIdentity) -> bool:
    """Whether the run was extended, and its file names other numbers: a process that was killed left it so."""
    there, here = (RunIdentity(content).leaves() for content in (_read(path), wanted))
    return now.first is not None and any(there.get(name) != here.get(name) for name in _NUMBERS)


def _changes(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    if not kept:
        return []
    there, here = (
        RunIdentity({key: value for key, value in content.items() if key not in _AFTERWARDS})
        for content in (kept, wanted)
    )
    before, now = there.leaves(), here.leaves()
    return [
        f"{key} was {json.dumps(before.get(key))} and is {json.dumps(now.get(key))}" for key in there.differences(here)
    ]


def _other_numbers(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What to do where a run has more samples than are asked for, or has numbers and passes are; empty elsewhere."""
    there, here = (
        RunIdentity({k: v for k, v in content.items() if k not in _AFTERWARDS}) for content in (kept, wanted)
    )
    before, now = there.leaves(), here.leaves()
    changed = set(there.differences(here))
    never = "Samples that were drawn are never left out, or they could be chosen"
    drawn, asked, passes = before.get(_N_BOUND), now.get(_N_BOUND), now.get(_PASSES)
    if _PASSES in changed and changed <= _NUMBERS and before.get(_PASSES) is None:
        numbers = f"n_candidate = {before.get(_N_CANDIDATE)} and n_bound = {drawn}"
        return (
            f"has {numbers}, as it was begun or extended, and passes = {passes:g} comes to other numbers. {never}: "
            f"write {numbers} in place of passes"
        )
    if changed != {_N_BOUND} or not isinstance(drawn, int) or not isinstance(asked, int) or drawn <= asked:
        return ""
    return f"has more samples than are asked for: {_N_BOUND} was {drawn} and is {asked}. {never}: set n_bound = {drawn}"


def save_result(result: xr.Dataset, folder: Path, *, together: bool = False) -> None:
    """Write `result.nc`; an earlier one with other contents gets a number, as does its `overlap.nc`.

    Parameters
    ----------
    result
        The result.
    folder
        The run directory.
    together
        Whether an earlier result of the same settings (budgets aside) and fewer samples would hold together with this
        one. What is in the directory is asked itself for its α, its rule and its outputs: the last certification may
        have been interrupted before it wrote one.
    """
    target = folder / "result.nc"
    # Overlaps of other samples or labels shall not be shown beside this result.
    kept = set_aside(result, target, folder / "overlap.nc")
    save(result, target)
    if kept is not None and not (together and _same_claim(kept, result)):
        warnings.warn(
            f"{target} held another certificate from the same samples, which is kept as {kept.name}. The two do not "
            "hold together at one alpha: choose between settings before looking, or divide alpha among them",
            stacklevel=2,
        )


def _same_claim(earlier: Path, result: xr.Dataset) -> bool:
    """Whether α, the rule and the outputs that count are the same: other labels may ignore others."""
    try:
        before = load(earlier)
        (rules, chosen), (now, chosen_now) = map(_rules, (before, result))
    except InvalidInputError:
        return False
    if before.attrs["alpha"] != result.attrs["alpha"] or chosen != chosen_now:
        return False
    # What was chosen for a run that now goes on was half of a claim about counts at every number of samples.
    if rules != now and not (chosen and rules == now.replace(JointCount.name, JointAndBonferroni.name)):
        return False
    there, here = map(_counted, (before, result))
    return all(np.array_equal(there[name], here[name]) for name in there.keys() & here.keys())


def _rules(result: xr.Dataset) -> tuple[str, bool]:
    """The sentence of a result about certificates and rule, and whether the candidate stage chose the rule."""
    sentences = run_info(result).assumptions
    return "".join(sentences[:1]), any(CHOSEN in sentence for sentence in sentences)


def _counted(result: xr.Dataset) -> dict[str, np.ndarray]:
    """Places of the outputs that count, by item; those of padding never do."""
    return {
        str(name): np.argwhere(~ignored)
        for name, ignored in zip(result["item"].values, result["ignored"].values, strict=True)
    }
