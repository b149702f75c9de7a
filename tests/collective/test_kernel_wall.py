"""What a count's truth rests on knows nothing of what proposes it."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import localsmooth

PACKAGE = Path(localsmooth.__file__).parent
KERNEL = PACKAGE / "collective" / "kernel"
GUARANTEES = Path(__file__).parents[2] / "docs" / "guarantees.md"
ALLOWED = {"numpy", "jaxtyping"}


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            found.add(node.module)
    return found


def _file(module: str) -> Path:
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"


def _reached() -> tuple[set[Path], set[str]]:
    """Files of the package that the kernel imports, its own included, and whatever else it imports."""
    todo, seen, foreign = sorted(KERNEL.glob("*.py")), set[Path](), set[str]()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in _imported(path):
            if module.split(".")[0] == "localsmooth":
                todo.append(_file(module))
            else:
                foreign.add(module.split(".")[0])
    return seen, foreign


def _code_lines(path: Path) -> int:
    """Lines that hold more than comments, documentation and blanks."""
    source = path.read_text(encoding="utf-8")
    documentation = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    passive = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in passive
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - documentation)


def test_the_kernel_reaches_nothing_that_proposes():
    """Walk the imports of imports: arrays and the standard library, and no solver."""
    files, foreign = _reached()
    assert foreign - set(sys.stdlib_module_names) == ALLOWED
    outside = {str(path.relative_to(PACKAGE)) for path in files if path.parent != KERNEL}
    assert outside == {"blocks.py", "errors.py"}


def test_verifying_loads_no_solver():
    code = (
        "import sys; import localsmooth.collective.kernel.verify; "
        "print([name for name in sys.modules if name.split('.')[0] in ('highspy', 'scipy', 'torch') "
        "or name.startswith('localsmooth.collective.search')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_documentation_says_how_much_is_to_be_read():
    """Rounded to a hundred lines: a line more in an error's text is no news."""
    files, _ = _reached()
    said = re.search(r"some (\d+)00 lines of code in (\d+) files", GUARANTEES.read_text(encoding="utf-8"))
    assert said is not None
    assert (int(said[1]), int(said[2])) == (round(sum(map(_code_lines, files)) / 100), len(files))
