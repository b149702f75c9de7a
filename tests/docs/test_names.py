"""What the pages name is there: attributes, files, links, commands and their options, and the walk of a certificate."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
import typer.main

from localsmooth.cli.app import app
from tests.docs.pages import PAGES, ROOT, page
from tests.seeding import seeded

PACKAGE = ROOT / "src" / "localsmooth"
STALE = (
    "certify_graph",
    "recertify_graph",
    "run_certification",
    "CertificationSettings",
    "COLLECTIVE_BOUNDS",
)
SHORT = {"ls": "localsmooth", "lg": "localsmooth.graphs", "graphs": "localsmooth.graphs"}
# Names of other packages, and of classes that pages make or that stand for a reader's own.
FOREIGN = {"AutoModelForSemanticSegmentation", "PyTorch", "DeepLabV3", "SciPy"}


def code(text: str) -> str:
    """Only what stands in backticks, fences or indented blocks."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^ {4}(?! *[*│▼]).*$", rest, flags=re.MULTILINE)
    return "\n".join([*fenced, *re.findall(r"`([^`\n]+)`", rest), *indented])


def resolve(name: str) -> Any:
    """The object of a dotted name, importing modules on the way."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for position, part in enumerate(rest):
        try:
            found = getattr(found, part)
        except AttributeError:
            if not isinstance(found, ModuleType):
                raise
            found = importlib.import_module(".".join([first, *rest[: position + 1]]))
    return found


def names(text: str) -> Iterator[str]:
    """Dotted names of the package, abbreviations written out."""
    for short, dotted in re.findall(r"(?<![\w./])(ls|lg|graphs|localsmooth)((?:\.[A-Za-z_]\w*)+)", code(text)):
        if not dotted.endswith((".py", ".toml", ".pyi")):
            yield SHORT.get(short, short) + dotted


@pytest.mark.parametrize("name", PAGES)
def test_dotted_names_are_there(name: str) -> None:
    missing: list[str] = []
    with seeded(0):
        for dotted in sorted(set(names(page(name)))):
            try:
                resolve(dotted)
            except (AttributeError, ImportError) as error:
                missing.append(f"{dotted}: {error}")
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_called_as_it_was(name: str) -> None:
    text = page(name)
    assert not [word for word in STALE if word in text]


@cache
def source() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", PAGES)
def test_classes_are_there(name: str) -> None:
    text = page(name)
    made = set(re.findall(r"^class (\w+)", text, flags=re.MULTILINE)) | FOREIGN
    quoted = "\n".join(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)))
    words = set(re.findall(r"(?<![\w./\"-])[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", quoted)) - made
    assert not [word for word in sorted(words) if not re.search(rf"\b{word}\b", source())]


@pytest.mark.parametrize("name", [*PAGES, "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    missing: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page(name)):
        if re.match(r"\w+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / unquote(path) if path else ROOT / name
        if not file.exists():
            missing.append(target)
        elif anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            if anchor not in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}:
                missing.append(target)
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_files_of_the_repository_are_there(name: str) -> None:
    """Paths with a folder, as seen from the package, the repository or the page."""
    places = (PACKAGE, ROOT, (ROOT / name).parent, PACKAGE / "collective")
    written = set(re.findall(r"(?<![\w./:-])((?:[\w-]+/)+[\w.-]+\.(?:pyi?|toml|html\.j2))", code(page(name))))
    assert not sorted(path for path in written if not any((place / path).is_file() for place in places))


COMMANDS: Any = typer.main.get_command(app)


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_their_options_are_there(name: str) -> None:
    unknown: list[str] = []
    for line in code(page(name)).splitlines():
        found = re.match(r"\s*localsmooth ([a-z][\w-]*)(.*)", line)
        if found is None:
            continue
        command = COMMANDS.commands.get(found[1])
        if command is None:
            unknown.append(line)
            continue
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = re.findall(r"(?<=\s)--[\w-]+", found[2].partition("#")[0])
        unknown += [f"{line}: {option}" for option in given if option not in {*known, "--help"}]
    assert not unknown


def walk() -> dict[str, set[str]]:
    """Files of the table in docs/architecture.md, by the walk that enters them."""
    files: dict[str, set[str]] = {"image": set(), "graph": set()}
    text = page("docs/architecture.md")
    for row in text[text.index("| room |") : text.index("## Where things live")].splitlines()[2:]:
        if not row:
            continue
        room, both, image, graph = (cell.strip() for cell in row.strip("|").split("|"))
        folder = room.strip("`").removeprefix("./")
        for cell, walks in ((both, ("image", "graph")), (image, ("image",)), (graph, ("graph",))):
            for file in re.findall(r"`([\w.]+\.py)`", cell):
                for name in walks:
                    files[name].add(folder + file)
    return files


def test_the_walk_is_the_one_that_is_traced() -> None:
    script = ROOT / "scripts" / "trace_walk.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, encoding="utf-8", env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    traced: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        title = re.match(r"(\w+): \d+ files entered", line)
        if title:
            current = traced.setdefault(title[1], set())
        else:
            current.add(Path(line.split()[1]).as_posix())
    told = walk()
    assert {name: sorted(told[name] ^ traced[name]) for name in traced} == {"image": [], "graph": []}
    numbers = re.search(
        r"\*\*(\d+) for the image, (\d+) for the graph\*\*, (\d+) of them", page("docs/architecture.md")
    )
    assert numbers is not None
    both = traced["image"] & traced["graph"]
    assert [int(number) for number in numbers.groups()] == [len(traced["image"]), len(traced["graph"]), len(both)]


def test_rooms_are_as_large_as_is_told() -> None:
    """Within a tenth, or 60 lines: numbers of lines change every day."""
    told = re.findall(
        r"^\| (?:`([\w./]+)/`|(all)) \|.*\| ([\d ]+) in (\d+) \|$", page("docs/architecture.md"), re.MULTILINE
    )
    lines: dict[str, int] = {}
    for file in PACKAGE.rglob("*.py"):
        count = file.read_text(encoding="utf-8").count("\n")
        for room in (file.relative_to(PACKAGE).parts[0] if file.parent != PACKAGE else ".", "all"):
            lines[room] = lines.get(room, 0) + count
    sizes = {room or every: int(number.replace(" ", "")) for room, every, number, _ in told}
    assert sizes.keys() == lines.keys()
    wrong = {
        room: (sizes[room], count) for room, count in lines.items() if abs(sizes[room] - count) > max(60, count / 10)
    }
    assert not wrong, "docs/architecture.md, How large it is: (told, counted)"
