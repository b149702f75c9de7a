"""Recognise that a device or the host ran out of memory."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

__all__ = ["is_out_of_memory", "peak_device_memory", "peak_memory"]

_PHRASES = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "bad_alloc",
    "failed to allocate memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory did not suffice (torch and ONNX Runtime raise RuntimeErrors for it)."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in _PHRASES)


def peak_memory() -> int | None:
    """Largest resident memory of this process so far, in bytes; None where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    kibi = 1 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kibi


def peak_device_memory(device: torch.device) -> int | None:
    """Largest memory that torch has used on a GPU, in bytes; None on a CPU."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
