"""What users of the room need, for type checkers and for the lazy loader: each is imported on first use."""

from .explain import smallest_budgets
from .kernel.answer import Answer, Curve, Status
from .kernel.arrays import UNIT
from .kernel.ceiling import Ceiling
from .kernel.dual import DualPoint
from .kernel.problem import Problem
from .kernel.proof import Leaf, Node, Proof, SplitFeed, SplitSpending, Tighten
from .kernel.threat import AtMostGroups, Ball, Caps, Constraints, GroupBudgets, Integer, Rows, Threat, power_up
from .kernel.verify import CertificateError, prove, verify
from .overlap import Overlap, certify_overlap
from .problem_file import answer_record, problem_from, read_problems
from .search.bound import Bound
from .search.envelope import Envelope
from .search.exact import Exact
from .search.milp import Milp
from .search.naive import Naive
from .search.names import BOUNDS, AnyBound, AnyBounds, as_bound, as_bounds
from .search.paper import LinearProgram
from .search.progress import Progress, Tell
from .solving import solve

__all__ = [
    "BOUNDS",
    "UNIT",
    "Answer",
    "AnyBound",
    "AnyBounds",
    "AtMostGroups",
    "Ball",
    "Bound",
    "Caps",
    "Ceiling",
    "CertificateError",
    "Constraints",
    "Curve",
    "DualPoint",
    "Envelope",
    "Exact",
    "GroupBudgets",
    "Integer",
    "Leaf",
    "LinearProgram",
    "Milp",
    "Naive",
    "Node",
    "Overlap",
    "Problem",
    "Progress",
    "Proof",
    "Rows",
    "SplitFeed",
    "SplitSpending",
    "Status",
    "Tell",
    "Threat",
    "Tighten",
    "answer_record",
    "as_bound",
    "as_bounds",
    "certify_overlap",
    "power_up",
    "problem_from",
    "prove",
    "read_problems",
    "smallest_budgets",
    "solve",
    "verify",
]
