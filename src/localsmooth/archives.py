"""Plain arrays from .npz archives that somebody else made."""

from __future__ import annotations

import io
import os
import zipfile
from types import TracebackType

import numpy as np

from localsmooth.disk import expanded
from localsmooth.errors import InvalidInputError

__all__ = ["Archive"]

_LARGEST_ENTRY = 1 << 34


class Archive:
    """The arrays of an .npz file, read one by one, checked, and never unpickled.

    Parameters
    ----------
    path
        The file.
    field
        What to call it in errors.

    Raises
    ------
    InvalidInputError
        If it is no such archive.
    FileNotFoundError
        If there is no such file.
    """

    def __init__(self, path: str | os.PathLike[str], field: str) -> None:
        self.path = os.fspath(expanded(path))
        self._field = field
        try:
            self._file = zipfile.ZipFile(self.path)
        except FileNotFoundError:
            raise
        except Exception as error:  # a damaged file can fail anywhere in the reader
            raise InvalidInputError(
                field, f"{self.path} is not a readable NPZ archive ({error})", "Pass one made by numpy.savez"
            ) from None
        self.names = tuple(name.removesuffix(".npy") for name in self._file.namelist() if name.endswith(".npy"))

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __getitem__(self, name: str) -> np.ndarray:
        """Read one array.

        Raises
        ------
        InvalidInputError
            If there is none of that name, or it holds Python objects or is damaged.
        """
        if name not in self.names:
            raise InvalidInputError(
                self._field,
                f"{self.path} has no entry {name!r} (it has {', '.join(sorted(self.names)[:12])})",
                "Store the array under that name",
            )
        try:
            entry = self._file.getinfo(f"{name}.npy")
            if entry.file_size > _LARGEST_ENTRY:
                raise ValueError("it unpacks to more than 16 GiB")
            return np.load(io.BytesIO(self._file.read(entry)), allow_pickle=False)
        except Exception as error:  # a damaged entry can fail anywhere in the readers
            raise InvalidInputError(
                self._field,
                f"entry {name!r} of {self.path} cannot be read as a plain array ({error})",
                "Store it without pickling",
            ) from None
