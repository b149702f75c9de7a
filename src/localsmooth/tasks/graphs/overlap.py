"""Certified IoU and Dice (F1) of the classes of nodes, for every pair of budgets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from localsmooth.collective import Bound, Overlap, certify_overlap
from localsmooth.results import ItemOverlap, build_overlaps
from localsmooth.runs import RunIdentity
from localsmooth.tasks.graphs.certified_graph import certified_graph, solved_together
from localsmooth.tasks.graphs.graph import UNLABELED
from localsmooth.tasks.graphs.ideal import reach_of_nodes, with_flips
from localsmooth.tasks.graphs.problem import node_problem
from localsmooth.tasks.graphs.result import graph_facts, settle_nodes
from localsmooth.tasks.graphs.settings import GraphSettings
from localsmooth.tasks.graphs.store import SampledGraph
from localsmooth.tasks.graphs.threat import budget_grid
from localsmooth.tasks.overlap import about_overlaps, for_overlaps, label_pairs, measured_iou, require_labels
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import RunRecord
from localsmooth.tasks.stakes import Alike

__all__ = ["graph_overlaps"]


def graph_overlaps(
    sampled: SampledGraph,
    settings: GraphSettings,
    record: RunRecord,
    configuration: RunIdentity | None,
    bound: Bound,
    tolerance: float,
) -> xr.Dataset:
    """Certify IoU and Dice (the F1 score) of every class of nodes for every pair of budgets.

    Parameters
    ----------
    sampled, settings, record, configuration
        As for `graph_result`.
    bound, tolerance
        As for `localsmooth.collective.certify_overlap`.

    Raises
    ------
    InvalidInputError
        If no certified node has a label, or a baseline is to be used.
    """
    nodes, graph = sampled.nodes, sampled.graph
    settings = for_overlaps(settings)
    planned = Planned(record.n_candidate, record.n_bound, record.sequence)
    asked = with_flips(settings, reach_of_nodes(graph, sampled.layout, nodes, settings, planned))
    settings = for_overlaps(settle_nodes(sampled, asked, record))
    counted = graph.labels[nodes] != UNLABELED
    label = require_labels(record.item_names[0], graph.labels[nodes].astype(np.int64), counted)
    candidate = sampled.votes.candidate[nodes].astype(np.int64)
    # Nodes without a label have strata of their own, for the event to be the one of the counts.
    pairs = label_pairs(candidate, label, np.ones(nodes.size, np.bool_))
    certified = certified_graph(sampled, settings, Alike(pairs, None))
    certified.base.require_whole(pairs + 1)
    rows = budget_grid(settings.additions, settings.deletions)
    made: list[Overlap] = []
    parts = solved_together(certified.base, rows)
    for part in parts:
        threat = settings.limits.threat(
            graph, certified.inputs, certified.clusters, additions=rows[0][part], deletions=rows[1][part]
        )
        problem = node_problem(certified.base, threat, np.flatnonzero(counted))
        found = certify_overlap(
            problem.problem, candidate, label, None, bound, tolerance, discount=certified.base.discount
        )
        spent = np.apply_along_axis(problem.spread, -1, found.attack) if found.classes.size else found.attack
        made.append(replace(found, attack=spent))
    order = np.argsort(np.concatenate(parts))
    whole = Overlap(
        made[0].classes,
        *(
            np.concatenate([getattr(one, name) for one in made], axis=1)[:, order]
            for name in ("iou", "iou_upper", "attack")
        ),
        *(
            np.concatenate([getattr(one, name) for one in made])[order]
            for name in ("mean_iou_upper", "mean_dice_upper")
        ),
    )
    clean = sampled.votes.clean
    measured = {"candidate": candidate} | ({} if clean is None else {"clean": clean[nodes].astype(np.int64)})
    known = {name: measured_iou(each, label, counted, len(record.class_names)) for name, each in measured.items()}
    run = graph_facts(sampled, asked, settings.sharing, record, configuration)
    return build_overlaps([ItemOverlap(record.item_names[0], whole, known)], about_overlaps(run, bound))
