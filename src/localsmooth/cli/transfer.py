"""`localsmooth transfer`: a certificate for another version of a run's model."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from localsmooth.cli.certify import run_configuration
from localsmooth.cli.commands import Log
from localsmooth.cli.telling import telling
from localsmooth.config import import_plugins, parse_configuration, read_toml, with_samples
from localsmooth.errors import InvalidInputError
from localsmooth.runs import DirectoryStore
from localsmooth.tasks import load_record, require_same_run

__all__ = ["transfer"]

_EVALUATION = ("precision", "compile", "batch_size", "channels_last")


def transfer(run: Path, model: Path, samples: int, out: Path, seed: int | None, log: Log) -> None:
    """Certify another model on the items of a run, with the run's candidates and samples of the new model."""
    record = load_record(run)
    kept = record.configuration
    if "sampling" not in kept or "model" not in kept:
        raise InvalidInputError(
            "run",
            f"{run} was not made from a configuration file with a section [model]",
            "Call certify in Python with the new model and Run(candidates=…)",
        )
    store = DirectoryStore(run, read_only=True)
    require_same_run(record, store)
    identity = "" if store.configuration is None else store.configuration.seal
    other = read_toml(model)
    if not isinstance(other.get("model"), dict):
        raise InvalidInputError("--model", f"{model} has no section [model]", "Describe the new model there")
    sys.path.insert(0, str(model.resolve().parent))  # modules are looked for beside the file that names them
    given = other.get("sampling", {})
    evaluated = {name: given[name] for name in _EVALUATION if name in given}
    plain = {name: value for name, value in kept["sampling"].items() if name not in _EVALUATION}
    sampling: dict[str, Any] = with_samples({**plain, **evaluated}, record.n_candidate, samples)
    sampling["seed"] = _seed(identity, other["model"], evaluated) if seed is None else seed
    named = f"{record.method} ({model.stem})"
    grown = {**kept, "name": named, "model": other["model"], "sampling": sampling}
    if "plugins" in other:
        grown["plugins"] = other["plugins"]
    with telling(log) as told:
        import_plugins(grown)
        configuration = parse_configuration(grown, model.resolve().parent)
        told.result(run_configuration(configuration, out, told, candidates=run), out)


def _seed(*what: object) -> int:
    """A seed of this run's and this model's own, and the same when the transfer goes on."""
    return int.from_bytes(hashlib.sha256(json.dumps(["transfer", *what], sort_keys=True).encode()).digest()[:7])
