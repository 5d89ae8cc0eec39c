"""The pushdown rule alone: leaves, conditions, the event time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from tests.query.catalog import CALLS, ODD, RIDES, sql
from tidegate.plan.pushdown import push_down
from tidegate.query.node import Input, StreamDef
from tidegate.query.typing import bind


def types(stream: StreamDef, expressions: Sequence[exp.Expression]) -> list[pa.DataType]:
    raw = {f.name: f.type for f in stream.schema}
    return [bind(e, raw, "test").type for e in expressions]


def test_an_input_is_its_raw_columns_and_the_event_time() -> None:
    (leaf,) = push_down(Input(RIDES), types)
    assert leaf.columns["ts"].sql() == "dropoff_time"
    assert leaf.columns["fare"].sql() == "fare"
    assert leaf.where == ()


def test_the_event_time_of_other_types() -> None:
    day = StreamDef("d", (), "day", 0, None, pa.schema([("day", pa.date32())]))
    (leaf,) = push_down(Input(day), types)
    assert leaf.columns["ts"].sql("spark") == "CAST(day AS TIMESTAMP)"
    (odd,) = push_down(Input(ODD), types)
    assert odd.columns["ts"].sql() == "ts"


def test_conditions_pile_up_from_below() -> None:
    node = sql("SELECT f FROM (SELECT fare + 1 AS f FROM rides WHERE tip > 1 AND paid) WHERE f > 2")
    (leaf,) = push_down(node, types)
    assert [w.sql() for w in leaf.where] == ["tip > 1", "paid", "(fare + 1) > 2"]
    assert {n: e.sql() for n, e in leaf.columns.items()} == {
        "f": "(fare + 1)",
        "ts": "dropoff_time",
    }


def test_sides_of_a_union_take_the_first_one_s_names() -> None:
    node = sql("SELECT fare AS a FROM rides UNION ALL SELECT fare FROM calls")
    first, second = push_down(node, types)
    assert (first.stream, second.stream) == (RIDES, CALLS)
    assert first.columns["a"].sql() == "fare"
    assert second.columns["a"].sql("spark") == "CAST(fare AS DOUBLE)"
    assert second.columns["ts"].sql() == "ts"
