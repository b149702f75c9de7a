"""From a budget to a threat model for one item."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int

from localsmooth.certificates import BaseCertificates, certified_radius
from localsmooth.collective import Ball, Caps, Integer, Rows, Threat, power_up
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout
from localsmooth.noise import BinaryNoise, Noise, SparseFlips, flip_caps
from localsmooth.registry import Registry

__all__ = ["THREATS", "Flips", "ItemThreat", "Kind", "NormBall", "PerPosition"]


class ItemThreat(ABC):
    """What the adversary may do to an item, for a list of budgets.

    Attributes
    ----------
    name
        Name in configuration files and records, for those that are registered in `THREATS`.
    one_ball
        Whether a budget ε allows nothing outside the ball of size ε around the item, in the noise's norm; baselines
        hold for such threats only.
    """

    name: ClassVar[str]
    one_ball: ClassVar[bool] = False

    @abstractmethod
    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Spell the budgets out for one item.

        Parameters
        ----------
        budgets
            ε, ascending.
        image, layout, noise
            The item, the layout it was sampled with, and the distribution.
        """

    @abstractmethod
    def words(self, noise: Noise, units: str) -> str:
        """What the adversary may do, to follow "under every" in the promise; ε is the budget.

        Parameters
        ----------
        noise
            The distribution that is sampled.
        units
            What budgets are counted or measured in, such as "bits" or "edges".
        """

    def radius(
        self, base: BaseCertificates, image: np.ndarray, layout: Layout, noise: Noise
    ) -> Float[np.ndarray, "outputs"]:
        """Say below which budget each output keeps its prediction on its own: the radius of a ball, by default.

        Parameters
        ----------
        base
            Base certificates of the item's outputs.
        image, layout, noise
            As for `threat`.
        """
        del image, layout
        return certified_radius(base.weights, base.eta, base.group, noise.norm)


@dataclass(frozen=True)
class NormBall(ItemThreat):
    """Perturbations of norm at most ε, in the norm that the noise certifies.

    Binary data are perturbed in whole bits, no more than an input group has.
    """

    name: ClassVar[str] = "norm-ball"
    one_ball: ClassVar[bool] = True

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return the ball, with caps where the noise is on bits."""
        if isinstance(noise, SparseFlips):
            return Flips(Kind.ANY).threat(budgets, image, layout, noise)
        ball = Ball(tuple(budgets), noise.norm)
        if not isinstance(noise, BinaryNoise):
            return ball
        caps = flip_caps(torch.from_numpy(image), layout.inputs).changes
        return ball & Caps(caps.astype(np.float64)) & Integer()

    def words(self, noise: Noise, units: str) -> str:
        """Name the norm."""
        del units
        return f"perturbation of l{noise.norm} norm at most ε"


class Kind(Enum):
    """Which flips of bits the adversary makes."""

    ADDITIONS = "additions"
    DELETIONS = "deletions"
    ANY = "flips of either kind"


@dataclass(frozen=True)
class Flips(ItemThreat):
    """At most ε flips of one kind, or of both kinds together, under sparsity-aware noise.

    No more bits are added than there are zeros in an input group, and no more deleted than there are ones.
    """

    kind: Kind = Kind.ANY
    name: ClassVar[str] = "flips"
    one_ball: ClassVar[bool] = True

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return the ball over both kinds, with caps of 0 for the kind that is not allowed."""
        if not isinstance(noise, SparseFlips):
            raise InvalidInputError(
                "threat", f"additions and deletions are not told apart by {type(noise).__name__}", "Use SparseFlips"
            )
        caps = flip_caps(torch.from_numpy(image), layout.inputs)
        room = np.concatenate([caps.additions, caps.deletions]).astype(np.float64)
        if self.kind is Kind.ADDITIONS:
            room[caps.additions.size :] = 0.0
        elif self.kind is Kind.DELETIONS:
            room[: caps.additions.size] = 0.0
        return Ball(tuple(budgets), 0) & Caps(room) & Integer()

    def words(self, noise: Noise, units: str) -> str:
        """Name the kind of flips, and what is flipped."""
        del noise
        if self.kind is Kind.ANY:
            return f"perturbation that changes at most ε {units}"
        other = Kind.DELETIONS if self.kind is Kind.ADDITIONS else Kind.ADDITIONS
        return f"perturbation of at most ε {self.kind.value} and no {other.value} of {units}"


@dataclass(frozen=True)
class PerPosition(ItemThreat):
    """Every position (a token, a point, a pixel) moves by at most ε over its channels, in the norm of the noise.

    Input groups are all that a certificate sees: with n_l positions in group l, the adversary spends at most
    min(n_l, most)·ε^p there, and most·ε^p altogether. That allows at least as much as the threat, and is sound.

    Parameters
    ----------
    most
        Number of positions that move at all; None for every one.

    Raises
    ------
    InvalidInputError
        If it is no whole number above 0.
    """

    most: int | None = None
    name: ClassVar[str] = "per-position"

    def __post_init__(self) -> None:
        try:
            enough = self.most is None or (operator.index(self.most) > 0 and self.most is not True)
        except TypeError:
            enough = False
        if not enough:
            raise InvalidInputError("most", f"got {self.most!r}", "Pass a whole number of positions > 0, or None")

    def threat(self, budgets: Sequence[float], image: np.ndarray, layout: Layout, noise: Noise) -> Threat:
        """Return one row for each input group, and one for all of them.

        Raises
        ------
        InvalidInputError
            If the noise is no additive one.
        """
        if isinstance(noise, BinaryNoise):
            raise InvalidInputError(
                "threat", f"{type(noise).__name__} noise is on bits, which move by no distance", "Use Flips"
            )
        places, total = self._places(image, layout)
        powers = [power_up(float(budget), float(noise.norm)) for budget in budgets]
        rows = np.concatenate([np.eye(places.size), np.ones((1, places.size))])
        return Rows(rows, np.array([[_times_up(power, n) for n in (*places.tolist(), total)] for power in powers]))

    def words(self, noise: Noise, units: str) -> str:
        """Name the norm, and how many positions move."""
        del units
        moved = "every position" if self.most is None else f"no more than {self.most} positions, each"
        return f"perturbation that moves {moved} by an l{noise.norm} norm of at most ε over its channels"

    def radius(
        self, base: BaseCertificates, image: np.ndarray, layout: Layout, noise: Noise
    ) -> Float[np.ndarray, "outputs"]:
        """Say how far all positions may move until the output could fall: (η / S_i)^(1/p), rounded down.

        S_i is what the adversary feeds to the certificates of group i by moving each position by 1.
        """
        places, total = self._places(image, layout)
        order = np.argsort(-base.weights, axis=-1)
        room = places[order]
        taken = np.clip(total - (np.cumsum(room, axis=-1) - room), 0, room)
        fed = (np.take_along_axis(base.weights, order, axis=-1) * taken).sum(axis=-1, keepdims=True)
        # Every product and every partial sum is off by half a unit in the last place at most.
        fed = np.nextafter(fed * (1 + (places.size + 2) * 2.0**-52), math.inf) * (fed > 0)
        return certified_radius(fed, base.eta, base.group, noise.norm)

    def _places(self, image: np.ndarray, layout: Layout) -> tuple[Int[np.ndarray, "input_groups"], int]:
        """Positions that may move in each input group, and altogether."""
        labels = layout.inputs.labels
        if labels.ndim < image.ndim:
            places = np.bincount(np.broadcast_to(labels, image.shape[1:]).ravel(), minlength=layout.inputs.count)
        else:  # the channels of a position may belong to several groups
            ordered = np.sort(labels.reshape(image.shape[0], -1), axis=0)
            first = np.concatenate([np.full((1, ordered.shape[1]), True), ordered[1:] != ordered[:-1]])
            places = np.bincount(ordered[first], minlength=layout.inputs.count)
        total = math.prod(image.shape[1:])
        most = total if self.most is None else min(self.most, total)
        return np.minimum(places, most).astype(np.int64), most


THREATS = Registry[ItemThreat]("threat", lambda kind: getattr(kind, "name", None), NormBall, Flips, PerPosition)
"""Threats by name, with those of other kinds of input."""


def _times_up(power: float, count: int) -> float:
    """Return power · count, rounded up."""
    try:
        exact = Fraction(power) * count
        rounded = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(rounded, math.inf) if Fraction(rounded) < exact else rounded
