"""Every kind of input passes the contract suite; what is registered and has no case here fails a test."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from localsmooth.layout import GridLayout
from localsmooth.models import CallableModel, OutputKind
from localsmooth.noise import SparseFlips
from localsmooth.runs import SamplingPlan
from localsmooth.tasks import TASKS, Smoothing
from localsmooth.tasks.arrays import ArrayTask, Settings
from localsmooth.tasks.graphs import GCN, GraphSettings, GraphTask, NetworkClassifier, cluster_layout, graph_from_arrays
from localsmooth.tasks.points import PointTask, cell_layout, fit_centres, nearest_cells
from localsmooth.tasks.tokens import EmbeddedTagger, TokenTask, WindowLayout
from localsmooth.testing import TaskCase, TaskContract
from tests.seeding import seeded

PLAN = SamplingPlan(n_candidate=20, n_bound=240, seed=4, chunk_size=80)
SETTINGS = Settings(0.1, [0.0, 0.2, 0.4])
OTHER = Settings(0.02, [0.1, 0.3], bounds=["naive", "envelope"])


def positive(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 0] > 0).astype(np.int64)


def array_case() -> TaskCase:
    model = CallableModel(positive, name="positive", bounds=None, classes=2, output=OutputKind.LABELS)
    images = np.random.default_rng(0).standard_normal((2, 1, 4, 6)).astype(np.float32)
    task = ArrayTask(model, images, (images[:, 0] > 0.1).astype(int))
    return TaskCase(task, Smoothing(GridLayout((2, 2), 0.2, 0.5), PLAN), SETTINGS, OTHER)


def graph_case() -> TaskCase:
    rng = np.random.default_rng(1)
    edges = np.array([[a, a + 1] for a in range(11)] + [[0, 5], [6, 11]]).T
    labels = (np.arange(12) >= 6).astype(int)
    bits = (rng.random((12, 8)) < np.where(labels[:, None] == (np.arange(8) >= 4), 0.9, 0.1)).astype(int)
    graph = graph_from_arrays(edges, bits, labels)
    with seeded(0):
        network = GCN(graph.width, 2, (2,)).eval()
    with torch.no_grad():  # votes for the half of the attributes that there are more of
        network.weight.copy_(torch.tensor([[1.0, 0.0]] * 4 + [[0.0, 1.0]] * 4))
        network.weights[0].copy_(4 * torch.eye(2))
    layout = cluster_layout(labels.astype(np.int64), graph.adjacency, addition=(0.05, 0.1), deletion=(0.3, 0.5))
    smoothing = Smoothing(layout, PLAN, SparseFlips())
    task = GraphTask(NetworkClassifier(network), graph, np.arange(2, 12))
    return TaskCase(task, smoothing, GraphSettings(0.1, [0, 1], [0, 1, 2]), GraphSettings(0.02, [0, 1], [0, 3]))


class Tagger(nn.Module):
    """The class of a token is the sign of the sum of its features and its neighbours'."""

    def __init__(self) -> None:
        super().__init__()
        with seeded(0):
            self.mix = nn.Conv1d(3, 2, 3, padding=1)
        with torch.no_grad():
            self.mix.weight.copy_(
                torch.tensor([0.1, 1.0, 0.1]).expand(2, 3, 3) * torch.tensor([1.0, -1.0])[:, None, None]
            )
            self.mix.bias.zero_()

    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        return self.mix(inputs_embeds.transpose(1, 2)).transpose(1, 2)


def token_case() -> TaskCase:
    rng = np.random.default_rng(2)
    sequences = [rng.standard_normal((length, 3)).astype(np.float32) for length in (7, 5)]
    words = [[f"word{place}" for place in range(len(sequence))] for sequence in sequences]
    labels = [(sequence.sum(axis=1) < 0).astype(int) for sequence in sequences]
    task = TokenTask(EmbeddedTagger(Tagger().eval(), classes=2), sequences, labels, words)
    return TaskCase(task, Smoothing(WindowLayout(3, 0.2, 0.5), PLAN), SETTINGS, OTHER)


def high(batch: np.ndarray) -> np.ndarray:
    return (batch[:, 2] > 0).astype(np.int64)


def point_case() -> TaskCase:
    rng = np.random.default_rng(3)
    templates = [rng.uniform(-1, 1, (points, 3)) for points in (9, 7)]
    clouds = [template + 0.01 * rng.standard_normal(template.shape) for template in templates]
    model = CallableModel(high, name="high", bounds=None, classes=2, output=OutputKind.LABELS)
    task = PointTask(model, clouds, [(cloud[:, 2] > 0.1).astype(int) for cloud in clouds])
    centres = fit_centres(templates, 3)
    layouts = [cell_layout(nearest_cells(template, centres), centres, 0.2, 0.5) for template in templates]
    return TaskCase(task, Smoothing(layouts, PLAN), SETTINGS, OTHER)


CASES = {"arrays": array_case, "graphs": graph_case, "points": point_case, "tokens": token_case}
"""How to make a small case of each kind of input: a line for every one that the package offers."""


@pytest.mark.parametrize("name", CASES)
class TestTasks(TaskContract):
    @pytest.fixture(autouse=True)
    def chosen(self, name: str) -> None:
        self.make = CASES[name]


def test_every_kind_of_input_has_a_case() -> None:
    assert CASES.keys() == TASKS.keys()
