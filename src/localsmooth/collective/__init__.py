"""Combine per-prediction certificates into one count that holds for every prediction at once."""

from localsmooth.collective.answer import Answer, Curve, Status
from localsmooth.collective.bound import Bound
from localsmooth.collective.envelope import Envelope
from localsmooth.collective.exact import Exact
from localsmooth.collective.explain import smallest_budget_index, smallest_budgets
from localsmooth.collective.milp import Milp
from localsmooth.collective.naive import Naive
from localsmooth.collective.names import BOUNDS, AnyBound, AnyBounds, as_bound, as_bounds
from localsmooth.collective.paper import LinearProgram
from localsmooth.collective.problem import Problem
from localsmooth.collective.problem_file import answer_record, problem_from, read_problems
from localsmooth.collective.progress import Progress, Tell
from localsmooth.collective.proof import Proof
from localsmooth.collective.solve import solve
from localsmooth.collective.threat import AtMostGroups, Ball, Caps, GroupBudgets, Integer, Rows, Threat
from localsmooth.collective.verify import CertificateError, verify

__all__ = [
    "BOUNDS",
    "Answer",
    "AnyBound",
    "AnyBounds",
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
    "Progress",
    "Proof",
    "Rows",
    "Status",
    "Tell",
    "Threat",
    "answer_record",
    "as_bound",
    "as_bounds",
    "problem_from",
    "read_problems",
    "smallest_budget_index",
    "smallest_budgets",
    "solve",
    "verify",
]
