"""What a run was asked to prove, as plain JSON in its record, and the settings made of that again."""

from __future__ import annotations

import math
import warnings
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from inspect import signature
from typing import Any, cast, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

from localsmooth.baselines import BASELINES
from localsmooth.bounds import SCORE_BOUNDS, SIMULTANEOUS, CandidateWeights
from localsmooth.certificates import SCORE_CERTIFICATES, VOTE_CERTIFICATES
from localsmooth.collective import BOUNDS
from localsmooth.errors import InvalidInputError
from localsmooth.tasks import TARGETS, RunRecord, RunRecordError, import_from_folders, task_of
from localsmooth.tasks.arrays import THREATS

__all__ = ["described", "restored", "same_event"]

_KNOWN: Mapping[str, Mapping[str, Any]] = {
    "certificates": cast("Mapping[str, Any]", ChainMap(VOTE_CERTIFICATES, SCORE_CERTIFICATES)),  # pyright: ignore
    "bounds": BOUNDS,
    "simultaneous": {**SIMULTANEOUS, CandidateWeights.name: CandidateWeights},
    "score_bound": SCORE_BOUNDS,
    "threat": THREATS,
    "method": BASELINES,
    "baseline": BASELINES,
    "targets": TARGETS,
}
"""Classes by the names that configuration files call them by, for each field of settings."""


class _UnknownError(Exception):
    """Something cannot be described, or made again."""


def described(settings: Any) -> dict[str, Any]:
    """Describe settings by names and parameters; of a field that cannot be described, the class is all that is kept.

    Parameters
    ----------
    settings
        Of any kind of input.
    """
    made: dict[str, Any] = {}
    for field in fields(settings):
        value, classes = getattr(settings, field.name), _classes(settings, field.name)
        try:
            made[field.name] = _described(value, classes)
        except _UnknownError:
            made[field.name] = {"class": _class_names(value)}
    return made


def same_event(settings: Any, earlier: Mapping[str, Any]) -> bool:
    """Whether settings ask for what follows from the same event as others, by the same rule: budgets alone may differ.

    That holds for rules of this package, whose events are about the probabilities of labels. α, the rule and targets
    must be the same. What the event of a baseline is about is not known here: its budgets must be the same, too.

    Parameters
    ----------
    settings
        What is proven.
    earlier
        What was proven, as a record describes it.
    """
    now, before = described(settings), dict(earlier)
    baseline = getattr(settings, "method", None) or getattr(settings, "baseline", None)
    for name in () if baseline is not None else getattr(settings, "budget_fields", ()):
        now.pop(name, None)
        before.pop(name, None)
    return now == before


def restored(record: RunRecord, given: Collection[str] = ()) -> Any:
    """Make the settings of a finished run; the user is told what its record cannot give back.

    Parameters
    ----------
    record
        Of the run.
    given
        Fields that will be replaced.

    Raises
    ------
    RunRecordError
        If the record holds something else in place of settings.
    """
    import_from_folders("threat")  # so that all are known
    made = _least(task_of(record.task).proves, record.settings)
    changes: dict[str, Any] = {}
    for field in fields(made):
        if field.name in given or field.name not in record.settings:
            continue
        kept = record.settings[field.name]
        try:
            changes[field.name] = _field(kept, made, field.name)
        except _UnknownError:
            what = (
                f"{kept['class']}, which no record can hold" if "class" in kept else f"{kept}, which is not known here"
            )
            warnings.warn(
                f"{field.name}: the run was certified with {what}; name the {field.name} in the settings, or what is "
                "certified again has the default",
                stacklevel=4,
            )
    return replace(made, **changes)


def _least(kind: type[Any], kept: Mapping[str, Any]) -> Any:
    """Settings with their defaults wherever there is one; α and budgets are plain numbers, which any record holds."""
    needed = [name for name, parameter in signature(kind).parameters.items() if parameter.default is parameter.empty]
    try:
        return kind(**{name: _value(kept[name], kind, name) for name in needed})
    except KeyError as error:
        remedy = (
            "Run the same certification into this directory again: the tallies are kept, the record is written anew"
        )
        raise RunRecordError(f"the record's settings do not say {error}. {remedy}") from None
    except InvalidInputError as error:
        raise RunRecordError(f"the record's settings are damaged: {error}") from None


def _classes(settings: Any, field: str) -> Mapping[str, Any]:
    """Classes that a field's objects may have: those of files, or the one that it is declared with."""
    declared = get_type_hints(type(settings)).get(field)
    return _KNOWN.get(field, {field: declared} if isinstance(declared, type) and is_dataclass(declared) else {})


def _field(kept: Any, made: Any, name: str) -> Any:
    """Make a field's value again, of the same form as the one that `made` has."""
    classes, usual = _classes(made, name), getattr(made, name)
    if not classes:
        return _value(kept, type(made), name)
    value = _object(kept, classes)
    members = [value]
    if isinstance(usual, Mapping):
        members = list(value.values()) if isinstance(value, Mapping) else [None]
    elif isinstance(usual, list | tuple):
        members = list(value) if isinstance(value, tuple) else [None]
    if not all(type(one) in classes.values() for one in members) and not (value is None and usual is None):
        raise RunRecordError(f"settings.{name} is damaged: {kept!r} does not describe it")
    return value


def _value(kept: Any, kind: type[Any], name: str) -> Any:
    """A plain value of a field, of the type that it is declared with."""
    try:
        return TypeAdapter(get_type_hints(kind)[name]).validate_python(kept)
    except ValidationError as error:
        raise RunRecordError(f"settings.{name} is damaged: {error.errors()[0]['msg']}") from None


def _described(value: Any, classes: Mapping[str, Any]) -> Any:
    made = _plain(value, classes)
    if _plain(_object(made, classes), classes) != made:
        raise _UnknownError
    return made


def _plain(value: Any, classes: Mapping[str, Any]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(each, classes) for each in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {str(name): _plain(each, classes) for name, each in cast("Mapping[Any, Any]", value).items()}
    name = next((name for name, known in classes.items() if known is type(value)), None)
    known = fields(value) if is_dataclass(value) else ()
    parameters = {field.name: getattr(value, field.name) for field in known if field.init}
    if name is None or not vars(value).keys() <= {field.name for field in known}:
        raise _UnknownError
    return {"name": name, **{field: _plain(each, {}) for field, each in parameters.items()}}


def _object(kept: Any, classes: Mapping[str, Any]) -> Any:
    if isinstance(kept, list):
        return tuple(_object(each, classes) for each in cast("list[Any]", kept))
    if not isinstance(kept, dict):
        return kept
    content = cast("dict[str, Any]", kept)
    if not isinstance(content.get("name"), str):
        if isinstance(content.get("class"), str):
            raise _UnknownError
        return {name: _object(each, classes) for name, each in content.items()}
    made: type[Any] | None = classes.get(content["name"])
    if made is None:
        raise _UnknownError
    usual = {field.name: field.default for field in fields(made)} if is_dataclass(made) else {}
    try:
        parameters = {
            field: type(usual[field])(each) if isinstance(usual[field], Enum) else _object(each, {})
            for field, each in content.items()
            if field != "name"
        }
        return made(**parameters)
    except (KeyError, TypeError, ValueError):  # of another version of the class
        raise _UnknownError from None


def _class_names(value: Any) -> str:
    each = list(cast("Mapping[Any, Any]", value).values()) if isinstance(value, Mapping) else value
    kinds = map(type, cast("Sequence[Any]", each if isinstance(each, list | tuple) else [each]))
    return ", ".join(dict.fromkeys(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds))
