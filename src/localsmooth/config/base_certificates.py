"""Settings of single base certificates."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from localsmooth.certificates import ExactVotes
from localsmooth.config.section import Section

__all__ = ["ExactVotesSection"]

_DEFAULT = ExactVotes()


class ExactVotesSection(Section):
    """How closely exact-votes looks at the flips that can be tolerated. Weaker settings are faster, and as sound."""

    references: list[Annotated[float, Field(ge=0, le=1)]] = Field(default=list(_DEFAULT.references), min_length=1)
    """Quantiles of each group's bounds on the votes that a linear inequality is fitted to; 1 fits the most certain."""
    orders: list[Annotated[float, Field(gt=1, allow_inf_nan=False)]] = Field(default=list(_DEFAULT.orders))
    """Rényi orders whose weights are used too; may be empty."""
    classes: int = Field(default=_DEFAULT.classes, ge=1)
    """Largest number of noise levels (times kinds of flip) per output group; similar ones are merged."""
    vectors: int = Field(default=_DEFAULT.vectors, ge=1)
    """Number of vectors of flips that may be looked at per output group; time grows in proportion."""
    horizon: int = Field(default=_DEFAULT.horizon, ge=1)
    """Largest number of flips per level that is looked at; no more can be certified."""
    atoms: int = Field(default=_DEFAULT.atoms, ge=16)
    """Resolution of the likelihood ratio's law."""

    def build(self) -> ExactVotes:
        """Make the certificate."""
        return ExactVotes(
            tuple(self.references), tuple(self.orders), self.classes, self.vectors, self.horizon, self.atoms
        )
