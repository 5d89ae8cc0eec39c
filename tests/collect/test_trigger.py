"""The order of rows that tuples trigger, against a plain sort of all rows."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.collect.order import HIDDEN
from tidegate.collect.trigger import TriggerOrder, triggered

Place = tuple[int, int, int, int]

NAMES = ("trigger_ts", "trigger_src", "trigger_seq", "trigger_bucket")
places = st.tuples(st.integers(-2, 2), st.integers(0, 2), st.integers(0, 2), st.integers(0, 3))


def output(rows: list[Place]) -> pa.Table:
    """What an instance gives: its rows in their order, each showing its place."""
    columns = [pa.array([r[i] for r in rows], pa.int64()) for i in range(4)]
    shown = pa.chunked_array([pa.array([str(r) for r in rows], pa.string())])
    return triggered({"v": shown}, pa.table(dict(zip(NAMES, columns))))


def test_what_tells_the_order_is_hidden_and_nothing_else_is_taken() -> None:
    columns = {"v": pa.chunked_array([["x"]])}
    rows = triggered(columns, pa.table({"trigger_ts": [1], "other": [2], "trigger_seq": [3]}))
    assert rows.column_names == ["v", f"{HIDDEN}trigger_ts", f"{HIDDEN}trigger_seq"]


@given(st.lists(st.lists(places, max_size=8).map(sorted), min_size=1, max_size=4))
def test_rows_of_instances_are_merged_by_time_source_position_and_bucket(
    parts: list[list[Place]],
) -> None:
    merged = TriggerOrder("").merge([output(p) for p in parts], (), None)
    expected = [str(r) for r in sorted(r for p in parts for r in p)]
    assert merged.column("v").to_pylist() == expected


def test_rows_of_one_trigger_and_bucket_stay_as_they_are() -> None:
    """An instance puts them out together; equal places are never of two instances."""
    columns = {"v": pa.chunked_array([[3, 1, 2]])}
    own = triggered(columns, pa.table({"trigger_ts": [5, 5, 5]}))
    other = triggered({"v": pa.chunked_array([[0, 9]])}, pa.table({"trigger_ts": [4, 6]}))
    merged = TriggerOrder("").merge([own, other], (), None)
    assert merged.column("v").to_pylist() == [0, 3, 1, 2, 9]


def test_no_rows_keep_their_columns() -> None:
    merged = TriggerOrder("").merge([output([]), output([])], (), None)
    assert merged.num_rows == 0
    assert merged.column_names == ["v", *(f"{HIDDEN}{n}" for n in NAMES)]
