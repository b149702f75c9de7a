"""Files at an address that fsspec understands, such as a bucket of an object store."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import urlsplit

import fsspec

from localsmooth.errors import InvalidInputError
from localsmooth.runs.files import Files
from localsmooth.runs.store import StoreError

__all__ = ["AddressFiles", "is_address"]

# Archives do not let a file be replaced, and web servers take none.
_READ_ONLY = frozenset({"zip", "tar", "libarchive", "http", "https", "github", "git", "data"})
# Object stores show an upload when it is complete; elsewhere a file is written aside and moved.
_SHOWN_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory"})


def is_address(place: str) -> bool:
    """Whether a text is an address (``protocol://…``) rather than a path."""
    return "://" in place


class AddressFiles(Files):
    """Files below an address. Errors of the protocol's package, which have no common base, become errors of the store.

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
        protocol = urlsplit(address).scheme
        if protocol in _READ_ONLY and not read_only:
            raise InvalidInputError(
                "store", f"{protocol}:// takes no chunks one by one", "Pass a folder, or the address of an object store"
            )
        try:
            system, root = fsspec.core.url_to_fs(address)
        except Exception as error:  # each protocol has errors of its own
            raise InvalidInputError(
                "store",
                f"the address cannot be used ({type(error).__name__}: {error})",
                "Correct it, install what its protocol needs, or pass a folder",
            ) from None
        self._system: Any = system
        self._root = str(root).rstrip("/")
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
        """Number of bytes of a file; None if there is none.

        Raises
        ------
        StoreError
            If the place cannot be asked.
        """
        self._system.invalidate_cache()
        try:
            return int(self._system.size(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._failed(name, error) from error

    def read(self, name: str) -> bytes:
        """Bytes of a file.

        Raises
        ------
        StoreError
            If the file cannot be read.
        """
        try:
            return bytes(self._system.cat_file(f"{self._root}/{name}"))
        except Exception as error:
            raise self._failed(name, error) from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file.

        Raises
        ------
        StoreError
            If the file cannot be written, or the place was opened for reading or closed.
        """
        if self._read_only:
            raise StoreError(f"{self._place} was opened for reading, or closed")
        target = f"{self._root}/{name}"
        aside = target if self._shown_whole else f"{target}.partial"
        try:
            self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(aside, data)
            if aside != target:
                self._system.mv(aside, target)
        except Exception as error:
            if aside != target:
                with contextlib.suppress(Exception):
                    self._system.rm_file(aside)
            raise self._failed(name, error) from error

    def remove(self, name: str) -> None:
        """Delete a file.

        Raises
        ------
        StoreError
            If the file cannot be deleted, or the place was opened for reading or closed.
        """
        if self._read_only:
            raise StoreError(f"{self._place} was opened for reading, or closed")
        try:
            self._system.rm_file(f"{self._root}/{name}")
        except Exception as error:
            raise self._failed(name, error) from error

    def close(self) -> None:
        """Refuse to write from now on."""
        self._read_only = True

    def _failed(self, name: str, error: Exception) -> StoreError:
        return StoreError(
            f"{self.where(name)} cannot be reached ({type(error).__name__}: {error}). Nothing that was finished is "
            "lost: restore access and start the run again"
        )
