"""Cells of aggregates whose sample answers alone: ends as wide as they are, or none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate.approx.bound import Interval
from tidegate.operate.aggregate.bounded.cells import Looked, alone

ERROR = np.array([0.25, np.inf, 0.0, np.inf])
WHOLE = np.array([False, False, True, False])
ROWS = np.array([300, 300, 7, 0])


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        (pa.float64(), [7.5, -np.inf, 3.0, None], [12.5, np.inf, 3.0, None]),
        (pa.int64(), [7, None, 3, None], [13, None, 3, None]),
    ],
    ids=str,
)
def test_ends_that_nobody_knows_are_infinite_or_null(
    type_: pa.DataType, low: list[float | None], high: list[float | None]
) -> None:
    value = pa.array([10, 10, 3, None], type_)
    interval = Interval(
        np.array([10.0, 10.0, 3.0, np.nan]),
        np.array([7.5, -np.inf, 3.0, -np.inf]),
        np.array([12.5, np.inf, 3.0, np.inf]),
    )
    cells = alone(value, interval, ERROR, WHOLE, Looked(ROWS, ROWS, ROWS, ROWS, ROWS))
    assert cells.value.equals(value)
    assert cells.low.to_pylist() == low
    assert cells.high.to_pylist() == high
    assert cells.exact.tolist() == WHOLE.tolist()
    assert cells.error.tolist() == [0.25, 1.0, 0.0, 1.0]
