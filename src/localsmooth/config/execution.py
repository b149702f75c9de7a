"""The section that says where chunks are drawn."""

from __future__ import annotations

from pydantic import Field, model_validator

from localsmooth.config.section import Section
from localsmooth.execution import Executor, ExecutorName, ProcessExecutor, RayExecutor, ThreadExecutor, named_executor

__all__ = ["ExecutionSection"]


class ExecutionSection(Section):
    """Where chunks are drawn; nothing here changes the samples."""

    executor: ExecutorName | None = None
    """Where chunks are drawn; by default in threads on a CPU where the model allows that, one by one elsewhere."""
    workers: int | None = Field(default=None, ge=1)
    """Number of threads, processes or actors; by default as many as there are cores, or GPUs, for."""
    gpus_per_worker: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """GPUs for each process or actor, possibly a fraction; by default one if the model is on a GPU."""
    address: str | None = None
    """Address of a running Ray cluster, or "auto"; by default Ray is started on this machine."""

    chunk_time_limit: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds that a chunk may take before its process or actor counts as hung and is replaced; by default a hundred
    times the usual, and at least ten minutes, once a few chunks are done."""

    @model_validator(mode="after")
    def _fitting(self) -> ExecutionSection:
        if self.address is not None and self.executor != "ray":
            raise ValueError('address goes with executor = "ray" only')
        for key in ("gpus_per_worker", "chunk_time_limit"):
            if getattr(self, key) is not None and self.executor not in ("processes", "ray"):
                raise ValueError(f'{key} goes with executor = "processes" or "ray" only')
        if self.workers is not None and self.executor in (None, "serial"):
            raise ValueError('workers goes with executor = "threads", "processes" or "ray" only')
        return self

    def build(self) -> Executor | None:
        """Make the executor; None for the one that suits the model.

        Raises
        ------
        InvalidInputError
            If Ray is asked for and not installed.
        """
        if self.executor == "threads":
            return ThreadExecutor(self.workers)
        if self.executor == "processes":
            return ProcessExecutor(
                self.workers, gpus_per_worker=self.gpus_per_worker, chunk_time_limit=self.chunk_time_limit
            )
        if self.executor == "ray":
            return RayExecutor(
                self.address,
                workers=self.workers,
                gpus_per_worker=self.gpus_per_worker,
                chunk_time_limit=self.chunk_time_limit,
            )
        return None if self.executor is None else named_executor(self.executor)
