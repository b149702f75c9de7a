"""Cohen et al. 2019 and SegCertify against textbook formulas, and against a grid of one cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from localsmooth.baselines import Cohen, SegCertify
from localsmooth.bounds import Bonferroni, KFamilywise
from localsmooth.certificates import ABSTAIN
from localsmooth.collective import Exact
from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import GridLayout
from localsmooth.noise import Uniform
from localsmooth.report.html import render_report
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks.registry import DEFAULT_BOUNDS
from localsmooth.testing.chance import assert_level_kept
from tests.flat import certify, recertify

from ..pipeline.models import threshold_model

SHAPE = (4, 6)
SIGMA, ALPHA, N = 0.3, 0.05, 1000
BUDGETS = np.linspace(0, 0.7, 29)
THRESHOLDS = np.linspace(-0.5, 0.5, 24).reshape(SHAPE)


def run(layout: GridLayout | None = None, **changes: object):
    arguments = {
        "labels": [(THRESHOLDS < 0.1).astype(np.int64)],
        "layout": layout or GridLayout((1, 1), SIGMA, SIGMA),
        "plan": SamplingPlan(n_candidate=50, n_bound=N, seed=3, chunk_size=100),
        "alpha": ALPHA,
        "budgets": BUDGETS,
        "options": SamplingOptions(batch_size=64, channels_last=False),
        "progress": NoProgress(),
    }
    image = np.zeros((1, *SHAPE), np.float32)
    return certify(threshold_model(THRESHOLDS), [image], **(arguments | changes))  # type: ignore[arg-type]


def test_targets_that_a_baseline_leaves_out_are_named() -> None:
    asked = ("ratio", "balanced", "accuracy")
    counted = run(method=Cohen(), targets=asked)
    assert counted["target"].values.tolist() == ["ratio", "accuracy"]
    assert "Asked for and left out: balanced. Outputs are weighed there" in counted.attrs["assumptions"]
    unlabelled = run(labels=None, targets=asked)
    assert unlabelled["target"].values.tolist() == ["ratio", "balanced"]
    assert "left out, since labels are missing: accuracy." in unlabelled.attrs["assumptions"]
    assert "left out" not in run(targets=asked).attrs["assumptions"]


def test_cohen_counts_textbook_radii() -> None:
    result = run(method=Cohen())
    votes = result["votes"].values[0]
    q = beta.ppf(ALPHA / votes.size, votes, N - votes + 1)
    radius = np.where(q > 0.5, SIGMA * norm.ppf(q), 0)
    np.testing.assert_allclose(result["radius"].values[0], radius, rtol=1e-5)
    for target, mask in (
        ("ratio", radius > 0),
        ("accuracy", (radius > 0) & (result["candidate"] == result["label"])[0]),
    ):
        wanted = [(radius[np.asarray(mask)] > budget).sum() for budget in BUDGETS]
        np.testing.assert_array_equal(result["certified"].sel(target=target, bound="naive").values[0], wanted)
    assert result["certified"].values[0, 0, 0, 0] > 10


def test_a_grid_of_one_cell_is_the_counted_form(tmp_path: Path) -> None:
    """Under isotropic noise every collective bound, the exact one included, is SegCertify's counted form."""
    grid = run(bounds=["naive", "lp", "envelope", "exact"], budgets=BUDGETS[::4], out=tmp_path / "run")
    counted = recertify(tmp_path / "run", method=Cohen())
    for target in ("ratio", "accuracy"):
        for bound in (*DEFAULT_BOUNDS, "exact"):
            np.testing.assert_array_equal(
                grid["certified"].sel(target=target, bound=bound).values,
                counted["certified"].sel(target=target, bound="naive").values,
            )
    for name in ("prediction", "votes", "radius", "eta", "lower_probability"):
        np.testing.assert_array_equal(grid[name].values, counted[name].values)


def test_localized_collective_bounds_are_never_below_the_baseline_at_the_smallest_level(tmp_path: Path) -> None:
    run(GridLayout((2, 3), SIGMA, 3 * SIGMA), out=tmp_path / "run")
    result = recertify(tmp_path / "run", bounds={**DEFAULT_BOUNDS, "exact": Exact(time_limit=2.0)}, budgets=[0.1, 0.3])
    naive = result["certified"].sel(bound="naive").values
    for bound in ("lp", "envelope", "exact"):
        assert (result["certified"].sel(bound=bound).values >= naive).all()


def test_segcertify_is_holm_at_tau() -> None:
    tau = 0.8
    result = run(method=SegCertify(tau))
    votes = result["votes"].values[0].ravel()
    p = binom.sf(votes - 1, N, tau)
    accepted = np.zeros(votes.size, bool)
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] > ALPHA / (votes.size - rank):
            break
        accepted[place] = True
    np.testing.assert_array_equal(result["prediction"].values[0].ravel() != ABSTAIN, accepted)
    radius = SIGMA * norm.ppf(tau)
    wanted = np.where(radius > BUDGETS, accepted.sum(), 0)
    np.testing.assert_array_equal(result["certified"].sel(target="ratio", bound="naive").values[0], wanted)
    np.testing.assert_allclose(result["radius"].values[0].ravel()[accepted], radius, rtol=1e-6)
    assert 0 < accepted.sum() < votes.size
    assert "Holm" in result.attrs["assumptions"]


def test_segcertify_recertifies_and_reports(tmp_path: Path) -> None:
    first = run(out=tmp_path / "run", method=Cohen(), name="cohen")
    again = recertify(tmp_path / "run", method=SegCertify(0.9), alpha=0.1)
    assert again.attrs["alpha"] == 0.1
    page = render_report({"cohen": first, "segcertify": again})
    assert "Baseline SegCertify" in page
    assert "Baseline of Cohen" in page


def test_the_rule_for_many_outputs() -> None:
    plain, generous = run(method=Cohen()), run(method=Cohen(), simultaneous=KFamilywise(3))
    kept = int((generous["prediction"].values != ABSTAIN).sum())
    assert generous["certified"].values[0, 0, 0, 0] == kept - 2
    assert kept >= int((plain["prediction"].values != ABSTAIN).sum())
    with pytest.raises(InvalidInputError, match="many_outputs"):
        run(method=SegCertify(), simultaneous=KFamilywise(3))


def test_anything_but_isotropic_gaussian_noise_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="different levels"):
        run(GridLayout((2, 2), 0.2, 0.5), method=Cohen())
    with pytest.raises(InvalidInputError, match="Uniform"):
        run(noise=Uniform(), method=SegCertify())
    with pytest.raises(InvalidInputError, match="tau"):
        SegCertify(0.5)


def test_cells_of_one_level_are_isotropic_too() -> None:
    result = run(GridLayout((2, 3), SIGMA, SIGMA), method=Cohen())
    assert result["certified"].values[0, 0, 0, 0] > 10


@pytest.mark.parametrize("method", [Cohen(), SegCertify(0.7)])
def test_claims_about_known_probabilities_fail_no_more_often_than_alpha(method: Cohen | SegCertify) -> None:
    """The true radius of a threshold classifier is its distance to the threshold; α is large so that misses show."""
    thresholds = np.tile(SIGMA * np.array([0.1, norm.ppf(0.7), 1.2]), (4, 2))
    trials, misses, alpha = 100, 0, 0.2
    truth = norm.cdf(thresholds / SIGMA)
    for seed in range(trials):
        result = certify(
            threshold_model(thresholds),
            [np.zeros((1, *SHAPE), np.float32)],
            layout=GridLayout((1, 1), SIGMA, SIGMA),
            plan=SamplingPlan(n_candidate=20, n_bound=60, seed=seed, chunk_size=60),
            alpha=alpha,
            budgets=[0.0, 0.1],
            method=method,
            simultaneous=Bonferroni() if isinstance(method, Cohen) else None,  # bounds of all outputs at once
            options=SamplingOptions(batch_size=60, channels_last=False, check_model=False),
            progress=NoProgress(),
        )
        q = result["lower_probability"].values[0]
        chance = np.where(result["candidate"].values[0] == 0, truth, 1 - truth)
        wrong = (result["prediction"].values[0] != ABSTAIN) & (q > chance - 1e-9)
        misses += bool(wrong.any())
    assert_level_kept(misses, trials, alpha)
    assert misses > 0, "the level is so loose that the test could not fail"
