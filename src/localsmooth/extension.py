"""Classes of one's own, known by name wherever the package's own are."""

from __future__ import annotations

from typing import Any, TypeVar

from localsmooth.certificates import SCORE_CERTIFICATES, VOTE_CERTIFICATES, ScoreCertificate, VoteCertificate
from localsmooth.collective import BOUNDS, Bound
from localsmooth.config import (
    DATA_SECTIONS,
    LAYOUT_SECTIONS,
    MODEL_SECTIONS,
    NOISE_SECTIONS,
    THREAT_SECTIONS,
    DataSection,
    LayoutSection,
    ModelSection,
    NoiseSection,
    ThreatSection,
)
from localsmooth.errors import InvalidInputError
from localsmooth.noise import NOISES, Noise
from localsmooth.registry import Registry
from localsmooth.tasks.arrays import THREATS, ItemThreat

__all__ = ["register"]

Kind = TypeVar("Kind")

_REGISTRIES: tuple[tuple[type, Registry[Any]], ...] = (
    (Noise, NOISES),
    (NoiseSection, NOISE_SECTIONS),
    (VoteCertificate, VOTE_CERTIFICATES),
    (ScoreCertificate, SCORE_CERTIFICATES),
    (Bound, BOUNDS),
    (ItemThreat, THREATS),
    (DataSection, DATA_SECTIONS),
    (LayoutSection, LAYOUT_SECTIONS),
    (ModelSection, MODEL_SECTIONS),
    (ThreatSection, THREAT_SECTIONS),
)


def register(kind: type[Kind]) -> type[Kind]:
    """Make a class known by its name: in configuration files, for commands, and for what stored runs are read with.

    Registering runs no code and changes no result; it only lets a name stand for a class. Test the class with the
    suite of its kind in `localsmooth.testing` first.

    Parameters
    ----------
    kind
        A noise (named by its `distribution`), a base certificate, a collective bound, or a threat to items (named by
        their `name`), or the section of configuration files that makes one, or data, a layout or a model.

    Returns
    -------
    type
        The class, so that this can be used as a decorator.

    Raises
    ------
    InvalidInputError
        If it is of no such kind, says no name, or another class has the name.
    """
    if isinstance(kind, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        for base, registry in _REGISTRIES:
            if issubclass(kind, base):
                _require_one_of_its_name(kind, registry)
                return registry.register(kind)
    raise InvalidInputError(
        "kind", f"got {kind!r}", f"Pass a class derived from {', '.join(base.__name__ for base, _ in _REGISTRIES)}"
    )


def _require_one_of_its_name(kind: type, registry: Registry[Any]) -> None:
    """Files name certificates of either basis in one list."""
    certificates = (VOTE_CERTIFICATES, SCORE_CERTIFICATES)
    name = getattr(kind, "name", None)
    if registry in certificates and any(name in other for other in certificates if other is not registry):
        raise InvalidInputError("name", f"there is a certificate of the other basis called {name!r}", "Choose another")
