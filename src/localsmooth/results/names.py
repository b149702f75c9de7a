"""Names of the dimensions, variables and special values of a result."""

from __future__ import annotations

__all__ = [
    "ACCURACY",
    "AGREEMENT",
    "BUDGET",
    "CLASS",
    "COUNT_DIMENSIONS",
    "COUNT_VARIABLES",
    "DRAWN_VARIABLES",
    "FORMAT",
    "FORMAT_VERSION",
    "INPUT",
    "KIND",
    "NO_GROUP",
    "NO_LABEL",
    "OUTPUT",
    "OUTPUT_VARIABLES",
    "OUTSIDE",
    "RATIO",
    "axis_names",
    "counts_outputs",
    "marks_wrong",
    "symbol",
    "target_promise",
    "target_title",
]

FORMAT = "localsmooth-results"
"""Value of the attribute `format` of every result."""
FORMAT_VERSION = 1
"""Version of the file format; raised when a reader of the old one would misread the new one."""

RATIO = "ratio"
"""Target of the certified ratio: every output that is not ignored counts."""
ACCURACY = "accuracy"
"""Target of the certified accuracy: every correct output counts."""
AGREEMENT = "agreement"
"""Target of the outputs that are predicted as without noise."""

_TITLES = {
    RATIO: "Certified ratio",
    ACCURACY: "Certified accuracy",
    AGREEMENT: "Certified agreement with the clean model",
    "balanced": "Certified balanced recall",
    "foreground": "Certified foreground",
}
_KEPT = {RATIO: "keep their prediction", AGREEMENT: "keep the clean model's prediction"}
_OF_CLASS = "class:"


def target_title(target: str) -> str:
    """What charts call the certified share of a target."""
    if target.startswith(_OF_CLASS):
        return f"Certified recall of {target.removeprefix(_OF_CLASS)}"
    return _TITLES.get(target, f"Certified share by {target}")


def target_promise(target: str) -> str:
    """What the certified outputs of a target do, to follow "at least so many"."""
    return _KEPT.get(target, "keep their correct prediction")


def counts_outputs(target: str) -> bool:
    """Whether what is certified of a target is a number of outputs; what others are worth is shown as shares only."""
    return target in (RATIO, ACCURACY, AGREEMENT, "foreground") or target.startswith(_OF_CLASS)


def marks_wrong(target: str, labelled: bool) -> bool:
    """Whether outputs do not count for a target that differ from the labels, or (without them) from the clean model."""
    if target == AGREEMENT:
        return not labelled
    return target in (ACCURACY, "balanced", "foreground") or target.startswith(_OF_CLASS)


OUTSIDE = -2
"""Prediction and candidate of a padding position, outside an item that is smaller than the largest one."""
NO_LABEL = -1
"""Label of an output that is ignored, unlabelled or padding."""
NO_GROUP = -1
"""Group of a padding position."""

INPUT = "input"
OUTPUT = "output"

OUTPUT_VARIABLES = {
    "label": "i",
    "ignored": "b",
    "candidate": "i",
    "prediction": "i",
    "votes": "i",
    "lower_probability": "f",
    "eta": "f",
    "radius": "f",
    "output_partition": "i",
}
"""Variables with one value per output, with the kind of their numbers."""
COUNT_VARIABLES = {"certified": "if", "lower": "f", "upper": "f"}
"""Variables over item, target, bound and budgets, with the kind of their numbers."""
COUNT_DIMENSIONS = ("item", "target", "bound")
"""Dimensions of counts, before those of the budgets."""
DRAWN_VARIABLES = {"falls": "b", "alone": "b", "edge_ends": "i", "node_place": "f"}
"""What results hold besides whose outputs are drawn with their edges, with the kind of their numbers."""

BUDGET = "budget"
"""Dimension of the budgets, where there is one kind; where there are several, each has a dimension with its name."""
CLASS = "class"
"""Dimension of the classes, in results about IoU and Dice."""
KIND = "kind"
"""Dimension of an attack over several kinds of budget."""
_SYMBOLS = {BUDGET: "ε", "additions": "ε⁺", "deletions": "ε⁻"}


def symbol(kind: str) -> str:
    """How a kind of budget is written in a threat: ε, ε⁺, ε⁻, or by its own name."""
    return _SYMBOLS.get(kind, kind)


_AXES = {0: (), 1: ("position",), 2: ("y", "x"), 3: ("z", "y", "x")}


def axis_names(side: str, rank: int) -> tuple[str, ...]:
    """Names of the spatial dimensions of the inputs or outputs, such as ("output_y", "output_x").

    Parameters
    ----------
    side
        "input" or "output".
    rank
        Number of spatial axes: one is called position, two y and x, three z, y and x, more are numbered.
    """
    axes = _AXES.get(rank) or tuple(str(axis) for axis in range(rank))
    return tuple(f"{side}_{axis}" for axis in axes)
