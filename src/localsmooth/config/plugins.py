"""The section that names modules of one's own, and the one place where they are imported."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field

from localsmooth.config.faults import ConfigurationError
from localsmooth.config.section import Section

__all__ = ["PluginsSection", "import_plugins"]


class PluginsSection(Section):
    """Modules that register noises, certificates and bounds, which the other sections may then name."""

    modules: list[str] = Field(default=[])
    """Imported before the rest of this file is read; never where a run directory is read."""


def import_plugins(values: Mapping[str, Any]) -> None:
    """Import the modules that a file names, which runs their code.

    To be called with what the user's own file holds, just read; never with what a run directory says of itself.

    Parameters
    ----------
    values
        All sections of the file.

    Raises
    ------
    ConfigurationError
        If there is no such module.
    """
    section = values.get("plugins")
    named = cast("dict[str, object]", section).get("modules", []) if isinstance(section, dict) else []
    # What is no list of names is refused by the section's own check.
    for module in cast("list[object]", named) if isinstance(named, list) else []:
        if isinstance(module, str):
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                raise ConfigurationError(f"plugins.modules: {error}. Install it, or put it beside the file.") from None
            except (ValueError, TypeError):  # an empty or a relative name
                raise ConfigurationError(f'plugins.modules: "{module}" is no name of a module.') from None
