"""Budgets in words, against numbers that were worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from localsmooth.metrics import scale_words


def test_grey_levels_of_an_even_perturbation() -> None:
    image = np.zeros((1, 10, 10), np.float32)
    assert (words := scale_words(2, [image], (0.0, 1.0))) is not None
    assert "25.5 grey levels of 255 a value" in words  # 1 = sqrt(100 · 0.1²), and 0.1 · 255 = 25.5
    assert "all 100 values" in words
    assert (words := scale_words(1, [image], (0.0, 255.0))) is not None
    assert "0.01 grey levels" in words  # 1 = 100 · 0.01


def test_shares_of_another_range_and_several_sizes() -> None:
    words = scale_words(2, [np.zeros((1, 2, 2)), np.zeros((1, 4, 4))], (-1.0, 1.0))
    assert words is not None
    assert "12.5 to 25 % of the range" in words
    assert "4 to 16 values" in words
    assert (words := scale_words(2, [np.zeros((1, 2, 2))], None)) is not None
    assert "0.5 units" in words


@pytest.mark.parametrize(("amplitude", "decibels"), [(1.0, "20 dB"), (10.0, "40 dB")])
def test_decibels_of_a_sequence(amplitude: float, decibels: str) -> None:
    signal = np.full((1, 100), amplitude)
    words = scale_words(2, [signal], None)
    assert words is not None
    assert f"{decibels} below the signal" in words  # energy 100·a² against 1
    assert (words := scale_words(2, [np.zeros((1, 100))], None)) is not None
    assert "dB" not in words


def test_other_budgets_and_sequences_along_one_of_two_axes() -> None:
    tall = np.full((1, 100, 1), 10.0)
    assert (words := scale_words(2, [tall], None, budget=0.1)) is not None
    assert words.startswith("ε = 0.1 is 0.01 units")
    assert "60 dB below the signal" in words  # energy 10 000 against 0.01
    assert (words := scale_words(1, [tall], (0.0, 255.0), budget=25.0)) is not None
    assert "0.25 grey levels" in words
    assert scale_words(2, [tall], None, budget=0.0) is None


def test_changes_need_no_other_unit() -> None:
    assert scale_words(0, [np.zeros((1, 4))], None) is None
