"""Logical nodes: what they say of their rows, and what cannot be built."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from tests.query.catalog import CALLS, ODD, RIDES
from tidegate.errors import QueryError
from tidegate.query.aggregate import AggregateCall, count, max_, mean, sum_
from tidegate.query.binder import UnknownKernel
from tidegate.query.expression import Expression
from tidegate.query.name import column
from tidegate.query.node.graph import has
from tidegate.query.node.node import (
    Aggregate,
    Branch,
    Filter,
    Input,
    Join,
    Node,
    Order,
    Project,
    StreamDef,
    Top,
    Union,
    data_names,
    project,
)
from tidegate.query.window import Distance, TimeWindow, TupleWindow
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
    with pytest.raises(QueryError, match="GROUP BY: s must be a plain value; got array"):
        Aggregate(Input(RIDES), HOUR, (("s", column("stops")),), ())


def test_names_of_keys_aggregates_and_the_window_differ() -> None:
    with pytest.raises(QueryError, match="got route twice"):
        hourly(route=count())
    with pytest.raises(QueryError, match="got window_end twice"):
        hourly(window_end=count())


def test_operators_stand_on_each_other() -> None:
    inner = hourly(n=count())
    outer = Aggregate(
        inner, TupleWindow(5, 2), (("r", column("ROUTE")),), (("m", max_("window_end")),)
    )
    assert outer.schema == pa.schema(
        [("window_start", TIME), ("window_end", TIME), ("r", "string"), ("m", TIME)]
    )
    pairs = Join(outer, inner, Distance(0), TupleWindow(3, 3), tree("left.r = right.route"))
    assert pairs.names[:4] == ("ts", "left.window_start", "left.window_end", "left.r")
    assert pairs.schema.field("right.n").type == pa.int64()
    whole = Aggregate(pairs, HOUR, (("k", tree("left.r")),), (("t", sum_("right.n")),))
    assert whole.schema.field("t").type == pa.int64()
    assert has(Join, whole)
    assert not has(Join, outer)


def test_a_union_takes_rows_of_windows_as_tuples_without_their_window() -> None:
    rows = Project(hourly(n=count()), (("r", column("route")), ("n", column("n"))))
    node = Union((rows, Input(CALLS)))
    assert node.schema == pa.schema([("ts", TIME), ("r", "string"), ("n", "int64")])
    assert not node.windowed
    with pytest.raises(QueryError) as caught:
        Union((hourly(ts=count()), Input(CALLS)))
    assert str(caught.value) == (
        "UNION ALL: the name ts belongs to the event time; got a column of that name. "
        "Give the column another name with AS."
    )


def test_what_keeps_state_and_what_is_over_it() -> None:
    plain, windows = Filter(Input(RIDES), tree("fare > 1")), hourly(n=count())
    fresh = Join(plain, Input(CALLS), Distance(0), Distance(0), None)
    mixed = Join(windows, Input(CALLS), Distance(0), Distance(0), None)
    deep = Join(windows, mixed, Distance(0), Distance(0), None)
    both = Union((Project(windows, (("n", column("n")),)), Project(plain, (("t", column("tip")),))))
    above = Filter(both, tree("n > 1"))
    assert [n.stateless for n in (plain, Union((plain, plain)))] == [True, True]
    assert not any(n.stateless for n in (windows, fresh, both, above, Top(windows, (), 3)))
    assert [n.after_state for n in (plain, fresh, mixed)] == [False, False, False]
    assert all(n.after_state for n in (windows, Top(windows, (), 3), deep, both, above))


def test_order_needs_a_window_of_time() -> None:
    rows = Aggregate(Input(RIDES), TupleWindow(5, 5), (), (("m", count()),))
    with pytest.raises(QueryError) as caught:
        Top(Filter(rows, tree("m > 1")), (), 3)
    assert str(caught.value) == (
        "ORDER BY and LIMIT: a window of tuples gives one row, so there is nothing to order or to "
        "leave out; got [ROWS 5]. Leave ORDER BY and LIMIT out."
    )
    twice = Top(Filter(Top(hourly(n=count()), (), 3), tree("n > 1")), (), 2)
    assert twice.windowed


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
        "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
        "changed. Give the stream a window and an aggregate, or leave ORDER BY out."
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


SPARK_ONLY = "regexp_extract(r, 'a', 1)"


@pytest.mark.parametrize(
    "over",
    [
        lambda union: Filter(union, tree(f"{SPARK_ONLY} = 'b'")),
        lambda union: Branch(union, (tree(f"{SPARK_ONLY} = 'b'"),), 0),
        lambda union: Project(union, (("x", tree(SPARK_ONLY)),)),
        lambda union: Aggregate(union, HOUR, (("x", tree(SPARK_ONLY)),), ()),
        lambda union: Aggregate(union, HOUR, (), (("x", max_(Expression(tree(SPARK_ONLY)))),)),
        lambda union: Join(
            union, union, Distance(0), Distance(0), tree("regexp_extract(left.r, 'a', 1) = right.r")
        ),
    ],
)
def test_what_only_spark_knows_is_refused_over_any_state(over: Callable[[Node], Node]) -> None:
    rows = Project(hourly(n=count()), (("r", column("route")),))
    union = Union((rows, Project(Input(CALLS), (("r", column("route")),))))
    with pytest.raises(QueryError) as caught:
        over(union)
    assert not isinstance(caught.value, UnknownKernel)
    assert str(caught.value).endswith(
        "Over the results of windows, joins and processes there is no Spark SQL: compute it before "
        "them, or from the output."
    )


def test_what_only_spark_knows_of_one_side_passes_over_a_join_of_streams() -> None:
    pairs = Join(Input(RIDES), Input(CALLS), Distance(0), Distance(0), None)
    node = Filter(pairs, tree("regexp_extract(left.route, 'a', 1) = 'b'"))
    assert node.names == pairs.names
