"""The order inside and across windows, against a plain sort of all rows."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_order import plain_order
from tidegate.collect.window import WindowOrder, first_per_window
from tidegate.order import ASCENDING, Direction
from tidegate.schema import TIME

keys = st.none() | st.sampled_from(["a", "b", "é", ""])
numbers = st.none() | st.sampled_from([1.0, 2.0, math.nan, -0.0])
rows_of_windows = st.lists(st.tuples(st.integers(0, 3), keys, numbers), max_size=12)


def windows(rows: list[tuple[int, Any, Any]]) -> pa.Table:
    ends = pa.array([r[0] for r in rows], pa.int64()).cast(TIME)
    key, value = pa.array([r[1] for r in rows], pa.string()), [r[2] for r in rows]
    return pa.table(
        {
            "window_end": ends,
            "k": key,
            "v": pa.array(value, pa.float64()),
            "~o000": pa.array(value, pa.float64()),
            "~k000": key,
        }
    )


def shown(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """NaN made comparable."""
    return [tuple("NaN" if v != v else v for v in row) for row in rows]


@given(
    st.lists(rows_of_windows, min_size=1, max_size=3),
    st.builds(Direction, st.booleans(), st.booleans()),
    st.none() | st.integers(0, 3),
)
def test_instances_are_merged_as_a_plain_sort_does(
    parts: list[list[tuple[int, Any, Any]]], how: Direction, limit: int | None
) -> None:
    rows = [row for part in parts for row in part]
    columns: list[list[Any]] = [[r[0] for r in rows], [r[2] for r in rows], [r[1] for r in rows]]
    order = plain_order(columns, [ASCENDING, how, ASCENDING]) if rows else []
    expected, seen = [], dict.fromkeys(range(4), 0)
    for place in order:
        end = rows[place][0]
        seen[end] += 1
        if limit is None or seen[end] <= limit:
            expected.append(rows[place])
    merged = WindowOrder().merge([windows(p) for p in parts], [how], limit)
    assert merged.column_names == ["window_end", "k", "v"]
    ends = merged.column("window_end").cast(pa.int64()).to_pylist()
    found = zip(ends, merged.column("k").to_pylist(), merged.column("v").to_pylist(), strict=True)
    assert shown(list(found)) == shown(expected)


@pytest.mark.parametrize(
    ("ends", "limit", "kept"),
    [
        ([], 2, []),
        ([1, 1, 1, 2], 2, [0, 1, 3]),
        ([1, 2, 3], 1, [0, 1, 2]),
        ([1, 1, 2, 2], 0, []),
        ([5], 9, [0]),
    ],
)
def test_the_first_rows_of_each_window(ends: list[int], limit: int, kept: list[int]) -> None:
    table = pa.table({"window_end": pa.array(ends, pa.int64()).cast(TIME), "i": range(len(ends))})
    assert first_per_window(table, limit).column("i").to_pylist() == kept
