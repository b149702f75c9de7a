"""What all sections of a configuration have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, no_type_check

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo

from localsmooth.disk import expanded

__all__ = ["ExistingPath", "Section"]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values do not change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@no_type_check  # the annotation is a protocol that cannot be checked at run time
def _resolve(path: Path, info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    path = expanded(path)
    resolved = path if path.is_absolute() else folder / path
    if not resolved.exists():
        raise ValueError(f"no such file: {resolved}")
    return resolved


ExistingPath = Annotated[Path, AfterValidator(_resolve)]
