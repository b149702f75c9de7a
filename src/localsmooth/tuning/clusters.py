"""What may be chosen for graphs: numbers of clusters and probabilities of flips, isotropic noise always among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from localsmooth.errors import InvalidInputError
from localsmooth.tasks.graphs import ClusterLayout, Cut, metis_clusters
from localsmooth.tuning.candidates import Candidate

__all__ = ["cluster_candidates"]

Pair = tuple[float, float]


def cluster_candidates(
    deletions: Sequence[float],
    *,
    additions: Sequence[float] = (0.01,),
    clusters: Sequence[int] = (5,),
    cut: Cut = metis_clusters,
) -> list[Candidate]:
    """Isotropic noise of each pair of probabilities, and localized noise between any two, on each number of clusters.

    Parameters
    ----------
    deletions, additions
        Probabilities θ⁻ of 1 → 0 and θ⁺ of 0 → 1. In a node's own cluster neither is larger than in the farthest, and
        one of them is smaller.
    clusters
        Numbers of clusters, each larger than 1.
    cut
        Makes clusters of a graph's edges.

    Raises
    ------
    InvalidInputError
        If there is no probability, or one outside [0, 1), or a number of clusters is not larger than 1.
    """
    for field, given in (("deletions", deletions), ("additions", additions)):
        if not len(given) or not all(0 <= level < 1 for level in given):
            raise InvalidInputError(field, f"got {list(given)}", "Pass flip probabilities in [0, 1)")
    if not all(count > 1 for count in clusters):
        raise InvalidInputError(
            "clusters", f"got {list(clusters)}", "Pass numbers larger than 1: one cluster is among the candidates"
        )
    added, deleted = (sorted(set(map(float, each))) for each in (additions, deletions))
    rules = [ClusterLayout(1, (plus, plus), (minus, minus), cut) for plus, minus in product(added, deleted)]
    for count in dict.fromkeys(clusters):
        for plus, minus in product(_pairs(added), _pairs(deleted)):
            if plus[0] < plus[1] or minus[0] < minus[1]:
                rules.append(ClusterLayout(count, plus, minus, cut))
    return [Candidate(rule.words, rule, isotropic=rule.clusters == 1, changes=_changes(rule)) for rule in rules]


def _pairs(levels: Sequence[float]) -> list[Pair]:
    return [(near, far) for near in levels for far in levels if near <= far]


def _changes(rule: ClusterLayout) -> dict[str, dict[str, object]]:
    """What a file says for it."""
    noise: dict[str, object] = {"addition": list(rule.addition), "deletion": list(rule.deletion)}
    return {"graph": {"clusters": rule.clusters}, "noise": noise}
