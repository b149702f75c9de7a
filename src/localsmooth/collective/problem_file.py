"""Problems on disk (JSON or NPZ), and answers as plain records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from localsmooth.archives import Archive
from localsmooth.collective.kernel.answer import Answer
from localsmooth.collective.kernel.problem import Problem
from localsmooth.collective.kernel.threat import Caps, Integer, Rows
from localsmooth.disk import expanded, read_text
from localsmooth.errors import InvalidInputError

__all__ = ["ProblemFile", "answer_record", "problem_from", "read_problems"]

_REQUIRED = ("weights", "eta", "group", "A", "c")
_OPTIONAL = ("targets", "value", "caps", "integer")
_IGNORED = ("id", "expected", "comment")


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """The problems of one file.

    Parameters
    ----------
    problems
        One or more problems.
    listed
        Whether the file holds a list, so that its answers are a list as well.
    curves
        For each problem, whether it asks for a list of budgets.
    """

    problems: tuple[Problem, ...]
    listed: bool
    curves: tuple[bool, ...]


def read_problems(path: Path) -> ProblemFile:
    """Read a problem, or a list of them, from a JSON or NPZ file.

    Fields: ``weights`` [output groups × input columns], ``eta`` [outputs], ``group`` [outputs], ``A`` [rows × input
    columns] and ``c`` [rows] or [budgets × rows]; optional ``targets`` (indices), ``value`` [outputs],
    ``caps`` (null or inf for none) and ``integer``. ``weights`` and ``eta`` may have a leading axis of certificates.

    Raises
    ------
    InvalidInputError
        Where the file cannot be read as that.
    """
    path = expanded(path)
    if not path.is_file():
        raise InvalidInputError("problem", f"{path} is not a file", "give a .json or .npz file")
    ending = path.suffix.lower()
    if ending == ".npz":
        with Archive(path, "problem") as archive:
            content: Any = {name: archive[name] for name in archive.names}
    elif ending == ".json":
        try:
            content = json.loads(read_text(path), object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError("problem", f"{path} is not valid JSON ({error})", "correct the file") from error
    else:
        raise InvalidInputError("problem", f"{path} has the ending {path.suffix!r}", "give a .json or .npz file")
    entries = content if isinstance(content, list) else [content]
    problems = tuple(_numbered(position, entry, isinstance(content, list)) for position, entry in enumerate(entries))
    return ProblemFile(problems, isinstance(content, list), tuple(np.ndim(entry["c"]) == 2 for entry in entries))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(f"a field is given twice among {', '.join(name for name, _ in pairs)}")
    return content


def _numbered(position: int, entry: Any, listed: bool) -> Problem:
    """Return a problem, saying which of a list it is where it is wrong."""
    try:
        return problem_from(entry)
    except InvalidInputError as error:
        if not listed:
            raise
        raise InvalidInputError(f"problem {position}, {error.field}", error.problem, error.remedy) from error


def problem_from(entry: Any) -> Problem:
    """Return the problem that a mapping of plain fields describes.

    Raises
    ------
    InvalidInputError
        For missing or unknown fields, or values that do not fit together.
    """
    if not isinstance(entry, Mapping):
        raise InvalidInputError("problem", f"is a {type(entry).__name__}", "give an object with named fields")
    unknown = sorted(str(name) for name in set(entry) - {*_REQUIRED, *_OPTIONAL, *_IGNORED})
    if unknown:
        raise InvalidInputError(
            ", ".join(unknown),
            "not known as fields of a problem" if len(unknown) > 1 else "is not a field of a problem",
            f"known: {', '.join(_REQUIRED + _OPTIONAL)}; {', '.join(_IGNORED)} are allowed and not used",
        )
    for name in _REQUIRED:
        if name not in entry:
            raise InvalidInputError(name, "is missing", f"give {', '.join(_REQUIRED)}")
    threat = Rows(entry["A"], entry["c"])
    caps = entry.get("caps")
    if caps is not None:
        threat = threat & Caps(caps)
    integer = _any_array("integer", False if entry.get("integer") is None else entry["integer"])
    if integer.shape != () or not (integer.dtype.kind == "b" or (integer.dtype.kind in "ui" and integer in (0, 1))):
        raise InvalidInputError("integer", "is not one truth value", "give true or false")
    if bool(integer):
        threat = threat & Integer()
    targets = entry.get("targets")
    group = _any_array("group", entry["group"])
    group = group.astype(np.int64) if group.size == 0 else group
    targets = None if targets is None else _any_array("targets", targets)
    return Problem(entry["weights"], entry["eta"], group, threat, targets, entry.get("value"))


def _any_array(field: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(field, "is not a rectangular array", "give a list of numbers") from error


def answer_record(answer: Answer) -> dict[str, Any]:
    """Return an answer as plain values, ready for JSON."""
    record: dict[str, Any] = {
        "certified": answer.certified,
        "lower": answer.lower,
        "upper": answer.upper,
        "status": answer.status.value,
        "seconds": answer.seconds,
        "attack": answer.attack.tolist(),
        "broken": answer.broken.tolist(),
        "prices": answer.prices.tolist(),
        "targets": answer.targets,
        "total": answer.total,
    }
    if answer.claimed is not None and math.isfinite(answer.claimed):
        record["claimed"] = answer.claimed
    if answer.verified is not None:
        record["verified"] = str(answer.verified)
    return record
