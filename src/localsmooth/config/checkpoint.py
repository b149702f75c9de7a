"""Weights from checkpoints as people have them."""

from __future__ import annotations

import pickle
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


def load_weights(module: nn.Module, path: Path) -> None:
    """Load weights into a module, without unpickling anything else.

    Files that hold the weights among other things (as those of Lightning), or with a common prefix before every name
    (as from DataParallel or `torch.compile`), are understood.

    Parameters
    ----------
    module
        Whose weights they are.
    path
        A file of safetensors, or of `torch.save`.

    Raises
    ------
    ConfigurationError
        If the file does not hold weights of this module.

    Warns
    -----
    UserWarning
        If a prefix was dropped, or other entries with it.
    """
    state = _read(path)
    wanted = set(module.state_dict())
    prefix = _prefix(set(state), wanted, path)
    if prefix:
        dropped = len(state) - len(wanted)
        state = {name: state[prefix + name] for name in wanted}
        others = f", and {dropped} entries without it" if dropped else ""
        warnings.warn(
            f'model.checkpoint: the prefix "{prefix}" of the names in {path} was dropped{others}', stacklevel=2
        )
    missing, further = sorted(wanted - set(state)), sorted(set(state) - wanted)
    if missing or further:
        raise _refused(
            path,
            f"it holds {_some(sorted(state))}, and the module wants {_some(sorted(wanted))}",
            "Check that they belong together",
        )
    try:
        module.load_state_dict(state)
    except Exception as error:
        raise _refused(path, str(error), "Check that they belong together") from error


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except Exception as error:
            raise _refused(path, f"it is no safetensors file ({error})", "Check the file") from error
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise _refused(
            path,
            "it holds pickled objects, such as a whole module, which are not read since that runs their code",
            "Save the weights alone: torch.save(module.state_dict(), path)",
        ) from None
    except Exception as error:
        raise _refused(path, f"torch cannot read it ({error})", "Check the file") from error
    for name in _INSIDE:
        if isinstance(held, Mapping) and isinstance(inner := cast("Mapping[str, Any]", held).get(name), Mapping):
            return dict(cast("Mapping[str, Any]", inner))
    if not isinstance(held, Mapping) or not all(isinstance(name, str) for name in cast("Mapping[object, Any]", held)):
        raise _refused(path, f"it holds a {type(held).__name__}", "Save module.state_dict()")
    return dict(cast("Mapping[str, Any]", held))


def _prefix(held: set[str], wanted: set[str], path: Path) -> str:
    """The prefix under which all names that are wanted lie, empty if there is none or no need of one."""
    if wanted <= held or not wanted:
        return ""
    first = min(wanted)
    found = {name.removesuffix(first) for name in held if name.endswith("." + first)}
    # A part of a wider set of weights is none of this module.
    fitting = [p for p in sorted(found) if {n for n in held if n.startswith(p)} == {p + name for name in wanted}]
    if len(fitting) > 1:
        raise _refused(path, f"several sets of weights in it fit: {_some(fitting)}", "Save the one that is meant alone")
    return fitting[0] if fitting else ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN]) or 'nothing'}{more}"


def _refused(path: Path, problem: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"model.checkpoint: {path} does not hold weights of this module: {problem}. {remedy}.")
