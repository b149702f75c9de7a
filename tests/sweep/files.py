"""A small sweep file."""

from __future__ import annotations

from pathlib import Path

from localsmooth.sweep import Sweep, load_sweep
from tests.tiny_runs import changed, configuration

CERTIFICATE = 'alpha = 0.05\nbudgets = { stop = 2.0, count = 9 }\nbounds = ["lp", "exact"]'
METHODS = """
[[method]]
name = "localized"
grid = { "noise.sigma_min" = [0.2, 0.3], "certificate.alpha" = [0.05, 0.1] }

[[method]]
name = "isotropic"
set = { "layout.cells" = [1, 1] }
together = { "noise.sigma_min" = [0.2, 0.4], "noise.sigma_max" = [0.2, 0.4] }

[[comparison]]
title = "At equal samples per output"
ours = ["localized"]
baselines = ["isotropic"]
equal = "samples per output"
"""
SWEEP = (
    'title = "Tiny <sweep>"\nquality = "accuracy"\ntarget = "ratio"\n'
    + configuration(name=None, within="base.", certificate=CERTIFICATE)
    + METHODS
)
BASELINES = """
[[method]]
name = "segcertify"
set.layout.cells = [1, 1]

[method.set.certificate]
alpha = 0.05
budgets = [0.0, 1.0]
baseline = { method = "segcertify" }

[[method]]
name = "centre"
set.layout.cells = [1, 1]

[method.set.certificate]
alpha = 0.05
budgets = [0.0, 1.0]
baseline = { method = "centre-smoothing" }
"""
"""Methods that go below `METHODS`."""
ONE_EACH = (("[0.2, 0.3]", "[0.2]"), ("[0.05, 0.1]", "[0.05]"), ("[0.2, 0.4]", "[0.4]"))
"""Changes that leave one point for each method."""


def sweep_of(folder: Path, *changes: tuple[str, str], further: str = "") -> Sweep:
    """Write the sweep file with some changes, and read it."""
    (folder / "sweep.toml").write_text(changed(SWEEP, *changes) + further)
    return load_sweep(folder / "sweep.toml")
