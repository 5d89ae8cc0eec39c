"""Joins in Python: the nodes they make and what each mistake says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from tests.query.catalog import CALLS, RIDES, stream
from tidegate.errors import QueryError
from tidegate.query.aggregate import count, mean
from tidegate.query.expression import col, left, right
from tidegate.query.node.node import Input, Join, Project
from tidegate.query.stream import Stream
from tidegate.query.window import Distance, TupleWindow

rides, calls = stream(Input(RIDES)), stream(Input(CALLS))
MINUTE = 60_000_000


def near(lefts: pa.Table, rights: pa.Table) -> pa.Array:
    return pa.array([True] * lefts.num_rows)


def windows(joined: Stream) -> tuple[object, object]:
    assert isinstance(joined.node, Join)
    return joined.node.left_window, joined.node.right_window


def test_a_join_is_a_stream_of_both_sides_columns() -> None:
    joined = rides.join(calls, within="5 minutes", on=(left.fare - right.fare).abs() <= 10)
    assert joined.columns[:3] == ("ts", "left.ts", "left.dropoff_time")
    assert joined.columns[-3:] == ("right.ts", "right.route", "right.fare")
    assert isinstance(joined.node, Join)
    assert isinstance(joined.node.predicate, exp.Expression)
    assert joined.node.predicate.sql("spark") == "ABS(left.fare - right.fare) <= 10"
    assert joined.node.schema.field("right.fare").type == pa.int32()


def test_windows_of_time_and_of_tuples() -> None:
    five = Distance(5 * MINUTE)
    one = Distance(MINUTE)
    assert windows(rides.join(calls, within="5 minutes", on=True)) == (five, five)
    assert windows(rides.join(calls, within=("5 minutes", 60), on=True)) == (five, one)
    assert windows(rides.join(calls, rows=3, on=True)) == (TupleWindow(3, 3), TupleWindow(3, 3))
    mixed = rides.join(calls, within=("5 minutes", None), rows=(None, 7), on=True)
    assert windows(mixed) == (five, TupleWindow(7, 7))


def test_select_and_where_after_a_join() -> None:
    joined = rides.join(calls, within="5 minutes", on=left.route == right.route)
    chosen = joined.where(left.tip > 1, col("paid")).select(
        left.fare, "tip", left.fare - right.fare, right.fare.alias("other"), route=left.route
    )
    assert chosen.columns == ("ts", "fare", "tip", "(fare - fare)", "other", "route")
    first, rest = joined.split(left.fare > 1)
    assert first.columns == rest.columns == joined.columns
    assert joined["tip"].node.sql("spark") == "left.tip"


def test_a_function_as_predicate() -> None:
    joined = rides.join(calls, rows=5, on=near)
    assert isinstance(joined.node, Join)
    assert joined.node.predicate is near


def test_the_column_names_of_a_side_may_hold_points() -> None:
    dotted = stream(Input(RIDES)).select(**{"a.b": "fare"})
    joined = dotted.join(calls, within=60, on=left["a.b"] > right.fare)
    assert joined.select("a.b", "route").columns == ("ts", "a.b", "route")


def test_a_join_of_joins_names_the_sides_of_its_sides() -> None:
    three = PAIRS.join(calls, within=60, on=left.tip == right.fare)
    assert three.columns[:3] == ("ts", "left.ts", "left.left.ts")
    assert isinstance(three.node, Join)
    assert isinstance(three.node.predicate, exp.Expression)
    assert three.node.predicate.sql("spark", identify=True) == "`left.left.tip` = `right.fare`"
    chosen = three.select(left.tip, right.fare, was=left["right.fare"])
    assert chosen.columns == ("ts", "tip", "fare", "was")
    assert isinstance(chosen.node, Project)
    assert [e.name for _, e in chosen.node.columns] == [
        "left.left.tip",
        "right.fare",
        "left.right.fare",
    ]


def test_windows_joins_and_unions_over_each_other() -> None:
    busy = rides.window("1 hour").group_by("route").agg(n=count())
    near_calls = busy.join(calls, within=("1 hour", 0), on=left.route == right.route)
    assert near_calls.columns[1:5] == (
        "left.window_start",
        "left.window_end",
        "left.route",
        "left.n",
    )
    means = PAIRS.window(rows=100, slide=10).group_by(left.route).agg(fare=mean(right.fare))
    assert means.columns == ("window_start", "window_end", "route", "fare")
    one = rides.select("tip").join(calls, within=60, on=True).where(left.tip > 1)
    assert one.union(means.select("fare", "route", was="fare")).columns == (
        "ts",
        "tip",
        "route",
        "fare",
    )


PAIRS = rides.join(calls, within=60, on=True)
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: rides.join(calls, within="5 minutes"),
        "join: on must be an expression over left and right, or a function of their rows; got "
        "nothing. Write for example on=left.x == right.a, or on=True for all pairs.",
    ),
    (
        lambda: rides.join(calls, within="5 minutes", on="route"),  # type: ignore[arg-type]
        "join: on must be an expression over left and right, or a function of their rows; got "
        "'route'. Write for example on=left.x == right.a, or on=True for all pairs.",
    ),
    (
        lambda: rides.join(calls, on=True),
        'join: each side needs a window; got none. Write for example within="5 minutes", or '
        "rows=100.",
    ),
    (
        lambda: rides.join(calls, within="5 minutes", rows=(None, 5), on=True),
        'join: each side needs a window; got two. Write for example within="5 minutes", or '
        "rows=100.",
    ),
    (
        lambda: rides.join(calls, within=("5 minutes",), on=True),  # type: ignore[arg-type]
        "join: needs one value, or one for each side; got ('5 minutes',).",
    ),
    (
        lambda: rides.join(calls, within="soon", on=True),
        "join within: a duration must be a number and a unit; got 'soon'. Write for example "
        '"15 minutes" or "500 ms".',
    ),
    (
        lambda: rides.join(calls, rows="five", on=True),  # type: ignore[arg-type]
        "join rows: needs a whole number of tuples; got 'five'.",
    ),
    (lambda: rides.join(calls, rows=0, on=True), "window: ROWS must be at least 1; got 0."),
    (
        lambda: rides.join(calls, within=60, on=left.fare),
        "ON: a condition must be boolean; got left.fare of type double. Compare it with something.",
    ),
    (
        lambda: rides.join(calls, within=60, on=left.far > right.fare),
        "ON: left has no column of this name; got far. Did you mean fare? There are: ts, "
        "dropoff_time, route, fare, tip, paid, stops.",
    ),
    (
        lambda: rides.join(calls, within=60, on=col("fare") > 1),
        "ON: a column of both sides must be qualified; got fare. left.fare or right.fare?",
    ),
    (
        lambda: rides.join(calls, within=60, on=True).select("fare"),
        "SELECT: a column of both sides must be qualified; got fare. left.fare or right.fare?",
    ),
    (
        lambda: rides.join(calls, within=60, on=True).top(3, by="tip"),
        "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
        "changed; got left.tip DESC. Rows are in the order of event time. Give the stream a window "
        "and an aggregate, or leave ORDER BY out.",
    ),
    (
        lambda: PAIRS.join(calls, within=60, on=left.route == right.route),
        "ON: a column of both sides must be qualified; got left.route. "
        'left["left.route"] or left["right.route"]?',
    ),
    (
        lambda: PAIRS.join(calls, within=60, on=left.far == right.fare),
        "ON: left has no column of this name; got far. There are: ts, left.ts, "
        "left.dropoff_time, left.route, left.fare, left.tip, left.paid, left.stops, right.ts, "
        "right.route, right.fare.",
    ),
    (
        lambda: PAIRS.union(calls),
        "join: every column of the result needs a name of its own; got route on both sides. "
        "Select the columns, and rename one of the two with alias().",
    ),
]


@pytest.mark.parametrize(("make", "message"), MISTAKES)
def test_mistakes(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value) == message
