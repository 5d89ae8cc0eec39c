"""Quantiles of Student's distribution, against printed tables."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.approx.student import deviate, normal_deviate

TABLE = {
    0.1: {1: 6.3138, 2: 2.9200, 3: 2.3534, 9: 1.8331, 30: 1.6973, 120: 1.6577},
    0.05: {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 19: 2.0930, 29: 2.0452},
    0.01: {1: 63.6567, 2: 9.9248, 3: 5.8409, 5: 4.0321, 10: 3.1693, 29: 2.7564, 120: 2.6174},
    0.001: {5: 6.8688, 10: 4.5869, 19: 3.8834, 30: 3.6460, 120: 3.3735},
}


@pytest.mark.parametrize("alpha", TABLE)
def test_the_table_is_met_to_four_decimals(alpha: float) -> None:
    row = TABLE[alpha]
    found = deviate(alpha, np.array(list(row)))
    assert np.abs(found - np.array(list(row.values()))).max() < 6e-5


def test_with_many_degrees_of_freedom_it_is_normal() -> None:
    assert normal_deviate([0.05, 0.01]).round(6).tolist() == [1.959964, 2.575829]
    assert abs(float(deviate(0.05, 10**7)) - float(normal_deviate(0.05))) < 1e-6


def test_it_falls_with_freedom_and_rises_with_confidence() -> None:
    freedom = np.arange(1, 2000)
    for alpha in (0.3, 0.05, 1e-3, 1e-6, 1e-9):
        assert (np.diff(deviate(alpha, freedom)) < 0).all()
    assert (np.diff(deviate(np.geomspace(0.5, 1e-9, 200), 25)) > 0).all()
    assert deviate(0.05, [0, -1]).tolist() == [np.inf, np.inf]


def test_it_is_what_simulated_samples_show() -> None:
    """Of 40,000 means of 6 normal values, 1 in 20 is off by more: within 5 standard deviations."""
    values = np.random.default_rng(4).normal(size=(40_000, 6))
    t = np.abs(values.mean(axis=1)) / (values.std(axis=1, ddof=1) / np.sqrt(6))
    share = np.mean(t > deviate(0.05, 5))
    assert abs(share - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 40_000)
