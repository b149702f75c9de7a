"""An adversary who searches by gradient never pushes more predictions than the collective certificate allows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.flat import certify
from tests.seeding import seeded
from torch import nn

from localsmooth.certificates import ABSTAIN
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.models import TorchModel
from localsmooth.results import RATIO
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.testing.chance import CHECK, mean_margin

SHAPE = (6, 8)
LAYOUT = GridLayout((2, 2), 0.25, 0.6)
BUDGETS = [0.1, 0.25, 0.5, 0.8, 1.2]


def two_layer_segmenter(seed: int) -> nn.Module:
    with seeded(seed):
        network = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2.0)
    return network.eval()


def attack(
    network: nn.Module,
    image: torch.Tensor,
    levels: torch.Tensor,
    prediction: torch.Tensor,
    groups: torch.Tensor,
    budget: float,
    generator: torch.Generator,
) -> torch.Tensor:
    """Projected gradient ascent on the smoothed margin of all predictions, from a random start."""
    delta = torch.randn(image.shape, generator=generator)
    delta = (delta * budget / delta.norm()).requires_grad_()
    robust = prediction != ABSTAIN
    wanted = prediction.clamp(min=0)
    for _ in range(25):
        noise = torch.randn(24, *image.shape, generator=generator)
        loss = torch.zeros(())
        for group in range(levels.shape[0]):
            scores = network(image + delta + noise * levels[group]).softmax(1).mean(0)
            kept = scores.gather(0, wanted[None])[0]
            inside = robust & (groups == group)
            # Predictions close to falling count most: the sum of soft indicators of survival.
            loss = loss - torch.sigmoid((kept[inside] - 0.5) * 20).sum()
        (gradient,) = torch.autograd.grad(loss, delta)
        with torch.no_grad():
            delta += 0.25 * budget * gradient / (gradient.norm() + 1e-12)
            delta *= budget / delta.norm()
    return delta.detach()


def surely_changed(
    network: nn.Module,
    image: torch.Tensor,
    levels: torch.Tensor,
    prediction: np.ndarray,
    groups: np.ndarray,
    generator: torch.Generator,
    samples: int = 12_000,
) -> int:
    """How many predictions another class beats by more than chance may have done."""
    changed = 0
    with torch.inference_mode():
        for group in range(levels.shape[0]):
            noise = torch.randn(samples, *image.shape, generator=generator)
            votes = network(image + noise * levels[group]).argmax(1).numpy()
            share = np.stack([(votes == k).mean(0) for k in range(3)])
            kept = np.take_along_axis(share, np.maximum(prediction, 0)[None], 0)[0]
            beaten = share.max(0) - kept > mean_margin(samples, 2, 2 * kept.size)
            changed += int((beaten & (prediction != ABSTAIN) & (groups == group)).sum())
    return changed


@pytest.mark.parametrize("seed", [0, 1])
def test_adversary_never_beats_the_certificate(seed: int) -> None:
    network = two_layer_segmenter(seed)
    image = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(seed))
    result = certify(
        TorchModel(network, bounds=(0.0, 1.0), classes=3),
        [image.numpy()],
        layout=LAYOUT,
        plan=SamplingPlan(n_candidate=100, n_bound=4000, seed=seed, chunk_size=500),
        alpha=CHECK,
        budgets=BUDGETS,
        options=SamplingOptions(batch_size=256),
        progress=NoProgress(),
    )
    made = LAYOUT.layout((1, *SHAPE), SHAPE)
    levels = torch.stack([torch.from_numpy(made.level_map(g)).float() for g in range(4)])
    prediction, groups = result["prediction"].values[0].astype(np.int64), made.outputs.labels.astype(np.int64)
    certified = result["certified"].sel(target=RATIO, bound="envelope").values[0]
    robust = int((prediction != ABSTAIN).sum())
    assert robust > 20, "the test needs predictions to attack"
    generator = torch.Generator().manual_seed(100 + seed)
    most_changed = 0
    for budget, count in zip(BUDGETS, certified, strict=True):
        delta = attack(
            network, image, levels, torch.from_numpy(prediction), torch.from_numpy(groups), budget, generator
        )
        assert float(delta.norm()) <= budget * (1 + 1e-5)
        changed = surely_changed(network, image + delta, levels, prediction, groups, generator)
        assert changed <= robust - count, f"budget {budget}: {changed} of {robust} changed, {count} were certified"
        most_changed = max(most_changed, changed)
    # The adversary is worth its name: at the largest budget it changes predictions, so the check can fail.
    assert most_changed >= 5
    assert certified[0] > 0
