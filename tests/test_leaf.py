"""Nested columns taken apart and put together again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.leaf import each_leaf
from tidegate.schema import TIME, cast_table, normal_schema
from tidegate.sink.json import encoded

MICROS = st.none() | st.integers(-(10**12), 10**12)
INNER = st.none() | st.fixed_dictionaries({"t": MICROS, "n": st.none() | st.integers(0, 9)})
ROW = st.none() | st.fixed_dictionaries({"a": INNER, "l": st.none() | st.lists(INNER, max_size=3)})


def type_of(time: pa.DataType) -> pa.DataType:
    inner = pa.struct([("t", time), ("n", pa.uint8())])
    return pa.struct([("a", inner), ("l", pa.list_(inner))])


def by_hand(value: Any, divisor: int) -> Any:
    if isinstance(value, list):
        return [by_hand(v, divisor) for v in value]
    if not isinstance(value, dict):
        return value
    return {
        k: v // divisor if k == "t" and v is not None else by_hand(v, divisor)
        for k, v in value.items()
    }


@given(st.lists(ROW, max_size=6), st.data())
def test_times_at_any_depth_are_rounded_down_to_microseconds(
    rows: list[Any], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(rows)))
    given_rows = pa.array(rows, type_of(pa.int64()))
    # Arrow has no cast between integers and times inside of structs; the leaves are changed.
    nanos = each_leaf(given_rows, lambda leaf: as_time(leaf, "ns"))[start:]
    table = pa.table({"v": nanos})
    schema = normal_schema(table.schema)
    inner = pa.struct([("t", TIME), ("n", pa.int16())])
    assert schema.field("v").type == pa.struct([("a", inner), ("l", pa.list_(inner))])
    got = cast_table(table, schema, "s").column("v").combine_chunks()
    numbers = each_leaf(got, lambda leaf: leaf.cast(pa.int64()))
    assert numbers.to_pylist() == [by_hand(row, 1000) for row in rows[start:]]


@given(st.lists(ROW, max_size=6), st.data())
def test_leaves_that_stay_leave_all_as_it_was(rows: list[Any], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows)))
    array = pa.array(rows, type_of(pa.int64()))[start:]
    assert each_leaf(array, lambda leaf: leaf).to_pylist() == rows[start:]


def test_nested_times_of_any_year_are_written_as_json() -> None:
    array = pa.array([{"t": 2**63 - 1, "n": 1}, None], pa.struct([("t", TIME), ("n", pa.int8())]))
    assert encoded(array).to_pylist() == ['{"t": "+294247-01-10T04:00:54.775807Z", "n": 1}', None]


def as_time(leaf: pa.Array, unit: str) -> pa.Array:
    return leaf.cast(pa.timestamp(unit)) if leaf.type == pa.int64() else leaf
