"""Combine per-prediction certificates into one count that holds for every prediction at once."""

from .answer import Answer, Curve, Status
from .bound import Bound
from .envelope import Envelope
from .exact import Exact
from .explain import smallest_budget_index, smallest_budgets
from .milp import Milp
from .naive import Naive
from .paper import LinearProgram
from .problem import Problem
from .problem_file import answer_record, problem_from, read_problems
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
    "Milp",
    "Naive",
    "Problem",
    "Proof",
    "Rows",
    "Status",
    "Threat",
    "answer_record",
    "problem_from",
    "read_problems",
    "smallest_budget_index",
    "smallest_budgets",
    "solve",
    "verify",
]
