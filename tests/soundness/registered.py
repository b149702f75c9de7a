"""Everything of each kind that the package offers, found by looking: what is new is attacked without being named."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TypeVar

import numpy as np
from grids import GridGaussian, GridUniform

from localsmooth import baselines, certificates, collective, noise
from localsmooth.certificates import ExactVotes, RenyiVotes, ScoreCertificate, VoteCertificate
from localsmooth.collective import Bound, Exact, Milp, Threat
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Noise
from localsmooth.tasks.arrays import ItemMethod

__all__ = ["BASELINES", "BOUNDS", "NOISES", "THREATS", "certificates_for", "combinations", "concrete"]

Certificate = VoteCertificate | ScoreCertificate
Kind = TypeVar("Kind")


def concrete(module: ModuleType, kind: type[Kind]) -> dict[str, type[Kind]]:
    """Public classes of a module that are of a kind and can be made."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name: one
        for name, one in found.items()
        if inspect.isclass(one) and issubclass(one, kind) and not inspect.isabstract(one)
    }


NOISES: Mapping[str, type[Noise]] = concrete(noise, Noise) | {one.__name__: one for one in (GridGaussian, GridUniform)}
BASELINES: Mapping[str, type[ItemMethod]] = concrete(baselines, ItemMethod)
THREATS: Mapping[str, type[Threat]] = concrete(collective, Threat)
CERTIFICATES: Mapping[str, type[Certificate]] = dict(certificates.VOTE_CERTIFICATES) | dict(
    certificates.SCORE_CERTIFICATES
)
BOUNDS: dict[str, Bound] = {name: one() for name, one in collective.BOUNDS.items()} | {
    name: one() for name, one in concrete(collective, Bound).items() if collective.BOUNDS.known_as(one) is None
}
"""By name; those of no registry with their defaults."""

VARIANTS: Mapping[str, Sequence[Certificate]] = {
    RenyiVotes.name: [RenyiVotes((1.2, 2.0, 6.0)), RenyiVotes((2.0,))],
    ExactVotes.name: [
        ExactVotes(vectors=40, atoms=64),
        ExactVotes(orders=(), classes=2, vectors=6, horizon=2, atoms=16),
    ],
}
"""Small or peculiar parameters; what is not listed is made with its defaults."""


def certificates_for(family: Noise, levels: np.ndarray) -> list[tuple[str, Certificate]]:
    """Every certificate that does not refuse the noise."""
    found: list[tuple[str, Certificate]] = []
    for name, kind in CERTIFICATES.items():
        for place, one in enumerate(VARIANTS.get(name, [kind()])):
            try:
                half, group = np.full(1, 0.75), np.zeros(1, np.int64)
                if isinstance(one, VoteCertificate):
                    one.certificates(family, levels, half, group)
                else:
                    one.certificates(family, levels, half, half, half, group)
            except InvalidInputError:
                continue
            found.append((f"{name}{'′' * place}", one))
    return found


def combinations(family: Noise, levels: np.ndarray) -> Iterator[tuple[str, tuple[Certificate, ...]]]:
    """Each certificate alone, all from votes together, each from votes with each from scores, and all of them."""
    every = certificates_for(family, levels)
    votes = [one for one in every if isinstance(one[1], VoteCertificate)]
    scores = [one for one in every if isinstance(one[1], ScoreCertificate)]
    yield from ((name, (one,)) for name, one in every)
    if len(votes) > 1:
        yield " & ".join(name for name, _ in votes), tuple(one for _, one in votes)
    for v, vote in votes:
        for s, score in scores:
            yield f"{v} | {s}", (vote, score)
    if len(votes) > 1 and scores:
        yield "all", tuple(one for _, one in every)


def quick(bounds: Mapping[str, Bound]) -> dict[str, Bound]:
    """The bounds with little time for the searching ones, in their own order."""
    made = {Exact: Exact(time_limit=2.0), Milp: Milp(time_limit=2.0)}
    return {name: made.get(type(bound), bound) for name, bound in bounds.items()}
