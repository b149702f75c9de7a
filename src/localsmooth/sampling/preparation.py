"""Trials of a model before it is drawn from: whether it is a base classifier, and the one of the tallies."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
from jaxtyping import Integer

from localsmooth.errors import LocalsmoothError, ModelFailedError
from localsmooth.runs import PREDICTIONS, Store, require_like_predictions
from localsmooth.sampling.subject import Subject, groups_of

__all__ = ["compare_predictions", "try_out"]

_PREDICTION_STREAM = 3  # beside the two stages and the trials, so that none of these samples is ever counted
_PLACES = 4  # output groups whose predictions are kept
_FEWEST_SAMPLES, _MOST_SAMPLES = 2, 8
_ENOUGH_LABELS = 2000


def try_out(subject: Subject) -> None:
    """Refuse a model that is no base classifier (see `Subject.try_out`), and say so where it fails.

    Parameters
    ----------
    subject
        What will be drawn.

    Raises
    ------
    InvalidInputError
        Saying what the model does wrong.
    ModelFailedError
        If the model raises an error of its own.
    """
    with _naming_failures("on a few noisy samples, before any is counted"):
        subject.try_out()


def compare_predictions(subject: Subject, store: Store, *, keep: bool) -> None:
    """Refuse to add to, or to read, tallies of a model that predicts differently.

    The labels of a few noisy samples that are the same in every run are kept beside the tallies. A fingerprint can
    miss what changes predictions (compiled code, files, services); this misses only what these samples do not show.

    Parameters
    ----------
    subject
        What is drawn.
    store
        Where the labels are kept.
    keep
        Whether to keep the labels if there are none yet.

    Raises
    ------
    StoreError
        If more than one in a hundred labels differ from those that are kept.
    ModelFailedError
        If the model raises an error of its own.
    """
    known = store.has_array(PREDICTIONS)
    if not known and not keep:
        return
    labels = _trial_labels(subject)
    if not known:
        store.put_array(PREDICTIONS, labels)
        return
    require_like_predictions(store.get_array(PREDICTIONS), labels)


def _trial_labels(subject: Subject) -> Integer[np.ndarray, " labels"]:
    """Labels of a few samples of up to four output groups, spread over the run."""
    groups = groups_of(subject)
    made: list[np.ndarray] = []
    for place in np.unique(np.linspace(0, len(groups) - 1, _PLACES).round().astype(int)):
        item, group = groups[place]
        size = int(subject.layouts[item].outputs.sizes[group])
        count = min(max(_ENOUGH_LABELS // (_PLACES * size), _FEWEST_SAMPLES), _MOST_SAMPLES)
        with _naming_failures(f"on noisy samples of item {item}"):
            made.append(subject.trial_labels(item, group, (item, group, _PREDICTION_STREAM, 0), count))
    return np.concatenate(made)


@contextmanager
def _naming_failures(where: str) -> Generator[None]:
    try:
        yield
    except LocalsmoothError:
        raise
    except Exception as error:  # a model may raise anything
        problem = f"the model raised {type(error).__name__} {where}: {error}"
        raise ModelFailedError(f"{problem}. Correct the model; samples that are there are kept") from error
