"""Problems on disk and the command that solves them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from localsmooth.cli.commands import solve as solve_command
from localsmooth.collective import answer_record, problem_from, read_problems, solve
from localsmooth.errors import InvalidInputError

from .problems import CASES

app = typer.Typer()
app.command()(solve_command)


def _run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _plain(case):
    return {name: value for name, value in case.items() if name not in ("id", "expected")}


@pytest.mark.parametrize("bound", ["naive", "lp", "envelope", "exact", "milp"])
def test_a_list_of_problems_gives_a_list_of_answers(tmp_path, bound):
    path = tmp_path / "problems.json"
    path.write_text(json.dumps(CASES[:6]))
    result = _run(path, "--bound", bound, "--json")
    assert result.exit_code == 0
    answers = json.loads(result.stdout)
    assert len(answers) == 6
    for case, answer in zip(CASES[:6], answers, strict=True):
        assert {"certified", "lower", "upper", "status", "seconds", "attack"} <= set(answer)
        exact = case["expected"]["exact"]
        assert answer["certified"] == exact if bound in ("exact", "milp") else answer["certified"] <= exact
        assert answer["upper"] >= exact


def test_one_problem_gives_one_answer_and_a_curve_a_list(tmp_path):
    case = _plain(CASES[0])
    path = tmp_path / "one.json"
    path.write_text(json.dumps(case))
    one = json.loads(_run(path, "--json", "--verify", "--bound", "exact", "--gap", 0, "--time-limit", 5).stdout)
    assert one["certified"] == CASES[0]["expected"]["exact"]
    assert "verified" in one
    case["c"] = [case["c"], [0.0]]
    path.write_text(json.dumps(case))
    curve = json.loads(_run(path, "--json").stdout)
    assert isinstance(curve, list)
    assert curve[1]["certified"] == sum(eta > 0 for eta in case["eta"])


def test_npz_and_json_say_the_same(tmp_path):
    case = _plain(CASES[1])
    (tmp_path / "p.json").write_text(json.dumps(case))
    arrays = {name: np.asarray(value) for name, value in case.items() if name != "caps"}
    np.savez(tmp_path / "p.npz", **arrays)
    answers = [json.loads(_run(tmp_path / f"p.{ending}", "--json").stdout) for ending in ("json", "npz")]
    assert answers[0]["lower"] == answers[1]["lower"]
    assert answers[0]["attack"] == answers[1]["attack"]


def test_words_for_people(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(CASES[:2]))
    result = _run(path, "--bound", "exact", "--verify")
    assert result.exit_code == 0
    assert "problem 1: 3 of 9 certified" in result.stdout
    assert "verified in exact arithmetic" in result.stdout


def test_the_direct_program_proves_what_it_certifies(tmp_path):
    case = CASES[1]
    (tmp_path / "p.json").write_text(json.dumps(_plain(case)))
    answer = json.loads(_run(tmp_path / "p.json", "--bound", "milp", "--verify", "--json").stdout)
    assert answer["certified"] == case["expected"]["exact"]
    assert answer["claimed"] <= answer["certified"] + 0.01
    assert "verified" in answer


def test_answers_are_plain_values():
    record = answer_record(solve(problem_from(_plain(CASES[0])))[0])
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("weights", {"weights": None}),
        ("budget", {"budget": 1}),
        ("A", {"A": [[1, 1], [1]]}),
        ("c", {"c": "much"}),
        ("integer", {"integer": [1, 0]}),
        ("caps", {"caps": [1]}),
    ],
)
def test_a_bad_problem_names_the_field(tmp_path, field, change):
    case = {**_plain(CASES[0]), **change}
    if change == {"weights": None}:
        del case["weights"]
    path = tmp_path / "p.json"
    path.write_text(json.dumps(case))
    with pytest.raises(InvalidInputError) as caught:
        read_problems(path)
    assert caught.value.field == field


def test_bad_files(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    (tmp_path / "bad.txt").write_text("")
    (tmp_path / "word.json").write_text('"word"')
    np.savez(tmp_path / "pickle.npz", weights=np.array([{}], dtype=object))
    for name in ("bad.json", "bad.npz", "bad.txt", "word.json", "pickle.npz", "absent.json"):
        with pytest.raises(InvalidInputError):
            read_problems(tmp_path / name)


def test_keys_that_are_not_known_are_refused_beside_those_that_are(tmp_path):
    case = _plain(CASES[0])
    path = tmp_path / "misspelt.json"
    path.write_text(json.dumps({"wieghts" if name == "weights" else name: value for name, value in case.items()}))
    result = _run(path)
    assert result.exit_code != 0
    with pytest.raises(InvalidInputError) as caught:
        read_problems(path)
    assert caught.value.field == "wieghts"  # and not: weights is missing
    for known in ("weights", "eta", "group", "A", "c", "targets", "caps", "integer", "id", "expected", "comment"):
        assert known in caught.value.remedy
    np.savez(tmp_path / "more.npz", weights=case["weights"], budget=3, threat=2)
    with pytest.raises(InvalidInputError, match="budget, threat"):
        read_problems(tmp_path / "more.npz")
