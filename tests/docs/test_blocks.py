"""Every block of the pages is tried: code compiles and runs, files are configurations, command lines are understood."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer.main
from torch import nn

from localsmooth.cli.app import app
from localsmooth.cli.recertify import parse_budgets
from localsmooth.collective import as_bounds
from localsmooth.config import parse_configuration
from localsmooth.execution import Until
from localsmooth.sweep import Sweep, expand
from localsmooth.tasks import as_targets
from tests.docs.pages import PAGES, ROOT, blocks, page, run
from tests.seeding import seeded
from tests.tiny_runs import changed

RUN_IN = {
    "README.md": "tests/docs/test_first_page.py",
    "docs/tutorial.md": "tests/docs/test_tutorial.py",
    "docs/recipes.md": "tests/docs/test_recipes.py",
    "docs/solving.md": "tests/collective/test_manual.py",
    "docs/extending.md": "tests/extension/test_manual.py",
    "docs/comparing.md": "tests/docs/test_blocks.py",
}
"""Where the code of a page runs."""
FENCED = {"", "python", "toml", "text", "json", "bash"}
"""Languages of blocks. Each is looked at below, but for text: the tutorial's test compares it with what is printed."""


@pytest.mark.parametrize("name", PAGES)
def test_code_compiles_and_runs_somewhere(name: str) -> None:
    written = blocks(page(name), "python")
    for code in written:
        compile(code, name, "exec")
    if written:
        assert name in RUN_IN, "a page with code needs a test that runs it"
        assert name in (ROOT / RUN_IN[name]).read_text(encoding="utf-8") or Path(name).name in (
            ROOT / RUN_IN[name]
        ).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_languages_of_blocks_are_known(name: str) -> None:
    marks = re.findall(r"^ *```(.*)$", page(name), flags=re.MULTILINE)
    assert set(marks[::2]) <= FENCED - {""}, "a block of another language, or of none, is tried nowhere"
    assert set(marks[1::2]) <= {""}


def test_training_and_tuning_of_the_page_run() -> None:
    training, tuning = blocks(page("docs/comparing.md"), "python")
    with seeded(0):
        network = nn.Conv2d(1, 2, 1)
    images, labels = torch.full((3, 1, 6, 10), 0.9), torch.ones(3, 6, 10, dtype=torch.long)
    names: dict[str, Any] = {
        "network": network,
        "loader": [(images, labels)] * 2,
        "cross_entropy": nn.functional.cross_entropy,
    }
    with seeded(0):
        run(training, "docs/comparing.md", names)
    names["loss"].backward()
    assert names["batch"].inputs.shape == images.shape
    assert network.weight.grad is not None

    def bright(batch: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return (batch[:, 0] > 0.5).astype(np.int64)

    image = (np.where(np.arange(8) < 4, 0.1, 0.9) * np.ones((1, 4, 1))).astype(np.float32)
    label = (image[0] > 0.5).astype(np.int64)
    names |= {
        "model": names["ls"].CallableModel(
            bright, bounds=(0, 1), classes=2, name="bright", output=names["ls"].OutputKind.LABELS
        )
    }
    names |= {
        "calibration_images": [image],
        "calibration_labels": [label],
        "images": [1 - image],
        "labels": [1 - label],
    }
    small = changed(
        tuning,
        ("work=20_000", "work=400"),
        ('budgets="auto"', "budgets=[0.0, 0.2]"),
        ("[0.2, 0.3, 0.45], cells=[(2, 2), (3, 4)], ratios=[1.5, 2.5]", "[0.2, 0.3], cells=[(1, 2)], ratios=[1.5]"),
        ('floor={"mean_iou": 0.9}', 'floor={"mean_iou": 0.5}'),
    )
    with seeded(0):
        run(small, "docs/comparing.md", names)
    assert (names["result"]["certified"].sel(budget=0) > 0).all()


FIRST = tomllib.loads(blocks(page("README.md"), "toml")[0])
"""The file of the first page, to which the sections of other pages belong."""
BESIDE = (
    "segmenter.onnx",
    "segmenter.pt2",
    "denoiser.safetensors",
    "graph.npz",
    "mean.safetensors",
    "sentences.txt",
    "others.txt",
    "tags.txt",
    "other_tags.txt",
)
FOLDERS = ("pictures", "masks", "segformer", "tagger")
FILES = [
    pytest.param(name, text, id=f"{name}-{number}")
    for name in PAGES
    for number, text in enumerate(blocks(page(name), "toml"))
    if "[plugins]" not in text  # the page about extensions certifies with its own
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_files_are_configurations(name: str, text: str, tmp_path: Path) -> None:
    for file in BESIDE:
        (tmp_path / file).touch()
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
    values = tomllib.loads(text)
    if "method" in values:
        base = FIRST | values.get("base", {})
        assert points(expand(values | {"title": "a sweep", "base": base}, tmp_path)) == {
            method["name"] for method in values["method"]
        }
        return
    whole = values if {"graph", "edges"} & values.keys() else FIRST | values
    made = parse_configuration(whole, tmp_path)
    for section in values:
        assert getattr(made, section) is not None


def points(sweep: Sweep) -> set[str]:
    return {point.method for point in sweep.points}


def test_sections_that_are_wrong_are_found(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sigma_mni"):
        parse_configuration(FIRST | {"noise": FIRST["noise"] | {"sigma_mni": 1.0}}, tmp_path)


def command_lines(text: str) -> Iterator[str]:
    """Lines to type: indented, or in blocks of a shell."""
    rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    shown = [*re.findall(r"^ {4}(\S.*)$", rest, flags=re.MULTILINE), *"\n".join(blocks(text, "bash")).splitlines()]
    programs = r"(?:[A-Z_]+=\S+ )*(localsmooth|python|make|pip|srun .*localsmooth) "
    yield from (line for line in shown if re.match(programs, line) and "│" not in line)


LINES = [(name, line) for name in PAGES for line in command_lines(page(name))]
COMMANDS: Any = typer.main.get_command(app)
READ: dict[str, Callable[[Any], object]] = {
    "budgets": parse_budgets,
    "additions": parse_budgets,
    "deletions": parse_budgets,
    "time": Until.parse,
    "until_settled": lambda share: Until.parse(None, settled=share),
    "bound": lambda bounds: as_bounds([bounds] if isinstance(bounds, str) else bounds, "--bound"),
    "target": lambda targets: as_targets([targets] if isinstance(targets, str) else targets, "--target"),
}
"""How commands read values of which click only knows that they are text."""


def words(line: str) -> list[str]:
    return [word for word in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", word)]


@pytest.mark.parametrize("line", [line for _, line in LINES if "localsmooth " in line and "pip" not in line])
def test_command_lines_are_understood(line: str) -> None:
    given = words(line)
    understood(given[given.index("localsmooth") + 1 :])


def understood(given: list[str]) -> None:
    """Let click read a command line, and the commands' own readers the values in it; nothing runs."""
    name, command, rest = COMMANDS.resolve_command(COMMANDS.context_class(COMMANDS), given)
    context = command.make_context(name, rest)
    for key, value in context.params.items():
        if key in READ and value:
            READ[key](value)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("certifi run.toml --out runs/mine", "certifi"),
        ("certify run.toml", "out"),
        ("certify run.toml --output runs/mine", "--output"),
        ("certify run.toml --out runs/mine --workers many", "many|integer"),
        ("certify run.toml --out runs/mine --time soon", "soon"),
        ("recertify runs/mine --budgets 0:2", "0:2"),
        ("solve problem.json --bound best", "best"),
    ],
)
def test_wrong_command_lines_are_found(line: str, fault: str) -> None:
    with pytest.raises(Exception, match=fault):
        understood(line.split())


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, line in LINES if "python " in line])
def test_scripts_take_the_options_of_command_lines(name: str, line: str) -> None:
    given = words(line)
    script = given[given.index("python") + 1]
    source = (ROOT / script).read_text(encoding="utf-8")
    for module in re.findall(r"^from ([\w.]+) import", source, flags=re.MULTILINE):  # options that scripts share
        beside = (ROOT / script).parent / f"{module}.py"
        source += beside.read_text(encoding="utf-8") if beside.is_file() else ""
    assert not [word for word in given if word.startswith("--") and f'"{word}"' not in source], f"{name}: {line}"


def test_targets_of_make_and_extras_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    text = "\n".join(page(name) for name in PAGES)
    for target in set(re.findall(r"(?:^    |`)make ([\w-]+)", text, flags=re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    named = {extra for group in re.findall(r"\"?'?\.\[([\w,]+)\]", text) for extra in group.split(",")}
    assert named <= extras.keys()
    assert named


@pytest.mark.parametrize("name", [name for name in PAGES if blocks(page(name), "bash")])
def test_shell_scripts_can_be_read(name: str) -> None:
    for script in blocks(page(name), "bash"):
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_no_line_begins_a_list_by_accident(name: str) -> None:
    """A number with a full stop, a plus or a minus at the beginning of a line makes an item of a sentence."""
    lines, numbers, wrong = page(name).splitlines(), dict[int, int](), list[str]()
    for before, line in zip(["", *lines], lines, strict=False):
        found = re.match(r"( *)(\d+(?=\.)|[+-])\.? ", line)
        if found is None:
            continue
        column, mark = len(found[1]), found[2]
        if before.strip() and not (mark.isdigit() and int(mark) == numbers.get(column, -1) + 1):
            wrong.append(line)
        if mark.isdigit():
            numbers[column] = int(mark)
    assert not wrong
