"""What keeps a run directory from losing or mixing up anything: earlier results, and what the run was asked for."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from localsmooth.disk import write_atomically
from localsmooth.results import save, set_aside
from localsmooth.sampling import DirectoryStore, OtherRunError, RunConfiguration, Store

__all__ = ["naming_keys", "save_result"]

_NAME = "configuration.json"
_LARGEST_FILE = 1 << 26
# What is proven may differ between runs on the same tallies.
_AFTERWARDS = ("name", "certificate")


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
        In place of the one from sampling, with the keys and values that differ, where both configurations are known.
    """
    if not isinstance(store, DirectoryStore) or not configuration:
        yield
        return
    path = store.path / _NAME
    if store.configuration is None:
        write_atomically(path, json.dumps(configuration, indent=1, allow_nan=False).encode())
    try:
        yield
    except OtherRunError:
        changes = _changes(_read(path), configuration)
        if not changes:
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


def _changes(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    if not kept:
        return []
    there, here = (
        RunConfiguration({key: value for key, value in content.items() if key not in _AFTERWARDS})
        for content in (kept, wanted)
    )
    before, now = there.leaves(), here.leaves()
    return [
        f"{key} was {json.dumps(before.get(key))} and is {json.dumps(now.get(key))}" for key in there.differences(here)
    ]


def save_result(result: xr.Dataset, folder: Path) -> None:
    """Write `result.nc`; an earlier one with other contents gets a number, and the user is told."""
    target = folder / "result.nc"
    kept = set_aside(result, target)
    save(result, target)
    if kept is not None:
        warnings.warn(
            f"{target} held another certificate from the same samples, which is kept as {kept.name}. The two do not "
            "hold together at one alpha: choose between settings before looking, or divide alpha among them",
            stacklevel=2,
        )
