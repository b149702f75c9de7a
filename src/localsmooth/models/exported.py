"""Programs made by torch.export, which keep the mode, and often the shapes, in which they were exported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx, nn

from localsmooth.errors import InvalidInputError

__all__ = ["evaluated", "holds_exported", "input_shape", "is_exported", "require_evaluation_mode"]

_MODES = ("training", "train")  # arguments that say whether an operation trains
_SHARES = ("dropout_p",)  # and how much of what it drops is dropped, whatever the mode
_MIXING = "batch_norm"  # operations that look at the whole batch while they train


def is_exported(module: nn.Module) -> bool:
    """Whether the mode of a module is baked in: its flag says nothing, and `eval()` raises."""
    return isinstance(module, fx.GraphModule) and "eval" in module.__dict__


def holds_exported(module: nn.Module) -> bool:
    """Whether a module, or a part of it, is such a program: a copy would forget that its mode is baked in."""
    return any(is_exported(part) for part in module.modules())


def evaluated(module: nn.Module) -> nn.Module:
    """Bring a module into evaluation mode; programs, whose mode is baked in, stay as they are.

    Whether such a program is random, or mixes the samples of a batch, is what its operations and trial calls show.
    """
    if not holds_exported(module):
        return module.eval()
    if not is_exported(module):
        module.training = False
        for part in module.children():
            evaluated(part)
    return module


def input_shape(module: nn.Module) -> tuple[int | None, ...] | None:
    """Shape of the one input of an exported program, None where an axis is free; None if it does not say.

    Parameters
    ----------
    module
        The module of a program, or any other.
    """
    if not (is_exported(module) and isinstance(module, fx.GraphModule)):
        return None
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    value: Any = inputs[0].meta.get("val") if len(inputs) == 1 else None
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(size if type(size) is int else None for size in shape)


def require_evaluation_mode(module: nn.Module, field: str) -> None:
    """Refuse a module of which any part is in training mode, or a program that was exported so or draws at random.

    Parameters
    ----------
    module
        The module.
    field
        Name of the argument that it is.

    Raises
    ------
    InvalidInputError
        Naming the part.
    """
    for name, part in _own_parts(module, ""):  # anew, since parts may have been replaced
        if is_exported(part):
            _require_fixed_operations(part, field)
        elif getattr(part, "training", False):  # frozen modules have forgotten it, in evaluation mode
            where = f"its part {name} ({type(part).__name__})" if name else "it"
            problem = "is in training mode, where dropout is random and batch norm mixes the samples of a batch"
            raise InvalidInputError(field, f"{where} {problem}", "Call module.eval() first")


def _own_parts(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """A module and its parts, but for those of programs, whose flags say nothing."""
    yield name, module
    if not is_exported(module):
        for own, part in module.named_children():
            yield from _own_parts(part, f"{name}.{own}" if name else own)


def _require_fixed_operations(program: nn.Module, field: str) -> None:
    """Refuse operations that train or are random, those of branches and of blocks with their own precision too."""
    graphs = (part.graph for part in program.modules() if isinstance(part, fx.GraphModule))
    for node in (node for graph in graphs for node in graph.nodes):
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            continue
        said = {
            argument.name: node.kwargs.get(
                argument.name, node.args[place] if place < len(node.args) else argument.default_value
            )
            for place, argument in enumerate(schema.arguments)
        }
        drawing = torch.Tag.nondeterministic_seeded in node.target.tags
        mode = next((said[name] for name in _MODES if name in said), None)
        if (drawing or _MIXING in schema.name) and mode is True:
            raise InvalidInputError(
                field,
                f"its operation {node.name} is in training mode, where dropout is random and batch norm mixes the "
                "samples of a batch",
                "Call module.eval() before torch.export.export",
            )
        if drawing and mode is not False and any(said.get(name, True) for name in _SHARES):
            raise InvalidInputError(
                field,
                f"its operation {node.name} ({schema.name}) draws at random, and the noise is added outside",
                "Leave it out of what is exported, or switch it off before torch.export.export",
            )
