"""Read and validate a configuration file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.edges import EdgeConfiguration
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.faults import ConfigurationError, explain
from localsmooth.config.graph import GraphCertificateSection, GraphConfiguration
from localsmooth.config.plugins import import_plugins
from localsmooth.config.schema import Configuration
from localsmooth.disk import expanded, read_text
from localsmooth.tasks import task_of
from localsmooth.tasks.arrays import Settings
from localsmooth.tasks.graphs import GraphSettings

__all__ = [
    "AnyFile",
    "load_certificate",
    "load_configuration",
    "parse_configuration",
    "read_toml",
    "with_execution",
]

_LARGEST_FILE = 1 << 20


AnyFile = Configuration | GraphConfiguration | EdgeConfiguration
"""What a file may describe."""
_Kind = TypeVar("_Kind", bound=AnyFile)
_KINDS: dict[str, type[AnyFile]] = {
    "graph": GraphConfiguration,
    "edges": EdgeConfiguration,
}
"""What a section of that name makes of a file."""
CERTIFICATE_SECTIONS: dict[type, type[CertificateSection] | type[GraphCertificateSection]] = {
    Settings: CertificateSection,
    GraphSettings: GraphCertificateSection,
}
"""The section [certificate] that makes the settings which a kind of input proves."""


def parse_configuration(values: Mapping[str, object], folder: Path | None = None) -> AnyFile:
    """Validate a configuration given as nested mappings; a section [graph] or [edges] makes it one of a run on a graph.

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
    kind = next((kind for section, kind in _KINDS.items() if section in values), Configuration)
    try:
        return kind.model_validate(values, context={"folder": folder or Path()})
    except ValidationError as error:
        raise explain(kind, error) from None


def load_configuration(path: Path | str) -> AnyFile:
    """Read and validate a TOML file; the modules that its section [plugins] names are imported.

    Raises
    ------
    ConfigurationError
        If the file is missing, too large, not TOML, or not a valid configuration.
    """
    path = expanded(path)
    values = read_toml(path)
    try:
        import_plugins(values)
        return parse_configuration(values, path.parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}:\n{error}") from None


def with_execution(
    configuration: _Kind,
    *,
    executor: str | None = None,
    workers: int | None = None,
    gpus_per_worker: float | None = None,
    address: str | None = None,
) -> _Kind:
    """Draw samples elsewhere than the file says: an executor replaces its section, other values change it.

    Parameters
    ----------
    configuration
        As it was read.
    executor, workers, gpus_per_worker, address
        As in `ExecutionSection`; None leaves the file's value.

    Raises
    ------
    ConfigurationError
        Naming what does not go together.
    """
    values = {"executor": executor, "workers": workers, "gpus_per_worker": gpus_per_worker, "address": address}
    given = {name: value for name, value in values.items() if value is not None}
    kept = {} if executor is not None else configuration.execution.model_dump()
    try:
        section = ExecutionSection.model_validate(kept | given)
    except ValidationError as error:
        raise explain(ExecutionSection, error) from None
    return configuration.model_copy(update={"execution": section})


def load_certificate(path: Path | str, task: str = "arrays") -> CertificateSection | GraphCertificateSection:
    """Read the certificate section of a TOML file; other sections are not looked at, but for [plugins].

    Parameters
    ----------
    path
        The file.
    task
        Kind of input that it is about.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or has no valid certificate section.
    """
    path, section = expanded(path), CERTIFICATE_SECTIONS[task_of(task).proves]
    whole = read_toml(path)
    values = whole.get("certificate")
    import_plugins(whole)
    if values is None:
        raise ConfigurationError(f"{path}: there is no section [certificate].")
    try:
        return section.model_validate(values, context={"folder": path.parent})
    except ValidationError as error:
        raise explain(section, error) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, in UTF-8 or with a byte order mark.

    Raises
    ------
    ConfigurationError
        If the file is missing, too large, or not TOML.
    """
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file.")
    if path.stat().st_size > _LARGEST_FILE:
        raise ConfigurationError(f"{path}: larger than 1 MiB, which no configuration is.")
    try:
        return tomllib.loads(read_text(path))
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path}: not valid TOML: it is not in UTF-8 ({error}). Save it in that encoding."
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}.") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: it cannot be read ({error.strerror or error}).") from None
