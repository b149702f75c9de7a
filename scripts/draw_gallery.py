"""Draw the pictures of docs/gallery.md from the runs that its commands leave in runs/.

    python scripts/draw_gallery.py

Runs that are not there are left out, and named.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

import localsmooth as ls

ROOT = Path(__file__).parents[1]
RUNS = {  # picture: the run, and the target of its curves
    "voice_activity": ("runs/gallery/voice_activity/run", "accuracy"),
    "text_detection": ("runs/gallery/text_detection/run", "foreground"),
    "note_transcription": ("runs/gallery/note_transcription/run", "class:down"),
    "brain_extraction": ("runs/gallery/brain_extraction/run", "class:brain"),
    "points": ("runs/parts/localized", "accuracy"),
    "word_boundaries": ("runs/gallery/word_boundaries/run", "accuracy"),
    "tokens": ("runs/tokens/localized", "accuracy"),
}


def draw(run: str, target: str, to: Path) -> None:
    """One row: the input of the first item, where it is certified, and the curves."""
    result = ls.load_result(ROOT / run / "result.nc")
    figure = Figure(figsize=(8.4, 2.4), layout="constrained")
    axes = figure.subplots(1, 3)
    if "image" in result:
        ls.plot.input(result, ax=axes[0])
    else:  # items without an axis of channels, points and tokens
        ls.plot.prediction(result, ax=axes[0])
    ls.plot.radius(result, ax=axes[1])
    ls.plot.curves(result, target, ax=axes[2])
    for each in axes:
        each.tick_params(labelsize=7)
    figure.savefig(to, dpi=90)


def main() -> None:
    """Draw what there is."""
    for name, (run, target) in RUNS.items():
        if (ROOT / run / "result.nc").is_file():
            draw(run, target, ROOT / "docs" / "images" / f"gallery_{name}.png")
        else:
            print(f"{run} is not there")


if __name__ == "__main__":
    main()
