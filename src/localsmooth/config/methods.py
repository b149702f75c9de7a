"""From the section of a baseline to the method it names."""

from __future__ import annotations

from localsmooth.baselines import CentreSmoothing, Cohen, ReceptiveFields, SegCertify, SparseSmooth
from localsmooth.config.baselines import (
    CentreSmoothingSection,
    ReceptiveFieldsSection,
    SegCertifySection,
    SparseSmoothSection,
)
from localsmooth.config.certificate import CertificateSection
from localsmooth.config.explain import ConfigurationError
from localsmooth.tasks.arrays.settings import ItemMethod

__all__ = ["build_method"]


def build_method(section: CertificateSection) -> ItemMethod | None:
    """Make the baseline of a certificate section; None where there is none.

    Raises
    ------
    ConfigurationError
        If keys of the section say how localized smoothing is certified, which a baseline would not heed.
    """
    baseline = section.baseline
    if baseline is None:
        return None
    keys = ("bounds", "base", "renyi_orders", "score_bound", "exact_seconds", "exact_gap")
    # A run's record spells the defaults out.
    unheeded = [key for key in keys if getattr(section, key) != CertificateSection.model_fields[key].default]
    if unheeded:
        raise ConfigurationError(f"certificate.{unheeded[0]}: the baseline {baseline.method} takes no such key.")
    if isinstance(baseline, SegCertifySection):
        return SegCertify(baseline.tau)
    if isinstance(baseline, CentreSmoothingSection):
        return CentreSmoothing(baseline.delta, baseline.candidates, baseline.share)
    if isinstance(baseline, SparseSmoothSection):
        return SparseSmooth(baseline.horizon)
    if isinstance(baseline, ReceptiveFieldsSection):
        return ReceptiveFields(baseline.receptive_field, horizon=baseline.horizon)
    return Cohen()
