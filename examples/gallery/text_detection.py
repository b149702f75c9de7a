"""Text or no text, for every pixel of a page: the detector of PP-OCR, as the package `rapidocr-onnxruntime` brings it.

    pip install 'localsmooth[examples]'
    python examples/gallery/text_detection.py
    localsmooth certify examples/gallery/text_detection.toml --out runs/gallery/text_detection/run

This file copies the detector out of the package and makes pictures of 8 bits: two pages of text drawn in several sizes
and greys, and scikit-image's `page`, a photograph. The TOML file says the rest. Nothing is downloaded.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont
from skimage import data, transform

HEIGHT, WIDTH = 192, 384  # close to the photograph's own 191 × 384, and multiples of 32
FOLDER = Path(__file__).parents[2] / "runs" / "gallery" / "text_detection"
PAGES = {  # name: lines of size, grey, and text
    "calibration": [
        (24, 0, "Opening hours"),
        (16, 0, "Monday to Friday, nine to five"),
        (16, 90, "Saturday, ten to two"),
        (12, 90, "closed on Sundays and holidays, and in the snow"),
        (10, 140, "please ring twice, and wait until the light is green"),
    ],
    "drawn": [
        (24, 0, "The old lighthouse"),
        (16, 0, "has been dark for forty years"),
        (16, 150, "and nobody remembers why"),
        (11, 0, "Its keeper left one autumn morning with two suitcases"),
        (11, 150, "and a letter that he did not want to post himself"),
    ],
}


def detector() -> Path:
    """The ONNX file in the package, found without importing it, which would load OpenCV for nothing."""
    spec = find_spec("rapidocr_onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs pip install 'localsmooth[examples]'")
    return Path(spec.submodule_search_locations[0]) / "models" / "ch_PP-OCRv4_det_infer.onnx"


def drawn(lines: list[tuple[int, int, str]]) -> UInt8[np.ndarray, "height width"]:
    """A page of lines in several sizes and greys."""
    picture = Image.new("L", (WIDTH, HEIGHT), 235)
    draw, top = ImageDraw.Draw(picture), 12
    for size, grey, text in lines:
        draw.text((16, top), text, fill=grey, font=ImageFont.load_default(size))
        top += size + 18
    return np.asarray(picture)


def page() -> UInt8[np.ndarray, "height width"]:
    """The photograph of a printed page."""
    grey = transform.resize(data.page() / 255.0, (HEIGHT, WIDTH), anti_aliasing=True)
    return np.rint(255 * grey.clip(0, 1)).astype(np.uint8)


def main() -> None:
    """Write the pictures and the model."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(detector(), FOLDER / "detector.onnx")
    for name, grey in {**{name: drawn(lines) for name, lines in PAGES.items()}, "photograph": page()}.items():
        where = FOLDER / ("calibration" if name == "calibration" else "pages")
        where.mkdir(exist_ok=True)
        Image.fromarray(np.stack([grey] * 3, axis=-1)).save(where / f"{name}.png")
    print(f"Pictures and model: {FOLDER}")


if __name__ == "__main__":
    main()
