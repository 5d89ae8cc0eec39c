"""Lookups in a table against a loop over all of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.table import PlainTable
from tests.property.course import IN_MEMORY
from tidegate import expr
from tidegate.operate.table_join import index as index_module
from tidegate.operate.table_join.deal import Dealing
from tidegate.operate.table_join.index import TableIndex
from tidegate.operate.table_join.key import key_of
from tidegate.operate.table_join.lookup import TableLookup
from tidegate.plan.table.leaf import table_leaf
from tidegate.plan.table.lookup import bound_lookups
from tidegate.query.definition import StreamDef
from tidegate.query.name import column
from tidegate.query.node.node import Input, TableJoin
from tidegate.query.table import TableDef
from tidegate.schema import TIME
from tidegate.state.store import Store

VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "long": (pa.int64(), (None, 0, 1, -5, 2**62, 7)),
    "near": (pa.int32(), (None, *range(6))),
    "double": (pa.float64(), (None, 0.0, -0.0, 1.5, math.nan, math.inf)),
    "text": (pa.string(), (None, "", "a", "é", "ab")),
    "truth": (pa.bool_(), (None, True, False)),
    "day": (pa.date32(), (None, date(1969, 12, 31), date(2024, 2, 29))),
    "decimal": (pa.decimal128(12, 3), (None, Decimal("1.005"), Decimal("-3.250"))),
    "time": (pa.timestamp("us", "UTC"), (None, *(datetime(2024, 1, d) for d in (1, 2)))),
}


def lookup_of(on: str, left: pa.Schema, right: pa.Schema, **more: Any) -> TableLookup:
    """A lookup over the columns l* of tuples and `z.r*` of a table z, all of which it adds."""
    stream = StreamDef("s", (), "ts", 0, None, pa.schema([("ts", TIME), *left]))
    table = TableDef("t", (), right, **more)
    node = TableJoin(Input(stream), table, expr(on).node, labels=("s", "z"))
    columns = {n: column(n) for n in stream.schema.names}
    leaf = table_leaf(node, (), columns, stream.schema.names)
    types = {f.name: f.type for f in stream.schema}
    found = bound_lookups([leaf], types, [])
    return found[0]


def same(a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    nan = isinstance(a, float) and math.isnan(a) and isinstance(b, float) and math.isnan(b)
    return bool(a == b) or nan


def below(a: Any, b: Any) -> bool | None:
    """a <= b where NaN is the greatest."""
    if a is None or b is None:
        return None
    if isinstance(b, float) and math.isnan(b):
        return True
    return not (isinstance(a, float) and math.isnan(a)) and bool(a <= b)


def both(*parts: bool | None) -> bool:
    return all(part is True for part in parts)


Row = dict[str, Any]


def check(
    on: str,
    plain: Callable[[Row, Row], bool | None],
    left: pa.Table,
    right: pa.Table,
    key: Callable[[Row, Row], bool | None] = lambda row, other: True,
    times: list[int] | None = None,
    **more: Any,
) -> None:
    lookup = lookup_of(on, left.schema, right.schema, **more)
    at = times or [0] * left.num_rows
    p, s = TableIndex(lookup, right).pairs(left, np.array(at, np.int64))
    others = right.to_pylist()
    if more:
        us = right.column("v").cast(pa.int64()).to_pylist()
        others = [{**row, "v": value} for row, value in zip(others, us, strict=True)]
    numbered = [{**row, "#": i} for i, row in enumerate(others)]
    table = PlainTable(numbered, plain, valid_from="v" if more else None, key=key)
    wanted = [
        (i, other["#"])
        for i, row in enumerate(left.to_pylist())
        for other in table.fitting({**row, "ts": at[i]})
    ]
    assert list(zip(p.tolist(), s.tolist(), strict=True)) == wanted
    if right.num_rows and key_of(lookup) is not None:
        rows = candidates(lookup, left, right)
        p, s = TableIndex(lookup, rows).pairs(left, np.array(at, np.int64))
        s = rows.column(0).to_numpy()[s]
        assert list(zip(p.tolist(), s.tolist(), strict=True)) == wanted


def candidates(lookup: TableLookup, left: pa.Table, right: pa.Table) -> pa.Table:
    """What tuples may meet of a table that is dealt by key, in several runs and parts."""
    key = key_of(lookup)
    assert key is not None
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        store = Store.open(folder)
        dealing = Dealing(store, [key], "t", whole_bytes=100)
        for start in range(0, right.num_rows, 3):
            dealing.add(right.slice(start, 3))
        dealt = dealing.write("table/t")[key.name]
        assert [entry.name for entry in store.files.list("table")] == list(dealt.files)
        return dealt.candidates(store, lookup, left)


@st.composite
def tables(draw: st.DrawFn, kinds: dict[str, str], most: int = 12) -> pa.Table:
    rows = draw(st.integers(0, most))
    columns = {}
    for name, kind in kinds.items():
        type_, values = VALUES[kind]
        drawn = draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))
        columns[name] = pa.array(drawn, type_)
    return pa.table(columns)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates are asked some at a time, although there are few."""
    monkeypatch.setattr(index_module, "PIECE_PAIRS", 5)


@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_a_key_of_any_type(data: st.DataObject, kind: str) -> None:
    left, right = data.draw(tables({"a": kind})), data.draw(tables({"b": kind}))
    check("s.a = z.b", lambda row, other: same(row["a"], other["b"]), left, right)
    safe = "s.a <=> z.b"
    check(
        safe,
        lambda row, other: row["a"] is other["b"] is None or bool(same(row["a"], other["b"])),
        left,
        right,
    )


@given(st.data())
def test_a_key_of_several_columns(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=3))
    left = data.draw(tables({f"a{i}": k for i, k in enumerate(kinds)}))
    right = data.draw(tables({f"b{i}": k for i, k in enumerate(kinds)}))
    on = " AND ".join(f"s.a{i} = z.b{i}" for i in range(len(kinds)))

    def fits(row: Row, other: Row) -> bool:
        return both(*(same(row[f"a{i}"], other[f"b{i}"]) for i in range(len(kinds))))

    check(on, fits, left, right)


@given(st.data())
def test_keys_that_are_computed_and_of_other_types(data: st.DataObject) -> None:
    left = data.draw(tables({"a": "near", "t": "text"}))
    right = data.draw(tables({"b": "double", "u": "text", "c": "long"}))

    def fits(row: Row, other: Row) -> bool:
        return both(same(row["a"], other["b"]), other["u"] == "a")

    check("s.a = z.b AND z.u = 'a'", fits, left, right)

    def above(row: Row, other: Row) -> bool:
        values = row["a"], other["c"], row["t"], other["u"]
        return None not in values and (row["a"] + 1, row["t"] + "b") == (other["c"], other["u"])

    check("s.a + 1 = z.c AND CONCAT(s.t, 'b') = z.u", above, left, right)


@given(st.data(), st.sampled_from(["long", "near", "double", "time", "text", "decimal"]))
def test_a_value_within_an_interval_of_the_table(data: st.DataObject, kind: str) -> None:
    left = data.draw(tables({"x": kind, "a": "near"}))
    right = data.draw(tables({"low": kind, "high": kind, "b": "near"}))

    def inside(row: Row, other: Row) -> bool:
        return both(below(other["low"], row["x"]), below(row["x"], other["high"]))

    check("s.x BETWEEN z.low AND z.high", inside, left, right)
    check(
        "s.a = z.b AND z.low <= s.x AND s.x <= z.high",
        lambda row, other: both(same(row["a"], other["b"]), inside(row, other)),
        left,
        right,
    )
    check("s.x >= z.low", lambda row, other: below(other["low"], row["x"]), left, right)


def test_intervals_of_one_key_are_for_tuples_of_that_key() -> None:
    left = pa.table({"x": [1, 1, 15, 7], "a": [1, 2, 1, None]})
    right = pa.table({"low": [0, 10], "high": [5, 20], "b": [1, 1]})
    check(
        "s.a = z.b AND z.low <= s.x AND s.x <= z.high",
        lambda row, other: both(row["a"] == other["b"], other["low"] <= row["x"] <= other["high"]),
        left,
        right,
    )


@given(st.data())
def test_a_band_of_tuples_around_a_value_of_the_table(data: st.DataObject) -> None:
    left, right = data.draw(tables({"x": "near"})), data.draw(tables({"y": "near"}))

    def near(row: Row, other: Row) -> bool | None:
        values = row["x"], other["y"]
        return None if None in values else abs(values[0] - values[1]) <= 2

    check("ABS(s.x - z.y) <= 2", near, left, right)
    check("z.y BETWEEN s.x - 2 AND s.x + 2", near, left, right)


@given(st.data())
def test_any_predicate(data: st.DataObject) -> None:
    left, right = data.draw(tables({"t": "text"})), data.draw(tables({"u": "text"}))

    def longer(row: Row, other: Row) -> bool | None:
        texts = row["t"], other["u"]
        return None if None in texts else len(texts[0]) + len(texts[1]) > 1

    check("LENGTH(s.t) + LENGTH(z.u) > 1", longer, left, right)
    check(
        "s.t = z.u OR LENGTH(z.u) = 0",
        lambda row, other: bool(same(row["t"], other["u"])) or other["u"] == "",
        left,
        right,
    )


@given(st.data())
def test_the_newest_version_of_a_key(data: st.DataObject) -> None:
    left = data.draw(tables({"a": "near", "x": "near"}))
    right = data.draw(tables({"b": "near", "y": "near"}))
    since = st.sampled_from([None, 0, 5, 5, 9, 20])
    count = right.num_rows
    valid = data.draw(st.lists(since, min_size=count, max_size=count))
    right = right.append_column("v", pa.array(valid, pa.int64()).cast(pa.timestamp("us", "UTC")))
    times = data.draw(
        st.lists(
            st.sampled_from([-1, 0, 4, 5, 8, 9, 30]), min_size=left.num_rows, max_size=left.num_rows
        )
    )

    def is_version(row: Row, other: Row) -> bool | None:
        return same(row["a"], other["b"])

    check("s.a = z.b", is_version, left, right, is_version, times, valid_from="v")
    check(
        "s.a = z.b AND s.x <= z.y",
        lambda row, other: both(is_version(row, other), below(row["x"], other["y"])),
        left,
        right,
        is_version,
        times,
        valid_from="v",
    )
