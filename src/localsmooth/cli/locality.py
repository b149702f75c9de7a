"""`localsmooth locality`: measure how local a model is, and propose noise levels."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import torch
import typer
from rich.progress import Progress

from localsmooth.config import (
    Configuration,
    ConfigurationError,
    GridLayoutSection,
    LocalitySection,
    NoiseSection,
    load_configuration,
)
from localsmooth.disk import make_folder, write_atomically
from localsmooth.execution import Pace
from localsmooth.layout import Grid, Layout
from localsmooth.locality import measure_joint, measure_locality, propose, write_levels
from localsmooth.models import Model, check_model
from localsmooth.report import Table, levels_figure, locality_figure, percent, render_locality, save_figure
from localsmooth.terminal import terminal

__all__ = ["locality"]


def locality(config: Path, out: Path, quality: float | None) -> None:
    """Measure how much noise in one cell disturbs the predictions of another, and propose a level matrix."""
    console = terminal()
    sys.path.insert(0, str(config.resolve().parent))
    configuration = load_configuration(config)
    if not isinstance(configuration, Configuration):
        raise ConfigurationError(f"{config}:\nlevels are measured for arrays only.")
    section = LocalitySection() if configuration.locality is None else configuration.locality
    if isinstance(configuration.noise.levels()[0], tuple):
        raise ConfigurationError(f"{config}:\nnoise.distribution: noise of two levels per cell has no single proposal.")
    items, noise = configuration.calibration_items(), configuration.noise.build()
    grid = configuration.layout
    if not isinstance(grid, GridLayoutSection):
        raise ConfigurationError(
            f'{config}:\nlayout.kind: levels are measured on a grid of cells. Write kind = "grid".'
        )
    model = configuration.model.build(configuration.sampling)
    images = [item.image for item in items]
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
            noise,
            tried.tolist(),
            samples=section.samples,
            seed=section.seed,
            advance=advance,
        )

        def joint(levels: np.ndarray) -> np.ndarray:
            placed = [Layout(layout.outputs, layout.inputs, levels) for layout in layouts]
            return measure_joint(model, images, placed, noise, samples=section.samples, seed=section.seed)

        sizes, rule = layouts[0].outputs.sizes.astype(np.float64), layouts[0].levels
        by_rule = joint(rule)
        wanted = section.quality if quality is None else quality
        wanted = float(np.average(by_rule, weights=sizes)) if wanted is None else wanted
        proposal = propose(measured, wanted, joint, sizes)
    make_folder(out)
    write_levels(out / "levels.npz", proposal.levels, items)
    symbol = configuration.noise.symbol
    matrices = {"proposal": proposal.levels, "distance rule of the file": rule}
    agreements = {"proposal": proposal.agreement, "distance rule of the file": by_rule}
    own = Grid(tuple(grid.cells)).count
    table = _table(matrices, agreements, sizes, symbol, own)
    notes = [
        f"Measured on {measured.items} calibration items with {measured.samples} samples of each at each level and "
        f"cell. Wanted: at least {percent(wanted)} of all votes are the clean prediction, with noise in all cells.",
        "The levels may be used for items that are not among the calibration items; certification checks this.",
    ]
    page = render_locality("Locality", notes, measured.levels, measured.agreement, matrices, table, symbol)
    write_atomically(out / "locality.html", page.encode("utf-8", errors="replace"))
    content = io.BytesIO()
    np.savez(content, levels=measured.levels, agreement=measured.agreement)
    write_atomically(out / "measurement.npz", content.getvalue())
    for suffix in ("svg", "pdf"):
        save_figure(locality_figure(measured.levels, measured.agreement, symbol), out / f"agreement.{suffix}")
        save_figure(levels_figure(matrices, symbol), out / f"levels.{suffix}")
    for row in table.rows:
        line = "; ".join(f"{heading} {cell}" for heading, cell in zip(table.headings[1:], row[1:], strict=True))
        console.print(f"{row[0]}: {line}")
    console.print(f"Report: {out / 'locality.html'}")
    typer.echo(f'[layout]\ncells = {grid.cells}\nlevels = "{out / "levels.npz"}"')


def _layouts(grid: GridLayoutSection, noise: NoiseSection, model: Model, images: list[np.ndarray]) -> list[Layout]:
    """One layout per item; windows and masks are left out, since they hide what is measured."""
    open_layout = grid.model_copy(
        update={"levels": None, "mask_beyond": None, "window_margin": None, "window_align": 1}
    )
    recipe = open_layout.build(noise)
    return [
        recipe.layout(image.shape, check_model(model.under(0.0), torch.tensor(image)).output_shape) for image in images
    ]


def _table(
    matrices: dict[str, np.ndarray], agreements: dict[str, np.ndarray], sizes: np.ndarray, symbol: str, cells: int
) -> Table:
    headings = ["Levels", f"mean {symbol} in the own cell", f"mean {symbol} elsewhere", "Vote agreement", "Worst cell"]
    own = np.eye(cells, dtype=bool)
    rows: list[list[str]] = []
    for name, matrix in matrices.items():
        elsewhere = f"{matrix[~own].mean():.3f}" if cells > 1 else "–"
        mean = float(np.average(agreements[name], weights=sizes))
        rows.append(
            [name, f"{matrix[own].mean():.3f}", elsewhere, percent(mean), percent(float(agreements[name].min()))]
        )
    return Table(headings, rows, note="Vote agreement is that of single votes with the clean prediction.")
