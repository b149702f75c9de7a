"""Paths and files at the edge of the program: where a path leads, how a file is written, how text is read."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import platform
import shutil
import threading
from pathlib import Path
from typing import cast

from localsmooth.errors import OutputError, require_kind

__all__ = ["expanded", "make_folder", "read_text", "require_writable", "write_atomically"]

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def expanded(path: object) -> Path:
    """Return the path with `~` and `~user` as home directories, as shells have it; `./~` is a file of that name.

    Raises
    ------
    InvalidInputError
        If it is no path.
    """
    require_kind("path", path, str, os.PathLike)
    return Path(os.path.expanduser(cast("str | os.PathLike[str]", path)))


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a text file in UTF-8, or in UTF-16 with a byte order mark, as some editors and shells write it.

    Raises
    ------
    UnicodeDecodeError
        If it is neither.
    OSError
        If it cannot be read.
    """
    content = expanded(path).read_bytes()
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    return content.decode(encoding).replace("\r\n", "\n")


def require_writable(path: str | os.PathLike[str]) -> Path:
    """Return the expanded path of a file that is to be written later, after looking whether that can work.

    Raises
    ------
    OutputError
        If its folder does not exist or takes no files, or the path is a folder itself.
    """
    target = expanded(path)
    folder = target.parent
    if not folder.is_dir():
        raise OutputError(target, os.strerror(errno.ENOTDIR if folder.exists() else errno.ENOENT), _MISSING)
    if target.is_dir():
        raise OutputError(target, os.strerror(errno.EISDIR), "Name a file")
    if not os.access(target if target.exists() and not target.is_file() else folder, os.W_OK):
        raise OutputError(target, os.strerror(errno.EACCES))
    return target


_MISSING = "Make its folder, or name a file in one that exists"


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder and those above it, unless they are there.

    Raises
    ------
    OutputError
        If that is not possible.
    """
    folder = expanded(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from error
    return folder


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is seen whole or not at all, and survives a loss of power; an older one is replaced.

    The file has the permissions of the older one, or those that any new file has (the umask's). What is not a regular
    file, such as a pipe, is written to directly.

    Parameters
    ----------
    path
        Where; its folder exists.
    content
        All of it.

    Raises
    ------
    OutputError
        If that is not possible. An older file is then as it was.
    """
    named = expanded(path)
    target = named.resolve()  # what a link leads to is replaced, not the link
    if target.exists() and not target.is_file() and not target.is_dir():
        partial = target
    else:
        writer = f"{platform.node()}-{os.getpid()}-{threading.get_ident()}"
        partial = target.with_name(f"{target.name}.{writer}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            if partial is target:
                return
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except OSError as error:
        if partial is not target:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
        remedy = _MISSING if error.errno in (errno.ENOENT, errno.ENOTDIR) else OutputError.REMEDY
        raise OutputError(named, error.strerror or str(error), remedy) from error
    except BaseException:  # an interruption
        if partial is not target:
            partial.unlink(missing_ok=True)
        raise
    _flush_directory(target.parent)


def _flush_directory(path: Path) -> None:
    """Make a rename durable; systems that cannot open directories do without."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
