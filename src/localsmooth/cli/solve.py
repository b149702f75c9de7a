"""``localsmooth solve``: certificates from anywhere, combined into one count."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from localsmooth.cli.commands import BoundName
from localsmooth.collective import (
    Answer,
    Bound,
    Envelope,
    Exact,
    LinearProgram,
    Milp,
    Naive,
    Progress,
    answer_record,
    read_problems,
)
from localsmooth.collective import solve as solve_problem
from localsmooth.errors import InvalidInputError

__all__ = ["solve"]


def _bound(name: BoundName, gap: float | None, time_limit: float | None) -> Bound:
    if gap is not None and name is not BoundName.EXACT:
        raise InvalidInputError("--gap", f"does nothing for {name.value}", "leave it out, or give --bound exact")
    if time_limit is not None and name not in (BoundName.EXACT, BoundName.MILP):
        raise InvalidInputError("--time-limit", f"does nothing for {name.value}", "leave it out, or give --bound exact")
    seconds = 60.0 if time_limit is None else time_limit
    match name:
        case BoundName.NAIVE:
            return Naive()
        case BoundName.LP:
            return LinearProgram()
        case BoundName.ENVELOPE:
            return Envelope()
        case BoundName.EXACT:
            return Exact(gap=gap or 0.0, time_limit=seconds)
        case BoundName.MILP:
            return Milp(time_limit=seconds)


def solve(
    problem: Path, bound: BoundName, gap: float | None, time_limit: float | None, verify: bool, as_json: bool
) -> None:
    """Certify how many predictions survive one adversary, from per-prediction certificates."""
    content = read_problems(problem)
    method = _bound(bound, gap, time_limit)
    curves = [
        tuple(solve_problem(each, method, verify, lambda step, place=place: _tell(place, step)))
        for place, each in enumerate(content.problems)
    ]
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


def _tell(position: int, step: Progress) -> None:
    typer.echo(f"problem {position}, {step}", err=True)


def _line(position: int | None, index: int | None, answer: Answer) -> str:
    place = "".join(
        f"{name} {value}: " for name, value in (("problem", position), ("budget", index)) if value is not None
    )
    proven = ", verified in exact arithmetic" if answer.verified is not None else ""
    return (
        f"{place}{answer.certified} of {answer.total} certified (bound {answer.lower:.3f}, best attack leaves "
        f"{answer.upper}) in {answer.seconds:.3f} s: {answer.status}{proven}"
    )
