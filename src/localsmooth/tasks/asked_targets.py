"""Targets as users name them, and what becomes of them on one item."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence

from localsmooth.errors import InvalidInputError, require_kind, require_several
from localsmooth.tasks.stakes import Predicted, Stakes
from localsmooth.tasks.targets import TARGETS, Accuracy, Agreement, OfClass, Ratio, Target

__all__ = ["as_targets", "left_out_words", "require_classes", "require_stakes", "stakes_of"]


def as_targets(given: Sequence[Target | str] | None, field: str = "targets") -> tuple[Target, ...]:
    """Return targets that may be named; none stands for the usual ones.

    Parameters
    ----------
    given
        Names and targets.
    field
        What errors call the argument.

    Raises
    ------
    InvalidInputError
        For what is no target, an unknown name, or two targets of one name.
    """
    if given is None or (isinstance(given, tuple) and not given):
        return ()
    require_several(field, given, "targets")
    made: list[Target] = []
    for one in given:
        if isinstance(one, str):
            made.append(_named(one, field))
        else:
            require_kind(field, one, Target)
            made.append(one)
    names = [target.name for target in made]
    if not made or len(set(names)) < len(names):
        raise InvalidInputError(field, "there is none, or one comes twice", "Name each once")
    return tuple(made)


def _named(name: str, field: str) -> Target:
    kind, _, of = name.partition(":")
    if (kind == "class" and of) or (kind in TARGETS and kind != "class" and name == kind):
        return OfClass(of) if of else TARGETS[kind]()
    known = ", ".join(name for name in TARGETS if name != "class")
    raise InvalidInputError(field, f"{name!r} is not known", f"Name one of {known}, class:NAME, or pass a Target")


def stakes_of(targets: Sequence[Target], outputs: Predicted) -> Mapping[str, Stakes]:
    """What each target makes of an item, by its name; targets whose labels or clean predictions miss are left out.

    Parameters
    ----------
    targets
        What is counted; where there is none, the ratio, and the accuracy or (without labels) the agreement.
    outputs
        The outputs of one item.

    Raises
    ------
    InvalidInputError
        If no target is left, or one does not fit the item.
    """
    usual = (Ratio(), Agreement() if outputs.label is None else Accuracy())
    made = {target.name: target.stakes(outputs) for target in targets or usual}
    told = {name: stakes for name, stakes in made.items() if stakes is not None}
    if not told:
        raise InvalidInputError("targets", f"{', '.join(made)} cannot be told without labels", "Add labels, or ratio")
    return told


def require_classes(targets: Sequence[Target], names: Sequence[str], field: str = "targets") -> None:
    """Refuse targets of classes that there are not.

    Parameters
    ----------
    targets
        What is counted.
    names
        Name of each class.
    field
        What errors call the argument.

    Raises
    ------
    InvalidInputError
        Naming the target.
    """
    for target in targets:
        try:
            target.require_classes(names)
        except InvalidInputError as error:
            raise InvalidInputError(field, f"{target.name}: {error.problem}", error.remedy) from error


def require_stakes(targets: Sequence[Target], every: Iterable[Predicted], *, counting: bool) -> None:
    """Refuse targets of which nothing could be said once all items are sampled.

    Parameters
    ----------
    targets
        What is counted, as for `stakes_of`.
    every
        The outputs of each item, with any predictions.
    counting
        Whether what is to be used counts outputs, whatever they are worth, as baselines do.

    Raises
    ------
    InvalidInputError
        Naming the targets, or what of them does not fit an item.

    Warns
    -----
    UserWarning
        Naming targets for which no output of any item counts by its label; results leave them out.
    """
    worth, labelled = dict[str, float](), True
    for outputs in every:  # one item at a time: what its outputs are worth takes as much memory as they
        require_classes(targets, outputs.class_names)
        told = stakes_of(targets, outputs)
        if counting and not any(stakes.counts for stakes in told.values()):
            raise InvalidInputError(
                "targets",
                f"{', '.join(told)} weigh outputs, and baselines count them",
                "Add ratio, or leave the baseline",
            )
        labelled = labelled and outputs.label is not None
        for name, stakes in told.items():
            if stakes.counts or not counting:
                worth[name] = worth.get(name, 0.0) + stakes.total
    # Without labels classes are those of predictions, which are not known yet.
    empty = [name for name, total in worth.items() if not total] if labelled else []
    if empty and len(empty) == len(worth):
        problem = f"no output of the items counts for {', '.join(empty)}"
        raise InvalidInputError("targets", problem, "Name what occurs in the labels, or certify items that have it")
    if empty:
        warnings.warn(
            f"targets: no output of the items counts for {', '.join(empty)}, which results leave out",
            UserWarning,
            stacklevel=3,
        )


def left_out_words(
    targets: Sequence[Target], told: Collection[str], weighed: Collection[str], empty: Collection[str] = ()
) -> tuple[str, ...]:
    """Say which targets were asked for and are not in a result, and why.

    Parameters
    ----------
    targets
        What was asked to be counted.
    told
        Names of those that the result has.
    weighed
        Names of those whose outputs are worth more than 1 or nothing, where a baseline counts.
    empty
        Names of those for which no output of any item counts.
    """
    missing = [target.name for target in targets if target.name not in told]
    weigh = [name for name in missing if name in weighed]
    absent = [name for name in missing if name in empty]
    needy = [name for name in missing if name not in {*weighed, *empty}]
    sentences: list[str] = []
    if absent:
        sentences.append(f"Asked for and left out, since no output of the items counts: {', '.join(absent)}.")
    if weigh:
        sentences.append(
            f"Asked for and left out: {', '.join(weigh)}. Outputs are weighed there, and a baseline counts."
        )
    if needy:
        sentences.append(f"Asked for and left out, since labels are missing: {', '.join(needy)}.")
    return tuple(sentences)
