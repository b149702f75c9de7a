"""Names by which stored runs and configuration files call the strategies: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from localsmooth.collective import Bound, Envelope, LinearProgram, Naive
from localsmooth.errors import InvalidInputError
from localsmooth.noise import Gaussian, Noise

__all__ = ["COLLECTIVE_BOUNDS", "noise_from_configuration"]

COLLECTIVE_BOUNDS: Mapping[str, Bound] = {"naive": Naive(), "lp": LinearProgram(), "envelope": Envelope()}
"""Collective bounds by name, weakest first."""

_NOISES: Mapping[str, type[Noise]] = {"gaussian": Gaussian}


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
