"""Run to be killed: samples into a directory until it is done, then prints a digest of the tallies.

A child is killed at a random moment, again and again, and started again on the same directory until one ends.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from localsmooth.layout import windowed
from localsmooth.runs import DirectoryStore, MemoryStore, SamplingPlan
from localsmooth.sampling import ItemTally
from tests.sampling.exact import make_layout, run

PLAN = SamplingPlan(n_candidate=30, n_bound=120, seed=11, chunk_size=6)
LAYOUT = windowed(make_layout(), 2)


def digest(tally: ItemTally) -> str:
    return hashlib.sha256(tally.candidate.tobytes() + tally.votes.tobytes() + str(tally.n).encode()).hexdigest()


def child(path: Path, batch_size: int) -> None:
    with DirectoryStore(path) as store:
        tally = run(plan=PLAN, store=store, layout=LAYOUT, batch_size=batch_size)
    (path / "digest").write_text(digest(tally))


def main(folder: Path, seeds: int) -> None:
    torch.set_num_threads(1)
    started = time.perf_counter()
    undisturbed = digest(run(plan=PLAN, store=MemoryStore(), layout=LAYOUT, batch_size=4))
    duration = time.perf_counter() - started
    for seed in range(seeds):
        chance, path, kills = random.Random(seed), folder / str(seed), 0
        while not (path / "digest").exists():
            pid = os.fork()
            if pid == 0:
                child(path, chance.randint(1, 9))
                os._exit(0)
            if kills < 5:
                time.sleep(duration * chance.uniform(0.05, 0.6))
                os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            kills += os.WIFSIGNALED(status)
            if not os.WIFSIGNALED(status) and status != 0:
                raise SystemExit(f"seed {seed}: the run failed by itself")
        print(kills, (path / "digest").read_text() == undisturbed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
