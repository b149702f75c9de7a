"""What the base classifier predicts without noise: asked of the model directly, and kept with the votes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from localsmooth.certificates import OutputVotes
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, Partition, View
from localsmooth.noise import Gaussian
from localsmooth.sampling import ArraySubject, Counters
from localsmooth.tasks.graphs import (
    GCN,
    AttributeSubject,
    NetworkClassifier,
    cluster_layout,
    digit_graph,
    metis_clusters,
)
from tests.sampling.exact import ExactModel, make_item, make_layout
from tests.seeding import seeded


def subject_of(model: ExactModel, layout: Layout) -> ArraySubject:
    return ArraySubject(model, [make_item()], [layout], Gaussian(), seed=3)


def test_the_model_sees_the_item_without_noise():
    model, layout = ExactModel(), make_layout()
    clean = subject_of(model, layout).clean_labels(0)
    expected = model.scores(make_item()[None]).argmax(dim=1)[0].numpy()
    assert clean.shape == layout.outputs.shape
    np.testing.assert_array_equal(clean, expected)
    assert len(np.unique(clean)) > 1


def test_every_window_is_shown_alone():
    model, layout = ExactModel(), make_layout()
    rows, columns = layout.outputs.shape
    half, whole = rows // 2, slice(0, columns)
    halves = Partition(np.repeat([0, 1], [half, rows - half])[:, None].repeat(columns, axis=1))
    views = tuple(View((cut, whole), (cut, whole)) for cut in (slice(0, half), slice(half, rows)))
    windows = Layout(halves, layout.inputs, np.full((2, layout.inputs.count), 0.3), views)
    clean = subject_of(model, windows).clean_labels(0)
    item = make_item()
    for cut in (slice(0, half), slice(half, rows)):
        alone = model.scores(item[None, :, cut].contiguous()).argmax(dim=1)[0].numpy()
        np.testing.assert_array_equal(clean[cut], alone)


def test_a_model_that_fails_without_noise_is_named():
    class Faulty(ExactModel):
        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            return super().__call__(batch) * torch.nan

    with pytest.raises(InvalidInputError, match="without noise") as error:
        subject_of(Faulty(), make_layout()).clean_labels(0)
    assert error.value.field == "model"


def test_a_graph_is_shown_as_it_is():
    digits = digit_graph(per_digit=30)
    with seeded(1):
        network = GCN(digits.width, digits.classes, hidden=(8,)).eval()
    layout = cluster_layout(metis_clusters(digits, 3), digits.adjacency, addition=(0.02, 0.05), deletion=(0.1, 0.7))
    subject = AttributeSubject(NetworkClassifier(network), digits, layout, 3, Counters())
    attributes = torch.from_numpy(digits.attributes.toarray().astype(np.float32))
    with torch.no_grad():
        expected = network(attributes, torch.from_numpy(digits.edge_index)).argmax(dim=1).numpy()
    clean = subject.clean_labels(0)
    assert clean.shape == (digits.nodes,)
    assert np.mean(clean == expected) > 0.99  # sums in another order may break ties otherwise
    assert len(np.unique(clean)) > 1


def test_votes_keep_it_and_part_it():
    votes = OutputVotes(np.array([0, 1, 1]), np.array([5, 4, 3]), 5, clean=np.array([0, 0, 1]))
    np.testing.assert_array_equal(votes.part(np.array([1, 2])).clean, [0, 1])
