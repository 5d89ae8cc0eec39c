"""The metrics of errors, as the equations say."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.approx.error import Metric, absolute, combined, rank_error, relative


def test_relative_and_absolute_errors() -> None:
    truth = np.array([10.0, 10.0, 0.0, -10.0, 5.0])
    estimate = np.array([8.0, 12.5, 0.0, 10.0, np.nan])
    assert relative(truth, estimate)[:4].tolist() == [0.2, 0.2, 0.0, 2.0]
    assert absolute(truth, estimate)[:4].tolist() == [2.0, 2.5, 0.0, 20.0]
    assert np.isnan(relative(truth, estimate)[4])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Metric.MAX, [0.5, 0.0, 0.1]),
        (Metric.MEAN, [0.3, 0.0, 0.1]),
        (Metric.RMS, [0.26**0.5 / 2**0.5, 0.0, 0.1]),
    ],
)
def test_the_errors_of_groups_make_that_of_a_window(metric: Metric, expected: list[float]) -> None:
    errors, window = np.array([0.1, 0.1, 0.5]), np.array([0, 2, 0])
    assert combined(metric, errors, window, 3) == pytest.approx(expected)
    assert combined(metric, errors[:0], window[:0], 2).tolist() == [0.0, 0.0]
    assert combined(metric, np.array([0.1, np.inf]), np.array([0, 0]), 1).tolist() == [np.inf]


def test_the_error_of_a_rank_is_to_the_nearest_of_its_places() -> None:
    values = np.array([1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert rank_error(values, 0.5, 3.0) == 0.0
    assert rank_error(values, 0.5, 2.0) == pytest.approx(0.1)
    assert rank_error(values, 0.5, 4.5) == pytest.approx(0.1)
    assert rank_error(values, 0.3, 2.0) == 0.0
    assert rank_error(values, 0.9, 0.0) == pytest.approx(0.9)
    assert rank_error(values, 0.1, 9.0) == pytest.approx(0.9)
