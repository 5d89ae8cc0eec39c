"""Logical nodes: what they say of their rows, and what cannot be built."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from tests.query.catalog import CALLS, ODD, RIDES
from tidegate.errors import QueryError, UnavailableError
from tidegate.query.aggregate import AggregateCall, count, max_, mean, sum_
from tidegate.query.name import column
from tidegate.query.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Order,
    Project,
    StreamDef,
    Top,
    Union,
    data_names,
    project,
)
from tidegate.query.typing import UnknownKernel
from tidegate.query.window import TimeWindow, TupleWindow
from tidegate.schema import TIME

HOUR = TimeWindow(3_600_000_000, 3_600_000_000)


def tree(text: str) -> exp.Expression:
    parsed = parse_one(text, read="spark")
    assert isinstance(parsed, exp.Expression)
    return parsed


def hourly(**calls: AggregateCall) -> Aggregate:
    return Aggregate(Input(RIDES), HOUR, (("route", column("route")),), tuple(calls.items()))


def test_an_input_has_the_event_time_first() -> None:
    assert Input(RIDES).names == (
        "ts",
        "dropoff_time",
        "route",
        "fare",
        "tip",
        "paid",
        "stops",
    )
    assert Input(CALLS).schema == pa.schema([("ts", TIME), ("route", "string"), ("fare", "int32")])
    assert data_names(Input(CALLS)) == ("route", "fare")


def test_a_column_that_has_the_name_of_the_event_time_keeps_it() -> None:
    node = Filter(Input(ODD), tree("ts = 'x'"))
    assert node.schema == ODD.schema
    assert data_names(node) == ("at", "ts", "Ab", "place")


def test_a_stream_s_definition_is_checked() -> None:
    schema = pa.schema([("at", TIME)])
    with pytest.raises(QueryError) as caught:
        StreamDef("s", (), "att", 0, None, schema)
    assert str(caught.value) == (
        "stream s: the time must be one of its columns; got att. Did you mean at? There are: at."
    )
    with pytest.raises(QueryError, match="DISORDER must not be negative; got -1 microseconds"):
        StreamDef("s", (), "at", -1, None, schema)
    with pytest.raises(QueryError, match="IDLE must be longer than zero; got 0 seconds"):
        StreamDef("s", (), "at", 0, 0, schema)


def test_expressions_are_named_as_the_child_names_them() -> None:
    node = Filter(Input(RIDES), tree("FARE > 1 AND `Tip` > 2"))
    assert node.predicate.sql() == "fare > 1 AND tip > 2"


def test_a_filter_must_be_a_condition() -> None:
    with pytest.raises(QueryError, match="WHERE: a condition must be boolean; got fare of type"):
        Filter(Input(RIDES), tree("fare"))
    with pytest.raises(QueryError, match="HAVING: a condition must be boolean; got n of type"):
        Filter(hourly(n=count()), tree("n"))


def test_the_outputs_of_a_split_exclude_each_other() -> None:
    parts = (tree("fare > 10"), tree("tip > 1"))
    texts = [Branch(Input(RIDES), parts, i).predicate.sql("spark") for i in range(3)]
    assert texts == [
        "COALESCE(fare > 10, FALSE)",
        "NOT COALESCE(fare > 10, FALSE) AND COALESCE(tip > 1, FALSE)",
        "NOT COALESCE(fare > 10, FALSE) AND NOT COALESCE(tip > 1, FALSE)",
    ]
    with pytest.raises(QueryError, match="split: needs at least one condition; got 0"):
        Branch(Input(RIDES), (), 0)


def test_a_projection_keeps_the_event_time() -> None:
    node = Project(Input(RIDES), (("f", tree("fare * 2")), ("t", column("TIP"))))
    assert node.schema == pa.schema([("ts", TIME), ("f", "double"), ("t", "int32")])
    with pytest.raises(QueryError, match="every column needs a name of its own; got f twice"):
        Project(Input(RIDES), (("f", column("fare")), ("f", column("tip"))))


def test_the_event_time_may_be_listed_but_its_name_not_taken() -> None:
    same = project(Input(RIDES), [("ts", column("dropoff_time")), ("fare", column("fare"))])
    assert same.names == ("ts", "fare")
    with pytest.raises(QueryError) as caught:
        project(Input(RIDES), [("ts", column("fare"))])
    assert str(caught.value) == (
        "SELECT: the name ts belongs to the event time; got fare. "
        "Give the column another name with AS."
    )


def test_a_projection_that_changes_nothing_after_a_window_is_left_out() -> None:
    node = hourly(n=count())
    listed = [(n, column(n)) for n in ("window_start", "route", "n")]
    assert project(node, listed) is node
    assert project(node, listed[:2]).names == ("window_start", "window_end", "route")
    with pytest.raises(QueryError, match="the name window_end belongs to the window; got n"):
        project(node, [("window_end", column("n"))])


def test_the_rows_of_windows() -> None:
    node = hourly(total=sum_("tip"), fare=mean("fare"), most=max_("dropoff_time"), n=count())
    assert node.schema == pa.schema(
        [
            ("window_start", TIME),
            ("window_end", TIME),
            ("route", "string"),
            ("total", "int64"),
            ("fare", "double"),
            ("most", TIME),
            ("n", "int64"),
        ]
    )


def test_a_key_must_be_a_plain_value() -> None:
    with pytest.raises(QueryError, match="GROUP BY: s must be a plain value; got list"):
        Aggregate(Input(RIDES), HOUR, (("s", column("stops")),), ())


def test_names_of_keys_aggregates_and_the_window_differ() -> None:
    with pytest.raises(QueryError, match="got route twice"):
        hourly(route=count())
    with pytest.raises(QueryError, match="got window_end twice"):
        hourly(window_end=count())


def test_stateful_things_to_come() -> None:
    inner = hourly(n=count())
    with pytest.raises(UnavailableError, match="a window over the result of a window is not"):
        Aggregate(inner, HOUR, (), (("m", count()),))
    with pytest.raises(UnavailableError, match=r"\[ROWS 5\]: tuple windows are not available yet"):
        Aggregate(Input(RIDES), TupleWindow(5, 5), (), (("m", count()),))
    with pytest.raises(UnavailableError, match="UNION ALL: a union of windows is not available"):
        Union((inner, inner))


def test_a_union_takes_the_wider_types() -> None:
    left = Project(Input(RIDES), (("r", column("route")), ("f", column("fare"))))
    node = Union((left, Input(CALLS)))
    assert node.schema == pa.schema([("ts", TIME), ("r", "string"), ("f", "double")])
    with pytest.raises(QueryError) as caught:
        Union((left, Project(Input(CALLS), (("a", column("fare")), ("b", column("route"))))))
    assert str(caught.value) == (
        "UNION ALL: every side of column r must have one type; got string and int. Add a CAST."
    )
    with pytest.raises(QueryError, match="the same number of columns; got 2 and 6"):
        Union((left, Input(RIDES)))
    with pytest.raises(QueryError, match="UNION ALL: needs two streams; got 1"):
        Union((left,))


def test_order_and_limit() -> None:
    node = Top(hourly(n=count()), (Order(column("N"), True),), 3)
    assert node.order == (Order(column("n"), True, False),)
    assert node.names == ("window_start", "window_end", "route", "n")
    with pytest.raises(QueryError) as caught:
        Top(Input(RIDES), (), 3)
    assert str(caught.value) == (
        "ORDER BY and LIMIT: an unbounded stream has no last tuple to wait for, so its order "
        "cannot be changed. Give the stream a window and an aggregate, or leave ORDER BY and "
        "LIMIT out."
    )
    with pytest.raises(QueryError, match="LIMIT: must not be negative; got -1"):
        Top(hourly(n=count()), (), -1)


def test_what_only_spark_knows_passes_before_a_window_and_not_after() -> None:
    node = Project(Input(RIDES), (("x", tree("regexp_extract(route, 'a', 1)")),))
    assert node.names == ("ts", "x")
    with pytest.raises(UnknownKernel):
        _ = node.schema
    assert Aggregate(node, HOUR, (("x", column("x")),), (("n", count()),)).names[2:] == ("x", "n")
    with pytest.raises(QueryError) as caught:
        Project(hourly(n=count()), (("x", tree("regexp_extract(route, 'a', 1)")),))
    assert not isinstance(caught.value, UnknownKernel)
    assert str(caught.value).endswith(
        "After a window there is no Spark SQL: compute it before the aggregate, or from the output."
    )
