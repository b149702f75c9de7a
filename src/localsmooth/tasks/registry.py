"""Names by which stored runs and configuration files call the strategies: one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localsmooth.certificates import GaussianVotes, RenyiVotes, UniformVotes, VoteCertificate
from localsmooth.collective import Bound, Envelope, Exact, LinearProgram, Naive
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform

__all__ = [
    "COLLECTIVE_BOUNDS",
    "DEFAULT_BOUNDS",
    "default_certificate",
    "known_bounds",
    "noise_from_configuration",
]

COLLECTIVE_BOUNDS: Mapping[str, Bound] = {
    "naive": Naive(),
    "lp": LinearProgram(),
    "envelope": Envelope(),
    "exact": Exact(),
}
"""Collective bounds by name, weakest first."""

DEFAULT_BOUNDS: Mapping[str, Bound] = {name: COLLECTIVE_BOUNDS[name] for name in ("naive", "lp", "envelope")}
"""The bounds that take milliseconds a budget."""


def known_bounds(names: Sequence[str]) -> Mapping[str, Bound]:
    """Return the bounds of these names, with their defaults; `DEFAULT_BOUNDS` where no name is known."""
    return {name: COLLECTIVE_BOUNDS[name] for name in names if name in COLLECTIVE_BOUNDS} or DEFAULT_BOUNDS


_NOISES: Mapping[str, type[Noise]] = {
    "gaussian": Gaussian,
    "uniform": Uniform,
    "bernoulli": Bernoulli,
    "sparse-flips": SparseFlips,
}

_CERTIFICATES: Mapping[type[Noise], type[VoteCertificate]] = {
    Gaussian: GaussianVotes,
    Uniform: UniformVotes,
    Bernoulli: RenyiVotes,
    SparseFlips: RenyiVotes,
}


def default_certificate(noise: Noise) -> VoteCertificate:
    """The certificate from votes that goes with a noise.

    Raises
    ------
    InvalidInputError
        If the noise is of no family known here.
    """
    for family, certificate in _CERTIFICATES.items():
        if isinstance(noise, family):
            return certificate()
    raise InvalidInputError(
        "certificates", f"there is no default for {type(noise).__name__} noise", "Name the certificates to use"
    )


def noise_from_configuration(configuration: Mapping[str, object]) -> Noise:
    """Make a noise from what its `configuration` method gave.

    Raises
    ------
    InvalidInputError
        If the distribution is unknown or its parameters are not.
    """
    parameters = dict(configuration)
    family = _NOISES.get(str(parameters.pop("distribution", "")))
    if family is not None:
        try:
            return family(**parameters)
        except TypeError:
            pass
    raise InvalidInputError(
        "noise",
        f"{dict(configuration)} describes no distribution that this version knows",
        f"Known distributions: {', '.join(_NOISES)}",
    )
