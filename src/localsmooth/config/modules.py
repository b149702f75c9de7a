"""Functions and modules of the user's own, by name; importing them runs their code."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from localsmooth.config.checkpoint import load_weights
from localsmooth.config.faults import ConfigurationError
from localsmooth.models import evaluated
from localsmooth.seeds import torch_seeded

__all__ = ["build_module", "import_attribute"]


def import_attribute(key: str, reference: str) -> Callable[..., Any]:
    """Import `package.module:attribute`, which runs the module's code: models are code.

    Raises
    ------
    ConfigurationError
        Naming `key` if there is no such module or attribute.
    """
    module_name, _, attribute = reference.partition(":")
    if not (module_name and attribute):
        raise ConfigurationError(f'{key}: "{reference}" does not have the form package.module:function.')
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{key}: {error}. Install it, or run where Python can import it.") from None
    except AttributeError:
        raise ConfigurationError(f'{key}: module {module_name} has no "{attribute}".') from None
    if not callable(found):
        raise ConfigurationError(f"{key}: {reference} cannot be called.")
    return found


@torch_seeded(0)  # weights that the user's code draws are the same every time
def build_module(factory: str, checkpoint: Path | None, section: str = "model") -> nn.Module:
    """Make a module by a function of the user's own, in evaluation mode.

    Parameters
    ----------
    factory
        `package.module:function`, or a module itself.
    checkpoint
        Weights to load into it.
    section
        Of the configuration, that names both.

    Raises
    ------
    ConfigurationError
        If there is no such function, or it makes something else.
    """
    module = import_attribute(f"{section}.factory", factory)
    if not isinstance(module, nn.Module):
        module = module()
    if not isinstance(module, nn.Module):
        raise ConfigurationError(f"{section}.factory: {factory} returned {type(module).__name__}, no torch module.")
    if checkpoint is not None:
        load_weights(module, checkpoint, f"{section}.checkpoint")
    return evaluated(module)
