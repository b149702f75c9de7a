"""Files that take longest begin first: no worker is left with one of them while the others have nothing to do."""

from __future__ import annotations

from pathlib import Path

__all__ = ["LONGEST", "place"]

LONGEST = (
    "soundness/test_every_certificate.py",
    "pipeline/test_ending.py",
    "pipeline/test_automatic_rule.py",
    "docs/test_recipes.py",
    "pipeline/test_asked.py",
    "pipeline/test_certify.py",
    "graphs/test_graph_run.py",
    "soundness/test_every_baseline.py",
    "soundness/test_every_graph.py",
    "soundness/test_collective_adversary.py",
)


def place(path: Path) -> int:
    """Where a file stands: the longest in their order, then all others as they were collected."""
    name = path.relative_to(Path(__file__).parent).as_posix()
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)
