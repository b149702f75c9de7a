"""Files are written whole or not at all, whatever the system; paths lead where a shell would have them lead."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest

from localsmooth.disk import expanded, read_text, require_writable, write_atomically
from localsmooth.errors import InvalidInputError, LocalsmoothError, OutputError
from localsmooth.report import write_pdf, write_report
from localsmooth.results import build_dataset, load, save
from localsmooth.runs import DirectoryStore
from localsmooth.runs.files import LocalFiles
from tests.results.synthetic import make_item, run_info

posix = pytest.mark.skipif(os.name != "posix", reason="asks for permissions and links of POSIX")

RESULT = build_dataset([make_item(size=(12, 16))], run_info())

LIMITED = """
import resource, signal, sys
from localsmooth.report import write_report
from localsmooth.results import load, save

kept, target = load(sys.argv[1]), sys.argv[2]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
write = save if target.endswith(".nc") else write_report
try:
    write(kept, target)
except OSError as error:
    print(type(error).__name__, error)
"""


@posix
@pytest.mark.parametrize("write", [save, write_report])
def test_outputs_follow_the_umask(tmp_path: Path, write: Callable[..., None]) -> None:
    before = os.umask(0o027)
    try:
        write(RESULT, tmp_path / "made")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o640
    (tmp_path / "made").chmod(0o600)
    write(RESULT, tmp_path / "made")
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("name", ["result.nc", "report.html"])
def test_a_full_disk_is_one_error_and_leaves_the_older_file(tmp_path: Path, name: str) -> None:
    save(RESULT, tmp_path / "kept.nc")
    (tmp_path / name).write_text("older")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "kept.nc"), str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"OutputError {tmp_path / name} cannot be written (File too large). Free some space")
    assert (tmp_path / name).read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"kept.nc", name}


def commit(descriptor: int) -> None:
    """Refuse what Windows refuses: to flush what was opened for reading."""
    fcntl = pytest.importorskip("fcntl")
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if mode == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")


def test_nothing_that_was_opened_for_reading_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", commit)
    save(RESULT, tmp_path / "result.nc")
    write_report(RESULT, tmp_path / "report.html")
    LocalFiles(tmp_path / "run", read_only=False).write("arrays/a", b"some")
    assert load(tmp_path / "result.nc").equals(RESULT)


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", b"new")
    assert not list(tmp_path.iterdir())


@posix
def test_links_are_followed_and_pipes_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_atomically(tmp_path / "pipe", b"through")
    reader.join(10)
    assert heard == [b"through"]


def test_targets_that_cannot_be_written_are_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "absent" / "x", tmp_path / "file" / "x", tmp_path):
        for attempt in (
            lambda target=target: write_atomically(target, b""),
            lambda target=target: require_writable(target),
        ):
            with pytest.raises(OutputError, match="cannot be written") as raised:
                attempt()
            assert isinstance(raised.value, LocalsmoothError)
            assert str(target) in str(raised.value)
    assert {path.name for path in tmp_path.iterdir()} == {"file"}
    assert require_writable(tmp_path / "new") == tmp_path / "new"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "marked utf-16-le", "marked utf-16-be"])
def test_texts_are_read_as_their_mark_says(tmp_path: Path, encoding: str) -> None:
    mark, encoding = ("\ufeff" if "marked" in encoding else ""), encoding.removeprefix("marked ")
    (tmp_path / "text").write_bytes(f"{mark}σ = 1\r\nε\r\n".encode(encoding))
    assert read_text(tmp_path / "text") == "σ = 1\nε\n"


def test_home_is_what_a_shell_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert expanded("~/a") == expanded(Path("~/a")) == tmp_path / "a"
    assert expanded("./~/a") == Path("./~/a")
    assert expanded("a~") == Path("a~")
    save(RESULT, "~/result.nc")
    assert load("~/result.nc").equals(RESULT)
    DirectoryStore("~/run").close()
    assert (tmp_path / "run").is_dir()


@pytest.mark.parametrize("path", [None, 3, True, b"runs"])
def test_what_is_no_path_is_named(path: Any) -> None:
    # Without what checks types in these tests, which users do not have.
    for write in (unwrap(write_report), unwrap(write_pdf)):
        with pytest.raises(InvalidInputError, match=r"path: got a \w+\. Pass a str or PathLike"):
            write(RESULT, path)
    with pytest.raises(InvalidInputError, match=r"path: got a \w+\."):
        expanded(path)
