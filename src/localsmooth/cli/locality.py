"""`localsmooth locality`: measure how local a model is."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from rich.progress import Progress

from localsmooth.config import (
    Configuration,
    ConfigurationError,
    GridLayoutSection,
    LocalitySection,
    NoiseSection,
    load_configuration,
)
from localsmooth.datasets import ItemSet
from localsmooth.disk import make_folder, write_atomically
from localsmooth.execution import Pace
from localsmooth.layout import Grid, Layout
from localsmooth.locality import Measurement, largest_levels, measure_locality, write_measurement
from localsmooth.models import Model, check_model, warn_of_scale
from localsmooth.report import Table, levels_figure, locality_figure, render_locality, save_figure
from localsmooth.terminal import terminal

__all__ = ["locality", "measure_file"]

_SHARES = (0.001, 0.01, 0.1)


def locality(config: Path, out: Path) -> None:
    """Measure how much noise in one cell disturbs the predictions of another."""
    console = terminal()
    sys.path.insert(0, str(config.resolve().parent))
    configuration = load_configuration(config)
    if not isinstance(configuration, Configuration):
        raise ConfigurationError(f"{config}:\nlocality is measured for arrays only.")
    items = configuration.calibration_items()
    measured, rule = measure_file(config, configuration, configuration.build_model(), items)
    make_folder(out)
    symbol = configuration.noise.symbol
    matrices = {f"{share:.1%} disturbed": np.asarray(largest_levels(measured, share)) for share in _SHARES}
    matrices["distance rule of the file"] = rule
    grid = configuration.layout
    assert isinstance(grid, GridLayoutSection)
    table = _table(matrices, symbol, Grid(tuple(grid.cells)).count)
    notes = [
        f"Measured on {measured.items} calibration items with {measured.samples} samples of each at each level and "
        "cell: the share of votes that are the clean prediction.",
        "localsmooth tune tries levels at which every cell disturbs every other equally little, beside others.",
    ]
    page = render_locality("Locality", notes, measured.levels, measured.agreement, matrices, table, symbol)
    write_atomically(out / "locality.html", page.encode("utf-8", errors="replace"))
    write_measurement(out / "measurement.npz", measured)
    for suffix in ("svg", "pdf"):
        save_figure(locality_figure(measured.levels, measured.agreement, symbol), out / f"agreement.{suffix}")
        save_figure(levels_figure(matrices, symbol), out / f"levels.{suffix}")
    for row in table.rows:
        line = "; ".join(f"{heading} {cell}" for heading, cell in zip(table.headings[1:], row[1:], strict=True))
        console.print(f"{row[0]}: {line}")
    console.print(f"Report: {out / 'locality.html'}")
    console.print(f"Choose levels: localsmooth tune {config} --locality {out / 'measurement.npz'}")


def measure_file(
    config: Path, configuration: Configuration, model: Model, items: ItemSet
) -> tuple[Measurement, np.ndarray]:
    """Measure what a file asks for, and return its distance rule's levels besides.

    Parameters
    ----------
    config
        The file, for errors.
    configuration
        As it was read.
    model, items
        The model, and calibration items.

    Raises
    ------
    ConfigurationError
        If its layout is no grid, or its noise has two levels.
    """
    section = LocalitySection() if configuration.locality is None else configuration.locality
    if isinstance(configuration.noise.levels()[0], tuple):
        raise ConfigurationError(f"{config}:\nnoise.distribution: noise of two levels per cell has no single locality.")
    grid = configuration.layout
    if not isinstance(grid, GridLayoutSection):
        raise ConfigurationError(
            f'{config}:\nlayout.kind: locality is measured on a grid of cells. Write kind = "grid".'
        )
    console, images = terminal(), [item.image for item in items]
    warn_of_scale(model, images, [item.name for item in items])
    layouts = _layouts(grid, configuration.noise, model, images)
    lowest, highest = (float(level) for level in (layouts[0].levels.min(), layouts[0].levels.max()))
    tried = np.geomspace(lowest, highest, section.count) if section.levels is None else np.unique(section.levels)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        total = len(images) * len(tried) * layouts[0].inputs.count * section.samples
        task = bar.add_task("measuring", total=total)
        pace = Pace(60.0)
        pace.start(total, 0)

        def advance(size: int) -> None:
            bar.advance(task, size)
            if pace.advance(size) and not console.is_terminal:
                console.print(f"Measuring: {pace.done:,} of {pace.total:,} samples, {pace.rate:,.1f} samples/s")

        measured = measure_locality(
            model,
            images,
            layouts,
            configuration.noise.build(),
            tried.tolist(),
            samples=section.samples,
            seed=section.seed,
            advance=advance,
        )
    return measured, layouts[0].levels


def _layouts(grid: GridLayoutSection, noise: NoiseSection, model: Model, images: list[np.ndarray]) -> list[Layout]:
    """One layout per item; windows and masks are left out, since they hide what is measured."""
    open_layout = grid.model_copy(
        update={"levels": None, "mask_beyond": None, "window_margin": None, "window_align": 1}
    )
    recipe = open_layout.build(noise)
    return [
        recipe.layout(image.shape, check_model(model.under(0.0), torch.tensor(image)).output_shape) for image in images
    ]


def _table(matrices: dict[str, np.ndarray], symbol: str, cells: int) -> Table:
    own = np.eye(cells, dtype=bool)
    rows = [
        [name, f"{matrix[own].mean():.3f}", f"{matrix[~own].mean():.3f}" if cells > 1 else "–"]
        for name, matrix in matrices.items()
    ]
    return Table(["Levels", f"mean {symbol} in the own cell", f"mean {symbol} elsewhere"], rows)
