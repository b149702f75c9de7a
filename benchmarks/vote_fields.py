"""Made-up vote fields: the base certificates of an image segmenter that was never run.

Three kinds. *smooth*: one length scale, confident away from the zero crossings. *saturated*: large unanimous regions
with steep borders. *mixed*: few unanimous outputs, three length scales, a tenth that abstains; here a group's steps are
far from convex, and an exact solver has to work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage, stats


@dataclass(frozen=True)
class VoteField:
    """Size and sampling of a field; the defaults are those of the Pascal images."""

    height: int = 166
    width: int = 250
    rows: int = 3
    columns: int = 5
    samples: int = 10_240
    alpha: float = 0.01
    sigma_min: float = 0.15
    sigma_max: float = 1.0

    def problem(self, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights, eta and group."""
        rng = np.random.default_rng(seed)
        chances = {"smooth": self._smooth, "saturated": self._saturated, "mixed": self._mixed}[kind](rng)
        votes = rng.binomial(self.samples, chances).ravel()
        outputs = votes.size
        with np.errstate(invalid="ignore"):
            lower = stats.beta.ppf(self.alpha / outputs, votes, self.samples - votes + 1)
        confident = (votes > 0) & (lower > 0.5)
        eta = np.where(confident, stats.norm.ppf(np.where(confident, lower, 0.5)) ** 2, 0.0)
        return self.weights(), eta, self.cells()

    def _noise(self, rng: np.random.Generator, scale: float) -> np.ndarray:
        raw = ndimage.gaussian_filter(rng.standard_normal((self.height, self.width)), scale)
        return raw / raw.std()

    def _smooth(self, rng: np.random.Generator) -> np.ndarray:
        margin = np.abs(self._noise(rng, 6.0))
        return np.where(margin > 1.2, 1.0, stats.norm.cdf(0.2 + 2.2 * margin))

    def _saturated(self, rng: np.random.Generator) -> np.ndarray:
        margin = np.abs(self._noise(rng, 12.0))
        return np.where(margin > 0.6, 1 - 1e-7, stats.norm.cdf(6 * margin - 0.5))

    def _mixed(self, rng: np.random.Generator) -> np.ndarray:
        margin = sum(share * self._noise(rng, scale) for share, scale in ((0.75, 12.0), (0.55, 3.0), (0.25, 0.8)))
        level = (stats.rankdata(margin, method="ordinal").reshape(margin.shape) - 0.5) / margin.size
        lost, unsure, sure = level < 0.1, (level >= 0.1) & (level < 0.3), level >= 0.3
        chances = np.empty_like(level)
        chances[lost] = 0.15 + 3.5 * level[lost]
        chances[unsure] = 0.5 + 0.5 * stats.beta(8, 2).ppf((level[unsure] - 0.1) / 0.2)
        chances[sure] = stats.beta(30, 1).ppf(np.minimum((level[sure] - 0.3) / 0.7, 0.9999))
        return chances

    def cells(self) -> np.ndarray:
        """Output group of each output."""
        down = np.arange(self.height) * self.rows // self.height
        across = np.arange(self.width) * self.columns // self.width
        return (down[:, None] * self.columns + across).ravel()

    def weights(self) -> np.ndarray:
        """1/σ² by output and input group."""
        place = np.indices((self.rows, self.columns)).reshape(2, -1)
        distance = np.abs(place[:, :, None] - place[:, None, :]).max(axis=0)
        reach = max(self.rows, self.columns, 2) - 1
        sigma = self.sigma_min + (self.sigma_max - self.sigma_min) * distance / reach
        return sigma**-2.0


PASCAL = VoteField()
CITYSCAPES = VoteField(height=512, width=1024, rows=4, columns=6)
