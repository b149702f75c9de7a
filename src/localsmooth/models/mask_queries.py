"""Scores per class from heads that predict a set of masks, each with a class (MaskFormer, Cheng et al. 2021)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch.nn import functional

__all__ = ["semantic_scores"]


def semantic_scores(
    classes: Float[torch.Tensor, "batch queries classes_and_none"],
    masks: Float[torch.Tensor, "batch queries height width"],
    size: tuple[int, int] | None = None,
) -> Float[torch.Tensor, "batch classes *size"]:
    """Add up the masks of each class, weighted by its probability in each query.

    Parameters
    ----------
    classes
        Logits of every query's class, "no object" last.
    masks
        Logits of every query's mask.
    size
        Height and width to which the logits of the masks are first interpolated; None to leave them as they are.
    """
    if size is not None:
        masks = functional.interpolate(masks, size=size, mode="bilinear", align_corners=False)
    return torch.einsum("bqc,bqhw->bchw", classes.softmax(dim=-1)[..., :-1], masks.sigmoid())
