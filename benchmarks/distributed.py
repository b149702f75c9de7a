"""What executors cost, and what windows save.

    python benchmarks/distributed.py [--parts executors windows] [--repeats 5] [--seconds 20]

*Executors*: samples per second of one single-threaded worker, of a process pool and of Ray with two workers each, on
the same plan and model. Workers are started before the clock is: what is timed is a long run's steady state, from the
first chunk's submission to the last chunk's commit in a directory, and the start of the workers is given apart.

*Windows*: cost of the same samples on a 3x5 grid at 166x250 with windows of 32 pixels around each cell and on full
images, one core.

Every repeat times all contestants in turn, and ratios are taken within a repeat, so that a busy machine slows them
alike; medians over the repeats and the load are printed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from localsmooth.execution import Executor, ProcessExecutor, RayExecutor, SerialExecutor
from localsmooth.execution.fleet import FleetSession
from localsmooth.layout import Layout, grid_layout, isotropic_layout, windowed
from localsmooth.models import Preprocessing, TorchModel
from localsmooth.noise import Gaussian
from localsmooth.runs import Chunk, DirectoryStore, SamplingPlan, Stage
from localsmooth.sampling import ArraySubject, BatchSize, ChunkWorker, Job, calibrate, describe_run
from localsmooth.sampling.counter import Counters
from localsmooth.scenes import UNet

SIGMA = (0.15, 1.0)
CELLS = (3, 5)
SHAPE = (166, 250)
MARGIN = 32
CHUNK = 64


def make_model(width: int) -> TorchModel:
    torch.manual_seed(0)
    return TorchModel(
        UNet(width=width).eval(), bounds=(0.0, 1.0), classes=11, preprocessing=Preprocessing(pad_multiple=8)
    )


def run_chunks(executor: Executor, subject: ArraySubject, batch_size: int, chunks: int) -> tuple[float, float, float]:
    """Seconds until the workers are up, seconds for `chunks` chunks, and processor seconds of this process in these."""
    plan = SamplingPlan(chunks * CHUNK, 1, chunk_size=CHUNK)
    todo = [Job(Chunk(0, 0, Stage.CANDIDATE.value, index, CHUNK)) for index in range(chunks)]
    warm = (Job(Chunk(0, 0, Stage.CANDIDATE.value, 10**6 + index, 1)) for index in itertools.count())
    configuration = describe_run(subject.model, subject.items, subject.layouts, subject.noise, plan, Counters())
    with tempfile.TemporaryDirectory() as folder, DirectoryStore(folder) as store:
        store.begin(configuration)
        began = time.perf_counter()
        with executor.open(ChunkWorker(subject, BatchSize(batch_size))) as session:
            flying = 0
            # Tiny chunks until all workers are up, and once more so that each has drawn one.
            ready = False
            while not ready:
                ready = not isinstance(session, FleetSession) or session.ready == session.capacity // 2
                for _ in range(session.capacity):
                    session.submit(next(warm))
                for _ in range(session.capacity):
                    session.collect()
            started, own = time.perf_counter(), time.process_time()
            while todo or flying:
                while todo and flying < session.capacity:
                    session.submit(todo.pop())
                    flying += 1
                store.commit(session.collect())
                flying -= 1
            ended = time.perf_counter()
            own = time.process_time() - own
    return started - began, ended - started, own


def compare_executors(repeats: int, seconds: float, width: int) -> None:
    shape = SHAPE
    model = make_model(width)
    item = torch.rand(1, *shape)
    subject = ArraySubject(model, [item], [isotropic_layout(SIGMA[0], shape, shape)], Gaussian(), seed=0)
    torch.set_num_threads(1)
    calibration = calibrate(model, (1, *shape), seconds=10.0, largest=CHUNK)
    size = calibration.batch_size.samples
    subject = ArraySubject(calibration.model, subject.items, subject.layouts, subject.noise, subject.seed)
    _, once, _ = run_chunks(SerialExecutor(), subject, size, 2)
    chunks = max(4, 2 * round(seconds / once))
    print(f"\nexecutors: U-Net of width {width}, {shape[0]}x{shape[1]}, {chunks} chunks of {CHUNK}, batch size {size}")
    contestants: dict[str, Executor] = {
        "one worker": SerialExecutor(),
        "process pool, 1 worker": ProcessExecutor(1),
        "process pool, 2 workers": ProcessExecutor(2),
        "ray, 2 workers": RayExecutor(workers=2),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    starts: dict[str, list[float]] = {name: [] for name in contestants}
    shares: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, executor in contestants.items():
            start, duration, own = run_chunks(executor, subject, size, chunks)
            starts[name].append(start)
            times[name].append(duration)
            shares[name].append(own / duration)
    for name in contestants:
        rate = chunks * CHUNK / statistics.median(times[name])
        print(
            f"  {name:26s} {rate:8.1f} images/s   workers up after {statistics.median(starts[name]):5.1f} s   "
            f"this process busy {statistics.median(shares[name]):6.1%}"
        )

    def ratio(numerator: str, denominator: str) -> float:
        return statistics.median(a / b for a, b in zip(times[numerator], times[denominator], strict=True))

    print(f"  ray with 2 workers / one worker, images/s:        {ratio('one worker', 'ray, 2 workers'):.2f}")
    print(f"  pool with 2 workers / one worker, images/s:       {ratio('one worker', 'process pool, 2 workers'):.2f}")
    overhead = ratio("ray, 2 workers", "process pool, 2 workers") - 1
    print(f"  overhead of ray against the pool, time:           {overhead:+.1%}")


def samples_of(worker: ChunkWorker, layout: Layout, size: int) -> Callable[[], None]:
    """Draw `size` samples of every output group."""

    def draw() -> None:
        for group in range(layout.outputs.count):
            worker(Job(Chunk(0, group, Stage.CANDIDATE.value, 0, size)))

    return draw


def compare_windows(repeats: int, per_group: int, width: int, align: int) -> None:
    torch.set_num_threads(1)
    model = make_model(width)
    item = torch.rand(1, *SHAPE)
    grid = grid_layout(CELLS, SHAPE, minimum=SIGMA[0], maximum=SIGMA[1])
    window = windowed(grid, MARGIN, align=align)
    layouts = {"full images": grid, "windows": window}
    draws: dict[str, Callable[[], None]] = {}
    for name, layout in layouts.items():
        views = [layout.view(group).inputs for group in range(layout.outputs.count)]
        shapes = [SHAPE if view is None else tuple(s.stop - s.start for s in view) for view in views]
        largest = max(shapes, key=lambda shape: shape[0] * shape[1])
        calibration = calibrate(model, (1, *largest), seconds=10.0, largest=64)
        subject = ArraySubject(calibration.model, [item], [layout], Gaussian(), seed=0)
        draws[name] = samples_of(ChunkWorker(subject, calibration.batch_size), layout, per_group)
        area = sum(a * b for a, b in shapes) / (len(shapes) * SHAPE[0] * SHAPE[1])
        print(f"  {name}: {calibration.summary()}; {area:.1%} of the full images' pixels")
    times: dict[str, list[float]] = {name: [] for name in draws}
    for _ in range(repeats):
        for name, draw in draws.items():
            started = time.process_time()
            draw()
            times[name].append(time.process_time() - started)
    share = statistics.median(a / b for a, b in zip(times["windows"], times["full images"], strict=True))
    for name, durations in times.items():
        print(f"  {name:12s} {15 * per_group / statistics.median(durations):8.1f} images/s of processor time")
    print(f"  cost of windows / cost of full images: {share:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=("executors", "windows"), default=["executors", "windows"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="one worker's time in each repeat")
    parser.add_argument("--width", type=int, default=16, help="of the U-Net")
    parser.add_argument("--per-group", type=int, default=16, help="samples per output group, for windows")
    parser.add_argument("--align", type=int, default=1, help="windows start and end at multiples of this")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if "windows" in arguments.parts:
        print(f"\nwindows: U-Net of width {arguments.width}, {SHAPE[0]}x{SHAPE[1]}, 3x5 grid, margin {MARGIN}")
        compare_windows(arguments.repeats, arguments.per_group, arguments.width, arguments.align)
    if "executors" in arguments.parts:
        compare_executors(arguments.repeats, arguments.seconds, arguments.width)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
