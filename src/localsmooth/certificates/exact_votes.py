"""Exact votes: the Neyman–Pearson certificate of flips under several noise levels, made linear."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from localsmooth.certificates.capping import cap_weights
from localsmooth.certificates.contract import Thresholds, VoteCertificate, checked_lower_probability, require_noise
from localsmooth.certificates.flip_classes import flip_classes
from localsmooth.certificates.frontier import Frontier, explore
from localsmooth.certificates.renyi_votes import RenyiVotes, renyi_eta
from localsmooth.errors import InvalidInputError
from localsmooth.noise import BinaryNoise, Noise

__all__ = ["ExactVotes"]

_BEYOND = 1e9


@dataclass(frozen=True)
class ExactVotes(VoteCertificate):
    """W fitted to the vectors of flips that are exactly robust, η the largest that promises no other vector.

    For one noise level and one kind of flip this is the exact certificate (Bojchevski et al. 2020). For several it
    is valid for every vector of flips, whatever its size, and loses what a plane loses against a curved frontier.
    Both W and η may depend on the bounds q: they follow from q by computation alone.

    Parameters
    ----------
    references
        Shares in [0, 1]: W is fitted once for each of these quantiles of the group's lower bounds, and all fits hold
        at once. 1 fits the most certain outputs. Where the noise tells kinds of flips apart there is a fit for all
        kinds together and one for each kind above all.
    orders
        Rényi orders α whose weights are used as W too, each with the larger of its own η and the exact one.
    classes
        Largest number of different noise levels (times kinds of flip) per output group; similar ones are merged, to
        the adversary's advantage.
    vectors
        Number of flip vectors that may be looked at per output group. Time grows in proportion.
    horizon
        Largest number of flips per class that is looked at; no more can be certified.
    atoms
        Resolution of the likelihood ratio's law. Fewer are faster and more pessimistic.

    Raises
    ------
    InvalidInputError
        If a number is out of range.
    """

    references: tuple[float, ...] = (1.0, 0.5)
    orders: tuple[float, ...] = (1.5, 4.0)
    classes: int = 6
    vectors: int = 2000
    horizon: int = 256
    atoms: int = 512
    name = "exact-votes"

    def __post_init__(self) -> None:
        if not self.references or not all(0 <= r <= 1 for r in self.references):
            raise InvalidInputError("references", f"got {self.references}", "Pass one or more shares in [0, 1]")
        RenyiVotes(self.orders or (2.0,))  # the same rules
        for name, least in (("classes", 1), ("vectors", 1), ("horizon", 1), ("atoms", 16)):
            if getattr(self, name) < least:
                raise InvalidInputError(name, f"got {getattr(self, name)}", f"Pass at least {least}")

    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_probability: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds with a leading axis of references and orders; see `VoteCertificate.certificates`."""
        flips = require_noise(self.name, noise, BinaryNoise)
        laws = flips.bit_laws(levels)
        q = checked_lower_probability(lower_probability)
        highest = float(q.max(initial=0.0))
        focuses = _focuses(noise.kinds, levels.shape[1])
        fits = len(self.references) * len(focuses)
        weights = np.zeros((fits, *laws.clean.shape))
        eta = np.zeros((fits, q.size))
        for order in self.orders:
            # Any weight above every threshold says the same as an infinite one.
            raw = np.minimum(flips.renyi_weights(levels, order), _BEYOND)
            weights = np.concatenate([weights, raw[None]])
            eta = np.concatenate([eta, renyi_eta(q, order)[None]])
        known: dict[bytes, Frontier] = {}  # groups in like positions share their levels
        for i, (clean, perturbed) in enumerate(zip(laws.clean, laws.perturbed, strict=True)):
            members = np.flatnonzero((group == i) & (q > 0.5))
            if members.size == 0:
                continue
            classes = flip_classes(clean, perturbed, self.classes)
            if classes.clean.size == 0:  # nothing that the group sees can be changed to any effect
                eta[:, members] = 1.0
                continue
            key = np.stack([classes.clean, classes.perturbed]).tobytes()
            if key not in known:
                known[key] = explore(classes, highest, vectors=self.vectors, horizon=self.horizon, atoms=self.atoms)
            frontier = known[key]
            for r, (share, focus) in enumerate(itertools.product(self.references, focuses)):
                importance = classes.largest(focus)
                fitted = frontier.fit(float(np.quantile(q[members], share, method="lower")), importance)
                weights[r, i] = np.append(fitted, 0.0)[classes.member]
            for r in range(len(weights)):
                exact = frontier.eta(classes.smallest(weights[r, i]), q[members])
                eta[r, members] = np.maximum(eta[r, members], exact)
        for r in range(len(weights)):
            weights[r] = cap_weights(weights[r], eta[r], group)
        return Thresholds(weights, eta)


def _focuses(kinds: tuple[str, ...], input_groups: int) -> list[Float[np.ndarray, "columns"]]:
    """Importance of each column: all kinds alike, and each kind in turn above the others."""
    focuses = [np.ones(len(kinds) * input_groups)]
    if len(kinds) > 1:
        kind = np.repeat(np.arange(len(kinds)), input_groups)
        focuses += [np.where(kind == k, 1.0, 1e-3) for k in range(len(kinds))]
    return focuses
