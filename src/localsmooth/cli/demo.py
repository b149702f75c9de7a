"""`localsmooth demo`: the embedded default, localized and isotropic side by side."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import xarray as xr

from localsmooth.bounds import Bonferroni
from localsmooth.cli.certify import run_configuration
from localsmooth.cli.summary import print_summary
from localsmooth.cli.telling import Teller
from localsmooth.config import parse_configuration
from localsmooth.disk import make_folder
from localsmooth.pipeline import recertify
from localsmooth.report import write_report
from localsmooth.terminal import terminal

__all__ = ["demo", "demo_configurations"]

_APART = "localized (every output bounded)"
_ISOTROPIC = 0.35  # where the mIoU is that of the localized noise


def demo_configurations() -> dict[str, dict[str, Any]]:
    """The demonstration's two configurations: localized noise, and isotropic noise of about the same quality.

    Both have as many passes of the same network over a scene.
    """
    localized = tomllib.loads(resources.files("localsmooth.scenes").joinpath("demo.toml").read_text(encoding="utf-8"))
    noise = dict(localized["noise"], sigma_min=_ISOTROPIC, sigma_max=_ISOTROPIC)
    isotropic = dict(localized, name="isotropic", layout={"cells": [1, 1]}, noise=noise)
    return {"localized": localized, "isotropic": isotropic}


def demo(out: Path) -> None:
    """Certify a segmentation of handwritten digits, with localized and with isotropic noise, and show both."""
    told = Teller()
    make_folder(out)
    results: dict[str, xr.Dataset] = {}
    for name, values in demo_configurations().items():
        told.say(f"Certifying scenes of handwritten digits with {name} noise")
        results[name] = run_configuration(parse_configuration(values), out / name, told)
    told.say("Certifying the same votes output by output, for comparison")
    apart = recertify(out / "localized", simultaneous=Bonferroni(), bounds=["naive", "lp", "envelope"], name=_APART)
    results[_APART] = apart
    page = out / "report.html"
    write_report(results, page, title="Scenes of handwritten digits")
    print_summary(results, terminal(stderr=False))
    told.say(f"Report: {page}")
