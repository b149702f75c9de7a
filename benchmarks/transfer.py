"""What certifying the int8 version of the shipped U-Net costs: its own votes, or the old ones less disagreements.

    python benchmarks/transfer.py [--samples 12288] [--keep labels.npz]

One digit scene, isotropic noise. `N` samples of the network certify it. Its int8 version (static quantization of the
ONNX export, needs ``pip install ".[onnx]" onnx``) is certified with fewer passes: by `localsmooth transfer`, where each
pass is one of the new network; and from the N votes of the old network, less a bound on how often the two disagree
under the same noise, where every sample takes a pass of both. α is .01, halved between votes and disagreements.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri

from localsmooth.bounds import CandidateVotes, JointCount
from localsmooth.cli.demo import demo_configurations
from localsmooth.config import parse_configuration
from localsmooth.models import OnnxModel
from localsmooth.sampling import ArraySubject, SamplingOptions
from localsmooth.scenes import DigitScenes, Split, load_unet

ALPHA, SIGMA, FIRST, BATCH = 0.01, 0.25, 128, 64


def quantized(folder: Path) -> Path:
    """Export the shipped network and quantize it, calibrated on noisy training scenes."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    scenes, _ = DigitScenes(Split.TRAIN).stack(range(32))
    generator = np.random.default_rng(0)
    levels = np.repeat([0.25, 0.5, 1.0], 11)[:32, None, None, None]
    batches = iter(np.split((scenes + levels * generator.normal(size=scenes.shape)).astype(np.float32), 8))

    class Reader(CalibrationDataReader):
        def get_next(self) -> Any:
            batch = next(batches, None)
            return None if batch is None else {"x": batch}

    names: dict[str, Any] = {
        "input_names": ["x"],
        "output_names": ["y"],
        "dynamic_axes": {"x": {0: "batch"}, "y": {0: "batch"}},
    }
    torch.onnx.export(load_unet(), (torch.rand(1, 1, 64, 96),), str(folder / "unet.onnx"), dynamo=False, **names)
    types: dict[str, Any] = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(folder / "unet.onnx", folder / "int8.onnx", Reader(), per_channel=True, **types)
    return folder / "int8.onnx"


def sampled(samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Candidate votes, and whether the old and the new network voted for the candidates, sample by sample."""
    values = demo_configurations()["isotropic"]
    values["data"] = dict(values["data"], items=[0])
    task, smoothing, settings = parse_configuration(values).prepare(Path(), print)
    old = task.assign(smoothing, settings, SamplingOptions(), None).subject
    assert isinstance(old, ArraySubject)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        new = replace(old, model=OnnxModel(quantized(Path(folder)), bounds=old.model.bounds, threads=1))
        groups, stream = (old.prepare(0, 0), new.prepare(0, 0)), old.stream((0, 0, 9, 0))

        def labels(which: int, batch: torch.Tensor) -> np.ndarray:
            return groups[which].predict(batch).labels.flatten(1).numpy().copy()

        first = np.concatenate([labels(0, groups[0].draw(BATCH, stream)) for _ in range(FIRST // BATCH)])
        votes = np.stack([(first == label).sum(0) for label in range(old.classes)])
        voted: list[list[np.ndarray]] = [[], []]
        for _ in range(samples // BATCH):
            batch = groups[0].draw(BATCH, stream)
            for which in range(2):
                voted[which].append(labels(which, batch) == votes.argmax(0))
    return votes.max(0), np.concatenate(voted[0]), np.concatenate(voted[1])


def counted(votes: np.ndarray, n: int, first: np.ndarray | None, alpha: float = ALPHA) -> np.ndarray:
    """Lower bounds on probabilities, true of counts: ascending."""
    known = None if first is None else CandidateVotes(first, FIRST)
    return np.sort(JointCount(spare=0).count_bounds(votes, n, alpha, np.zeros(votes.size, np.int64), known).lower)


def subtracted(old: np.ndarray, n: int, disagreements: np.ndarray, pairs: int, first: np.ndarray) -> np.ndarray:
    """If i outputs fail the bounds on votes and j those on disagreements, the next has the difference of the two."""
    probability = counted(old, n, first, ALPHA / 2)
    agreement = counted(pairs - disagreements, pairs, None, ALPHA / 2)
    made = np.zeros_like(probability)
    for lost in np.unique(np.r_[0, np.flatnonzero(np.diff(agreement)) + 1]):
        moved = probability[: made.size - lost] - (1 - agreement[lost])
        made[lost:] = np.maximum(made[lost:], moved)
    return made


def average_radius(lower: np.ndarray) -> float:
    """Average certifiable radius of the ratio."""
    return float(np.mean(np.where(lower > 0.5, SIGMA * ndtri(np.maximum(lower, 0.5)), 0.0)))


def main() -> None:
    """Sample, and print the curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=12288)
    parser.add_argument("--keep", type=Path, help="file to keep the labels in, or to read them from")
    given = parser.parse_args()
    if given.keep is not None and given.keep.exists():
        kept = np.load(given.keep)
        first, old, new = kept["first"], *(np.unpackbits(kept[name], axis=0).astype(bool) for name in ("old", "new"))
    else:
        first, old, new = sampled(2 * given.samples)
        if given.keep is not None:
            np.savez(given.keep, first=first, old=np.packbits(old, axis=0), new=np.packbits(new, axis=0))
    n = min(given.samples, len(old) // 2)
    (old, _), (fresh_old, fresh_new) = np.split(old[: 2 * n], 2), (old[n : 2 * n], new[n : 2 * n])
    anew = average_radius(counted(fresh_new.sum(0), n, first))
    print(f"old network, N = {n}: {average_radius(counted(old.sum(0), n, first)):.4f}; new, anew: {anew:.4f}")
    print(f"labels that disagree under the same noise: {(fresh_old != fresh_new).mean():.4%}")
    print("passes / N   own votes   votes less disagreements      (share of the ACR of N votes of the new network)")
    for share in (1, 2, 4, 8, 16):
        passes = n // share
        own = average_radius(counted(fresh_new[:passes].sum(0), passes, first))
        pairs = passes // 2
        lost = (fresh_old[:pairs] & ~fresh_new[:pairs]).sum(0)
        less = average_radius(subtracted(old.sum(0), n, lost, pairs, first))
        print(f"{f'1/{share}':>10}   {own / anew:9.3f}   {less / anew:24.3f}")


if __name__ == "__main__":
    main()
