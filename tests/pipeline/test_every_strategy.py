"""Every noise, base certificate, bound and rule gives the same certificate from Python, a file, and stored tallies."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from localsmooth.bounds import (
    SCORE_BOUNDS,
    SIMULTANEOUS,
    Automatic,
    Bonferroni,
    CandidateVotes,
    CandidateWeights,
    FixedThresholdHolm,
    JointAndBonferroni,
    JointCount,
    KFamilywise,
    PaperHolm,
    WeightedBonferroni,
)
from localsmooth.certificates import (
    SCORE_CERTIFICATES,
    VOTE_CERTIFICATES,
    ExactVotes,
    GaussianScores,
    GaussianVotes,
    RenyiVotes,
)
from localsmooth.cli.app import app
from localsmooth.collective import Envelope, Naive
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.noise import Bernoulli, Gaussian, SparseFlips, Uniform
from localsmooth.results import RATIO, load
from localsmooth.runs import DirectoryStore, SamplingPlan, Stage
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import StopWhenDecided
from localsmooth.tasks.arrays import Settings
from localsmooth.tasks.stopping import with_goals
from tests.flat import certify, recertify
from tests.pipeline.test_other_certificates import neighbourhood_model, soft_model

SHAPE = (4, 6)
PLAN = SamplingPlan(n_candidate=40, n_bound=400, seed=1, chunk_size=200)
ALPHA = 0.05
EXACT = ExactVotes(references=(0.5,), orders=(), classes=3, vectors=50, horizon=9, atoms=64)

MODULE = """
from tests.pipeline.test_other_certificates import neighbourhood_model, soft_model

soft, rows = soft_model()._function, neighbourhood_model()._function
"""

BITS = np.zeros((1, *SHAPE), np.float32)
BITS[0, :2] = 1
GREY = np.linspace(0.05, 0.95, 24, dtype=np.float32).reshape(1, *SHAPE)

FAMILIES = {
    "gaussian": (
        Gaussian(),
        GridLayout((2, 3), 0.2, 0.5),
        {"distribution": "gaussian", "sigma_min": 0.2, "sigma_max": 0.5},
    ),
    "uniform": (
        Uniform(),
        GridLayout((2, 3), 0.2, 0.5),
        {"distribution": "uniform", "lambda_min": 0.2, "lambda_max": 0.5},
    ),
    "bernoulli": (
        Bernoulli(),
        GridLayout((2, 3), 0.1, 0.3),
        {"distribution": "bernoulli", "theta_min": 0.1, "theta_max": 0.3},
    ),
    "sparse-flips": (
        SparseFlips(),
        GridLayout((2, 3), (0.05, 0.2), (0.1, 0.4)),
        {
            "distribution": "sparse-flips",
            "addition_min": 0.05,
            "addition_max": 0.1,
            "deletion_min": 0.2,
            "deletion_max": 0.4,
        },
    ),
}

# Certificates that hold for each noise, votes before scores.
BASES = {
    "gaussian": [("gaussian-votes",), ("gaussian-scores",), ("gaussian-votes", "gaussian-scores")],
    "uniform": [("uniform-votes",)],
    "bernoulli": [("renyi-votes",), ("exact-votes",), ("bernoulli-scores",), ("exact-votes", "bernoulli-scores")],
    "sparse-flips": [("renyi-votes",), ("exact-votes",), ("sparse-scores",), ("renyi-votes", "sparse-scores")],
}

RULES = {
    "automatic": (Automatic(), {}),
    "bonferroni": (Bonferroni(), {}),
    "k_familywise": (KFamilywise(2), {"k": 2}),
    "weighted_bonferroni": (CandidateWeights((0.6, 0.9)), {"thresholds": [0.6, 0.9]}),
    "joint_count": (JointCount(spare=1), {"spare": 1}),
    "joint_and_bonferroni": (JointAndBonferroni(), {}),
    "fixed_threshold_holm": (FixedThresholdHolm(0.8), {"tau": 0.8}),
    "paper_holm": (PaperHolm(), {}),
}


def combinations() -> list[tuple[str, tuple[str, ...], str, str]]:
    """Every base with every bound it can use, by weights; and every rule with the first base of each noise."""
    made: list[tuple[str, tuple[str, ...], str, str]] = []
    for family, bases in BASES.items():
        for base in bases:
            scores = any(name in SCORE_CERTIFICATES for name in base)
            bounds = sorted(SCORE_BOUNDS) if scores else ["empirical_bernstein"]
            rules = sorted(RULES) if base == bases[0] else ["weighted_bonferroni"]
            made += [(family, base, bound, rule) for bound, rule in itertools.product(bounds, rules)]
    return made


def certificate(name: str):
    if name == "exact-votes":
        return EXACT
    if name == "renyi-votes":
        return RenyiVotes((2.0, 5.0))
    return ({**VOTE_CERTIFICATES} | {**SCORE_CERTIFICATES})[name]()


def toml(values: dict[str, object]) -> str:
    """The values as TOML; JSON writes numbers, text and lists alike."""
    plain = [f"{key} = {json.dumps(value)}" for key, value in values.items() if not isinstance(value, dict)]
    return "\n".join(plain)


def write_file(
    folder: Path, family: str, base: tuple[str, ...], bound: str, rule: str, scores: str | None = None
) -> Path:
    model = "rows" if family in ("bernoulli", "sparse-flips") else "soft"
    np.save(folder / "images.npy", (BITS if model == "rows" else GREY)[None])
    (folder / "their_models.py").write_text(MODULE)
    exact = {
        "references": list(EXACT.references),
        "orders": list(EXACT.orders),
        "classes": EXACT.classes,
        "vectors": EXACT.vectors,
        "horizon": EXACT.horizon,
        "atoms": EXACT.atoms,
    }
    certificate_section: dict[str, object] = {
        "alpha": ALPHA,
        "budgets": budgets(family),
        "bounds": ["naive", "envelope"],
        "base": list(base),
        "score_bound": bound,
    } | ({"renyi_orders": [2.0, 5.0]} if "renyi-votes" in base else {})
    function = {"kind": "callable", "function": f"their_models:{model}", "output": "probabilities", "classes": 2}
    sections: dict[str, dict[str, object]] = {
        "model": function | {"bounds": [0.0, 1.0]},
        "data": {"kind": "arrays", "images": "images.npy"},
        "layout": {"cells": [2, 3]},
        "noise": FAMILIES[family][2],
        "sampling": {
            "n_candidate": PLAN.n_candidate,
            "n_bound": PLAN.n_bound,
            "seed": PLAN.seed,
            "chunk_size": PLAN.chunk_size,
            "batch_size": 100,
        }
        | ({} if scores is None else {"scores": scores}),
        "certificate": certificate_section,
        "certificate.many_outputs": {"rule": rule} | RULES[rule][1],
    } | ({"certificate.exact_votes": exact} if "exact-votes" in base else {})
    path = folder / "run.toml"
    path.write_text("\n\n".join(f"[{name}]\n{toml(values)}" for name, values in sections.items()) + "\n")
    return path


def budgets(family: str) -> list[float]:
    return [0.0, 1.0, 2.0, 5.0] if family in ("bernoulli", "sparse-flips") else [0.0, 0.05, 0.1, 0.2]


def command(*arguments: str) -> None:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def plain_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run per noise, certified by default from a file, with scores counted."""
    made: dict[str, Path] = {}
    for family in FAMILIES:
        folder = tmp_path_factory.mktemp(family)
        file = write_file(folder, family, BASES[family][0], "empirical_bernstein", "bonferroni", "histogram")
        command("certify", str(file), "--out", str(folder / "run"))
        made[family] = folder / "run"
    return made


def python_settings(base: tuple[str, ...], bound: str, rule: str) -> dict[str, Any]:
    return {
        "certificates": [certificate(name) for name in base],
        "simultaneous": RULES[rule][0],
        "score_bound": SCORE_BOUNDS[bound](),
    }


def assert_same(result: xr.Dataset, other: xr.Dataset) -> None:
    for name in ("votes", "candidate", "prediction", "lower_probability", "eta", "certified"):
        np.testing.assert_array_equal(result[name].values, other[name].values, err_msg=name)
    assert result.attrs["assumptions"] == other.attrs["assumptions"]


@pytest.mark.filterwarnings("ignore::localsmooth.bounds.NotSimultaneousWarning")
@pytest.mark.parametrize(("family", "base", "bound", "rule"), combinations())
def test_stored_tallies_from_python_and_by_a_file(
    family: str, base: tuple[str, ...], bound: str, rule: str, plain_runs: dict[str, Path], tmp_path: Path
) -> None:
    file = write_file(tmp_path, family, base, bound, rule)
    command("recertify", str(plain_runs[family]), "--config", str(file), "--to", str(tmp_path / "again.nc"))
    result = recertify(
        plain_runs[family], **python_settings(base, bound, rule), bounds={"naive": Naive(), "envelope": Envelope()}
    )
    assert_same(load(tmp_path / "again.nc"), result)
    said = "chosen from the candidate stage" if rule == "automatic" else rule
    for text in (*base, said):
        assert text in result.attrs["assumptions"]
    assert result["certified"].sel(target=RATIO, bound="envelope", budget=0.0).values[0] > 0


def whole_runs() -> list[Any]:
    """Every noise and certificate by the default bound on scores; the other bounds take longer than they tell."""
    marks = {"empirical_bernstein": ()}
    return [
        pytest.param(family, base, bound, rule, marks=marks.get(bound, pytest.mark.long))
        for family, base, bound, rule in combinations()
        if rule == "weighted_bonferroni"
    ]


@pytest.mark.parametrize(("family", "base", "bound", "rule"), whole_runs())
def test_sampled_from_python_and_by_a_file(
    family: str, base: tuple[str, ...], bound: str, rule: str, tmp_path: Path
) -> None:
    noise, layout, _ = FAMILIES[family]
    binary = family in ("bernoulli", "sparse-flips")
    settings = python_settings(base, bound, rule)
    from_python = certify(
        neighbourhood_model() if binary else soft_model(),
        (BITS if binary else GREY)[None],
        layout=layout,
        noise=noise,
        plan=PLAN,
        alpha=ALPHA,
        budgets=budgets(family),
        bounds={"naive": Naive(), "envelope": Envelope()},
        options=SamplingOptions(batch_size=100),
        progress=NoProgress(),
        **settings,
    )
    command("certify", str(write_file(tmp_path, family, base, bound, rule)), "--out", str(tmp_path / "run"))
    assert_same(load(tmp_path / "run" / "result.nc"), from_python)
    again = recertify(tmp_path / "run", **settings, bounds={"naive": Naive(), "envelope": Envelope()})
    assert_same(again, from_python)


def test_combinations_leave_nothing_out() -> None:
    every = combinations()
    assert {name for _, base, _, _ in every for name in base} == set(VOTE_CERTIFICATES) | set(SCORE_CERTIFICATES)
    assert {bound for *_, bound, _ in every} == set(SCORE_BOUNDS)
    assert {rule for *_, rule in every} == set(SIMULTANEOUS) == set(RULES)


# --- weights from the candidate stage ---------------------------------------------------------------------------------


def test_weights_follow_the_candidate_stage_alone(tmp_path: Path) -> None:
    """The levels behind the bounds are those that the votes of the candidate stage give."""
    rule = CandidateWeights((0.6, 0.9))
    arguments: dict[str, Any] = {
        "layout": FAMILIES["gaussian"][1],
        "alpha": ALPHA,
        "budgets": [0.0, 0.1],
        "options": SamplingOptions(batch_size=100, keep_candidate_counts=True),
        "progress": NoProgress(),
        "simultaneous": rule,
    }
    result = certify(soft_model(), GREY[None], plan=PLAN, out=tmp_path / "run", **arguments)
    store = DirectoryStore(tmp_path / "run", read_only=True)
    first = store.get_array("item0-candidate-votes")
    counts = np.zeros((24, 2), np.int64)
    layout = FAMILIES["gaussian"][1].layout((1, *SHAPE), SHAPE)
    for group in range(layout.outputs.count):
        counts[layout.outputs.members(group)] = store.merged(0, group, Stage.CANDIDATE).counts["labels.counts"]
    np.testing.assert_array_equal(first, counts.max(axis=1))
    strategy = rule.from_candidates(CandidateVotes(first, PLAN.n_candidate), PLAN.n_bound, ALPHA)
    assert np.unique(strategy.levels(24, ALPHA)).size > 3
    lower = strategy.lower_bounds(result["votes"].values.ravel().astype(np.int64), PLAN.n_bound, ALPHA).lower
    np.testing.assert_array_equal(result["lower_probability"].values.ravel(), lower)


def test_directory_without_candidate_votes_names_the_remedy(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "layout": FAMILIES["gaussian"][1],
        "plan": PLAN,
        "alpha": ALPHA,
        "budgets": [0.0, 0.1],
        "options": SamplingOptions(batch_size=100),
        "progress": NoProgress(),
        "out": tmp_path / "run",
    }
    first = certify(soft_model(), GREY[None], **arguments)
    (tmp_path / "run" / "arrays" / "item0-candidate-votes.array").unlink()  # as older versions left it
    assert recertify(tmp_path / "run").identical(first)
    with pytest.raises(InvalidInputError, match="into the run directory again, which samples nothing"):
        recertify(tmp_path / "run", simultaneous=CandidateWeights())
    certify(soft_model(), GREY[None], **arguments)
    recertify(tmp_path / "run", simultaneous=CandidateWeights())


def test_goals_of_early_stopping_cannot_wait_for_the_candidates(tmp_path: Path) -> None:
    plan = replace(PLAN, stop=StopWhenDecided())
    settings = Settings(ALPHA, (0.1,), (GaussianVotes(),), simultaneous=CandidateWeights())
    layout = FAMILIES["gaussian"][1]
    with pytest.raises(InvalidInputError, match="stop: weighted_bonferroni"):
        with_goals(plan, [layout.layout((1, *SHAPE), SHAPE)], Gaussian(), settings)
    certify(
        soft_model(),
        GREY[None],
        layout=layout,
        plan=plan,
        alpha=ALPHA,
        budgets=[0.0, 0.1],
        options=SamplingOptions(batch_size=100),
        progress=NoProgress(),
        out=tmp_path / "run",
    )
    weighted, equal = recertify(tmp_path / "run", simultaneous=CandidateWeights()), recertify(tmp_path / "run")
    assert not np.array_equal(weighted["lower_probability"].values, equal["lower_probability"].values)


def test_an_output_without_a_level_gives_its_scores_up() -> None:
    weights = np.ones(24)
    weights[:6] = 0
    result = certify(
        soft_model(),
        GREY[None],
        layout=FAMILIES["gaussian"][1],
        plan=PLAN,
        alpha=ALPHA,
        budgets=[0.0],
        certificates=[GaussianScores()],
        simultaneous=WeightedBonferroni(weights),
        options=SamplingOptions(batch_size=100),
        progress=NoProgress(),
    )
    assert (result["eta"].values.ravel()[:6] == 0).all()
    assert (result["eta"].values.ravel()[18:] > 0).all()
