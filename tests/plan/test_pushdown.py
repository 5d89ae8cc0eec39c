"""The pushdown rule alone: leaves, conditions, the event time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from tests.query.catalog import CALLS, ODD, RIDES, sql
from tidegate.plan.physical import Edge
from tidegate.plan.pushdown import EarlierRows, Leaf, push_down
from tidegate.query.binder import bind
from tidegate.query.node.node import Aggregate, Input, Node, StreamDef
from tidegate.schema import TIME

RESULT = EarlierRows(
    "aggregate",
    Edge(0, 0),
    pa.schema([("window_start", TIME), ("window_end", TIME), ("route", "string"), ("n", "int64")]),
    "window_end",
    -1,
)


def types(leaf: Leaf, expressions: Sequence[exp.Expression]) -> list[pa.DataType]:
    return [bind(e, leaf.types, "test").type for e in expressions]


def no_results(node: Node) -> EarlierRows | None:
    return None


def aggregates(node: Node) -> EarlierRows | None:
    return RESULT if isinstance(node, Aggregate) else None


def test_an_input_is_its_raw_columns_and_the_event_time() -> None:
    (leaf,) = push_down(Input(RIDES), types, no_results)
    assert leaf.columns["ts"].sql() == "dropoff_time"
    assert leaf.columns["fare"].sql() == "fare"
    assert leaf.where == ()


def test_the_event_time_of_other_types() -> None:
    day = StreamDef("d", (), "day", 0, None, pa.schema([("day", pa.date32())]))
    (leaf,) = push_down(Input(day), types, no_results)
    assert leaf.columns["ts"].sql("spark") == "CAST(day AS TIMESTAMP)"
    (odd,) = push_down(Input(ODD), types, no_results)
    assert odd.columns["ts"].sql() == "ts"


def test_conditions_pile_up_from_below() -> None:
    node = sql("SELECT f FROM (SELECT fare + 1 AS f FROM rides WHERE tip > 1 AND paid) WHERE f > 2")
    (leaf,) = push_down(node, types, no_results)
    assert [w.sql() for w in leaf.where] == ["tip > 1", "paid", "(fare + 1) > 2"]
    assert {n: e.sql() for n, e in leaf.columns.items()} == {
        "f": "(fare + 1)",
        "ts": "dropoff_time",
    }


def test_sides_of_a_union_take_the_first_one_s_names() -> None:
    node = sql("SELECT fare AS a FROM rides UNION ALL SELECT fare FROM calls")
    first, second = push_down(node, types, no_results)
    assert (first.origin, second.origin) == (RIDES, CALLS)
    assert first.columns["a"].sql() == "fare"
    assert second.columns["a"].sql("spark") == "CAST(fare AS DOUBLE)"
    assert second.columns["ts"].sql() == "ts"


def test_the_result_of_another_subquery_is_its_columns_and_when_its_rows_are() -> None:
    node = sql(
        "SELECT n * 2 AS m FROM (SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR] "
        "GROUP BY route) WHERE n > 1"
    )
    (leaf,) = push_down(node, types, aggregates)
    assert leaf.origin is RESULT
    assert [w.sql() for w in leaf.where] == ["n > 1"]
    assert {n: e.sql("spark") for n, e in leaf.columns.items()} == {
        "m": "n * 2",
        "window_start": "window_start",
        "window_end": "window_end",
        "ts": "window_end - INTERVAL '1' MICROSECOND",
    }


def test_a_union_of_a_stream_and_a_result() -> None:
    node = sql(
        "SELECT fare FROM rides UNION ALL SELECT n FROM (SELECT COUNT(*) AS n FROM rides "
        "[RANGE 1 HOUR])"
    )
    first, second = push_down(node, types, aggregates)
    assert (first.origin, second.origin) == (RIDES, RESULT)
    assert second.columns["fare"].sql("spark") == "CAST(n AS DOUBLE)"
    assert "window_end" not in second.columns, "rows of a union have ts"
    assert second.columns["ts"].sql("spark") == "window_end - INTERVAL '1' MICROSECOND"
