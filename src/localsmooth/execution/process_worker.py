"""What a worker process does: receive the model once, then draw chunks until nobody wants any more."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch

from localsmooth.execution.executor import Trouble, outcome
from localsmooth.sampling import ChunkWorker, Job

__all__ = ["HELLO", "READY", "work"]

HELLO, READY = "hello", "ready"


def work(connection: Connection[Any, Any], environment: Mapping[str, str], threads: int) -> None:
    """Run in a process of its own.

    Says HELLO, receives a pickled `ChunkWorker`, says READY, and then answers every `Job` with a `ChunkRecord` or a
    `Trouble`. What is unpickled comes from the process that started this one, never from a file.

    Parameters
    ----------
    connection
        To the process that started this one; when that ends, this process ends at once.
    environment
        Variables to set first, such as the devices that it may see.
    threads
        Number of torch's threads.
    """
    # An interrupt from the keyboard reaches all processes of a terminal; the first process decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.update(environment)
    torch.set_num_threads(threads)
    connection.send(HELLO)
    try:
        worker = pickle.loads(connection.recv_bytes())  # noqa: S301
        assert isinstance(worker, ChunkWorker)
    except EOFError:
        return
    except Exception as error:
        connection.send(Trouble.of(error))
        return
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, jobs), daemon=True).start()
    connection.send(READY)
    while True:
        connection.send(outcome(worker, jobs.get()))


def _receive(connection: Connection[Any, Any], jobs: queue.SimpleQueue[Job]) -> None:
    """Take jobs on at any time, so that the other side never waits while a chunk is drawn; end with it."""
    try:
        while True:
            jobs.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)
