"""Read and validate a configuration file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from localsmooth.config.explain import ConfigurationError, explain
from localsmooth.config.schema import Configuration

__all__ = ["load_configuration", "parse_configuration"]

_LARGEST_FILE = 1 << 20


def parse_configuration(values: Mapping[str, object], folder: Path | None = None) -> Configuration:
    """Validate a configuration given as nested mappings.

    Parameters
    ----------
    values
        The configuration's sections.
    folder
        What relative paths in it are relative to; the working directory by default.

    Raises
    ------
    ConfigurationError
        Naming every unknown key, missing key and bad value.
    """
    try:
        return Configuration.model_validate(values, context={"folder": folder or Path()})
    except ValidationError as error:
        raise explain(Configuration, error) from None


def load_configuration(path: Path | str) -> Configuration:
    """Read and validate a TOML file.

    Raises
    ------
    ConfigurationError
        If the file is missing, too large, not TOML, or not a valid configuration.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file.")
    if path.stat().st_size > _LARGEST_FILE:
        raise ConfigurationError(f"{path}: larger than 1 MiB, which no configuration is.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}.") from None
    try:
        return parse_configuration(values, path.parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}:\n{error}") from None
