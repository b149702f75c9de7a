"""Certify a model that nobody here has written: the PP-OCR text detector, text or no text for every pixel of a page.

    pip install 'localsmooth[examples]'
    python examples/text_detection.py --out runs/text

The detector is the ONNX file inside the package `rapidocr-onnxruntime`, used as it is: it was never trained on noise.
The picture is scikit-image's `page`, read from the installed package. Nothing is downloaded. Two to three minutes on
two cores; started again with the same --out it goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from skimage import data, transform

import localsmooth as ls

HEIGHT, WIDTH = 192, 384  # close to the picture's own 191 × 384, and multiples of 32


def detector() -> ls.OnnxModel:
    # The file is found without importing the package, which would load OpenCV for nothing.
    spec = find_spec("rapidocr_onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs pip install 'localsmooth[examples]'")
    return ls.OnnxModel(
        Path(spec.submodule_search_locations[0]) / "models" / "ch_PP-OCRv4_det_infer.onnx",
        bounds=(0, 1),
        # As the package preprocesses: (x / 255 - 0.5) / 0.5, to multiples of 32.
        preprocessing=ls.Preprocessing(mean=0.5, std=0.5, pad_multiple=32),
        threshold=0.3,  # text where the probability exceeds it
    )


def page() -> np.ndarray:
    grey = transform.resize(data.page() / 255.0, (HEIGHT, WIDTH), anti_aliasing=True)
    return np.repeat(grey[None], 3, axis=0).astype(np.float32).clip(0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/text"), help="directory of the run and its report")
    parser.add_argument("--samples", type=int, default=200, help="samples per output group to bound the votes with")
    arguments = parser.parse_args()

    layouts = {
        "localized": ls.GridLayout(cells=(3, 4), minimum=0.1, maximum=0.25),
        "isotropic": ls.GridLayout(cells=(1, 1), minimum=0.1, maximum=0.1),
    }
    task = ls.ArrayTask(detector(), [page()], class_names=["no text", "text"], units="pixel values in [0, 1]")
    plan = ls.SamplingPlan(n_candidate=24, n_bound=arguments.samples)
    settings = ls.Settings(alpha=0.01, budgets=np.linspace(0, 0.3, 31))
    results = {
        name: ls.certify(task, ls.Smoothing(layout, plan), settings, run=ls.Run(arguments.out / name, name))
        for name, layout in layouts.items()
    }
    report = arguments.out / "report.html"
    ls.write_report(results, report)
    print(f"Report: {report}")


if __name__ == "__main__":
    main()
