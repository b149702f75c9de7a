"""The whole comparison on digit scenes: train, sweep, and measure locality.

    python experiments/digit_scenes/run.py             # about an hour on two idle cores
    python experiments/digit_scenes/run.py --quick     # about ten minutes

Run in the root of the repository. Everything lands in runs/digit_scenes; what is finished is not done again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent.parent / "runs" / "digit_scenes"
LOCALSMOOTH = [sys.executable, "-c", "from localsmooth.cli import main; main()"]


def main() -> None:
    """Run all steps; one that fails ends the whole."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the reduced form")
    arguments = parser.parse_args()
    # The page in a sweep's folder is that of the last one.
    names = ["quick"] if arguments.quick else ["exact", "sweep"]
    for command in (
        [sys.executable, HERE / "train.py", "--out", OUT / "models"],
        *([*LOCALSMOOTH, "sweep", HERE / f"{name}.toml", "--out", OUT / names[-1]] for name in names),
        [*LOCALSMOOTH, "locality", HERE / "locality.toml", "--out", OUT / "locality"],
    ):
        subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    main()
