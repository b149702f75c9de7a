"""Recognise that a device or the host ran out of memory."""

from __future__ import annotations

import torch

__all__ = ["is_out_of_memory"]

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
