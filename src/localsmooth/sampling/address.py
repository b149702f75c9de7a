"""Files at an address that fsspec understands, such as a bucket of an object store."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import urlsplit

import fsspec

from localsmooth.errors import InvalidInputError
from localsmooth.sampling.files import Files
from localsmooth.sampling.store import StoreError

__all__ = ["AddressFiles", "is_address"]

# Object stores show an upload when it is complete; elsewhere a file is written aside and moved.
_SHOWN_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory"})


def is_address(place: str) -> bool:
    """Whether a text is an address (``protocol://…``) rather than a path."""
    return "://" in place


class AddressFiles(Files):
    """Files below an address.

    Nothing keeps two processes from writing to one address. That costs time and never soundness: a chunk's name fixes
    its samples, so that each is kept once, whoever draws it.

    Parameters
    ----------
    address
        Such as ``s3://bucket/run``; the credentials come from the protocol's own environment.
    read_only
        Refuse to write.

    Raises
    ------
    InvalidInputError
        If the protocol is not known, or the package that speaks it is not installed.
    """

    def __init__(self, address: str, *, read_only: bool) -> None:
        self._read_only = read_only
        try:
            system, root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise InvalidInputError(
                "store", f"the address cannot be used ({error})", "Install what its protocol needs, or pass a folder"
            ) from None
        self._system: Any = system
        self._root = str(root).rstrip("/")
        protocol = urlsplit(address).scheme
        self._shown_whole = protocol in _SHOWN_WHOLE
        self._place = f"{protocol}://{self._root.lstrip('/')}"  # the host is left out, and what stands before it

    @property
    def place(self) -> str:
        """The protocol and the path."""
        return self._place

    def names(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; without what an interrupted writer left behind."""
        self._system.invalidate_cache()  # others may have written
        try:
            found = self._system.find(f"{self._root}/{folder}")
        except FileNotFoundError:
            return []
        start = f"{self._root}/{folder}/"
        inner = (path[len(start) :] for path in found if path.startswith(start))
        return sorted(f"{folder}/{name}" for name in inner if not name.endswith(".partial"))

    def size(self, name: str) -> int | None:
        """Number of bytes of a file; None if there is none."""
        self._system.invalidate_cache()
        try:
            return int(self._system.size(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(name, error) from error

    def read(self, name: str, most: int | None = None) -> bytes:
        """Bytes of a file, or its first ones."""
        try:
            return bytes(self._system.cat_file(f"{self._root}/{name}", start=None if most is None else 0, end=most))
        except OSError as error:
            raise self._failed(name, error) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""
        if self._read_only:
            raise StoreError(f"{self._place} was opened for reading, or closed")
        target = f"{self._root}/{name}"
        aside = target if self._shown_whole else f"{target}.partial"
        try:
            self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(aside, data)
            if aside != target:
                self._system.mv(aside, target)
        except OSError as error:
            if aside != target:
                with contextlib.suppress(OSError):
                    self._system.rm_file(aside)
            raise self._failed(name, error) from error

    def close(self) -> None:
        """Refuse to write from now on."""
        self._read_only = True

    def _failed(self, name: str, error: OSError) -> StoreError:
        return StoreError(
            f"{self.where(name)} cannot be reached ({type(error).__name__}: {error}). Nothing that was finished is "
            "lost: restore access and start the run again"
        )
