"""The exact discrete certificate against enumeration of every outcome."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsmooth.certificates import largest_robust_count, smallest_robust_probability
from localsmooth.certificates.likelihood_ratio import flip_law, product_law
from localsmooth.errors import InvalidInputError
from localsmooth.noise import SparseFlips

FIGURES = SparseFlips().bit_laws(np.array([[[0.01, 0.9]]]))


def enumerated(bits: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Smallest q that a worst classifier can bring down to 1/2, from all 2^n outcomes in exact arithmetic.

    The worst classifier takes outcomes in ascending order of their likelihood ratio until it has half of the
    perturbed probability; the clean probability that it has taken by then is the answer.
    """
    outcomes = []
    for values in itertools.product((0, 1), repeat=len(bits)):
        clean, perturbed = Fraction(1), Fraction(1)
        for value, (c, p) in zip(values, bits, strict=True):
            clean *= c if value else 1 - c
            perturbed *= p if value else 1 - p
        outcomes.append((clean, perturbed))
    # Outcomes that the clean law excludes come last: they add nothing to q.
    outcomes = sorted((o for o in outcomes if o[0] > 0), key=lambda o: o[1] / o[0])
    q, mass = Fraction(0), Fraction(0)
    for clean, perturbed in outcomes:
        if mass + perturbed >= Fraction(1, 2):
            return q + clean * (Fraction(1, 2) - mass) / perturbed
        q, mass = q + clean, mass + perturbed
    return Fraction(1)


def bits_of(columns: list[tuple[float, float]], flips: list[int]) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(c), Fraction(p)) for (c, p), k in zip(columns, flips, strict=True) for _ in range(k)]


grid_probabilities = st.integers(0, 64).map(lambda n: n / 64)
columns = st.lists(st.tuples(grid_probabilities, grid_probabilities), min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(columns, st.data())
def test_equals_enumeration_in_exact_arithmetic(laws: list[tuple[float, float]], data: st.DataObject) -> None:
    flips = [data.draw(st.integers(0, 3)) for _ in laws]
    clean, perturbed = np.array(laws).T
    found = smallest_robust_probability(clean, perturbed, np.array(flips))
    expected = enumerated(bits_of(laws, flips))
    assert found >= expected
    assert min(found, 1.0) <= float(expected) + 1e-9


@settings(max_examples=100, deadline=None)
@given(columns, st.integers(16, 40), st.data())
def test_coarse_grids_stay_pessimistic(laws: list[tuple[float, float]], atoms: int, data: st.DataObject) -> None:
    flips = [data.draw(st.integers(0, 3)) for _ in laws]
    clean, perturbed = np.array(laws).T
    found = smallest_robust_probability(clean, perturbed, np.array(flips), atoms=atoms)
    expected = enumerated(bits_of(laws, flips))
    assert found >= expected


def test_a_fine_grid_loses_little() -> None:
    clean, perturbed = np.array([0.01, 0.02, 0.05, 0.1]), np.array([0.1, 0.12, 0.2, 0.4])
    flips = np.array([5, 7, 6, 4])
    exact = smallest_robust_probability(clean, perturbed, flips, atoms=10**6)
    for atoms, loss in ((256, 3e-3), (1024, 2e-4), (4096, 1.5e-5)):
        coarse = smallest_robust_probability(clean, perturbed, flips, atoms=atoms)
        assert exact <= coarse <= exact + loss


@pytest.mark.parametrize(("column", "count"), [(0, 21), (1, 41)])
def test_published_figures(column: int, count: int) -> None:
    clean, perturbed = (float(law[0, column]) for law in FIGURES)
    assert largest_robust_count(clean, perturbed, 0.99, 100) == count
    # Regions of constant likelihood ratio, in exact arithmetic (Bojchevski et al. 2020).
    for flips, robust in ((count, True), (count + 1, False)):
        assert (one_level(Fraction(clean), Fraction(perturbed), flips) < Fraction(99, 100)) == robust


def one_level(c: Fraction, p: Fraction, flips: int) -> Fraction:
    """Smallest robust q for flips of one kind at one level: sum over regions of constant likelihood ratio."""
    from math import comb

    regions = sorted(
        (
            (comb(flips, j) * c**j * (1 - c) ** (flips - j), comb(flips, j) * p**j * (1 - p) ** (flips - j))
            for j in range(flips + 1)
        ),
        key=lambda r: r[1] / r[0],
    )
    q, mass = Fraction(0), Fraction(0)
    for clean, perturbed in regions:
        if mass + perturbed >= Fraction(1, 2):
            return q + clean * (Fraction(1, 2) - mass) / perturbed
        q, mass = q + clean, mass + perturbed
    raise AssertionError


@pytest.mark.parametrize("flips", [1, 5, 30, 200])
@pytest.mark.parametrize("laws", [(0.01, 0.1), (0.9, 0.01), (0.25, 0.75), (2.0**-20, 0.5)])
def test_one_level_equals_the_regions_of_constant_likelihood_ratio(flips: int, laws: tuple[float, float]) -> None:
    found = smallest_robust_probability(np.array([laws[0]]), np.array([laws[1]]), np.array([flips]))
    exact = one_level(Fraction(laws[0]), Fraction(laws[1]), flips)
    assert exact <= found <= float(exact) + 1e-10


def test_no_flips_leave_every_majority_alone() -> None:
    assert smallest_robust_probability(np.array([0.1]), np.array([0.9]), np.array([0])) == pytest.approx(0.5, abs=1e-12)
    assert smallest_robust_probability(np.array([0.1]), np.array([0.1]), np.array([9])) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(("clean", "perturbed"), [(0.0, 1.0), (0.0, 0.5), (1.0, 0.0), (1.0, 0.25)])
def test_an_outcome_that_the_clean_law_excludes(clean: float, perturbed: float) -> None:
    found = smallest_robust_probability(np.array([clean]), np.array([perturbed]), np.array([1]))
    assert found >= 1


def test_more_flips_never_help() -> None:
    clean, perturbed = np.array([0.01, 0.9]), np.array([0.1, 0.01])
    table = [[smallest_robust_probability(clean, perturbed, np.array([i, j])) for j in range(12)] for i in range(12)]
    assert (np.diff(table, axis=0) >= -1e-12).all()
    assert (np.diff(table, axis=1) >= -1e-12).all()


def test_many_levels_cost_little() -> None:
    clean = np.linspace(0.1, 0.45, 30)
    law = product_law(clean, 1 - clean, np.ones(30, dtype=int), atoms=1024)
    assert law.mass.size <= 1024
    assert 0.5 < law.smallest_robust_probability() < 1


def test_largest_count_is_cut_at_the_horizon() -> None:
    assert largest_robust_count(0.49, 0.51, 0.99, 7) == 7
    assert largest_robust_count(0.1, 0.9, 0.5, 7) == 0
    assert largest_robust_count(0.3, 0.3, 0.6, 7) == 7


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="bit_laws"):
        flip_law(1.2, 0.5, 1)
    with pytest.raises(InvalidInputError, match="bit_laws"):
        flip_law(float("nan"), 0.5, 1)
    with pytest.raises(InvalidInputError, match="flips"):
        flip_law(0.2, 0.5, -1)
