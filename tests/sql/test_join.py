"""JOIN in SQL: what it binds to, and what each mistake says."""

from __future__ import annotations

import pytest

from tests.query.catalog import sql
from tidegate.errors import QueryError, UserError
from tidegate.query.node.node import Filter, Join, Node, Project
from tidegate.query.window import Distance, TupleWindow

HOUR = "[RANGE 1 HOUR]"
FROM = f"FROM rides {HOUR} AS r JOIN calls AS c {HOUR}"


def joined(node: Node) -> Join:
    """The join below the stateless nodes."""
    while not isinstance(node, Join):
        assert isinstance(node, Filter | Project)
        node = node.child
    return node


def condition(text: str) -> str | None:
    predicate = joined(sql(text)).predicate
    return predicate.sql(dialect="spark") if predicate is not None else None  # type: ignore[union-attr]


def test_the_node_of_a_join() -> None:
    node = sql(
        "SELECT r.fare, c.fare AS other, tip FROM rides [RANGE 5 MINUTES] AS r "
        "JOIN calls AS c [ROWS 9] ON ABS(r.fare - c.fare) <= 10 AND tip > 1 WHERE c.route = 'A'"
    )
    join = joined(node)
    assert node.names == ("ts", "fare", "other", "tip")
    assert join.left_window == Distance(300_000_000)
    assert join.right_window == TupleWindow(9, 9)
    assert join.labels == ("r", "c")
    assert [n.names[0] for n in join.children] == ["ts", "ts"]
    assert join.names[:3] == ("ts", "r.ts", "r.dropoff_time")
    assert join.predicate is not None
    assert condition(f"SELECT tip {FROM} ON r.fare < c.fare") == "r.fare < c.fare"


def test_windows() -> None:
    text = "SELECT tip FROM rides {} JOIN calls {} ON TRUE"
    instant = joined(sql(text.format("[RANGE 0 SECONDS]", "[RANGE 5 SECONDS]")))
    assert (instant.left_window, instant.right_window) == (Distance(0), Distance(5_000_000))


@pytest.mark.parametrize("window", ["[RANGE 5 seconds SLIDE 5 seconds]", "[ROWS 5 SLIDE 5]"])
@pytest.mark.parametrize("join", ["JOIN calls {} ON TRUE", "ASOF JOIN calls {} USING (route, ts)"])
def test_a_slide_is_refused_also_where_it_is_the_length(window: str, join: str) -> None:
    side = "" if "ASOF" in join else "[RANGE 1 SECOND]"
    with pytest.raises(QueryError) as refused:
        sql(f"SELECT tip FROM rides {side} {join.format(window)}")
    assert f"moves with every tuple, so it has no SLIDE; got {window}" in str(refused.value)


def test_inner_cross_and_comma() -> None:
    assert condition(f"SELECT tip FROM rides {HOUR} INNER JOIN calls {HOUR} ON tip = 1") == (
        "rides.tip = 1"
    )
    assert condition(f"SELECT tip FROM rides {HOUR} CROSS JOIN calls {HOUR}") is None
    assert condition(f"SELECT tip FROM rides {HOUR}, calls {HOUR}") is None
    assert condition(f"SELECT tip FROM rides {HOUR} JOIN calls {HOUR} ON TRUE") == "TRUE"


def test_using_is_an_equality_and_its_column_needs_no_qualifier() -> None:
    text = f"SELECT route, tip FROM rides {HOUR} AS r JOIN calls {HOUR} AS c USING (Route)"
    assert condition(text) == "r.route = c.route"
    assert sql(text).names == ("ts", "route", "tip")


def test_a_stream_with_itself() -> None:
    node = sql(f"SELECT a.fare, b.fare AS later FROM calls {HOUR} a JOIN calls {HOUR} b ON TRUE")
    join = joined(node)
    assert join.left == join.right
    assert node.names == ("ts", "fare", "later")


def test_subqueries_and_unions_as_sides() -> None:
    node = sql(
        f"SELECT x, route FROM (SELECT fare AS x FROM calls UNION ALL SELECT tip FROM rides) {HOUR}"
        f" JOIN (SELECT route FROM calls WHERE fare > 3) {HOUR} ON x > LENGTH(route)"
    )
    assert joined(node).labels == ("left", "right")
    assert condition(f"WITH c AS (SELECT * FROM calls) SELECT tip {FROM} ON r.fare = c.fare")


def test_stars() -> None:
    node = sql(f"SELECT * FROM rides {HOUR} JOIN (SELECT fare AS f FROM calls) {HOUR} ON tip = f")
    assert node.names[1:] == ("dropoff_time", "route", "fare", "tip", "paid", "stops", "f")
    node = sql(f"SELECT c.*, r.tip {FROM} ON TRUE")
    assert node.names == ("ts", "route", "fare", "tip")
    node = sql(f"SELECT r.* EXCEPT (stops, paid) {FROM} ON TRUE")
    assert node.names == ("ts", "dropoff_time", "route", "fare", "tip")
    node = sql(
        f"SELECT * FROM (SELECT route, tip FROM rides) {HOUR} a JOIN calls {HOUR} USING (route)"
    )
    assert node.names == ("ts", "route", "tip", "fare")


def test_expressions_are_named_as_spark_names_them() -> None:
    node = sql(f"SELECT r.fare - c.fare, UPPER(c.route), ts, r.ts AS began {FROM} ON TRUE")
    assert node.names == ("ts", "(fare - fare)", "upper(route)", "began")


def test_fields_of_structs() -> None:
    node = sql(f"SELECT o.place.city AS city FROM odd {HOUR} o JOIN calls {HOUR} c ON TRUE")
    assert node.names == ("ts", "city")
    assert condition(
        f"SELECT tip FROM rides {HOUR} r JOIN odd {HOUR} o ON o.place.city = r.route"
    ) == ("o.place.city = r.route")


MISTAKES = {
    f"SELECT tip FROM rides {HOUR} OUTER JOIN calls {HOUR} ON TRUE": (
        "SQL line 1, column 38: a join is INNER, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS; got "
        "OUTER JOIN. Say of which side rows without a partner are kept, for example LEFT JOIN."
    ),
    f"SELECT tip FROM rides {HOUR} RIGHT SEMI JOIN calls {HOUR} ON TRUE": (
        "SQL line 1, column 38: a join is INNER, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS; got RIGHT "
        "SEMI JOIN. Say of which side rows without a partner are kept, for example LEFT JOIN."
    ),
    f"SELECT calls.fare FROM rides {HOUR} ANTI JOIN calls {HOUR} ON TRUE": (
        "SELECT: rows of a semi or anti join have the columns of its left side only; got "
        "calls.fare. Write JOIN, or LEFT JOIN, for those of both."
    ),
    f"SELECT tip FROM rides [ROWS 3] LEFT JOIN calls {HOUR} ON TRUE": (
        "LEFT JOIN: needs windows of time, which tell when no partner can come any more; got "
        "[ROWS 3]. Write [RANGE 5 MINUTES] in place of it, or JOIN for the pairs alone."
    ),
    f"SELECT tip FROM rides {HOUR} LEFT JOIN calls {HOUR} ON TRUE ORDER BY ts": (
        "ORDER BY: rows come in the order in which they are decided, some later than their ts, so "
        "this order would have to wait for them; got ts. Leave ORDER BY out."
    ),
    f"SELECT tip FROM (SELECT tip FROM rides) {HOUR} NATURAL JOIN calls {HOUR}": (
        "NATURAL JOIN: needs a column that both sides have; got none. Write JOIN ... ON ..."
    ),
    f"SELECT tip FROM rides {HOUR}, LATERAL (SELECT fare FROM calls)": (
        "SQL line 1, column 39: a tuple gives one row; got LATERAL. There is no way yet in "
        "SQL; in Python there is tg.Process: see docs/process.md."
    ),
    f"SELECT tip FROM rides {HOUR} JOIN calls {HOUR}": "JOIN: needs ON and a condition; got rides "
    "JOIN calls. Write ON ..., or CROSS JOIN for all pairs.",
    f"SELECT r.fare FROM rides r JOIN calls c {HOUR} ON r.fare = c.fare": (
        "JOIN: both sides need a window; got rides AS r. Write rides AS r [RANGE 5 MINUTES]: how "
        "much earlier it may be than its partner."
    ),
    f"SELECT r.fare FROM rides r {HOUR} JOIN calls c ON r.fare = c.fare": (
        "JOIN: both sides need a window; got calls AS c. Write calls AS c [RANGE 5 MINUTES]: how "
        "much earlier it may be than its partner."
    ),
    "SELECT tip FROM rides r [RANGE 1 HOUR SLIDE 5 MINUTES] JOIN calls c [RANGE 1 HOUR] ON TRUE": ""
    "JOIN: the window of a join moves with every tuple, so it has no SLIDE; got [RANGE 1 hour "
    "SLIDE 5 minutes]. Leave SLIDE out.",
    "SELECT tip FROM rides r [RANGE 1 HOUR] JOIN calls c [ROWS 5 SLIDE 2] ON TRUE": "JOIN: the "
    "window of a join moves with every tuple, so it has no SLIDE; got [ROWS 5 SLIDE 2]. Leave "
    "SLIDE out.",
    f"SELECT tip FROM rides r [RANGE -1 HOUR] JOIN calls c {HOUR} ON TRUE": "window: RANGE must "
    "not be negative; got -1 hours.",
    f"SELECT fare {FROM} ON r.fare = c.fare": "SELECT: a column of both sides must be qualified; "
    "got fare. r.fare or c.fare?",
    f"SELECT tip {FROM} ON fare > 1": "ON: a column of both sides must be qualified; got fare. "
    "r.fare or c.fare?",
    f"SELECT tip {FROM} ON ts > DATE '2024-01-31'": "ON: a column of both sides must be "
    "qualified; got ts. r.ts or c.ts?",
    f"SELECT tip {FROM} ON r.fare = c.far": "ON: no column has this name; got c.far. Did you mean "
    "fare? There are: ts, route, fare.",
    f"SELECT tipp {FROM} ON TRUE": "SELECT: no column has this name; got tipp. Did you "
    "mean r.tip? There are: r.ts, r.dropoff_time, r.route, r.fare, r.tip, r.paid, r.stops, "
    "c.ts, c.route, c.fare.",
    f"SELECT s.tip {FROM} ON TRUE": "SELECT: no stream in FROM has this name; got s. There are: "
    "r, c.",
    f"SELECT s.* {FROM} ON TRUE": "SELECT: no stream in FROM has this name; got s. There are: r, "
    "c.",
    f"SELECT tip {FROM} ON s.tip = 1": "ON: no stream in FROM has this name; got s. There are: r, "
    "c.",
    f"SELECT tip {FROM} ON r.fare - c.fare": "ON: a condition must be boolean; got r.fare - "
    "c.fare of type double. Compare it with something.",
    f"SELECT tip {FROM} ON r.fare = c.fare AND tip": "ON: AND must be boolean; got int. Compare "
    "it with something.",
    f"SELECT tip {FROM} ON SUM(r.fare) > c.fare": "ON: an aggregate cannot stand here; got SUM. "
    "Compare tuples with tuples; aggregates are over windows.",
    f"SELECT tip {FROM} ON r.fare = (SELECT 1)": (
        "ON: a subquery can stand in FROM only; got (SELECT ...). There is no way yet."
    ),
    f"SELECT tip {FROM} ON r.route < c.fare AND r.paid = c.fare": "ON: the two sides of a "
    "comparison must have one type; got boolean and int. Add a CAST.",
    f"SELECT * {FROM} ON TRUE": "SELECT: * needs columns with names of their own; got route in r "
    "and in c. List the columns, and rename one of the two with AS.",
    f"SELECT r.fare, c.fare {FROM} ON TRUE": "SELECT: every column needs a name of its own; got "
    "fare twice. Give one of them another name with AS.",
    f"SELECT r.ts AS ts, tip {FROM} ON TRUE": "SELECT: the name ts belongs to the event time; got "
    "r.ts. Give the column another name with AS.",
    f"SELECT tip {FROM} USING (tip)": "USING: c has no column of this name; got tip. There are: "
    "ts, route, fare.",
    f"SELECT fare FROM calls {HOUR} JOIN calls {HOUR} ON TRUE": "JOIN: both sides need a name of "
    "their own; got calls twice. Give one of them another name with AS.",
    f"SELECT tip {FROM} ON TRUE ORDER BY tip": (
        "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
        "changed; got r.tip. Rows are in the order of event time. Give the stream a window and an"
        " aggregate, or leave ORDER BY out."
    ),
    f"SELECT tip {FROM} ON r.fare = c.fare JOIN rides AS r {HOUR} ON TRUE": "JOIN: both sides "
    "need a name of their own; got r twice. Give one of them another name with AS.",
    f"SELECT COUNT(*) AS n {FROM} ON TRUE": "JOIN: an aggregate over the pairs of a join needs a "
    "window over them. Write SELECT COUNT(*) AS n FROM (rides AS r [RANGE 1 HOUR] JOIN calls AS c "
    "[RANGE 1 HOUR] ON TRUE) [RANGE ...]",
    f"SELECT r.route, AVG(c.fare) - AVG(r.fare) AS more {FROM} ON TRUE WHERE tip > 1 GROUP BY "
    "r.route HAVING more > 3": "JOIN: an aggregate over the pairs of a join needs a window over "
    "them. Write SELECT r.route, AVG(c.fare) - AVG(r.fare) AS more FROM (rides AS r [RANGE 1 HOUR] "
    "JOIN calls AS c [RANGE 1 HOUR] ON TRUE) [RANGE ...] WHERE tip > 1 GROUP BY r.route HAVING "
    "more > 3",
    f"SELECT tip {FROM} ON TRUE HAVING tip > 1": "HAVING: needs an aggregate; got tip > 1. Write "
    "the condition in WHERE.",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items())
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        sql(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", [t for t, m in MISTAKES.items() if "an aggregate over" in m])
def test_the_remedy_of_an_aggregate_over_a_join_is_a_query(text: str) -> None:
    remedy = MISTAKES[text].partition("Write ")[2].replace("[RANGE ...]", "[RANGE 1 DAY]")
    assert sql(remedy).windowed
