"""What a result on a graph holds besides: every pair of budgets (ε⁺, ε⁻), the worst plans, and a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from localsmooth.errors import InvalidInputError
from localsmooth.results.names import ACCURACY, OUTPUT, RATIO, axis_names

__all__ = [
    "ADDITION",
    "DELETION",
    "JOINT_VARIABLES",
    "JointResult",
    "attach_joint",
    "check_joint",
    "has_joint",
    "kind_curve",
]

ADDITION, DELETION = "addition", "deletion"
"""Coordinates of the two budgets."""

_POSITION = axis_names(OUTPUT, 1)[0]
_COUNTS = ("item", "target", "bound", ADDITION, DELETION)

JOINT_VARIABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "joint_certified": (_COUNTS, "i"),
    "joint_lower": (_COUNTS, "f"),
    "joint_upper": (_COUNTS, "f"),
    "joint_attack": ((*_COUNTS, "flip", "input_group"), "f"),
    "joint_falls": ((*_COUNTS, _POSITION), "b"),
    "joint_alone": (("item", ADDITION, DELETION, _POSITION), "b"),
    "edge_ends": (("item", "edge", "end"), "i"),
    "node_place": (("item", _POSITION, "plane"), "f"),
}
"""Dimensions and kind of numbers of each variable that only results on graphs have."""


@dataclass(frozen=True, eq=False)
class JointResult:
    """Certified counts for every pair of budgets, of one graph.

    Parameters
    ----------
    additions, deletions
        Budgets ε⁺ and ε⁻, ascending from 0.
    certified, lower, upper
        As in `CertifiedCurve`.
    attack
        Flips that the best plan found spends in each input group: additions, then deletions.
    falls
        Whether that plan breaks a node's certificate.
    alone
        Whether a node keeps its prediction against every attack, whoever else it is aimed at.
    edges
        Pairs of nodes, each edge once.
    places
        Where each node is drawn, in the unit square.
    """

    additions: Int[np.ndarray, "additions"]
    deletions: Int[np.ndarray, "deletions"]
    certified: Int[np.ndarray, "targets bounds additions deletions"]
    lower: Float[np.ndarray, "targets bounds additions deletions"]
    upper: Float[np.ndarray, "targets bounds additions deletions"]
    attack: Float[np.ndarray, "targets bounds additions deletions 2 input_groups"]
    falls: Bool[np.ndarray, "targets bounds additions deletions nodes"]
    alone: Bool[np.ndarray, "additions deletions nodes"]
    edges: Int[np.ndarray, "edges 2"]
    places: Float[np.ndarray, "nodes 2"]


def attach_joint(dataset: xr.Dataset, joint: JointResult) -> xr.Dataset:
    """Add the pairs of budgets to a result of one graph."""
    arrays = {
        "joint_certified": joint.certified.astype(np.int64),
        "joint_lower": joint.lower,
        "joint_upper": joint.upper,
        "joint_attack": joint.attack,
        "joint_falls": joint.falls,
        "joint_alone": joint.alone,
        "edge_ends": joint.edges.astype(np.int32),
        "node_place": joint.places,
    }
    units = {"units": dataset["budget"].attrs["units"]}
    return dataset.assign_coords(
        {
            ADDITION: (ADDITION, joint.additions.astype(np.int64), units),
            DELETION: (DELETION, joint.deletions.astype(np.int64), units),
        }
    ).assign({name: (JOINT_VARIABLES[name][0], array[None]) for name, array in arrays.items()})


def has_joint(dataset: xr.Dataset) -> bool:
    """Whether a result is one on a graph."""
    return ADDITION in dataset.coords or "joint_certified" in dataset


def kind_curve(dataset: xr.Dataset, kind: str) -> xr.Dataset:
    """Counts for one kind of flip alone, as a result with that kind's budgets.

    Parameters
    ----------
    dataset
        A result on a graph.
    kind
        "addition" or "deletion".
    """
    other = DELETION if kind == ADDITION else ADDITION
    flip = 0 if kind == ADDITION else 1
    alone = dataset.isel({other: 0})
    made = dataset.drop_vars([*JOINT_VARIABLES, ADDITION, DELETION, "certified", "lower", "upper", "attack", "budget"])
    budgets = dataset[kind].values.astype(np.float64)
    made = made.assign_coords(budget=("budget", budgets, dict(dataset["budget"].attrs)))
    counts = ("item", "target", "bound", "budget")
    for name in ("certified", "lower", "upper"):
        made[name] = (counts, alone[f"joint_{name}"].values)
    made["attack"] = ((*counts, "input_group"), alone["joint_attack"].isel(flip=flip).values)
    return made


def check_joint(dataset: xr.Dataset) -> None:
    """Check what only results on graphs hold; dimensions and types have been checked.

    Raises
    ------
    InvalidInputError
        If something is inconsistent.
    """

    def demand(holds: bool | np.bool_, field: str, problem: str) -> None:
        if not holds:
            raise InvalidInputError(field, problem, "The result is damaged or foreign; certify again")

    nodes = dataset.sizes[_POSITION]
    demand(dataset.sizes["item"] == 1, "item", "there are several graphs in one result")
    demand((dataset.sizes["flip"], dataset.sizes["end"], dataset.sizes["plane"]) == (2, 2, 2), "flip", "is not 2")
    for name in (ADDITION, DELETION):
        budgets = dataset[name].values
        demand(budgets[0] == 0 and (np.diff(budgets) > 0).all(), name, "does not ascend from 0")
    certified, lower, upper = (dataset[f"joint_{name}"].values for name in ("certified", "lower", "upper"))
    demand((certified >= 0).all() and (certified <= np.ceil(lower)).all(), "joint_lower", "proves less than certified")
    demand((certified <= upper).all(), "joint_upper", "is less than what is certified")
    for axis in (3, 4):
        demand((np.diff(certified, axis=axis) <= 0).all(), "joint_certified", "grows with the budget")
    prediction, label = dataset["prediction"].values[0], dataset["label"].values[0]
    alive = ~dataset["ignored"].values[0] & (prediction >= 0)
    limits: dict[str, Any] = {RATIO: alive.sum(), ACCURACY: (alive & (prediction == label)).sum()}
    for place, target in enumerate(dataset["target"].values.tolist()):
        demand((certified[:, place] <= limits[target]).all(), "joint_certified", "is more than there are nodes")
    attack = dataset["joint_attack"].values
    demand((np.isfinite(attack) & (attack >= 0)).all(), "joint_attack", "is negative, infinite or NaN")
    demand(not dataset["joint_alone"].values[0][..., ~alive].any(), "joint_alone", "certifies what is not predicted")
    edges, places = dataset["edge_ends"].values, dataset["node_place"].values
    demand(((edges >= 0) & (edges < nodes)).all(), "edge_ends", "names no node")
    demand(((places >= 0) & (places <= 1)).all(), "node_place", "is outside the unit square")
