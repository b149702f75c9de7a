"""An extension of griffe: parameters that a docstring describes together keep types and defaults of their own."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["ParametersApart", "apart"]

TOGETHER = re.compile(r"\*{0,2}\w+(, \*{0,2}\w+)+")


class ParametersApart(Extension):
    """Griffe gives all names of `a, b` the type and the default of the first."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Write the description below each name."""
        if obj.docstring is not None:
            obj.docstring.value = apart(obj.docstring.value)


def apart(text: str) -> str:
    """Describe `a, b` as `a` and, in the same words, as `b`."""
    lines, made = text.splitlines(), list[str]()
    while lines:
        line = lines.pop(0)
        described = list[str]()
        while lines and (lines[0].startswith("    ") or not lines[0].strip()):
            described.append(lines.pop(0))
        names = line.split(", ") if TOGETHER.fullmatch(line) and described and described[0] else [line]
        for name in names:
            made += [name, *described]
    return "\n".join(made)
