"""Combine per-prediction certificates into one count that holds for every prediction at once."""

from .answer import Answer, Curve, Status
from .bound import Bound
from .envelope import Envelope
from .exact import Exact
from .naive import Naive
from .paper import LinearProgram
from .problem import Problem
from .proof import Proof
from .solve import solve
from .threat import AtMostGroups, Ball, Caps, GroupBudgets, Integer, Rows, Threat
from .verify import CertificateError, verify

__all__ = [
    "Answer",
    "AtMostGroups",
    "Ball",
    "Bound",
    "Caps",
    "CertificateError",
    "Curve",
    "Envelope",
    "Exact",
    "GroupBudgets",
    "Integer",
    "LinearProgram",
    "Naive",
    "Problem",
    "Proof",
    "Rows",
    "Status",
    "Threat",
    "solve",
    "verify",
]
