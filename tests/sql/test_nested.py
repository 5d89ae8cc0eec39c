"""Queries over queries: what subqueries, CTEs and streams that are queries bind to."""

from __future__ import annotations

import pytest

from tests.query.catalog import CALLS, RIDES, STREAMS, outputs, sql, stream
from tidegate.errors import QueryError, UnavailableError
from tidegate.query.aggregate import count, max_
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate, Filter, Input, Join, Node, Project, Top, Union
from tidegate.query.output import single
from tidegate.query.window import Distance, TimeWindow, TupleWindow
from tidegate.sql.bind import bind, read_script

HOUR, DAY = TimeWindow(3_600_000_000, 3_600_000_000), TimeWindow(86_400_000_000, 86_400_000_000)
HOURLY = "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR] GROUP BY route"
JOINED = (
    "SELECT r.route, c.fare FROM rides r [RANGE 1 HOUR] JOIN calls c [RANGE 1 HOUR] "
    "ON r.route = c.route"
)


def hourly() -> Aggregate:
    return Aggregate(Input(RIDES), HOUR, (("route", column("route")),), (("n", count()),))


def test_a_window_over_a_window() -> None:
    node = sql(f"SELECT route, MAX(n) AS most FROM ({HOURLY}) [RANGE 1 DAY] GROUP BY route")
    keys, calls = (("route", column("route")),), (("most", max_("n")),)
    assert node == Aggregate(hourly(), DAY, keys, calls)


def test_a_window_over_the_first_rows_of_windows() -> None:
    node = sql(f"SELECT AVG(n) AS n FROM ({HOURLY} ORDER BY n DESC LIMIT 3) AS t [ROWS 9 SLIDE 3]")
    assert isinstance(node, Aggregate)
    assert node.window == TupleWindow(9, 3)
    assert isinstance(node.child, Top)
    assert node.child.child == hourly()


def test_a_window_of_tuples() -> None:
    node = sql("SELECT route, AVG(fare) AS f FROM rides [ROWS 5] WHERE tip > 1 GROUP BY route")
    assert isinstance(node, Aggregate)
    assert node.window == TupleWindow(5, 5)
    assert node.names == ("window_start", "window_end", "route", "f")
    assert isinstance(node.child, Filter)


def test_a_window_over_a_join() -> None:
    node = sql(f"SELECT route, AVG(fare) AS f FROM ({JOINED}) AS p [ROWS 5] GROUP BY p.route")
    assert isinstance(node, Aggregate)
    assert [(n, str(c)) for n, c in node.aggregates] == [("f", "mean(fare)")]
    assert isinstance(node.child, Project)
    assert isinstance(node.child.child, Join)


def test_joins_of_results() -> None:
    node = sql(
        f"SELECT h.n, p.fare, h.window_end AS at FROM ({HOURLY}) AS h [RANGE 1 DAY] "
        f"JOIN ({JOINED}) [RANGE 1 MINUTE] AS p ON h.route = p.route AND h.window_end > p.ts"
    )
    assert node.names == ("ts", "n", "fare", "at")
    assert isinstance(node, Project)
    join = node.child
    assert isinstance(join, Join)
    assert join.left == hourly()
    assert join.left_window == Distance(86_400_000_000)
    assert join.names[1:3] == ("h.window_start", "h.window_end")


def test_a_star_leaves_the_windows_of_the_sides_out() -> None:
    calls = "SELECT SUM(fare) AS f FROM calls [RANGE 1 HOUR]"
    node = sql(f"SELECT * FROM ({HOURLY}) [RANGE 1 DAY] JOIN ({calls}) [RANGE 1 DAY] ON n = f")
    assert node.names == ("ts", "route", "n", "f")


def test_a_union_of_windows_joins_and_streams() -> None:
    node = sql(f"{HOURLY} UNION ALL {JOINED} UNION ALL SELECT route, fare FROM calls")
    assert isinstance(node, Union)
    assert node.names == ("ts", "route", "n")
    assert node.inputs[0] == hourly()


def test_a_stream_that_is_a_query_is_its_subquery() -> None:
    view = f"CREATE STREAM busy AS {HOURLY}"
    for text in (
        f"{view}; SELECT MAX(n) AS m FROM Busy [RANGE 1 DAY]",
        f"SELECT MAX(n) AS m FROM busy [RANGE 1 DAY]; {view}",
        f"WITH busy AS ({HOURLY}) SELECT MAX(n) AS m FROM busy [RANGE 1 DAY]",
        f"CREATE STREAM more AS SELECT * FROM busy; {view}; "
        "SELECT MAX(n) AS m FROM more [RANGE 1 DAY]",
    ):
        found = sql(text)
        assert isinstance(found, Aggregate)
        assert found == Aggregate(hourly(), DAY, (), (("m", max_("n")),))


def test_a_stream_that_is_read_twice_is_one_node() -> None:
    node = sql(
        f"CREATE STREAM busy AS {HOURLY}; SELECT a.n, b.n AS later FROM busy [RANGE 1 DAY] AS a "
        "JOIN busy AS b [RANGE 1 DAY] USING (route)"
    )
    (join,) = node.children
    assert isinstance(join, Join)
    assert join.left is join.right


def test_a_named_subquery_hides_a_stream_that_is_a_query() -> None:
    node = sql(
        f"CREATE STREAM busy AS {HOURLY}; WITH busy AS (SELECT fare FROM calls) SELECT * FROM busy"
    )
    assert node.names == ("ts", "fare")


def test_streams_that_are_not_read_are_checked_and_left_out() -> None:
    assert sql(f"CREATE STREAM busy AS {HOURLY}; SELECT fare FROM calls").names == ("ts", "fare")


def test_a_program_may_give_nodes_for_streams() -> None:
    script = read_script("SELECT MAX(n) AS m FROM busy [RANGE 1 DAY]")
    made = single(bind(script, {**STREAMS, "busy": hourly()}))
    assert made == stream(hourly()).window("1 day").agg(m=max_("n")).node


def test_several_outputs() -> None:
    found = outputs(
        f"CREATE STREAM busy AS {HOURLY}; INSERT INTO most SELECT MAX(n) AS m FROM busy "
        "[RANGE 1 DAY]; INSERT INTO busy SELECT * FROM busy; INSERT INTO Calls SELECT * FROM calls"
    )
    assert list(found) == ["most", "busy", "Calls"]
    assert found["most"].children[0] is found["busy"]
    assert found["Calls"].children == (Input(CALLS),)
    assert list(outputs("SELECT fare FROM calls")) == [None]


def keys_of(node: Node) -> list[tuple[str, str]]:
    assert isinstance(node, Aggregate)
    return [(n, e.sql("spark")) for n, e in node.keys]


def test_the_window_of_a_subquery_and_the_window_over_it() -> None:
    """Alone the name is the window that is being made, qualified or in an aggregate the other."""
    node = sql(
        f"SELECT w.window_end AS of, window_end, MAX(window_end) AS last FROM ({HOURLY}) AS w "
        "[RANGE 1 DAY] GROUP BY w.window_end"
    )
    assert keys_of(node) == [("of", "window_end")]
    assert node.names == ("window_start", "window_end", "of", "last")
    node = sql(f"SELECT window_end AS mine, MAX(n) AS m FROM ({HOURLY}) [RANGE 1 DAY]")
    assert isinstance(node, Project)
    assert node.columns[0] == ("mine", column("window_end"))
    assert keys_of(node.child) == []
    day = sql(f"SELECT DATE(window_end) AS d, MAX(n) AS m FROM ({HOURLY}) [ROWS 3] GROUP BY d")
    assert keys_of(day) == [("d", "CAST(window_end AS DATE)")]


MISTAKES = {
    "CREATE STREAM a AS SELECT * FROM b; CREATE STREAM b AS SELECT fare FROM A; "
    "SELECT 1 AS x FROM a": "CREATE STREAM a: a stream cannot be made of itself; got a from b from "
    "a. Read from a source, or give one of the streams another name.",
    "CREATE STREAM a AS SELECT * FROM a; SELECT 1 AS x FROM calls": "CREATE STREAM a: a stream "
    "cannot be made of itself; got a from a. Read from a source, or give one of the streams "
    "another name.",
    "CREATE STREAM Rides AS SELECT * FROM calls; SELECT * FROM rides": "CREATE STREAM Rides: a "
    "name can be used once; got rides, which is there already. Give the new stream another name.",
    "CREATE STREAM a AS SELECT * FROM cals; SELECT 1 AS x FROM a": "CREATE STREAM a, FROM: no "
    "stream has this name; got cals. Did you mean calls? There are: rides, calls, odd, a.",
    "CREATE STREAM a AS SELECT far FROM calls; SELECT fare FROM rides": "CREATE STREAM a, SELECT: "
    "no column has this name; got far. Did you mean fare? There are: ts, route, fare.",
    "CREATE STREAM a AS SELECT * FROM b; CREATE STREAM b AS SELECT far FROM calls; "
    "SELECT * FROM a": "CREATE STREAM b, SELECT: no column has this name; got far. Did you mean "
    "fare? There are: ts, route, fare.",
    "INSERT INTO a SELECT * FROM calls; INSERT INTO b SELECT * FROM A": "INSERT INTO b, FROM: no "
    "stream has this name; got A. a is an output: write CREATE STREAM a AS SELECT ... to read it.",
    "INSERT INTO a SELECT * FROM calls; INSERT INTO b SELECT far FROM calls": "INSERT INTO b, "
    "SELECT: no column has this name; got far. Did you mean fare? There are: ts, route, fare.",
    f"SELECT MAX(n) AS m FROM ({HOURLY}) AS w [RANGE 1 DAY] GROUP BY window_end": "GROUP BY: every "
    "result is of one window, and FROM has a column of this name; got window_end. Leave it out, "
    "or say whose it is, as in w.window_end.",
    f"SELECT w.window_end AS e, MAX(n) AS m FROM ({HOURLY}) AS w [RANGE 1 DAY]": "SELECT: a column "
    "must be a key of GROUP BY or inside an aggregate; got w.window_end. Write GROUP BY "
    "w.window_end.",
    f"SELECT MAX(n) AS m FROM ({HOURLY}) [RANGE 1 DAY] WHERE nn > 1": "WHERE: no column has this "
    "name; got nn. Did you mean n? There are: window_start, window_end, route, n.",
    f"SELECT MAX(n) AS m FROM ({HOURLY}) [RANGE 1 DAY] WHERE n": "WHERE: a condition must be "
    "boolean; got n of type bigint. Compare it with something.",
    f"SELECT MAX(ts) AS m FROM ({HOURLY}) [RANGE 1 DAY]": "MAX: no column has this name; got ts. "
    "There are: window_start, window_end, route, n.",
    f"SELECT n FROM ({HOURLY}) [RANGE 1 DAY]": "[RANGE 1 day]: a window needs an aggregate in the "
    "select list, or GROUP BY; got SELECT n FROM (SELECT route, COUNT(*) AS n FROM rides "
    "[RANGE. Leave the window out, or add for example COUNT(*).",
    f"SELECT MAX(n) AS m FROM ({HOURLY})": (
        "SELECT: an aggregate needs a window; got FROM (...) without one. Write FROM (...) [RANGE"
        " 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
    ),
    f"SELECT a.n FROM ({HOURLY}) a [ROWS 5] JOIN ({HOURLY}) b [ROWS 5] ON window_end > a.window_end"
    "": "ON: a column of both sides must be qualified; got window_end. a.window_end or "
    "b.window_end?",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items())
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        outputs(text)
    assert str(caught.value) == message


def test_what_comes_later_is_told_inside_a_statement_too() -> None:
    with pytest.raises(UnavailableError) as caught:
        outputs("INSERT INTO b SELECT SUM(DISTINCT fare) AS n FROM rides [RANGE 1 HOUR]")
    assert str(caught.value) == (
        "INSERT INTO b, SUM(DISTINCT): is not available yet: only COUNT, ARRAY_AGG and STRING_AGG "
        "can be. There is no way yet."
    )


def test_a_query_of_with_is_bound_once_however_often_it_is_read() -> None:
    sides = "SELECT fare FROM {0} WHERE fare < 5 UNION ALL SELECT fare FROM {0} WHERE fare >= 5"
    named = ", ".join(
        f"v{n} AS ({sides.format('rides' if n == 0 else f'v{n - 1}')})" for n in range(30)
    )
    assert sql(f"WITH {named} SELECT fare FROM v29").names == ("ts", "fare")  # 2**30 paths


def test_a_query_of_with_sees_those_before_it_only() -> None:
    with pytest.raises(QueryError, match="no stream has this name; got b"):
        sql("WITH a AS (SELECT fare FROM b), b AS (SELECT fare FROM rides) SELECT fare FROM a")
    node = sql("WITH rides AS (SELECT fare + 1 AS fare FROM rides) SELECT fare FROM rides")
    assert node.names == ("ts", "fare")
