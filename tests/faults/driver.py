"""Run to be killed: samples into a directory.

python -m tests.faults.driver DIRECTORY EXECUTOR SECONDS
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import torch

from localsmooth.runs import DirectoryStore
from tests.faults.trouble import Troubled, disturbed, executor_named


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run in the background
    torch.set_num_threads(1)
    folder, executor, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    with DirectoryStore(folder / "run") as store:
        disturbed(Troubled(folder, seconds=seconds), executor=executor_named(executor), store=store)
    (folder / "done").touch()


if __name__ == "__main__":
    main()
