"""What all sections of a configuration have in common."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Union, no_type_check

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from localsmooth.disk import expanded

__all__ = ["AnyOf", "ExistingPath", "Named", "Section", "sections_of", "selected_by", "value_of"]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values do not change after validation.

    Attributes
    ----------
    arguments
        The keys that give what a section makes its arguments, by the arguments' names where these are others.
    """

    arguments: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_numbers(cls, values: object) -> object:
        """Refuse true and false where a key takes neither; they would be read as 1 and 0."""
        given = values if isinstance(values, Mapping) else {}
        for name, value in given.items():
            key = cls.model_fields.get(name)
            if key is not None and _holds_truth(value) and not _takes_truth((key.annotation, *key.metadata)):
                raise ValueError(f"{name}: true and false are no numbers")
        return values


def _holds_truth(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_holds_truth, value)))


def _takes_truth(annotation: object) -> bool:
    """Whether bool, or anything, is among the types that an annotation is made of."""
    if annotation is bool or annotation is Any or annotation is object:
        return True
    parts = annotation if isinstance(annotation, tuple) else typing.get_args(annotation)
    return any(map(_takes_truth, parts))


@no_type_check  # the annotation is a protocol that cannot be checked at run time
def _resolve(path: Path, info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    path = expanded(path)
    resolved = (path if path.is_absolute() else folder / path).absolute()  # runs remember it, and are read elsewhere
    if not resolved.exists():
        raise ValueError(f"no such file: {resolved}")
    return resolved


ExistingPath = Annotated[Path, AfterValidator(_resolve)]


@dataclass(frozen=True, eq=False)
class AnyOf:
    """Marks a key whose table is one of several sections of its type, those among them that are registered later.

    Parameters
    ----------
    sections
        The sections by the value that selects them.
    key
        The key that holds this value.
    """

    sections: Mapping[str, type[Section]]
    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del handler
        return core_schema.with_info_plain_validator_function(
            lambda value, info: value if isinstance(value, source) else self._validated(value, info, source)
        )

    def of(self, source: type[Section]) -> list[type[Section]]:
        """Sections that are of a type."""
        return [section for section in self.sections.values() if issubclass(section, source)]

    @no_type_check  # the annotation is a protocol that cannot be checked at run time
    def _validated(self, value: object, info: ValidationInfo, source: type[Section]) -> Section:
        every = Annotated[Union[tuple(self.of(source))], Field(discriminator=self.key)]  # noqa: UP007
        return TypeAdapter(every).validate_python(value, context=info.context)


@dataclass(frozen=True)
class Named:
    """Marks a text that names something registered, now or later.

    Parameters
    ----------
    registries
        Whose keys are the names.
    """

    registries: tuple[Mapping[str, object], ...]

    @property
    def names(self) -> list[str]:
        """All that are known now."""
        return [name for registry in self.registries for name in registry]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, self.names))})
        return name


def selected_by(field: FieldInfo) -> str | None:
    """Return the one value of a key that selects its section; None for any other key."""
    values = typing.get_args(field.annotation) if typing.get_origin(field.annotation) is typing.Literal else ()
    return str(values[0]) if len(values) == 1 else None


def value_of(key: str) -> Callable[[type[Section]], str | None]:
    """Say where sections have the value that selects them: for registries.

    Parameters
    ----------
    key
        The key that holds it.
    """
    return lambda section: selected_by(section.model_fields[key]) if key in section.model_fields else None


def sections_of(field: FieldInfo | object) -> list[type[BaseModel]]:
    """Every section that a key, or a part of its type, admits.

    Parameters
    ----------
    field
        The key's field, or a type.
    """
    if isinstance(field, FieldInfo):
        return _chosen(field.annotation, field.metadata) or sections_of(field.annotation)
    if typing.get_origin(field) is Annotated:
        source, *marks = typing.get_args(field)
        return _chosen(source, marks) or sections_of(source)
    if isinstance(field, type) and issubclass(field, BaseModel):
        return [field]
    if typing.get_origin(field) in (Union, types.UnionType, list):
        return [section for argument in typing.get_args(field) for section in sections_of(argument)]
    return []


def _chosen(source: Any, marks: Sequence[object]) -> list[type[BaseModel]]:
    return [section for mark in marks if isinstance(mark, AnyOf) for section in mark.of(source)]
