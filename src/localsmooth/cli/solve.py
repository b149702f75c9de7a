"""``localsmooth solve``: certificates from anywhere, combined into one count."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from localsmooth.collective import (
    Answer,
    Bound,
    Envelope,
    Exact,
    LinearProgram,
    Milp,
    Naive,
    answer_record,
    read_problems,
)
from localsmooth.collective import solve as solve_problem

__all__ = ["solve"]


class BoundName(Enum):
    """Names of the bounds, weakest first."""

    NAIVE = "naive"
    LP = "lp"
    ENVELOPE = "envelope"
    EXACT = "exact"
    MILP = "milp"


def _bound(name: BoundName, gap: float, time_limit: float) -> Bound:
    match name:
        case BoundName.NAIVE:
            return Naive()
        case BoundName.LP:
            return LinearProgram()
        case BoundName.ENVELOPE:
            return Envelope()
        case BoundName.EXACT:
            return Exact(gap=gap, time_limit=time_limit)
        case BoundName.MILP:
            return Milp(time_limit=time_limit)


def solve(
    problem: Annotated[Path, typer.Argument(help="A problem, or a JSON list of problems: a .json or .npz file.")],
    bound: Annotated[BoundName, typer.Option(help="How hard to try.")] = BoundName.ENVELOPE,
    gap: Annotated[float, typer.Option(help="Targets by which 'exact' may fall short of the optimum.")] = 0.0,
    time_limit: Annotated[float, typer.Option(help="Seconds for 'exact' and 'milp', all budgets together.")] = 60.0,
    verify: Annotated[bool, typer.Option("--verify", help="Prove every answer again in exact arithmetic.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print answers as JSON.")] = False,
) -> None:
    """Certify how many predictions survive one adversary, from per-prediction certificates."""
    content = read_problems(problem)
    method = _bound(bound, gap, time_limit)
    curves = [tuple(solve_problem(each, method, verify)) for each in content.problems]
    if as_json:
        records = [
            [answer_record(answer) for answer in answers] if several else answer_record(answers[0])
            for answers, several in zip(curves, content.curves, strict=True)
        ]
        typer.echo(json.dumps(records if content.listed else records[0]))
        return
    for position, answers in enumerate(curves):
        for index, answer in enumerate(answers):
            typer.echo(_line(position if content.listed else None, index if len(answers) > 1 else None, answer))


def _line(position: int | None, index: int | None, answer: Answer) -> str:
    place = "".join(
        f"{name} {value}: " for name, value in (("problem", position), ("budget", index)) if value is not None
    )
    proven = ", verified in exact arithmetic" if answer.verified is not None else ""
    return (
        f"{place}{answer.certified} of {answer.targets} certified (bound {answer.lower:.3f}, best attack leaves "
        f"{answer.upper}) in {answer.seconds:.3f} s: {answer.status}{proven}"
    )
