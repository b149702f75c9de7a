"""The contracts of a base certificate: bounded statistics and a noise in, weights and thresholds out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int

from localsmooth.errors import InvalidInputError
from localsmooth.noise import Noise

__all__ = [
    "ScoreCertificate",
    "Thresholds",
    "VoteCertificate",
    "checked_lower_probability",
    "checked_score_bounds",
    "require_applicable",
    "require_noise",
]

NoiseFamily = TypeVar("NoiseFamily", bound=Noise)


class Thresholds(NamedTuple):
    """What a base certificate promises: output n of group i keeps its label while W[i]·b < η_n.

    Several certificates may hold at once; they are then stacked along a leading axis, and an output can only be
    attacked where *every* one of its inequalities is broken.
    """

    weights: Float[np.ndarray, "*certificates output_groups columns"]
    """W, rounded up."""

    eta: Float[np.ndarray, "*certificates outputs"]
    """η, rounded down; 0 abstains."""


class VoteCertificate(ABC):
    """A base certificate from lower bounds on the probability of each output's candidate label."""

    name: str
    """Name in configuration files."""

    @abstractmethod
    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_probability: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds.

        Parameters
        ----------
        noise
            The smoothing distribution that the samples were drawn from.
        levels
            The layout's level matrix, the one that the sampler read.
        lower_probability
            Lower bounds q on the candidates' probabilities, in [0, 1); NaN abstains.
        group
            Output group of each output.

        Raises
        ------
        InvalidInputError
            If the certificate does not apply to this noise, or a probability is not in [0, 1).
        """


class ScoreCertificate(ABC):
    """A base certificate from bounds on the moments of each candidate's score in [0, 1]."""

    name: str
    """Name in configuration files."""

    @abstractmethod
    def certificates(
        self,
        noise: Noise,
        levels: Float[np.ndarray, "output_groups input_groups *parameters"],
        lower_mean: Float[np.ndarray, "outputs"],
        upper_second_moment: Float[np.ndarray, "outputs"],
        centre: Float[np.ndarray, "outputs"],
        group: Int[np.ndarray, "outputs"],
    ) -> Thresholds:
        """Weights and thresholds.

        Parameters
        ----------
        noise, levels, group
            As in `VoteCertificate.certificates`.
        lower_mean
            Lower bounds μ on the candidates' expected scores, in [0, 1]; NaN abstains.
        upper_second_moment
            Upper bounds ζ on the expected squared distance of the score to `centre`, ≥ 0; NaN abstains.
        centre
            ν, chosen without looking at the samples behind the bounds.

        Raises
        ------
        InvalidInputError
            If the certificate does not apply to this noise, or a bound is outside its range.
        """


def require_noise(certificate: str, noise: Noise, family: type[NoiseFamily]) -> NoiseFamily:
    """Return the noise as the family that the certificate was derived for.

    Raises
    ------
    InvalidInputError
        If it is of another family, naming the certificate and its own.
    """
    if not isinstance(noise, family):
        raise InvalidInputError(
            "certificate",
            f"{certificate} does not hold for {type(noise).__name__} noise",
            f"Use it with {family.__name__}, or pick a certificate of this noise",
        )
    return noise


def require_applicable(
    certificates: Sequence[VoteCertificate | ScoreCertificate],
    noise: Noise,
    levels: Float[np.ndarray, "output_groups input_groups *parameters"],
) -> None:
    """Refuse certificates that do not apply to a noise, by trying each on an output that abstains.

    Raises
    ------
    InvalidInputError
        Naming the certificate and the noise that it was derived for.
    """
    nothing, first = np.zeros(1), np.zeros(1, dtype=np.int64)
    for certificate in certificates:
        if isinstance(certificate, VoteCertificate):
            certificate.certificates(noise, levels[:1], nothing, first)
        else:
            certificate.certificates(noise, levels[:1], nothing, nothing + 1.0, nothing, first)


def checked_lower_probability(q: Float[np.ndarray, "outputs"]) -> Float[np.ndarray, "outputs"]:
    """Return the bounds as float64 with 0 for NaN.

    Raises
    ------
    InvalidInputError
        If a bound is negative or not below 1. No finite sample bounds a probability by 1, and a threshold of
        infinity would follow from it.
    """
    q = np.where(np.isnan(q), 0.0, q.astype(np.float64))
    if not ((q >= 0) & (q < 1)).all():
        raise InvalidInputError(
            "lower_probability",
            f"a bound is {q[~((q >= 0) & (q < 1))][0]}",
            "Pass lower confidence bounds in [0, 1), not frequencies: no finite sample gives 1",
        )
    return q


def checked_score_bounds(
    mean: Float[np.ndarray, "outputs"],
    second_moment: Float[np.ndarray, "outputs"],
    centre: Float[np.ndarray, "outputs"],
) -> tuple[Float[np.ndarray, "outputs"], Float[np.ndarray, "outputs"], Float[np.ndarray, "outputs"]]:
    """Return (μ, ζ, ν) as float64, with the vacuous (0, 1, 0) wherever one of them is NaN.

    Raises
    ------
    InvalidInputError
        If a mean or a centre is outside [0, 1], or a second moment is negative.
    """
    columns = [c.astype(np.float64) for c in (mean, second_moment, centre)]
    missing = np.isnan(np.stack(columns)).any(axis=0)
    mu, zeta, nu = (np.where(missing, vacuous, c) for c, vacuous in zip(columns, (0.0, 1.0, 0.0), strict=True))
    for field, values in (("lower_mean", mu), ("centre", nu)):
        if not ((values >= 0) & (values <= 1)).all():
            raise InvalidInputError(field, "a value is outside [0, 1]", "Scores are probabilities; scale them first")
    if not (zeta >= 0).all():
        raise InvalidInputError(
            "upper_second_moment", f"the smallest is {zeta.min()}", "Pass upper bounds on a squared distance, >= 0"
        )
    return mu, zeta, nu
