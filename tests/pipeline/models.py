"""Base classifiers whose smoothed versions are known in closed form."""

from __future__ import annotations

import numpy as np

from localsmooth.models import CallableModel, OutputKind


def threshold_model(thresholds: np.ndarray, name: str = "threshold") -> CallableModel:
    """Pixel n is class 1 where its own (first-channel) value exceeds thresholds[n]."""

    def predict(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > thresholds).astype(np.int64)

    return CallableModel(predict, name=name, bounds=None, classes=2, output=OutputKind.LABELS)


def mean_model(shape: tuple[int, int]) -> CallableModel:
    """Every pixel is class 1 where the mean of the whole input is positive."""

    def predict(batch: np.ndarray) -> np.ndarray:
        positive = batch.mean(axis=(1, 2, 3)) > 0
        return np.broadcast_to(positive[:, None, None], (len(batch), *shape)).astype(np.int64)

    return CallableModel(predict, name="mean", bounds=None, classes=2, output=OutputKind.LABELS)
