"""Base certificates: what each prediction tolerates on its own, as a linear inequality in the adversary's budget."""

from localsmooth.certificates.base import ABSTAIN, BaseCertificates, Basis
from localsmooth.certificates.best_of import best_of
from localsmooth.certificates.contract import ScoreCertificate, Thresholds, VoteCertificate
from localsmooth.certificates.exact_votes import ExactVotes
from localsmooth.certificates.gaussian_votes import GaussianVotes
from localsmooth.certificates.likelihood_ratio import largest_robust_count, smallest_robust_probability
from localsmooth.certificates.one_basis import one_basis
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
    "ExactVotes",
    "GaussianScores",
    "GaussianVotes",
    "RenyiVotes",
    "ScoreCertificate",
    "SparseScores",
    "Thresholds",
    "UniformVotes",
    "VoteCertificate",
    "best_of",
    "certified_radius",
    "largest_robust_count",
    "one_basis",
    "smallest_robust_probability",
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
