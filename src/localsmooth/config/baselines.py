"""The sections that name a baseline, to be certified with in place of localized smoothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from localsmooth.baselines import CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth
from localsmooth.config.section import Section

__all__ = [
    "AnyBaseline",
    "CentreSmoothingSection",
    "CohenSection",
    "ReceptiveFieldsSection",
    "SegCertifySection",
    "SparseSmoothSection",
]


class CohenSection(Section):
    """Isotropic Gaussian noise, one radius per output, counted (Cohen et al. 2019; SegCertify's counted form)."""

    method: Literal["cohen"]

    def build(self) -> Cohen:
        """Make the baseline."""
        return Cohen()


class SegCertifySection(Section):
    """Isotropic Gaussian noise, one test for all outputs and one common radius (Fischer et al. 2021)."""

    method: Literal["segcertify"]
    tau: float = Field(default=0.75, gt=0.5, lt=1)
    """Threshold of the test; outputs that fail it abstain."""

    def build(self) -> SegCertify:
        """Make the baseline."""
        return SegCertify(self.tau)


class CentreSmoothingSection(Section):
    """Isotropic Gaussian noise, a bound on how many outputs change at all (Kumar and Goldstein 2021)."""

    method: Literal["centre-smoothing"]
    delta: float = Field(default=0.05, gt=0, lt=0.5)
    """Δ, by which the share of a ball must exceed, or may fall short of, one half."""
    candidates: int = Field(default=32, ge=1)
    """Number of sampled label maps among which the centre is chosen."""
    share: float = Field(default=0.5, gt=0, lt=1)
    """Share of alpha that the samples at the perturbed input get."""

    def build(self) -> CentreSmoothing:
        """Make the baseline."""
        return CentreSmoothing(self.delta, self.candidates, self.share)


class SparseSmoothSection(Section):
    """Isotropic flips of bits, exact certificates for each output on its own (Bojchevski et al. 2020)."""

    method: Literal["sparse-smooth"]
    horizon: int = Field(default=512, ge=1)
    """Largest number of flips per kind that is looked at."""

    def build(self) -> SparseSmooth:
        """Make the baseline."""
        return SparseSmooth(self.horizon)


class ReceptiveFieldsSection(Section):
    """Isotropic noise, collective certificates from receptive fields (Schuchardt et al. 2021)."""

    method: Literal["receptive-fields"]
    receptive_field: int = Field(ge=0)
    """Largest distance, in input elements along any axis, at which an input can influence an output of the model."""
    horizon: int = Field(default=512, ge=1)
    """Largest number of flips per kind that is looked at."""

    def build(self) -> ReceptiveFields:
        """Make the baseline."""
        return ReceptiveFields(self.receptive_field, horizon=self.horizon)


AnyBaseline = Annotated[
    CohenSection | SegCertifySection | CentreSmoothingSection | SparseSmoothSection | ReceptiveFieldsSection,
    Field(discriminator="method"),
]
