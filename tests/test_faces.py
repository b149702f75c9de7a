"""Rooms know each other by their faces: what another room needs of one is named in its `__init__`."""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import localsmooth
from tests.seeding import seeded

PACKAGE = Path(localsmooth.__file__).parent
ROOT = Path(__file__).parents[1]
ROOMS = {face.parent.name for face in PACKAGE.glob("*/__init__.py")}
KINDS = {f"tasks.{face.parent.name}" for face in PACKAGE.glob("tasks/*/__init__.py")}
"""Each kind of input is a room of its own, in the room of all kinds."""

BEHIND_THE_FACE: dict[tuple[str, str], str] = {}
"""Modules that some file may import past a room's face, and why, such as a cycle of imports."""


def _room(parts: list[str]) -> str | None:
    """The room of a module, from the parts of its name behind the package's."""
    if ".".join(parts[:2]) in KINDS:
        return ".".join(parts[:2])
    return parts[0] if parts and parts[0] in ROOMS else None


def _foreign(path: Path) -> set[tuple[str, str]]:
    """Modules of other rooms that a file imports, each as (file, module)."""
    file = path.relative_to(PACKAGE)
    own = _room([*file.parts[:-1], file.stem])
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for parts in (module.split(".") for module in modules):
            room = _room(parts[1:]) if parts[0] == "localsmooth" else None
            inside = own is not None and (own == room or own.startswith(f"{room}."))
            if room is not None and not inside and ".".join(parts[1:]) != room:
                found.add((file.as_posix(), ".".join(parts)))
    return found


def test_rooms_import_each_other_through_their_faces() -> None:
    behind = set[tuple[str, str]]().union(*map(_foreign, PACKAGE.rglob("*.py")))
    surprising = sorted(behind - BEHIND_THE_FACE.keys())
    assert not surprising, "import from localsmooth.<room>, and name it there:\n" + "\n".join(map(" ".join, surprising))
    assert behind >= BEHIND_THE_FACE.keys(), "an exception is needed no more"


def test_no_room_shows_a_function_by_the_name_of_one_of_its_modules() -> None:
    """Which of the two `from localsmooth.room import name` gave would depend on what was imported before."""
    twins: list[str] = []
    for folder in sorted(face.parent for face in PACKAGE.rglob("__init__.py")):
        name = ".".join(["localsmooth", *folder.relative_to(PACKAGE).parts])
        with seeded(0):  # packages that are imported on the way may seed what they like
            room = importlib.import_module(name)
        both = [file.stem for file in folder.glob("*.py") if file.stem in getattr(room, "__all__", ())]
        twins += [f"{name}.{each}" for each in both if not isinstance(getattr(room, each), ModuleType)]
    assert twins == ["localsmooth.results.validate"]


PROGRAMS = [
    path for folder in ("benchmarks", "examples", "experiments", "scripts") for path in (ROOT / folder).rglob("*.py")
]


def _missing(path: Path) -> set[str]:
    """What a program imports of the package and is not there."""
    missing: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE.name:
            name = node.module or ""
            module = importlib.import_module(name) if find_spec(name) else None
            missing |= {
                f"{path.relative_to(ROOT)}:{node.lineno} {name} {alias.name}"
                for alias in node.names
                if not (
                    hasattr(module, alias.name) or (hasattr(module, "__path__") and find_spec(f"{name}.{alias.name}"))
                )
            }
    return missing


def test_programs_beside_the_package_import_what_is_there() -> None:
    assert PROGRAMS
    missing = set[str]().union(*map(_missing, PROGRAMS))
    assert not missing, "\n".join(sorted(missing))
