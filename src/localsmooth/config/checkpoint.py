"""Weights from checkpoints as people have them."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file
from torch import nn

from localsmooth.config.faults import ConfigurationError

__all__ = ["load_weights"]

_INSIDE = ("state_dict", "model_state_dict", "model")  # where training programs keep the weights among other things
_SHOWN = 3
_REMEDY = "Name the function that makes the module of these weights, or save its state_dict() alone"


def load_weights(module: nn.Module, path: Path, key: str = "model.checkpoint") -> None:
    """Load weights into a module, without unpickling anything else.

    Files that hold the weights among other things (as those of Lightning), or with a common prefix before every name
    (as from DataParallel or `torch.compile`), are understood.

    Parameters
    ----------
    module
        Whose weights they are.
    path
        A file of safetensors, or of `torch.save`.
    key
        Of the configuration, that names the file.

    Raises
    ------
    ConfigurationError
        If the file does not hold weights of this module.

    Warns
    -----
    UserWarning
        If a prefix was dropped, or other entries with it.
    """
    try:
        dropped = _load(module, path)
    except _RefusedError as error:
        raise ConfigurationError(f"{key}: {path} does not hold weights of this module: {error}.") from error
    if dropped:
        warnings.warn(f"{key}: {dropped}", stacklevel=2)


class _RefusedError(Exception):
    """Why a file was refused, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy}")


def _load(module: nn.Module, path: Path) -> str:
    """Load weights; returns what is to be said about it."""
    state = _read(path)
    wanted = set(module.state_dict())
    prefix = _prefix(set(state), wanted)
    said = ""
    if prefix:
        dropped = len(state) - len(wanted)
        state = {name: state[prefix + name] for name in wanted}
        others = f", and {dropped} entries without it" if dropped else ""
        said = f'the prefix "{prefix}" of the names in {path} was dropped{others}'
    if wanted != set(state):
        raise _RefusedError(_differences(set(state), wanted), _REMEDY)
    try:
        module.load_state_dict(state)
    except Exception as error:
        raise _RefusedError(str(error), "Check that they belong together") from error
    return said


def _differences(held: set[str], wanted: set[str]) -> str:
    """What is missing and what is left, under the prefix by which most names fit."""
    ends = {name[: -len(each)] for each in wanted for name in held if name.endswith("." + each)}
    prefix = max(["", *sorted(ends)], key=lambda start: len({start + name for name in wanted} & held))
    missing = sorted(name for name in wanted if prefix + name not in held)
    further = sorted(held - {prefix + name for name in wanted})
    under = f' under "{prefix}"' if prefix else ""
    fitting = f"{len(wanted) - len(missing)} of {len(wanted)} names are in it{under}"
    return f"{fitting}; missing are {_some(missing)}; further there are {_some(further)}"


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except Exception as error:
            raise _RefusedError(f"it is no safetensors file ({error})", "Check the file") from error
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        known = re.search(r"GLOBAL (\S+)", str(error))
        kind = f" ({known[1]})" if known else ""
        raise _RefusedError(
            f"it holds pickled objects, such as a whole module{kind}, which are not read since that runs their code",
            "Save the weights alone: torch.save(module.state_dict(), path); or the entry state_dict of a file that "
            "you trust",
        ) from None
    except Exception as error:
        raise _RefusedError(f"torch cannot read it ({error})", "Check the file") from error
    for name in _INSIDE:
        if isinstance(held, Mapping) and isinstance(inner := cast("Mapping[str, Any]", held).get(name), Mapping):
            return dict(cast("Mapping[str, Any]", inner))
    if not isinstance(held, Mapping) or not all(isinstance(name, str) for name in cast("Mapping[object, Any]", held)):
        raise _RefusedError(f"it holds a {type(held).__name__}", "Save module.state_dict()")
    return dict(cast("Mapping[str, Any]", held))


def _prefix(held: set[str], wanted: set[str]) -> str:
    """The prefix under which all names that are wanted lie, empty if there is none or no need of one."""
    if wanted <= held or not wanted:
        return ""
    first = min(wanted)
    found = {name.removesuffix(first) for name in held if name.endswith("." + first)}
    # A part of a wider set of weights is none of this module.
    fitting = [p for p in sorted(found) if {n for n in held if n.startswith(p)} == {p + name for name in wanted}]
    if len(fitting) > 1:
        raise _RefusedError(f"several sets of weights in it fit: {_some(fitting)}", "Save the one that is meant alone")
    return fitting[0] if fitting else ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN]) or 'nothing'}{more}"
