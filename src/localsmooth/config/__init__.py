"""Configuration files: one validated TOML file describes one certification run."""

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.explain import ConfigurationError
from localsmooth.config.load import load_configuration, parse_configuration
from localsmooth.config.schema import Configuration, LayoutSection, SamplingSection

__all__ = [
    "CertificateSection",
    "Configuration",
    "ConfigurationError",
    "LayoutSection",
    "SamplingSection",
    "load_configuration",
    "parse_configuration",
]
