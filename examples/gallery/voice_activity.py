"""Where somebody speaks: Silero's voice activity detector, which decides 31 times a second.

    pip install silero-vad 'localsmooth[onnx]' && apt install espeak-ng
    python examples/gallery/voice_activity.py
    localsmooth certify examples/gallery/voice_activity.toml --out runs/gallery/voice_activity/run

This file makes the inputs, sentences that espeak-ng speaks, and has the function that the TOML file names: the ONNX
file takes a sequence of overlapping frames where a model here takes a batch of sounds. Nothing is downloaded.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view
from scipy.io import wavfile
from scipy.signal import resample_poly

RATE = 16_000  # samples a second
FRAME = 512  # samples that one decision is about
CONTEXT = 64  # samples before them that the detector sees, too
FRAMES = 160  # 5.1 seconds
FOLDER = Path(__file__).parents[2] / "runs" / "gallery" / "voice_activity"
SENTENCES = {  # voice: what it says, with pauses around each
    "en-us+f3": ["the meeting begins at nine", "please bring the plan"],
    "en-gb+m3": ["nobody has seen the keys", "ask again tomorrow"],
    "en-us+m7": ["rain is expected", "with wind from the sea"],
}
HUM = [0.0, 0.0, 0.02]  # root mean square of the noise behind each; that of the voices is 0.1


@cache
def session() -> Any:
    """The detector that comes with the package, in its form for whole sequences."""
    spec = find_spec("silero_vad")  # to import the package itself would take seconds
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs pip install silero-vad")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # it has weights that are not used, and would say so
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    path = Path(spec.submodule_search_locations[0]) / "data" / "silero_vad_16k_sequence.onnx"
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def speech(sounds: Float[np.ndarray, "batch 1 samples"]) -> Float[np.ndarray, "batch 1 frames"]:
    """Probability of speech in every frame; each sound begins with an empty state."""
    padded = np.pad(sounds[:, 0], ((0, 0), (CONTEXT, 0)))
    frames = sliding_window_view(padded, CONTEXT + FRAME, axis=1)[:, ::FRAME]
    empty = np.zeros((1, 1, 128), np.float32)
    # One call each: the file's first axis is time.
    calls = ({"input": np.ascontiguousarray(sound), "h": empty, "c": empty} for sound in frames)
    return np.stack([session().run(["speech_probs"], call)[0] for call in calls])[:, None]


def spoken(voice: str, sentence: str) -> Float[np.ndarray, " samples"]:
    """A sentence as espeak-ng says it, without silence around it, its root mean square 0.1."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sentence.wav")
        subprocess.run(["espeak-ng", "-v", voice, "-w", str(path), sentence], check=True)
        rate, values = wavfile.read(path)
    sound = resample_poly(values / 32768, RATE, rate)
    loud = np.flatnonzero(np.abs(sound) > 0.01)
    sound = sound[loud[0] : loud[-1] + 1]
    return 0.1 * sound / np.sqrt(np.mean(sound**2))


def scene(voice: str, sentences: list[str], hum: float, seed: int) -> tuple[np.ndarray, Int[np.ndarray, " frames"]]:
    """A sound of 5 seconds, and which frames lie within a sentence."""
    length = FRAMES * FRAME
    parts = [spoken(voice, sentence) for sentence in sentences]
    gap = (length - sum(map(len, parts))) // (len(parts) + 1)
    if gap < RATE // 4:
        raise SystemExit(f"{voice} speaks too long: leave words out")
    clean, inside, start = np.zeros(length), np.zeros(length), 0
    for part in parts:
        start += gap
        clean[start : start + len(part)] = part
        inside[start : start + len(part)] = 1
        start += len(part)
    noise = np.cumsum(np.random.default_rng(seed).standard_normal(length))  # brown, as of an engine
    noise -= np.convolve(noise, np.full(801, 1 / 801), "same")
    sound = clean + hum * noise / np.sqrt(np.mean(noise**2))
    # 16 bits, as a recording has
    return np.rint(32768 * sound).clip(-32768, 32767) / 32768, (inside.reshape(FRAMES, FRAME).mean(1) > 0.5).astype(int)


def main() -> None:
    """Write the sounds and their labels."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    scenes = [scene(*each, hum, seed) for seed, (each, hum) in enumerate(zip(SENTENCES.items(), HUM, strict=True))]
    sounds = np.array([sound for sound, _ in scenes], np.float32)[:, None]
    labels = np.array([label for _, label in scenes])
    np.save(FOLDER / "sounds.npy", sounds)
    np.save(FOLDER / "labels.npy", labels)
    found = speech(sounds)[:, 0] > 0.5
    for voice, one, label in zip(SENTENCES, found, labels, strict=True):
        print(f"{voice}: {np.mean(one == label):.1%} of {FRAMES} frames as spoken")


if __name__ == "__main__":
    main()
