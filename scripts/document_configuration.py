"""Write docs/configuration.md from the schema.

Run `python scripts/document_configuration.py`.
"""

from __future__ import annotations

import types
import typing
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from localsmooth.config import Configuration, EdgeConfiguration, GraphConfiguration
from localsmooth.config.section import Named, sections_of, selected_by

TARGET = Path(__file__).parent.parent / "docs" / "configuration.md"
HEAD = """# Configuration

One TOML file describes a run: `localsmooth certify FILE.toml --out RUN`. Relative paths are relative to the file, and
`~` is home. An unknown key or a bad value is an error that names the key and the nearest valid one, before anything
runs. The demonstration's file is [`src/localsmooth/scenes/demo.toml`](../src/localsmooth/scenes/demo.toml).

What is certified says `[data]`: arrays, pictures and data sets of them; point clouds (`kind = "points"`, see
[`examples/point_parts.toml`](../examples/point_parts.toml)); or embedded tokens (`kind = "tokens"`, see
[`examples/token_tagger.toml`](../examples/token_tagger.toml)).

A file with a section `[graph]` describes a run on a graph, with [its own keys](#the-file-of-a-graph); see
[`examples/digit_graph.toml`](../examples/digit_graph.toml). A file with a section `[edges]` describes one
[against flips of edges](#the-file-of-a-graph-whose-edges-are-perturbed).

The keys of a table are listed once, where it comes first.

This page is made from the schema by `python scripts/document_configuration.py`.
"""

TITLES = ("The file", "The file of a graph", "The file of a graph whose edges are perturbed")


def type_words(annotation: object) -> str:
    """A type in a reader's words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        names = [name for mark in arguments[1:] if isinstance(mark, Named) for name in mark.names]
        return ", ".join(f'`"{name}"`' for name in names) or type_words(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f'`"{a}"`' for a in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_words(a) for a in arguments if a is not type(None)))
    if origin is list:
        return f"list of {type_words(arguments[0])}"
    if origin is dict:
        if arguments[1] is typing.Any:
            return "table"
        return f"table of {type_words(arguments[1])}s"
    if origin is tuple:
        return f"{len(arguments)} × {type_words(arguments[0])}"
    plain = {int: "whole number", float: "number", str: "text", bool: "true or false", Path: "path"}
    if annotation in plain:
        return plain[annotation]
    return "table" if isinstance(annotation, type) and issubclass(annotation, BaseModel) else str(annotation)


def chooses(field: FieldInfo) -> bool:
    """Whether a key selects a section."""
    return selected_by(field) is not None


def keys(section: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """Keys with what selects the section first, then those that are required."""
    return sorted(section.model_fields.items(), key=lambda key: (not chooses(key[1]), not key[1].is_required()))


def rows(section: type[BaseModel]) -> list[str]:
    """One table row per key."""
    made = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in keys(section):
        if field.is_required():
            default = "required"
        elif chooses(field):
            default = ""
        elif field.default_factory is not None or field.default is PydanticUndefined:
            default = "see below"
        else:
            default = "" if field.default is None else f"`{field.default!r}`".replace("'", '"')
            default = {"`True`": "`true`", "`False`": "`false`"}.get(default, default)
        suits = "" if field.is_required() else " By default what goes with the data."
        meaning = f"Selects these keys.{suits}" if chooses(field) else " ".join((field.description or "").split())
        made.append(f"| `{name}` | {type_words(field.annotation)} | {default} | {meaning} |")
    return made


def describe(section: type[BaseModel], title: str, level: int, known: set[type[BaseModel]]) -> list[str]:
    """A section with its keys, and then the sections inside it that another kind of file does not have as well."""
    words = " ".join((section.__doc__ or "").split())
    lines = [f"{'#' * level} {title}", "", words, "", *rows(section), ""]
    for name, field in keys(section):
        inner = sections_of(field)
        for choice in inner:
            if choice in known:
                continue
            tags = [
                f'{key} = "{typing.get_args(f.annotation)[0]}"'
                for key, f in choice.model_fields.items()
                if chooses(f) and len(inner) > 1
            ]
            path = name if title in TITLES else f"{title.split('`')[1].strip('[]')}.{name}"
            suffix = f" with `{tags[0]}`" if tags else ""
            lines += describe(choice, f"`[{path}]`{suffix}", min(level + 1, 3), known)
    return lines


def inside(section: type[BaseModel]) -> set[type[BaseModel]]:
    """All sections in one, at any depth."""
    direct = {choice for _, field in keys(section) for choice in sections_of(field)}
    return direct.union(*map(inside, direct))


def document() -> str:
    """The whole page."""
    kinds = (Configuration, GraphConfiguration, EdgeConfiguration)
    lines, known = [HEAD], set[type[BaseModel]]()
    for kind, title in zip(kinds, TITLES, strict=True):
        lines += describe(kind, title, 2, known)
        known |= inside(kind)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
