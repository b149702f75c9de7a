"""Runs that take no time: a model that looks at single pixels, and configuration files for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FUNCTIONS = """
import numpy as np

def bright(batch):
    return (batch[:, 0] > 0.5).astype(np.int64)
"""

SECTIONS = {
    "model": """
kind = "callable"
function = "tiny_functions:bright"
classes = 2
output = "labels"
bounds = [0.0, 1.0]
""",
    "data": """
kind = "arrays"
images = "images.npy"
labels = "labels.npy"
""",
    "layout": """
cells = [2, 2]
""",
    "noise": """
distribution = "gaussian"
sigma_min = 0.2
sigma_max = 0.5
""",
    "sampling": """
n_candidate = 20
n_bound = 300
batch_size = 50
chunk_size = 100
""",
    "certificate": """
alpha = 0.05
budgets = [0.0, 0.1, 0.3]
""",
}


def configuration(*, name: str | None = "tiny", within: str = "", **sections: str) -> str:
    """TOML text of a run; sections that are given replace the usual ones, or come on top.

    Parameters
    ----------
    name
        Of the method.
    within
        Prefix of all sections, such as "base." in a sweep.
    sections
        Content of sections.
    """
    named = "" if name is None else f'name = "{name}"\n'
    parts = [f"[{within}{key}]\n{content.strip()}\n" for key, content in {**SECTIONS, **sections}.items()]
    return "\n".join([named, *parts])


def changed(text: str, *changes: tuple[str, str]) -> str:
    """Replace what must be there."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def write_inputs(folder: Path, images: np.ndarray, labels: np.ndarray | None = None) -> None:
    """Write the model's module, images and labels (by default what the model says)."""
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", (images[:, 0] > 0.5).astype(np.uint8) if labels is None else labels)
    (folder / "tiny_functions.py").write_text(FUNCTIONS)
