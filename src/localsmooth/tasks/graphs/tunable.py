"""What choosing noise asks of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates import OutputVotes
from localsmooth.collective import Envelope
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.noise import Noise
from localsmooth.tasks.graphs.certified_graph import certified_target
from localsmooth.tasks.graphs.certified_nodes import known_labels, node_stakes
from localsmooth.tasks.graphs.graph import AttributedGraph, attributes_digest
from localsmooth.tasks.graphs.layouts import ClusterLayout, graph_layout
from localsmooth.tasks.graphs.settings import KINDS, GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.graphs.threat import budget_grid
from localsmooth.tasks.stakes import Predicted
from localsmooth.tasks.targets import Target
from localsmooth.tasks.tunable import Foreseen, Trial, Tunable

__all__ = ["GraphTrial", "TunableGraph"]

_STEPS = 41  # budgets of a curve where none are named


@dataclass(frozen=True, eq=False)
class GraphTrial(Trial):
    """The certified nodes of a graph with the votes of a pilot.

    Parameters
    ----------
    sampled
        The graph.
    settings
        What is proven, with one target, one bound and one kind of budget.
    class_names
        Name of each class.
    """

    sampled: SampledGraph
    settings: GraphSettings
    class_names: Sequence[str]

    @cached_property
    def votes(self) -> OutputVotes:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Votes of the certified nodes."""
        return self.sampled.votes.part(self.sampled.nodes)

    def certified(self, votes: OutputVotes) -> Foreseen:
        """Certify the nodes with these votes."""
        nodes = self.sampled.nodes
        sampled = replace(self.sampled, votes=_spread(self.sampled.votes, votes, nodes))
        settings = self.settings.settled(votes, sampled.layout.outputs.labels[nodes])
        (stakes,) = node_stakes(sampled, settings.targets, self.class_names).values()
        rows = budget_grid(settings.additions, settings.deletions)
        made = certified_target(sampled, settings, settings.targets[0].name, stakes, rows, {})
        ((_, curve),) = made.curves.items()
        return Foreseen(
            np.clip(curve.certified / max(stakes.total, 1e-300), 0, 1),
            Predicted(
                made.certified.alone.base.prediction.astype(np.int64),
                known_labels(sampled),
                votes.clean,
                None,
                self.class_names,
            ),
        )


class TunableGraph(Tunable):
    """Fills in the contract for a task with a graph and nodes."""

    graph: AttributedGraph
    nodes: Int[np.ndarray, "nodes"]
    called: str
    class_names: list[str]

    def looked_at(self) -> frozenset[str]:
        """Digest of the attributes: what is chosen by them does not certify them."""
        return frozenset([attributes_digest(self.graph)])

    def laid_out(self, layout: Layout | LayoutRecipe) -> list[Layout]:
        """Make the layout of the graph."""
        return [graph_layout(layout, self.graph)]

    def remembering(self, layout: Layout | LayoutRecipe, origins: frozenset[str]) -> Layout | LayoutRecipe:
        """Return the rule, or the layout, so that it remembers the attributes."""
        if isinstance(layout, ClusterLayout):
            return replace(layout, origins=layout.origins | origins)
        made = graph_layout(layout, self.graph)
        return replace(made, origins=made.origins | origins)

    def isotropic(self, layouts: Sequence[Layout]) -> dict[str, Layout | LayoutRecipe]:
        """One cluster with the smallest probabilities of each layout."""
        smallest = np.unique([layout.levels.reshape(-1, 2).min(axis=0).round(6) for layout in layouts], axis=0)
        made = [ClusterLayout(1, (added, added), (deleted, deleted)) for added, deleted in smallest.tolist()]
        return {one.words: one for one in made}

    def known(self) -> list[tuple[str, Predicted]]:
        """The graph's name, and the labels of the certified nodes."""
        nothing, labels = np.zeros(self.nodes.size, np.int64), self.graph.labels[self.nodes]
        known = labels if bool((labels >= 0).all()) else None
        return [(self.called, Predicted(nothing, known, nothing, None, self.class_names))]

    def asked(
        self,
        settings: GraphSettings,
        noise: Noise | None,
        target: Target,
        kind: str | None,
        proven: Sequence[GraphSettings],
        at: float | int | None,
    ) -> tuple[GraphSettings, Float[np.ndarray, "budgets"]]:
        """Leave budgets of one kind, by default of deletions where there are any above 0.

        Raises
        ------
        InvalidInputError
            For baselines, kinds of flips that there are not, and parts of flips.
        """
        del noise
        if settings.baseline is not None:
            raise InvalidInputError("baseline", "it has no levels to choose", "Leave the baseline out")
        if kind is None:
            kind = next((name for name in reversed(KINDS) if getattr(settings, name) != (0,)), KINDS[-1])
        if kind not in KINDS:
            raise InvalidInputError("kind", f"got {kind!r}", f"Pass one of {', '.join(KINDS)}")
        if at is not None and not float(at).is_integer():
            raise InvalidInputError("at", f"got {at:g} flips", "Pass a whole number")
        sizes: tuple[int, ...] = getattr(settings, kind)
        if not sizes and proven:
            farthest = max(max(getattr(each, kind)) for each in proven)
            sizes = tuple(np.unique(np.linspace(0, farthest, _STEPS).round()).astype(int).tolist())
        sizes = tuple(sorted({*sizes, *(() if at is None else (int(at),))}))
        budgets = {name: sizes if name == kind else (0,) for name in KINDS}
        asked = replace(settings, bounds={Envelope.name: Envelope()}, targets=(target,), **budgets)
        return asked, np.array(sizes, dtype=np.float64)

    def trials(self, sampled: SampledGraph, settings: GraphSettings, noise: Noise | None) -> list[Trial]:
        """The graph with its pilot."""
        del noise
        return [GraphTrial(sampled, settings, self.class_names)]


def _spread(whole: OutputVotes, votes: OutputVotes, nodes: Int[np.ndarray, "nodes"]) -> OutputVotes:
    """Votes of all nodes where those of some are given; nobody looks at the others."""

    def everywhere(values: np.ndarray) -> np.ndarray:
        made = np.zeros(whole.candidate.size, values.dtype)
        made[nodes] = values
        return made

    first = votes.candidate_votes
    return replace(
        votes,
        candidate=everywhere(votes.candidate),
        votes=everywhere(votes.votes),
        candidate_votes=first and replace(first, votes=everywhere(np.asarray(first.votes))),
        clean=None if votes.clean is None else everywhere(votes.clean),
    )
