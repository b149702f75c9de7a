"""Comparisons of base certificates that need formulas alone: no model, no samples, no confidence bounds.

    python experiments/formulas.py [--out docs/images]     # 40 s of processor time

Draws three figures and prints the numbers of docs/results_formulas.md as Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from localsmooth.baselines.regions import flip_frontier
from localsmooth.certificates import ExactVotes, RenyiVotes, VoteCertificate
from localsmooth.certificates.gaussian_votes import gaussian_vote_eta
from localsmooth.certificates.variance import variance_constrained_eta
from localsmooth.noise import SparseFlips

NOISES = ((0.01, 0.6), (0.01, 0.9), (0.1, 0.6))
"""(θ⁺, θ⁻)."""
SHARES = 1 - np.geomspace(0.5, 1e-4, 61)[1:]
SHOWN = (0.6, 0.8, 0.9, 0.99, 0.999)
HORIZON = 400
KINDS = ("additions", "deletions")


def flips_by_certificate(certificate: VoteCertificate, noise: tuple[float, float], q: float) -> tuple[int, int]:
    """Largest number of additions alone, and of deletions alone, at which some inequality W·b < η holds."""
    made = certificate.certificates(SparseFlips(), np.array([[noise]]), np.array([q]), np.zeros(1, dtype=np.int64))
    weights, eta = np.asarray(made.weights).reshape(-1, 2), np.asarray(made.eta).reshape(-1)
    counts = np.arange(1, HORIZON + 1)
    additions, deletions = (
        int(np.append((np.outer(counts, weights[:, kind]) < eta).any(axis=1), False).argmin()) for kind in range(2)
    )
    return additions, deletions


def flips_by_regions(noise: tuple[float, float], shares: np.ndarray) -> np.ndarray:
    """What SparseSmooth certifies, for each vote share: additions alone, and deletions alone."""
    found: list[np.ndarray] = []
    for most in ((HORIZON, 0), (0, HORIZON)):
        thresholds = flip_frontier(*noise, float(shares.max()), *most, horizon=HORIZON).smallest.ravel()[1:]
        holds = shares[:, None] > np.append(thresholds, 1.0)[None]
        found.append(holds.argmin(axis=1))
    return np.stack(found, axis=1)


def methods(noise: tuple[float, float]) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Certified numbers of flips (shares × kinds) by method."""

    def linear(certificate: VoteCertificate) -> Callable[[np.ndarray], np.ndarray]:
        return lambda shares: np.array([flips_by_certificate(certificate, noise, float(q)) for q in shares])

    return {
        "SparseSmooth": lambda shares: flips_by_regions(noise, shares),
        "exact votes": linear(ExactVotes(horizon=HORIZON)),
        "five Rényi orders": linear(RenyiVotes()),
        "variance-constrained": linear(RenyiVotes((2.0,))),
    }


def sparse_certificates() -> Figure:
    """Certified flips over the vote share q, where scores are 0 and 1: their mean is q, their variance q(1 − q)."""
    styles = {
        "SparseSmooth": {"color": "#c4cad0", "linewidth": 4},
        "exact votes": {"color": "black", "linewidth": 0.9},
        "five Rényi orders": {"color": "C1", "linestyle": "--"},
        "variance-constrained": {"color": "C0", "linestyle": ":"},
    }
    figure, panels = panes(len(NOISES), 2, (2.6, 2.1))
    print("\n| θ⁺, θ⁻ | flips | certificate | " + " | ".join(f"q = {q}" for q in SHOWN) + " |")
    print("|---|---|---|" + "--:|" * len(SHOWN))
    for column, noise in enumerate(NOISES):
        for name, method in methods(noise).items():
            curve, shown = method(SHARES), method(np.array(SHOWN))
            for row, kind in enumerate(KINDS):
                panels[row, column].step(-np.log10(1 - SHARES), curve[:, row], label=name, **styles[name])
                numbers = " | ".join(str(count) for count in shown[:, row])
                print(f"| {noise[0]}, {noise[1]} | {kind} | {name} | {numbers} |")
        panels[0, column].set_title(f"θ⁺ = {noise[0]}, θ⁻ = {noise[1]}", fontsize=8)
        panels[1, column].set_xlabel("−log₁₀(1 − q)", fontsize=8)
    for row, kind in enumerate(KINDS):
        panels[row, 0].set_ylabel(f"certified {kind}", fontsize=8)
    panels[0, 0].legend(fontsize=6, frameon=False)
    return figure


def flip_weights() -> Figure:
    """γ⁺ and γ⁻, what one addition and one deletion cost the adversary, over θ⁻ for several θ⁺."""
    deletion = np.linspace(0.02, 0.985, 194)
    shown = (0.3, 0.5, 0.7, 0.9)
    figure, panels = panes(2, 1, (3.2, 2.4))
    print("\n| θ⁺ | weight | " + " | ".join(f"θ⁻ = {theta}" for theta in shown) + " |")
    print("|---|---|" + "--:|" * len(shown))
    for addition in (0.001, 0.01, 0.1):
        for column, (kind, symbol) in enumerate(zip(KINDS, ("γ⁺", "γ⁻"), strict=True)):
            weights = weights_of(addition, deletion)[:, column]
            panels[0, column].semilogy(deletion, weights, label=f"θ⁺ = {addition}", linewidth=1.2)
            numbers = " | ".join(f"{value:.3g}" for value in weights_of(addition, np.array(shown))[:, column])
            print(f"| {addition} | {symbol}, {kind} | {numbers} |")
            panels[0, column].set_title(f"weight of {kind}, {symbol}", fontsize=8)
            panels[0, column].set_xlabel("θ⁻", fontsize=8)
            panels[0, column].set_ylim(1e-3, 1e3)
    panels[0, 0].legend(fontsize=6.5, frameon=False)
    return figure


def weights_of(addition: float, deletion: np.ndarray) -> np.ndarray:
    """γ⁺ and γ⁻ for each θ⁻."""
    levels = np.stack([np.full(deletion.size, addition), deletion], axis=1)[None]
    return SparseFlips().weights(levels).reshape(2, -1).T


def gaussian_certificates() -> Figure:
    """Certified radius in units of σ: scores of mean μ, a share q of which are above 1/2, against votes of share q."""
    q, mu = np.meshgrid(np.linspace(0.505, 0.995, 197), np.linspace(0.505, 0.995, 197))
    votes = np.sqrt(gaussian_vote_eta(q.ravel()).reshape(q.shape))
    figure, panels = panes(2, 1, (3.4, 2.8))
    for axes, (title, variance) in zip(
        panels[0], (("largest variance", largest_variance), ("smallest variance", smallest_variance)), strict=True
    ):
        spread = variance(mu, q)
        possible = np.isfinite(spread)
        moment = np.where(possible, spread, 1.0).ravel()
        radius = np.sqrt(variance_constrained_eta(mu.ravel(), moment, mu.ravel()).reshape(q.shape))
        gain = np.where(possible, radius - votes, np.nan)
        share = np.mean(gain[possible] > 0)
        print(f"\nScores of {title}: larger than votes on {share:.0%} of the possible (μ, q)")
        print("| μ, q | scores | votes |\n|---|--:|--:|")
        for point in ((0.6, 0.6), (0.75, 0.6), (0.7, 0.9), (0.9, 0.9), (0.94, 0.9), (0.8, 0.99), (0.99, 0.99)):
            at = np.unravel_index(np.argmin(np.hypot(mu - point[0], q - point[1])), q.shape)
            if possible[at]:
                print(f"| {mu[at]:.2f}, {q[at]:.2f} | {radius[at]:.2f} | {votes[at]:.2f} |")
        shown = axes.pcolormesh(q, mu, gain, cmap="RdBu", vmin=-2, vmax=2, rasterized=True)
        axes.contour(q, mu, gain, levels=[0], colors="black", linewidths=0.8)
        axes.set_title(f"scores − votes, {title}", fontsize=8)
        axes.set_xlabel("share q of samples that vote for the class", fontsize=8)
        axes.set_ylabel("mean score μ", fontsize=8)
    figure.colorbar(shown, ax=panels[0], label="radius / σ", shrink=0.9)  # pyright: ignore[reportPossiblyUnboundVariable]
    return figure


def largest_variance(mu: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Largest variance of scores in [0, 1] with mean μ and a share q above 1/2; NaN where there are none.

    Extreme scores: as much as possible at 0 and 1, the rest at 1/2, just above or just below.
    """
    moment = np.where(mu <= q, (3 * mu - q) / 2, (mu + q) / 2)
    return np.where((2 * mu > q) & (2 * mu < 1 + q), moment - mu**2, np.nan)


def smallest_variance(mu: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Smallest variance of such scores: all that vote otherwise at 1/2, all others at one score above; for μ > 1/2."""
    return np.where(2 * mu < 1 + q, (1 - q) / q * (mu - 0.5) ** 2, np.nan)


def panes(columns: int, rows: int, size: tuple[float, float]) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of plots."""
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.ravel():
        axes.tick_params(labelsize=7)
        axes.grid(color="#e6e9ec", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def main() -> None:
    """Draw all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "localsmooth"}):
        for name, draw in (
            ("formulas_sparse", sparse_certificates),
            ("formulas_weights", flip_weights),
            ("formulas_gaussian", gaussian_certificates),
        ):
            draw().savefig(out / f"{name}.svg", metadata={"Date": None}, dpi=120)


if __name__ == "__main__":
    main()
