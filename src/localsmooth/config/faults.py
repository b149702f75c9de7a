"""Turn validation errors into sentences that name the key and the nearest valid one."""

from __future__ import annotations

import difflib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from localsmooth.config.section import Section, sections_of, selected_by
from localsmooth.errors import InvalidInputError, LocalsmoothError

__all__ = ["ConfigurationError", "explain", "naming_keys_of", "within"]

# Sections of a file that say nothing of what a run makes, or that the command line may have replaced.
_ASIDE = frozenset({"calibration", "execution", "locality", "plugins", "tune"})


class ConfigurationError(LocalsmoothError, ValueError):
    """A configuration file cannot be used; the message lists every fault with its key."""


def _nearest(word: str, choices: Iterable[str]) -> str:
    options = sorted(choices)
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if close:
        return f'Did you mean "{close[0]}"?'
    return "Valid here: " + ", ".join(options) + "."


def _tag(section: type[BaseModel]) -> str | None:
    return next(filter(None, map(selected_by, section.model_fields.values())), None)


def _place(root: type[BaseModel], location: tuple[int | str, ...]) -> tuple[str, type[BaseModel] | None]:
    """Dotted key as written in the file, without the values that select sections, and the section that it lies in."""
    parts: list[str] = []
    current: type[BaseModel] | None = root
    around, pending = current, list[type[BaseModel]]()
    for part in location:
        if isinstance(part, int):
            parts.append(f"[{part}]")
            continue
        if "(" in part or "[" in part:  # the tag of an alternative without a key of its own
            continue
        if pending and part in {_tag(m) for m in pending}:
            current, pending = next(m for m in pending if _tag(m) == part), []
            continue
        parts.append(part if not parts else f".{part}")
        around, field = current, None if current is None else current.model_fields.get(part)
        found = [] if field is None else sections_of(field)
        current, pending = (found[0], []) if len(found) == 1 else (None, found)
    return "".join(parts), around


def _sentence(root: type[BaseModel], error: ErrorDetails) -> str:
    location = error["loc"]
    key, section = _place(root, location)
    if error["type"] == "extra_forbidden":
        choices = [] if section is None else list(section.model_fields)
        return f"{key}: unknown key. {_nearest(str(location[-1]), choices)}"
    if error["type"] == "missing":
        return f"{key}: this key is missing."
    value = error.get("input")
    if error["type"] in ("union_tag_invalid", "literal_error", "enum"):
        context = error.get("ctx", {})
        expected = str(context.get("expected_tags", context.get("expected", "")))
        choices = [c.strip(" '\"") for c in expected.replace(" or ", ",").split(",") if c.strip(" '\"")]
        word = str(context.get("tag", value))
        name = str(context.get("discriminator", "")).strip("'")
        return f'{key}{"." + name if name else ""}: "{word}" is not valid. {_nearest(word, choices)}'
    if error["type"] == "union_tag_not_found":
        name = str(error.get("ctx", {}).get("discriminator", "")).strip("'")
        return f"{key}.{name}: this key is missing."
    message = error["msg"].removeprefix("Value error, ")
    shown = "" if isinstance(value, (dict, BaseModel)) else f" (got {value!r})"
    return f"{key}: {message}{shown}." if key else f"{message}{shown}."


def explain(root: type[BaseModel], error: ValidationError) -> ConfigurationError:
    """Make one readable error from pydantic's.

    Parameters
    ----------
    root
        The model that refused the configuration.
    error
        What it said.
    """
    sentences = [_sentence(root, detail) for detail in error.errors()]
    return ConfigurationError("\n".join(sentences))


@contextmanager
def within(name: str, section: Section) -> Generator[None]:
    """Name the section of a file in errors of what it makes, whose arguments are called as its keys or otherwise.

    Parameters
    ----------
    name
        What the section is called in the file.
    section
        The section.

    Raises
    ------
    InvalidInputError
        What was raised within, with the key in place of the argument.
    """
    try:
        yield
    except InvalidInputError as error:
        if error.field.split(".")[0] == name:
            raise
        key = section.arguments.get(error.field, error.field)
        known = key.split(",")[0].split(".")[0] in type(section).model_fields
        raise InvalidInputError(f"{name}{'.' if known else ': '}{key}", error.problem, error.remedy) from error


@contextmanager
def naming_keys_of(configuration: BaseModel, file: Path | None = None) -> Generator[None]:
    """Name the file and its key in errors of a run that it describes, where one key alone can be meant.

    Parameters
    ----------
    configuration
        What the file says.
    file
        The file; None where there is none, or it is not known.

    Raises
    ------
    InvalidInputError
        What was raised within, with file and key in place of the argument.
    """
    try:
        yield
    except InvalidInputError as error:
        key = _key(configuration, error.field)
        if key is None:
            raise
        place = key if file is None else f"{file}: {key}"
        raise InvalidInputError(place, error.problem, error.remedy) from error


def _key(configuration: BaseModel, argument: str) -> str | None:
    first = argument.split(",")[0].split(":")[0].split(".")[0]
    sections = {name: section for name, section in configuration if isinstance(section, Section)}
    if first in sections:
        return argument
    possible = [
        name
        for name, section in sections.items()
        if first in type(section).model_fields or argument in section.arguments
    ]
    if len(possible) != 1 or possible[0] in _ASIDE:
        return None
    section = sections[possible[0]]
    key = section.arguments.get(argument)
    return f"{possible[0]}.{key or argument}" if key or _is_written(section, first) else None


def _is_written(section: Section, key: str) -> bool:
    """Whether the file says something of a key, rather than leaves it to its default."""
    return key in section.model_fields_set and getattr(section, key) is not None
