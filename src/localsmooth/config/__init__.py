"""Configuration files: one validated TOML file describes one certification run."""

from localsmooth.config.baselines import CentreSmoothingSection
from localsmooth.config.certificate import CertificateSection
from localsmooth.config.data import DATA_SECTIONS, ArraysSection, DataSection, ImageFilesSection, ItemsSection
from localsmooth.config.edges import EdgeConfiguration
from localsmooth.config.faults import ConfigurationError, explain, naming_keys_of
from localsmooth.config.graph import GraphCertificateSection, GraphConfiguration
from localsmooth.config.graph_data import GraphData
from localsmooth.config.layouts import (
    INTERPOLATIONS,
    LAYOUT_SECTIONS,
    REACHES,
    GridLayoutSection,
    LayoutSection,
    one_level,
)
from localsmooth.config.load import (
    AnyFile,
    load_certificate,
    load_configuration,
    parse_configuration,
    read_toml,
    with_execution,
)
from localsmooth.config.model_section import ModelSection, evaluation
from localsmooth.config.models import MODEL_SECTIONS
from localsmooth.config.modules import build_module
from localsmooth.config.noises import NOISE_SECTIONS, AnyNoise, NoiseSection
from localsmooth.config.plugins import import_plugins
from localsmooth.config.sampling import SamplingSection, with_samples
from localsmooth.config.schema import Configuration, LocalitySection
from localsmooth.config.section import ExistingPath, Section
from localsmooth.config.targets import TARGET_SECTIONS, TargetSection, target_names
from localsmooth.config.threats import THREAT_SECTIONS, PerPositionSection, ThreatSection
from localsmooth.config.tuning import AnyTuneSection, GraphTuneSection, TuneSection
from localsmooth.config.writing import to_toml
from localsmooth.tasks import import_from_folders

__all__ = [
    "DATA_SECTIONS",
    "INTERPOLATIONS",
    "LAYOUT_SECTIONS",
    "MODEL_SECTIONS",
    "NOISE_SECTIONS",
    "REACHES",
    "TARGET_SECTIONS",
    "THREAT_SECTIONS",
    "AnyFile",
    "AnyNoise",
    "AnyTuneSection",
    "ArraysSection",
    "CentreSmoothingSection",
    "CertificateSection",
    "Configuration",
    "ConfigurationError",
    "DataSection",
    "EdgeConfiguration",
    "ExistingPath",
    "GraphCertificateSection",
    "GraphConfiguration",
    "GraphData",
    "GraphTuneSection",
    "GridLayoutSection",
    "ImageFilesSection",
    "ItemsSection",
    "LayoutSection",
    "LocalitySection",
    "ModelSection",
    "NoiseSection",
    "PerPositionSection",
    "SamplingSection",
    "Section",
    "TargetSection",
    "ThreatSection",
    "TuneSection",
    "build_module",
    "evaluation",
    "explain",
    "import_plugins",
    "load_certificate",
    "load_configuration",
    "naming_keys_of",
    "one_level",
    "parse_configuration",
    "read_toml",
    "target_names",
    "to_toml",
    "with_execution",
    "with_samples",
]

import_from_folders("sections")  # which need what is above
