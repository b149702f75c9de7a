"""Base certificates: what each prediction tolerates on its own, as a linear inequality in the adversary's budget."""

from localsmooth.certificates.base import ABSTAIN, BaseCertificates

__all__ = ["ABSTAIN", "BaseCertificates"]
