"""The one order of values, against a plain Python sort."""

from __future__ import annotations

import functools
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.order import ASCENDING, Direction, alike, sort_indices
from tidegate.schema import TIME

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-3, 3)),
    "float": (pa.float64(), st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 2.5, math.inf, math.nan])),
    "half": (pa.float32(), st.sampled_from([-1.0, 0.5, math.nan])),
    "text": (pa.string(), st.sampled_from(["", "a", "B", "b", "ab", "é", "z", "\U0001f600", "￿"])),
    "bool": (pa.bool_(), st.booleans()),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\x00", b"a", b"\xff"])),
    "date": (pa.date32(), st.dates(date(1969, 12, 30), date(1970, 1, 3))),
    "time": (
        TIME,
        st.datetimes(datetime(1969, 12, 31), datetime(1970, 1, 2), timezones=st.just(UTC)),
    ),
    "decimal": (pa.decimal128(9, 2), st.sampled_from([Decimal("-1.50"), Decimal(0), Decimal(2)])),
}
directions = st.builds(Direction, st.booleans(), st.booleans())


def rank(value: Any) -> tuple[int, Any]:
    """Where a value stands among those of its type: NaN above all, texts by their bytes."""
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value.encode() if isinstance(value, str) else value)


def compare(one: Any, other: Any, how: Direction) -> int:
    if one is None or other is None:
        first = (one is None) - (other is None)
        return -first if how.nulls_first else first
    a, b = rank(one), rank(other)
    return (a > b) - (a < b) if not how.descending else (a < b) - (a > b)


def plain_order(columns: list[list[Any]], how: list[Direction]) -> list[int]:
    def by_all(i: int, j: int) -> int:
        found = (compare(c[i], c[j], d) for c, d in zip(columns, how, strict=True))
        return next((f for f in found if f), 0)

    return sorted(range(len(columns[0])), key=functools.cmp_to_key(by_all))


@given(st.data())
def test_any_columns_in_any_direction_sort_as_python_does(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    rows = data.draw(st.integers(0, 9))
    how = [data.draw(directions) for _ in kinds]
    values = [
        data.draw(st.lists(st.none() | VALUES[k][1], min_size=rows, max_size=rows)) for k in kinds
    ]
    columns = [pa.array(v, VALUES[k][0]) for v, k in zip(values, kinds, strict=True)]
    read = [c.to_pylist() for c in columns]
    assert sort_indices(columns, how).to_pylist() == plain_order(read, how)


def test_null_comes_first_and_nan_last_unless_told_otherwise() -> None:
    column = pa.array([2.0, math.nan, None, 1.0])
    assert sort_indices([column]).to_pylist() == [2, 3, 0, 1]
    assert sort_indices([column], [ASCENDING]).to_pylist() == [2, 3, 0, 1]
    assert sort_indices([column], [Direction(nulls_first=False)]).to_pylist() == [3, 0, 1, 2]
    assert sort_indices([column], [Direction(True, False)]).to_pylist() == [1, 0, 3, 2]


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_equal_rows_stay_in_their_order(kind: str) -> None:
    column = pa.nulls(5, VALUES[kind][0])
    assert sort_indices([column], [Direction(True)]).to_pylist() == [0, 1, 2, 3, 4]
    assert sort_indices([pa.array([-0.0, 0.0, -0.0])]).to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_zeros_and_nans_are_alike_whatever_their_bits(type_: pa.DataType) -> None:
    whole, quiet = (pa.int32(), 0x7FC00000) if type_ == pa.float32() else (pa.int64(), 0x7FF8 << 48)
    nans = pa.array([quiet, quiet + 1], whole).view(type_)
    column = pa.concat_arrays([pa.array([None, None, -0.0, 0.0, 1.0], type_), nans])

    assert alike([column], len(column)).tolist() == [False, True, False, True, False, False, True]
