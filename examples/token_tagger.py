"""Certify a tagger of sentences: a toy grammar, words with random embeddings, a network that looks at three words.

    python examples/token_tagger.py --out runs/tokens

It leaves behind what `examples/token_tagger.toml` certifies: the network, the embedded sentences and their words.

    localsmooth certify examples/token_tagger.toml --out runs/tokens/file

Perturbed are the embeddings of the words, not the words. Localized smoothing gives the tokens of a window little
noise in the window itself and much in those far away, which the network does not look at; isotropic smoothing gives all
tokens the same. Both take the same number of forward passes, and the levels of both are the best of a few on other
sentences. About a minute on one core; started again with the same --out it goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

import localsmooth as ls
from localsmooth.metrics import average_certifiable_radius
from localsmooth.tasks.arrays import PerPosition
from localsmooth.tasks.tokens import EmbeddedTagger, TokenTask, WindowLayout, features_last
from localsmooth.training import GroupNoise, OneGroup

TAGS = ["determiner", "adjective", "noun", "verb", "preposition"]
WORDS = {
    "determiner": ["the", "a", "every", "some"],
    "adjective": ["old", "light", "green", "quiet", "cold"],
    "noun": ["watch", "light", "dog", "plant", "house", "cold"],
    "verb": ["watch", "light", "plant", "sees", "likes", "finds"],
    "preposition": ["near", "behind", "under", "with"],
}  # "light" and the like have several tags: which one, only their neighbours tell
FEATURES = 32
LENGTH = 24


def sentence(rng: np.random.Generator) -> tuple[list[str], list[int]]:
    """LENGTH words of the grammar, and their tags."""
    tags: list[str] = []
    while len(tags) < LENGTH:
        phrase = ["determiner", *["adjective"] * int(rng.integers(0, 3)), "noun"]
        tags += [*phrase, str(rng.choice(["verb", "preposition"]))]
    return [str(rng.choice(WORDS[tag])) for tag in tags[:LENGTH]], [TAGS.index(tag) for tag in tags[:LENGTH]]


class Tagger(nn.Module):
    """Two convolutions over (batch, tokens, features): scores (batch, tokens, tags) from a word and its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.neighbours = nn.Conv1d(FEATURES, 64, 3, padding=1)
        self.scores = nn.Conv1d(64, len(TAGS), 1)

    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        """Score every tag of every token."""
        return self.scores(self.neighbours(inputs_embeds.transpose(1, 2)).relu()).transpose(1, 2)


def embedded(sentences: list[list[str]]) -> np.ndarray:
    """Embeddings of the words, random and of length 1."""
    rng = np.random.default_rng(0)
    table = {
        word: rng.standard_normal(FEATURES) for word in sorted({word for words in WORDS.values() for word in words})
    }
    return np.array([[table[w] / np.linalg.norm(table[w]) for w in words] for words in sentences], dtype=np.float32)


def trained(layout: WindowLayout, steps: int) -> Tagger:
    """A tagger that was trained under the noise with which it will be certified."""
    rng = np.random.default_rng(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Tagger()
    model = features_last(network, classes=len(TAGS))  # noise, as certificates, has the features first
    augmentation = OneGroup(GroupNoise(layout, ls.Gaussian()))
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for step in range(steps):
        drawn = [sentence(rng) for _ in range(64)]
        inputs = torch.from_numpy(embedded([words for words, _ in drawn])).transpose(1, 2)
        batch = augmentation(inputs, torch.tensor([tags for _, tags in drawn]), step)
        loss = functional.cross_entropy(model(batch.inputs), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()


def main() -> None:
    """Train, certify both ways and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/tokens"), help="directory of the runs and the report")
    parser.add_argument(
        "--samples", type=int, default=12_000, help="samples a sentence to bound the votes with, in all"
    )
    parser.add_argument("--steps", type=int, default=600, help="training steps")
    parser.add_argument("--sentences", type=int, default=6, help="sentences to certify")
    arguments = parser.parse_args()

    rng = np.random.default_rng(3)
    test = [sentence(rng) for _ in range(arguments.sentences)]
    words, labels = [one[0] for one in test], [np.array(one[1]) for one in test]
    layouts = {
        "localized": WindowLayout(windows=4, minimum=0.2, maximum=1.0),
        "isotropic": WindowLayout(windows=1, minimum=0.25, maximum=0.25),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    np.savez(arguments.out / "tokens.npz", tokens=embedded(words), labels=np.array(labels))
    (arguments.out / "words.txt").write_text("\n".join(map(" ".join, words)), encoding="utf-8")
    results: dict[str, xr.Dataset] = {}
    for name, layout in layouts.items():
        network = trained(layout, arguments.steps)
        model = EmbeddedTagger(network, classes=len(TAGS))
        task = TokenTask(model, list(embedded(words)), labels, words, class_names=TAGS)
        plan = ls.SamplingPlan(n_candidate=100, n_bound=arguments.samples // layout.windows)
        smoothing, settings = ls.Smoothing(layout, plan), ls.Settings(alpha=0.01, budgets=np.linspace(0, 1, 41))
        run = ls.Run(arguments.out / name, name)
        results[name] = result = ls.certify(task, smoothing, settings, run=run)
        save_file(network.state_dict(), arguments.out / f"{name}.safetensors")
        share = result["certified"].sel(target="accuracy", bound="envelope") / result["total"].sel(target="accuracy")
        mean = share.mean("item")
        print(f"{name}: correct tags {float(mean[0]):.1%}; certified correct against an embedding attack of l2 norm ε:")
        radius = average_certifiable_radius(mean["budget"].values, mean.values).value
        print("  " + ", ".join(f"{float(mean.sel(budget=e)):.1%} at ε = {e}" for e in (0.1, 0.3, 0.5)), end="")
        print(f"; average certifiable radius {radius:.3f}")
        every = ls.recertify(arguments.out / name, ls.Settings(0.01, [0.05, 0.1], threat=PerPosition(most=2)))
        robust = (every["certified"] / every["total"]).sel(target="accuracy", bound="envelope").mean("item")
        print(f"  {float(robust.sel(budget=0.1)):.1%} where two words move by at most 0.1 each")
    report = arguments.out / "report.html"
    ls.write_report(results, report, title="Tags of a toy grammar")
    print(f"Report: {report}")


if __name__ == "__main__":
    main()
