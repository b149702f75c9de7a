"""From what stored runs say to the strategies that they name."""

from __future__ import annotations

from collections.abc import Mapping

from localsmooth.certificates import VOTE_CERTIFICATES, VoteCertificate
from localsmooth.collective import Bound, Envelope, LinearProgram, Naive
from localsmooth.errors import InvalidInputError
from localsmooth.noise import NOISES, Noise

__all__ = ["DEFAULT_BOUNDS", "default_certificate", "noise_from_configuration"]

DEFAULT_BOUNDS: Mapping[str, Bound] = {"naive": Naive(), "lp": LinearProgram(), "envelope": Envelope()}
"""The bounds that take milliseconds a budget, weakest first."""


def default_certificate(noise: Noise) -> VoteCertificate:
    """The certificate from votes that goes with a noise.

    Raises
    ------
    InvalidInputError
        If the noise names none that is known.
    """
    if noise.certificate not in VOTE_CERTIFICATES:
        raise InvalidInputError(
            "certificates", f"there is no default for {type(noise).__name__} noise", "Name the certificates to use"
        )
    return VOTE_CERTIFICATES[noise.certificate]()


def noise_from_configuration(configuration: Mapping[str, object]) -> Noise:
    """Make a noise from what its `configuration` method gave.

    Nothing is imported for it: a family from elsewhere must have been registered before.

    Raises
    ------
    InvalidInputError
        If the distribution is unknown or its parameters are not.
    """
    parameters = dict(configuration)
    family = NOISES.get(str(parameters.pop("distribution", "")))
    if family is not None:
        try:
            return family.of_run(**parameters)
        except TypeError:
            pass
    raise InvalidInputError(
        "noise",
        f"{dict(configuration)} describes no distribution that this version knows",
        f"Known distributions: {', '.join(NOISES)}. Import the module that registers another one first",
    )
