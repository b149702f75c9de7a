"""Stores by where their files are: a directory of this machine, or any address."""

from __future__ import annotations

import os

from localsmooth.disk import expanded
from localsmooth.runs.address import AddressFiles, is_address
from localsmooth.runs.file_store import FileStore
from localsmooth.runs.files import LocalFiles

__all__ = ["DirectoryStore", "open_store"]

# What an interrupted writer leaves behind; nothing else in the directory is ever deleted.
_LEFTOVERS = (
    *(
        f"{name}.*partial"
        for name in ("manifest.json", "certification.json", "configuration.json", "store.json", "result.nc")
    ),
    "arrays/*.array.*partial",
    "chunks/item*/*.tally.*partial",
)


class DirectoryStore(FileStore):
    """A run directory.

    Files appear whole or not at all, so that a killed run leaves a consistent directory. One process at a time may
    write to it.

    Parameters
    ----------
    path
        The directory; made if it does not exist, unless read-only.
    read_only
        Read finished chunks without claiming the directory, also while another process writes to it.

    Raises
    ------
    StoreError
        If another process writes to the directory, or it is to be read and holds no run.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = expanded(path)
        files = LocalFiles(self.path, read_only=read_only)
        try:
            super().__init__(files, must_hold_run=read_only)
            if self.configuration is not None and not read_only:
                files.remove_leftovers(_LEFTOVERS)
        except BaseException:
            files.close()
            raise


def open_store(place: str | os.PathLike[str], *, read_only: bool = False) -> FileStore:
    """Open the store in a directory, or at an address such as ``s3://bucket/run``.

    Parameters
    ----------
    place
        Path or address.
    read_only
        Refuse to write, and refuse a place that holds no run.

    Raises
    ------
    StoreError
        If the place cannot be used.
    InvalidInputError
        If the address has a protocol that is not known here.
    """
    text = os.fspath(place)
    if is_address(text):
        return FileStore(AddressFiles(text, read_only=read_only), must_hold_run=read_only)
    return DirectoryStore(text, read_only=read_only)
