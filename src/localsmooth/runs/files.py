"""Places that hold named files: a directory of this machine here, any other address in its own module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock, Timeout

from localsmooth.disk import write_atomically
from localsmooth.errors import OutputError
from localsmooth.runs.store import StoreError

__all__ = ["Files", "LocalFiles"]


class Files(ABC):
    """Named files; names are relative, with forward slashes, and made by this program only."""

    @property
    @abstractmethod
    def place(self) -> str:
        """What to call the place in messages."""

    @property
    def claimed(self) -> bool:
        """Whether no other process can write there."""
        return False

    def where(self, name: str) -> str:
        """What to call one file in messages."""
        return f"{self.place.rstrip('/')}/{name}"

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; none where there is no such folder."""

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Number of bytes of a file; None if there is none of that name."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Bytes of a file.

        Raises
        ------
        StoreError
            If it cannot be read.
        """

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Write a file so that others see it whole or not at all, replacing an earlier one.

        Raises
        ------
        StoreError
            If that is not possible, or the place was opened for reading or is closed.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Delete a file.

        Raises
        ------
        StoreError
            If that is not possible, or the place was opened for reading or is closed.
        """

    @abstractmethod
    def close(self) -> None:
        """Let others write."""


class LocalFiles(Files):
    """A directory. Files are written under another name, flushed to the disk, then renamed.

    Parameters
    ----------
    path
        The directory; made if it does not exist, unless read-only.
    read_only
        Do not claim the directory. Otherwise one process at a time may have it.

    Raises
    ------
    StoreError
        If another process has claimed the directory, or it cannot be made.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self._lock: FileLock | None = None
        if read_only:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be a run directory ({error.strerror}); name another folder") from None
        self._lock = FileLock(path / "lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout:
            raise StoreError(
                f"another process is writing to {path}; wait for it to end, or use another run directory"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written to ({error.strerror or error}); restore access, or name another folder"
            ) from None

    @property
    def claimed(self) -> bool:
        """Whether this process has the directory to itself."""
        return self._lock is not None

    @property
    def place(self) -> str:
        """The directory's path."""
        return str(self.path)

    def names(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; without what is being written, or was left by a writer."""
        found = (p for p in (self.path / folder).rglob("*") if p.suffix != ".partial" and p.is_file())
        return sorted(path.relative_to(self.path).as_posix() for path in found)

    def size(self, name: str) -> int | None:
        """Number of bytes of a file; None if there is none."""
        path = self.path / name
        return path.stat().st_size if path.is_file() else None

    def read(self, name: str) -> bytes:
        """Bytes of a file.

        Raises
        ------
        StoreError
            If the file cannot be read.
        """
        try:
            with (self.path / name).open("rb") as file:
                return file.read()
        except OSError as error:
            raise StoreError(f"{self.where(name)} cannot be read ({error.strerror or error})") from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file and make it durable.

        Raises
        ------
        StoreError
            If the file cannot be written, or the directory was opened for reading or closed.
        """
        if self._lock is None:
            raise StoreError(f"{self.path} was opened for reading, or closed")
        target = self.path / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, data)
        except OSError as error:
            problem = error.problem if isinstance(error, OutputError) else error.strerror or error
            raise StoreError(
                f"{target} cannot be written ({problem}). Nothing that was finished is lost: free "
                "some space, or restore access, and start the run again"
            ) from error

    def remove(self, name: str) -> None:
        """Delete a file.

        Raises
        ------
        StoreError
            If the file cannot be deleted, or the directory was opened for reading or closed.
        """
        if self._lock is None:
            raise StoreError(f"{self.path} was opened for reading, or closed")
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self.where(name)} cannot be deleted ({error.strerror or error})") from error

    def remove_leftovers(self, patterns: Iterable[str]) -> None:
        """Delete what an interrupted writer left behind: files of these patterns, and nothing else."""
        for pattern in patterns:
            for leftover in self.path.glob(pattern):
                if leftover.is_file():
                    leftover.unlink(missing_ok=True)

    def close(self) -> None:
        """Let other processes write to the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
