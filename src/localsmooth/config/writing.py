"""Write values as TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from localsmooth.errors import InvalidInputError

__all__ = ["to_toml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(values: Mapping[str, Any]) -> str:
    """Write a configuration's values; `tomllib` reads them back as they are.

    Parameters
    ----------
    values
        Texts, numbers, booleans, lists and tables of these.

    Raises
    ------
    InvalidInputError
        For anything else.
    """
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(key, value)}" for key, value in plain.items()]
    for name, table in values.items():
        if isinstance(table, Mapping):
            lines += ["", *_table(_key(name), cast("Mapping[str, Any]", table))]
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    return [f"[{name}]", *(f"{_key(key)} = {_value(key, value)}" for key, value in values.items())]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(key, each) for each in cast("list[Any]", value)) + "]"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return "{ " + ", ".join(f"{_key(name)} = {_value(name, each)}" for name, each in pairs) + " }"
    raise InvalidInputError(key, f"a {type(value).__name__} is not written into a configuration", "Name a plain value")
