"""Configuration files: one validated TOML file describes one certification run."""

from localsmooth.config.baselines import CentreSmoothingSection
from localsmooth.config.certificate import CertificateSection
from localsmooth.config.data import ArraysSection, ImageFilesSection
from localsmooth.config.edges import EdgeConfiguration
from localsmooth.config.faults import ConfigurationError, explain
from localsmooth.config.graph import GraphCertificateSection, GraphConfiguration
from localsmooth.config.load import (
    AnyFile,
    load_any_configuration,
    load_certificate,
    load_configuration,
    load_graph_certificate,
    parse_configuration,
    parse_graph_configuration,
    read_toml,
    with_execution,
)
from localsmooth.config.noises import NOISE_SECTIONS, AnyNoise, NoiseSection
from localsmooth.config.plugins import import_plugins
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.schema import Configuration, LayoutSection, LocalitySection
from localsmooth.config.section import Section

__all__ = [
    "NOISE_SECTIONS",
    "AnyFile",
    "AnyNoise",
    "ArraysSection",
    "CentreSmoothingSection",
    "CertificateSection",
    "Configuration",
    "ConfigurationError",
    "EdgeConfiguration",
    "GraphCertificateSection",
    "GraphConfiguration",
    "ImageFilesSection",
    "LayoutSection",
    "LocalitySection",
    "NoiseSection",
    "SamplingSection",
    "Section",
    "explain",
    "import_plugins",
    "load_any_configuration",
    "load_certificate",
    "load_configuration",
    "load_graph_certificate",
    "parse_configuration",
    "parse_graph_configuration",
    "read_toml",
    "with_execution",
]
