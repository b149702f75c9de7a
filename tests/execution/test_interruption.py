"""A run that is killed or interrupted goes on where it stopped, and ends with the same tallies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from localsmooth.runs import DirectoryStore
from tests.sampling.exact import ExactModel, assert_same, run

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_tallies_are_identical_after_kill_9_at_random_moments(tmp_path: Path) -> None:
    seeds = 4
    done = subprocess.run(
        [sys.executable, "-m", "tests.execution.interrupted", str(tmp_path), str(seeds)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == seeds
    assert all(same == "True" for _, same in lines), done.stdout
    assert sum(int(kills) for kills, _ in lines) >= seeds, "too few runs were killed in the middle"


def test_an_interrupt_drops_the_chunk_in_flight_only(tmp_path: Path) -> None:
    calls = 0

    def interrupt(_: torch.Tensor) -> None:
        nonlocal calls
        calls += 1
        if calls in (7, 8, 30):
            raise KeyboardInterrupt  # what Python makes of SIGINT, at a place that cannot swallow it

    model = ExactModel(watch=interrupt)
    for _ in range(3):
        with DirectoryStore(tmp_path) as store, pytest.raises(KeyboardInterrupt):
            run(model, store=store)
    with DirectoryStore(tmp_path) as store:
        kept = len(store.finished())
        assert 0 < kept < 16
        assert_same(run(model, store=store), run())
        assert calls < 80, "finished chunks were drawn again"


def test_partial_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        first = run(store=store)
    leftover = next((tmp_path / "chunks").rglob("*.tally"))
    leftover.rename(leftover.with_name(leftover.name + ".partial"))
    with DirectoryStore(tmp_path) as store:
        assert not list(tmp_path.rglob("*.partial"))
        assert_same(run(store=store), first)
