import numpy as np
import pytest
import torch

from localsmooth.errors import InvalidInputError
from localsmooth.execution import (
    OtherPartsMissingError,
    Part,
    PoisonedChunksError,
    ProcessExecutor,
    SerialExecutor,
    ThreadExecutor,
)
from localsmooth.layout import derived, item_digest
from localsmooth.runs import DirectoryStore, MemoryStore, SamplingPlan, StoreError
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.graphs import (
    APPNP,
    EdgeIndexClassifier,
    NetworkClassifier,
    cluster_layout,
    isotropic_node_layout,
    metis_clusters,
    sample_nodes,
)
from localsmooth.tasks.graphs.sampler import SCORE_BINS
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.testing.chance import assert_binomial, mean_margin
from tests.seeding import seeded

from .exact import ExactSmoothing, sharp_gcn


@pytest.fixture(scope="module")
def setting(digits):
    with seeded(1):
        network = APPNP(digits.width, digits.classes, hidden=8).eval()
    with torch.no_grad():
        network.weight *= 4
    layout = cluster_layout(metis_clusters(digits, 3), digits.adjacency, addition=(0.02, 0.05), deletion=(0.1, 0.7))
    return NetworkClassifier(network), digits, layout


PLAN = SamplingPlan(20, 50, seed=3, chunk_size=16)


def _same(left, right, rounding: float = 0.0) -> bool:
    """Whether labels are the same, and scores but for a share of them that fell on another grid point."""
    return (
        np.array_equal(left.candidate, right.candidate)
        and np.array_equal(left.votes, right.votes)
        and all(
            np.abs(left.further[key] - right.further[key]).sum() <= rounding * np.abs(left.further[key]).sum()
            for key in left.further
        )
    )


def test_tallies_do_not_depend_on_batches(setting):
    tallies = [sample_nodes(*setting, PLAN, options=SamplingOptions(batch_size=size)) for size in (1, 7, 16)]
    # Larger batches add in another order: a score at the edge of two grid points may go to either.
    assert _same(tallies[0], tallies[1], rounding=1e-3)
    assert _same(tallies[0], tallies[2], rounding=1e-3)
    assert not _same(tallies[0], sample_nodes(*setting, SamplingPlan(20, 50, seed=4, chunk_size=16)), 1e-3)


def test_every_sample_is_counted_once(setting):
    tally = sample_nodes(*setting, PLAN)
    assert (tally.n, tally.n_candidate) == (50, 20)
    histogram = ScoreCounting("histogram", SCORE_BINS).tally(tally.further["scores.bins"], tally.n)
    assert (histogram.counts.sum(axis=1) == 50).all()
    # Votes and scores come from the same samples: a score above 1/2 is a vote.
    assert (histogram.counts[:, 129:].sum(axis=1) <= tally.votes).all()
    assert (tally.votes <= 50).all()
    assert tally.votes.any()


def test_an_interrupted_run_goes_on_where_it_stopped(setting, tmp_path, monkeypatch):
    whole = sample_nodes(*setting, PLAN)

    class InterruptedRunError(Exception):
        pass

    with DirectoryStore(tmp_path / "run") as store:
        commit, calls = store.commit, []

        def stop(record):
            if len(calls) == 5:
                raise InterruptedRunError
            calls.append(record)
            return commit(record)

        monkeypatch.setattr(store, "commit", stop)
        with pytest.raises(InterruptedRunError):
            sample_nodes(*setting, PLAN, store)
    with DirectoryStore(tmp_path / "run") as store:
        assert len(store.finished()) == 5
        assert _same(whole, sample_nodes(*setting, PLAN, store))
    other = SamplingPlan(20, 50, seed=4, chunk_size=16)
    with DirectoryStore(tmp_path / "run") as store, pytest.raises(StoreError, match="plan"):
        sample_nodes(*setting, other, store)


def test_another_layout_is_not_mixed_in(setting):
    classifier, graph, layout = setting
    store = MemoryStore()
    sample_nodes(classifier, graph, layout, PLAN, store)
    other = cluster_layout(layout.outputs.labels, graph.adjacency, addition=(0.02, 0.05), deletion=(0.1, 0.8))
    with pytest.raises(StoreError, match="layout"):
        sample_nodes(classifier, graph, other, PLAN, store)


def test_scores_that_are_not_finite_stop_the_run(setting):
    _, graph, layout = setting
    with seeded(0):
        network = APPNP(graph.width, graph.classes).eval()
    with torch.no_grad():
        network.last_bias[2] = float("nan")
    with pytest.raises(PoisonedChunksError, match="NaN"):
        sample_nodes(NetworkClassifier(network), graph, layout, PLAN)


def test_a_layout_of_another_graph_is_refused(setting, tiny):
    classifier, _, layout = setting
    with pytest.raises(InvalidInputError, match="layout"):
        sample_nodes(classifier, tiny, layout, PLAN)


@pytest.mark.parametrize("fast", [True, False])
def test_votes_and_scores_have_their_exact_expectation(tiny, fast):
    network = sharp_gcn(2, 2, seed=5)
    clusters = np.array([0, 0, 1, 1, 2])
    layout = cluster_layout(clusters, tiny.adjacency, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    exact = ExactSmoothing(tiny, network, layout)
    classifier = NetworkClassifier(network) if fast else EdgeIndexClassifier(network, 2)
    count = 2400
    tally = sample_nodes(classifier, tiny, layout, SamplingPlan(100, count, seed=1, chunk_size=300))
    q, mu, _ = exact.statistics(exact.clean, tally.candidate, np.zeros(5))
    assert_binomial(tally.votes, count, np.clip(q, 0, 1))
    histogram = ScoreCounting("histogram", SCORE_BINS).tally(tally.further["scores.bins"], tally.n)
    means, _ = histogram.scores()
    margin = mean_margin(count, numbers=5)
    # Scores are rounded down to 1/256.
    assert (means <= mu + margin).all()
    assert (means >= mu - 1 / 256 - margin).all()


@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadExecutor(3), ProcessExecutor(2)])
def test_every_executor_draws_the_same_tallies(setting, executor):
    assert _same(sample_nodes(*setting, PLAN), sample_nodes(*setting, PLAN, executor=executor))


def test_parts_join_to_the_whole(setting, tmp_path):
    with DirectoryStore(tmp_path) as store:
        with pytest.raises(OtherPartsMissingError):
            sample_nodes(*setting, PLAN, store, part=Part(1, 2))
        assert _same(sample_nodes(*setting, PLAN), sample_nodes(*setting, PLAN, store))


class Moody(torch.nn.Module):
    """Fails on its second call, once."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network, self.calls = network, 0

    def forward(self, attributes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 2:
            raise OSError("a passing trouble")
        return self.network(attributes, edges)


def test_chunks_that_fail_once_are_drawn_again(tiny):
    layout = isotropic_node_layout(tiny.nodes, addition=0.1, deletion=0.4)
    options = SamplingOptions(check_model=False)
    network = sharp_gcn(tiny.width, 2, 0)
    steady, moody = (
        sample_nodes(EdgeIndexClassifier(module, 2), tiny, layout, PLAN, options=options, executor=SerialExecutor())
        for module in (network, Moody(network).eval())
    )
    assert _same(steady, moody)


def test_clusters_that_follow_from_the_certified_attributes_are_refused(tiny):
    bits = tiny.attributes.toarray().astype(np.float32)
    clusters = derived((bits.sum(axis=1) > 1).astype(np.int64), item_digest(bits))
    layout = cluster_layout(clusters, tiny.adjacency, addition=(0.1, 0.3), deletion=(0.2, 0.6))
    with pytest.raises(InvalidInputError, match="computed from the attributes"):
        sample_nodes(EdgeIndexClassifier(sharp_gcn(tiny.width, 2, 0), 2), tiny, layout, PLAN)
