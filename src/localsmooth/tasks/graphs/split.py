"""Which nodes are trained on, validated on, and certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from localsmooth.errors import InvalidInputError

__all__ = ["NodeSplit", "split_per_class"]


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Node numbers of each part, ascending, disjoint."""

    train: Int[np.ndarray, "train"]
    validation: Int[np.ndarray, "validation"]
    test: Int[np.ndarray, "test"]


def split_per_class(labels: Int[np.ndarray, "nodes"], *, per_class: int = 20, seed: int = 0) -> NodeSplit:
    """Draw the same number of training and of validation nodes from every class; the rest is the test set.

    Unlabeled nodes (-1) belong to no part.

    Parameters
    ----------
    labels
        Class of each node.
    per_class
        Training nodes per class, and validation nodes per class.
    seed
        Any non-negative integer; the same seed gives the same split.

    Raises
    ------
    InvalidInputError
        If a class is too small to leave a test node.
    """
    if per_class < 1:
        raise InvalidInputError("per_class", f"got {per_class}", "Train on at least one node per class")
    generator = np.random.default_rng(seed)
    parts: tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]] = ([], [], [])
    for label in np.unique(labels[labels >= 0]):
        members = generator.permutation(np.flatnonzero(labels == label))
        if members.size <= 2 * per_class:
            raise InvalidInputError(
                "per_class", f"class {label} has only {members.size} nodes", f"Use at most {(members.size - 1) // 2}"
            )
        for part, chosen in zip(parts, np.split(members, [per_class, 2 * per_class]), strict=True):
            part.append(chosen)
    if not parts[0]:
        raise InvalidInputError("labels", "no node has a label", "Label at least some nodes")
    train, validation, test = (np.sort(np.concatenate(part)) for part in parts)
    return NodeSplit(train, validation, test)
