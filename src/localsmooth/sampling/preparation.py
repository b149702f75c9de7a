"""Labels of a few samples that are the same in every run: what tells that a model is not the one of the tallies."""

from __future__ import annotations

import numpy as np
from jaxtyping import Integer

from localsmooth.runs import PREDICTIONS, Store, require_like_predictions
from localsmooth.sampling.subject import Subject, groups_of

__all__ = ["compare_predictions"]

_PREDICTION_STREAM = 3  # beside the two stages and the trials, so that none of these samples is ever counted
_PLACES = 4  # output groups whose predictions are kept
_FEWEST_SAMPLES, _MOST_SAMPLES = 2, 8
_ENOUGH_LABELS = 2000


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
        made.append(subject.trial_labels(item, group, (item, group, _PREDICTION_STREAM, 0), count))
    return np.concatenate(made)
