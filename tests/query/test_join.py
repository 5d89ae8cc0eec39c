"""Joins in Python: the nodes they make and what each mistake says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from tests.query.catalog import CALLS, RIDES, stream
from tidegate.errors import QueryError, UnavailableError
from tidegate.query.aggregate import count
from tidegate.query.expression import col, left, right
from tidegate.query.node import Input, Join
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
        "ORDER BY and LIMIT: an unbounded stream has no last tuple to wait for, so its order "
        "cannot be changed. Give the stream a window and an aggregate, or leave ORDER BY and "
        "LIMIT out.",
    ),
]
NOT_YET: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: rides.join(calls, within=60, on=True).join(calls, within=60, on=True),
        "JOIN: a join of more than two streams is not available yet. Join two of them, and the "
        "output with the third in a second query.",
    ),
    (
        lambda: rides.join(calls, within=60, on=True).window("1 hour").agg(n=count()),
        "window: a window over the result of a join is not available yet. Write the pairs out, "
        "and aggregate them in a second query.",
    ),
    (
        lambda: calls.union(rides.join(calls, within=60, on=True)),
        "UNION ALL: a union of joins is not available yet.",
    ),
    (
        lambda: rides.window("1 hour").agg(n=count()).join(calls, within=60, on=True),
        "JOIN: a join over the result of a window is not available yet.",
    ),
]


@pytest.mark.parametrize(("make", "message"), MISTAKES)
def test_mistakes(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(("make", "message"), NOT_YET)
def test_what_is_not_available_yet(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        make()
    assert str(caught.value) == message
