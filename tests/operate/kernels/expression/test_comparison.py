"""Comparisons of NaN, the greatest value, with NULL, which is unknown also beside it."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from tidegate.expression.tree import Call, Column
from tidegate.operate.kernels.expression.expression import evaluate

DOUBLE = pa.float64()
PAIRS = pa.table(
    {
        "x": pa.array([math.nan, math.nan, None, 1.0, math.nan], DOUBLE),
        "y": pa.array([None, 1.0, math.nan, math.nan, math.nan], DOUBLE),
    }
)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("eq", [None, False, None, False, True]),
        ("lt", [None, False, None, True, False]),
        ("le", [None, False, None, True, True]),
        ("gt", [None, True, None, False, False]),
        ("ge", [None, True, None, False, True]),
    ],
)
def test_null_beside_nan_is_unknown(op: str, wanted: list[bool | None]) -> None:
    call = Call(op, (Column("x", DOUBLE), Column("y", DOUBLE)), pa.bool_())
    assert evaluate(call, PAIRS).to_pylist() == wanted
