"""The configuration of one graph run: what a TOML section may say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["GraphSection"]

Probability = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1)]


class GraphSection(BaseModel):
    """Data, locality, model, noise, samples and certificate of a node classifier.

    Examples
    --------
    >>> GraphSection(data="digits", clusters=4, addition=(0.01, 0.01), deletion=(0.3, 0.6)).model
    'appnp'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: Literal["digits"] | Path
    """"digits", or the path of a flat-CSR .npz file."""
    split_seed: int = Field(default=0, ge=0)
    per_class: Count = 20
    evaluate: Literal["test", "validation"] = "test"
    """Nodes that are certified."""

    clusters: Count = 5
    """Number of clusters; 1 is isotropic smoothing."""
    clustering: Literal["metis", "spectral"] = "metis"
    addition: tuple[Probability, Probability] = (0.01, 0.01)
    """Probability of 0 → 1 in the output's own cluster, and in the farthest."""
    deletion: tuple[Probability, Probability] = (0.5, 0.9)
    """Probability of 1 → 0 in the output's own cluster, and in the farthest."""

    model: Literal["appnp", "gcn"] = "appnp"
    hidden: list[Count] = Field(default=[64], min_length=1)
    """Width of each hidden layer; APPNP has one."""
    epochs: Count = 3000
    patience: Count = 200
    learning_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=1e-3, ge=0)
    self_training: bool = True
    """Train a second time with the first network's predictions as labels (see `self_labeled`)."""
    training_seed: int = Field(default=0, ge=0)

    n_candidate: Count = 1000
    n_bound: Count = 10_000
    chunk_size: Count = 1000
    batch_size: Count = 8
    seed: int = Field(default=0, ge=0)

    alpha: float = Field(default=0.01, gt=0, lt=1)
    statistics: Literal["votes", "scores", "both"] = "votes"
    """Certify Rényi votes, variance-constrained scores, or whichever is better for each node at half the α."""
    score_bound: Literal["empirical_bernstein", "cdf_band", "betting"] = "empirical_bernstein"
    orders: list[Annotated[float, Field(gt=1)]] = Field(default=[1.5, 2.0, 4.0, 8.0, 16.0], min_length=1)
    """Rényi orders of the votes certificate."""
    bound: Literal["naive", "lp", "envelope", "exact"] = "envelope"
    additions: list[Annotated[int, Field(ge=0)]] = Field(default=list(range(11)), min_length=1)
    deletions: list[Annotated[int, Field(ge=0)]] = Field(default=list(range(0, 41, 2)), min_length=1)
    """Budgets; the joint grid is their product."""

    @model_validator(mode="after")
    def _fits(self) -> GraphSection:
        for name in ("addition", "deletion"):
            pair: tuple[float, float] = getattr(self, name)
            if self.clusters == 1 and pair[0] != pair[1]:
                raise ValueError(f"{name}: one cluster has one level, got {pair}; repeat the same number")
        if self.model == "appnp" and len(self.hidden) != 1:
            raise ValueError(f"hidden: APPNP has one hidden layer, got {self.hidden}")
        return self
