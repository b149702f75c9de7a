"""A level matrix on disk, with the items that it was fitted on."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float

from localsmooth.datasets import ItemSet, load_array
from localsmooth.disk import expanded, write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.layout import derived, item_digest, origins_of

__all__ = ["LevelsFile", "read_levels", "require_unseen", "write_levels"]

_LEVELS, _DIGESTS = "levels", "calibration"
_DIGEST = "U64"


@dataclass(frozen=True, eq=False)
class LevelsFile:
    """A level matrix, and digests of the inputs that it depends on.

    Parameters
    ----------
    levels
        Level of each pair of output and input group.
    calibration
        `item_digest` of every item that the levels were fitted on; empty where they were fitted on none.
    """

    levels: Float[np.ndarray, "output_groups input_groups *parameters"]
    calibration: frozenset[str]


def write_levels(path: Path, levels: np.ndarray, items: ItemSet) -> None:
    """Write a level matrix that was fitted on some items, in the form that `layout.levels` takes (.npz).

    Parameters
    ----------
    path
        The file; its name must end in .npz.
    levels
        The matrix.
    items
        What it was fitted on.
    """
    digests = np.array(sorted({item_digest(item.image) for item in items} | origins_of(levels)), dtype=_DIGEST)
    content = io.BytesIO()
    np.savez(content, levels=np.asarray(levels, dtype=np.float64), calibration=digests)
    write_atomically(path, content.getvalue())


def read_levels(path: Path, field: str = "layout.levels") -> LevelsFile:
    """Read a level matrix: a plain .npy array, or what `write_levels` wrote. Nothing is unpickled.

    Raises
    ------
    InvalidInputError
        Naming `field` if the file is neither.
    """
    path = expanded(path)
    if path.suffix != ".npz":
        return LevelsFile(load_array(path, field).astype(np.float64), frozenset())
    try:
        with np.load(path, allow_pickle=False) as archive:
            levels, digests = archive[_LEVELS], archive[_DIGESTS]
        if levels.dtype != np.float64 or digests.dtype != np.dtype(_DIGEST) or digests.ndim != 1:
            raise ValueError("its arrays have other types than a level file's")
    except (ValueError, OSError, EOFError, KeyError, BadZipFile) as error:
        raise InvalidInputError(
            field, f"{path} is no level matrix ({error})", "Make one with localsmooth locality, or save a .npy array"
        ) from None
    return LevelsFile(derived(levels, *digests.tolist()), frozenset(digests.tolist()))


def require_unseen(file: LevelsFile, items: ItemSet, field: str = "layout.levels") -> None:
    """Refuse to certify items that the levels were fitted on.

    The certificate speaks of one smoothed classifier, whose levels are the same at every perturbed input. Levels that
    were chosen by looking at the very item would change with it, and the certificate would not hold.

    Raises
    ------
    InvalidInputError
        Naming an item that is in both.
    """
    for item in items:
        if item_digest(item.image) in file.calibration:
            raise InvalidInputError(
                field,
                f'the levels were fitted on "{item.name}", which is to be certified',
                "Calibrate on other items, or certify others",
            )
