"""Programs made by torch.export, which keep the mode, and often the shapes, in which they were exported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import fx, nn

from localsmooth.errors import InvalidInputError

__all__ = ["evaluated", "input_shape", "is_exported", "require_evaluation_mode"]

# Operations by the place of the argument that says whether they train, and its name.
_TRAINING: Mapping[str, tuple[int, str]] = {
    "aten::batch_norm": (5, "training"),
    "aten::_native_batch_norm_legit": (5, "training"),
    "aten::native_batch_norm": (5, "training"),
    "aten::dropout": (2, "train"),
    "aten::native_dropout": (2, "train"),
    "aten::feature_dropout": (2, "train"),
    "aten::alpha_dropout": (2, "train"),
}


def is_exported(module: nn.Module) -> bool:
    """Whether the mode of a module is baked in: its flag says nothing, and `eval()` raises."""
    return isinstance(module, fx.GraphModule) and "eval" in module.__dict__


def evaluated(module: nn.Module) -> nn.Module:
    """Bring a module into evaluation mode; one whose mode is baked in stays as it is.

    Whether such a program is random, or mixes the samples of a batch, is what its operations and trial calls show.
    """
    return module if is_exported(module) else module.eval()


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
    """Refuse a module of which any part is in training mode, or a program that was exported so.

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
    problem = "is in training mode, where dropout is random and batch norm mixes the samples of a batch"
    if is_exported(module) and isinstance(module, fx.GraphModule):
        for node in module.graph.nodes:
            name = str(getattr(getattr(node.target, "_schema", None), "name", ""))
            place, keyword = _TRAINING.get(name, (0, ""))
            said = node.kwargs.get(keyword, node.args[place] if keyword and len(node.args) > place else False)
            if said is True:
                remedy = "Call module.eval() before torch.export.export"
                raise InvalidInputError(field, f"its operation {node.name} {problem}", remedy)
        return
    for name, part in module.named_modules():  # anew, since parts may have been replaced
        if getattr(part, "training", False):  # frozen modules have forgotten it, in evaluation mode
            where = f"its part {name} ({type(part).__name__})" if name else "it"
            raise InvalidInputError(field, f"{where} {problem}", "Call module.eval() first")
