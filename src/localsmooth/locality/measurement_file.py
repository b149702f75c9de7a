"""Measured locality on disk, with the items that it was measured on."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from localsmooth.disk import expanded, write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.locality.measure import Measurement

__all__ = ["read_measurement", "write_measurement"]

_DIGEST = "U64"


def write_measurement(path: Path, measurement: Measurement) -> None:
    """Write a measurement (.npz).

    Parameters
    ----------
    path
        The file.
    measurement
        See `measure_locality`.
    """
    content = io.BytesIO()
    np.savez(
        content,
        levels=measurement.levels,
        agreement=measurement.agreement,
        counts=np.array([measurement.items, measurement.samples], dtype=np.int64),
        calibration=np.array(sorted(measurement.origins), dtype=_DIGEST),
    )
    write_atomically(path, content.getvalue())


def read_measurement(path: Path, field: str = "locality") -> Measurement:
    """Read what `write_measurement` wrote. Nothing is unpickled.

    Raises
    ------
    InvalidInputError
        Naming `field` if it is something else.
    """
    path = expanded(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            levels, agreement, counts, digests = (
                archive[name] for name in ("levels", "agreement", "counts", "calibration")
            )
        fits = levels.ndim == 1 and agreement.ndim == 3 and len(levels) == len(agreement) > 0
        plain = levels.dtype == agreement.dtype == np.float64 and digests.dtype == np.dtype(_DIGEST)
        shares = fits and plain and bool(((agreement >= 0) & (agreement <= 1)).all())
        if not shares or not (np.diff(levels) > 0).all() or counts.shape != (2,):
            raise ValueError("its arrays are not those of a measurement")
    except (ValueError, TypeError, OSError, EOFError, KeyError, BadZipFile) as error:
        raise InvalidInputError(
            field, f"{path} is no measured locality ({error})", "Measure it with localsmooth locality"
        ) from None
    items, samples = counts.tolist()
    return Measurement(levels, agreement, items, samples, frozenset(digests.tolist()))
