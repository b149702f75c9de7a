import numpy as np
import pytest
import torch
from pydantic import ValidationError

from localsmooth.graphs import (
    GCN,
    TrainingOptions,
    cluster_layout,
    metis_clusters,
    self_labeled,
    split_per_class,
    train_with_noise,
)
from localsmooth.graphs.run import run_graph
from localsmooth.graphs.section import GraphSection


def test_training_lowers_the_loss_and_keeps_the_best_epoch(digits):
    layout = cluster_layout(metis_clusters(digits, 2), digits.adjacency, addition=(0.02, 0.02), deletion=(0.1, 0.3))
    split = split_per_class(digits.labels, per_class=5)
    networks = []
    for _ in range(2):
        torch.manual_seed(0)
        network = GCN(digits.width, digits.classes, (16,))
        options = TrainingOptions(learning_rate=0.02, epochs=40, patience=40)
        report = train_with_noise(network, digits, split, layout, options)
        assert not network.training
        assert report.losses[-1] < 0.7 * report.losses[0]
        assert report.best_epoch == 5 * int(np.argmin(report.validation_losses))
        networks.append(network.state_dict())
    assert all(torch.equal(networks[0][key], networks[1][key]) for key in networks[0])


def test_self_labels_leave_known_labels_and_validation_alone(digits):
    split = split_per_class(digits.labels, per_class=5)
    graph, wide = self_labeled(digits, split, np.zeros(digits.nodes, int))
    assert np.array_equal(graph.labels[split.train], digits.labels[split.train])
    assert np.array_equal(graph.labels[split.validation], digits.labels[split.validation])
    assert not graph.labels[split.test].any()
    assert np.array_equal(wide.validation, split.validation)
    assert not np.intersect1d(wide.train, wide.validation).size
    assert wide.train.size == digits.nodes - split.validation.size


SMALL = {
    "data": "digits",
    "clusters": 3,
    "addition": (0.02, 0.02),
    "deletion": (0.1, 0.4),
    "epochs": 30,
    "learning_rate": 0.02,
    "hidden": [16],
    "n_candidate": 20,
    "n_bound": 60,
    "chunk_size": 20,
    "alpha": 0.1,
    "additions": [0, 1],
    "deletions": [0, 1, 4],
}


def test_a_section_runs_and_runs_again_from_what_is_stored(tmp_path):
    first = run_graph(GraphSection(**SMALL), tmp_path)
    again = run_graph(GraphSection(**SMALL), tmp_path)
    assert np.array_equal(first.tally.votes, again.tally.votes)
    assert np.array_equal(first.joint.robust, again.joint.robust)
    grid = first.joint.robust.reshape(2, 3)
    assert np.array_equal(grid[0], first.deletions.robust)
    assert np.array_equal(grid[:, 0], first.additions.robust)
    assert (np.diff(grid, axis=0) <= 0).all()
    assert (np.diff(grid, axis=1) <= 0).all()
    assert first.deletions.accuracy[0] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clusters": 1}, "one cluster has one level"),
        ({"hidden": [4, 4]}, "one hidden layer"),
        ({"deletion": (0.1, 1.0)}, "deletion"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_sections_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        GraphSection(**(SMALL | change))


def test_citeseer_end_to_end(citeseer_path, tmp_path):
    """Reduced: little training and few samples, but the real graph through every step."""
    section = GraphSection(
        data=citeseer_path,
        clusters=5,
        deletion=(0.1, 0.5),
        epochs=25,
        learning_rate=0.02,
        self_training=False,
        n_candidate=20,
        n_bound=20,
        chunk_size=20,
        alpha=0.5,
        additions=[0, 1],
        deletions=[0, 1],
        evaluate="validation",
    )
    run = run_graph(section, tmp_path)
    assert run.data.graph.nodes == 2110
    right = (run.tally.candidate == run.data.graph.labels)[run.data.split.test].mean()
    assert right > 0.5
    assert (run.tally.votes <= 20).all()
    assert run.nodes.size == 120
    assert run.deletions.robust[0] >= run.deletions.robust[1] >= 0
