"""Base certificates: what each prediction tolerates on its own, as a linear inequality in the adversary's budget."""

from localsmooth.certificates.base import ABSTAIN, BaseCertificates, Basis
from localsmooth.certificates.basis import one_basis
from localsmooth.certificates.best import best_of
from localsmooth.certificates.capping import cap_weights
from localsmooth.certificates.combined import CertifiedOutputs, OutputScores, OutputVotes, certify_outputs, strata
from localsmooth.certificates.contract import ScoreCertificate, Thresholds, VoteCertificate, require_applicable
from localsmooth.certificates.exact_votes import ExactVotes
from localsmooth.certificates.gaussian_votes import GaussianVotes, gaussian_vote_eta
from localsmooth.certificates.likelihood_ratio import (
    LikelihoodRatioLaw,
    largest_robust_count,
    no_flip_law,
    product_law,
    smallest_robust_probability,
)
from localsmooth.certificates.radius import certified_radius
from localsmooth.certificates.renyi_votes import RenyiVotes
from localsmooth.certificates.uniform_votes import UniformVotes
from localsmooth.certificates.variance import BernoulliScores, GaussianScores, SparseScores
from localsmooth.registry import Registry

__all__ = [
    "ABSTAIN",
    "SCORE_CERTIFICATES",
    "VOTE_CERTIFICATES",
    "BaseCertificates",
    "Basis",
    "BernoulliScores",
    "CertifiedOutputs",
    "ExactVotes",
    "GaussianScores",
    "GaussianVotes",
    "LikelihoodRatioLaw",
    "OutputScores",
    "OutputVotes",
    "RenyiVotes",
    "ScoreCertificate",
    "SparseScores",
    "Thresholds",
    "UniformVotes",
    "VoteCertificate",
    "best_of",
    "cap_weights",
    "certified_radius",
    "certify_outputs",
    "gaussian_vote_eta",
    "largest_robust_count",
    "no_flip_law",
    "one_basis",
    "product_law",
    "require_applicable",
    "smallest_robust_probability",
    "strata",
]

VOTE_CERTIFICATES = Registry[VoteCertificate](
    "certificate from votes",
    lambda kind: getattr(kind, "name", None),
    GaussianVotes,
    UniformVotes,
    RenyiVotes,
    ExactVotes,
)
"""Votes certificates by their name in configuration files."""

SCORE_CERTIFICATES = Registry[ScoreCertificate](
    "certificate from scores", lambda kind: getattr(kind, "name", None), GaussianScores, BernoulliScores, SparseScores
)
"""Score certificates by their name in configuration files."""
