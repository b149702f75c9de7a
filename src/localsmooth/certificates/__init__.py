"""Base certificates: what each prediction tolerates on its own, as a linear inequality in the adversary's budget."""

from localsmooth.certificates.base import ABSTAIN, BaseCertificates
from localsmooth.certificates.contract import ScoreCertificate, Thresholds, VoteCertificate
from localsmooth.certificates.gaussian_votes import GaussianVotes
from localsmooth.certificates.radius import certified_radius

__all__ = [
    "ABSTAIN",
    "BaseCertificates",
    "GaussianVotes",
    "ScoreCertificate",
    "Thresholds",
    "VoteCertificate",
    "certified_radius",
]
