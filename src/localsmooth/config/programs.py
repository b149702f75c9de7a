"""Files of torch.export, looked through before torch opens them: some of what they may hold would run as code."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch

from localsmooth.config.faults import ConfigurationError

__all__ = ["load_program"]

# Members of an archive by their path in it; a file of tensors that torch.load reads ends in .pt.
_KNOWN = re.compile(
    r"(archive_format|archive_version|version|byteorder|\.format_version|\.storage_alignment|\.data/(serialization_id|version)"
    r"|models/\w+\.json|extra/.*"
    r"|data/weights/(\w+_weights_config\.json|weight_\d+)"
    r"|data/constants/(\w+_constants_config\.json|tensor_\d+)"
    r"|data/sample_inputs/\w+\.pt)"
)
# Sizes are written as expressions, which are evaluated: symbols, numbers and these functions alone.
_ARITHMETIC = {"Add", "Mul", "Pow", "Max", "Min", "Mod", "FloorDiv", "PythonMod", "CeilDiv", "CleanDiv"}
_FUNCTIONS = _ARITHMETIC | {"Integer", "Rational", "Symbol"}
_EXPRESSION = re.compile(r"([\w\s+*/(),=-]|'\w+')*")


def load_program(path: Path) -> torch.export.ExportedProgram:
    """Load a program of torch.export that holds tensors and operations, and nothing that is pickled or compiled.

    Parameters
    ----------
    path
        What `torch.export.save` wrote.

    Raises
    ------
    ConfigurationError
        If it is none, or holds something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            problem = next(_problems(archive), None)
        if problem is None:
            return torch.export.load(path)
    except Exception as error:  # torch raises many kinds
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigurationError(
            f"model.path: torch cannot load {path} ({first}). Write it with torch.export.save of this release of torch."
        ) from error
    raise ConfigurationError(
        f"model.path: {path} holds {problem}, which is not read since that may run code. If you trust it, load it in a "
        'function of your own that returns its module() (kind = "torch", factory).'
    )


def _problems(archive: zipfile.ZipFile) -> Iterator[str]:
    """Whatever in an archive may run code."""
    for name in archive.namelist():
        inside = name.partition("/")[2]
        if not _KNOWN.fullmatch(inside):
            yield f"a file {name}"
        elif inside.endswith(".pt"):
            try:
                torch.load(io.BytesIO(archive.read(name)), weights_only=True)
            except Exception:  # what it would read otherwise is a pickle
                yield f"pickled inputs in {name}"
        elif inside.endswith(".json") and not inside.startswith("extra/"):
            for key, value in _entries(json.loads(archive.read(name))):
                if key == "use_pickle" and value:
                    yield f"pickled tensors, named in {name}"
                if key == "expr_str" and not _is_size(value):
                    yield f"an expression {value!r} in {name}"


def _entries(value: object) -> Iterator[tuple[str, object]]:
    """Every key with its value, however deep."""
    if isinstance(value, dict):
        for key, held in cast("dict[str, Any]", value).items():
            yield key, held
            yield from _entries(held)
    elif isinstance(value, list):
        for held in cast("list[Any]", value):
            yield from _entries(held)


def _is_size(expression: object) -> bool:
    text = str(expression)
    called = set(re.findall(r"([A-Za-z_]\w*)\s*\(", text))
    return _EXPRESSION.fullmatch(text) is not None and called <= _FUNCTIONS
