"""Whatever happens to the program that drives a run, the same run started again ends like an undisturbed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from localsmooth.execution import SerialExecutor
from localsmooth.runs import DirectoryStore, StoreError
from tests.faults.trouble import CHUNKS, Troubled, disturbed, executor_named, undisturbed
from tests.sampling.exact import assert_same

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0


class Driver:
    """A run in a process of its own."""

    def __init__(self, folder: Path, executor: str, seconds: float) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.driver", str(folder), executor, str(seconds)],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def chunks(self) -> int:
        return len(list((self.folder / "run").rglob("*.tally")))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "it takes too long"
            if self.process.poll() is not None:
                raise AssertionError(f"it ended: {self.process.communicate()[0]}")
            time.sleep(0.02)

    def end(self, patience: float = PATIENCE) -> str:
        return self.process.communicate(timeout=patience)[0]


@pytest.fixture
def start(tmp_path: Path) -> Generator[Callable[[str, float], Driver]]:
    made: list[Driver] = []

    def starter(executor: str, seconds: float) -> Driver:
        made.append(Driver(tmp_path, executor, seconds))
        return made[-1]

    yield starter
    for driver in made:
        if driver.process.poll() is None:
            driver.process.kill()
        driver.process.communicate()


def resume(folder: Path) -> None:
    """Go on in this process, and compare."""
    with DirectoryStore(folder / "run") as store:
        kept = store.finished()
        assert 0 < len(kept) < CHUNKS, "it was not disturbed in the middle"
        drawn = Troubled(folder)
        assert_same(disturbed(drawn, executor=SerialExecutor(), store=store), undisturbed())
        missing = CHUNKS - len(kept)
        assert 0 < drawn.calls <= 3 * missing, "finished chunks were drawn again"


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_kill_9_of_the_driver_ends_its_workers_and_loses_no_finished_chunk(
    start: Callable[[str, float], Driver], tmp_path: Path
) -> None:
    # Chunks of minutes: the workers are in the middle of one when the driver is killed.
    driver = start("processes", 0.05)
    driver.wait_until(lambda: driver.chunks() >= 3)
    workers = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
    assert workers
    assert driver.process.pid not in workers
    driver.process.kill()
    driver.end()
    end = time.monotonic() + 20
    while not all(ended(pid) for pid in workers):
        assert time.monotonic() < end, "workers outlive their driver"
        time.sleep(0.05)
    resume(tmp_path)


@pytest.mark.parametrize("executor", ["threads", pytest.param("processes", marks=pytest.mark.long)])
def test_two_interrupts_end_the_run_soon_and_lose_no_finished_chunk(
    executor: str, start: Callable[[str, float], Driver], tmp_path: Path
) -> None:
    driver = start(executor, 0.1)
    driver.wait_until(lambda: driver.chunks() >= 3)
    os.killpg(driver.process.pid, signal.SIGINT)  # as a terminal does, to workers too
    time.sleep(0.1)
    os.killpg(driver.process.pid, signal.SIGINT)
    said = driver.end(60)
    assert driver.process.returncode != 0
    assert "KeyboardInterrupt" in said
    assert not (tmp_path / "done").exists()
    resume(tmp_path)


def test_two_drivers_do_not_write_to_one_directory(start: Callable[[str, float], Driver], tmp_path: Path) -> None:
    first = start("serial", 0.5)
    first.wait_until(lambda: first.chunks() >= 2)
    second = start("serial", 0.0)
    assert "another process is writing" in second.end()
    assert second.process.returncode != 0
    assert first.process.poll() is None, "the first had ended before the second came"
    first.process.kill()
    first.end()
    resume(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of its own, which is soon full."""
    folder = tmp_path / "run"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount file systems")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_full_disk_is_one_error_and_loses_no_finished_chunk(executor: str, small_disk: Path, tmp_path: Path) -> None:
    with DirectoryStore(small_disk) as store, pytest.raises(StoreError, match="free some space"):
        disturbed(Troubled(tmp_path), executor=executor_named(executor), store=store)
    assert not list(small_disk.rglob("*.partial"))
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    resume(tmp_path)


@pytest.mark.parametrize("damage", ["cut off", "emptied", "one bit"])
def test_a_damaged_chunk_is_named_and_drawn_again_after_its_file_is_deleted(damage: str, tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        disturbed(Troubled(tmp_path), executor=SerialExecutor(), store=store)
    victim = sorted((tmp_path / "chunks").rglob("*.tally"))[17]
    content = bytearray(victim.read_bytes())
    if damage == "one bit":
        content[len(content) // 2] ^= 1
    else:
        del content[len(content) // 2 if damage == "cut off" else 0 :]
    victim.write_bytes(content)
    with DirectoryStore(tmp_path) as store, pytest.raises(StoreError, match=victim.name):
        disturbed(Troubled(tmp_path), executor=SerialExecutor(), store=store)
    victim.unlink()
    with DirectoryStore(tmp_path) as store:
        assert_same(disturbed(Troubled(tmp_path), executor=SerialExecutor(), store=store), undisturbed())


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_clock_that_goes_backwards_changes_nothing(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = {name: getattr(time, name) for name in ("time", "perf_counter", "monotonic", "time_ns")}
    for name, real in clocks.items():
        monkeypatch.setattr(time, name, lambda real=real: 10**9 - real())
    with DirectoryStore(tmp_path) as store:
        found = disturbed(Troubled(tmp_path), executor=executor_named(executor), store=store)
        assert len(store.finished()) == CHUNKS
        assert all(kept.n == kept.size for kept in store.finished().values())
    monkeypatch.undo()
    assert_same(found, undisturbed())
    with DirectoryStore(tmp_path) as store:
        again = Troubled(tmp_path)
        assert_same(disturbed(again, executor=SerialExecutor(), store=store), undisturbed())
        assert again.calls == 0
