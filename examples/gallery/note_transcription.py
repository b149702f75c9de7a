"""Which notes sound when: Spotify's Basic Pitch, 88 keys of a piano in 172 frames of two seconds.

    pip install --no-deps basic-pitch && pip install 'localsmooth[onnx]'
    python examples/gallery/note_transcription.py
    localsmooth certify examples/gallery/note_transcription.toml --out runs/gallery/note_transcription/run

This file copies the model out of the package and makes the music: tones of five harmonics that fade, one or two at a
time. The TOML file says the rest. Nothing is downloaded; without --no-deps, pip would install TensorFlow, too.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

RATE = 22_050  # samples a second
SAMPLES = 43_844  # what the model takes
HOP = 256  # samples from one frame to the next
FRAMES, KEYS = 172, 88
LOWEST = 27.5  # Hz, of the first key
FOLDER = Path(__file__).parents[2] / "runs" / "gallery" / "note_transcription"
Note = tuple[float, float, int]
PIECES: dict[str, list[Note]] = {  # begin and end in seconds, and the key: 39 is the middle C
    "calibration": [(0.1, 0.7, 44), (0.7, 1.3, 47), (1.3, 1.9, 42), (0.1, 1.3, 28)],
    "melody": [(0.1, 0.4, 39), (0.4, 0.7, 43), (0.7, 1.0, 46), (1.0, 1.3, 51), (1.3, 1.9, 48)],
    "two voices": [(0.1, 0.7, 46), (0.7, 1.3, 44), (1.3, 1.9, 43), (0.1, 1.0, 27), (1.0, 1.9, 22)],
}


def model() -> Path:
    """The ONNX file in the package, found without importing it."""
    spec = find_spec("basic_pitch")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs pip install --no-deps basic-pitch")
    return Path(spec.submodule_search_locations[0]) / "saved_models" / "icassp_2022" / "nmp.onnx"


def played(notes: list[Note]) -> tuple[Float[np.ndarray, "samples 1"], Int[np.ndarray, "frames keys"]]:
    """The sound of some notes, as 16 bits have it, and which keys are down in which frames."""
    time, sound = np.arange(SAMPLES) / RATE, np.zeros(SAMPLES)
    keys = np.zeros((FRAMES, KEYS), np.int64)
    for begin, end, key in notes:
        since = time - begin
        shape = np.clip(since / 0.01, 0, 1) * np.exp(-1.5 * since.clip(0)) * np.clip((end - time) / 0.02, 0, 1)
        for harmonic in range(1, 6):
            sound += shape * np.sin(2 * np.pi * harmonic * LOWEST * 2 ** (key / 12) * since) / harmonic**1.5
        keys[round(begin * RATE / HOP) : round(end * RATE / HOP), key] = 1
    sound *= 0.1 / np.sqrt(np.mean(sound**2))
    return (np.rint(32768 * sound) / 32768)[:, None], keys


def main() -> None:
    """Write the music, its notes and the model."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model(), FOLDER / "model.onnx")
    pieces = [played(notes) for notes in PIECES.values()]
    np.save(FOLDER / "sounds.npy", np.array([sound for sound, _ in pieces], np.float32))
    np.save(FOLDER / "notes.npy", np.array([keys for _, keys in pieces]))
    print(f"Music, notes and model: {FOLDER}")


if __name__ == "__main__":
    main()
