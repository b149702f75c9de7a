"""Configuration files: one validated TOML file describes one certification run."""

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.explain import ConfigurationError
from localsmooth.config.graph import GraphConfiguration
from localsmooth.config.load import (
    load_any_configuration,
    load_configuration,
    parse_configuration,
    parse_graph_configuration,
)
from localsmooth.config.noises import NoiseSection
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.schema import Configuration, LayoutSection

__all__ = [
    "CertificateSection",
    "Configuration",
    "ConfigurationError",
    "GraphConfiguration",
    "LayoutSection",
    "NoiseSection",
    "SamplingSection",
    "load_any_configuration",
    "load_configuration",
    "parse_configuration",
    "parse_graph_configuration",
]
