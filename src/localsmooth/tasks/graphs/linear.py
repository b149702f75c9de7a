"""A linear map of sparse binary rows as a sum of weight rows, in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

__all__ = ["sparse_linear"]


def sparse_linear(bits: sp.csr_array, weight: torch.Tensor) -> torch.Tensor:
    """Product of a sparse boolean matrix (rows × columns) and weights (columns × hidden), differentiable in those."""
    return _SparseLinear.apply(weight, bits)  # pyright: ignore[reportReturnType]


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, bits: Any) -> torch.Tensor:
        ctx.bits = bits
        return _gather(bits, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _gather(ctx.bits.T.tocsr(), gradients[0].contiguous()), None


def _gather(bits: Any, table: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding_bag(
        torch.from_numpy(bits.indices.astype(np.int32)),
        table,
        torch.from_numpy(bits.indptr[:-1].astype(np.int32)),
        mode="sum",
    )
