"""ASOF JOIN in SQL and join_asof in Python: what they bind to."""

from __future__ import annotations

import pytest

from tests.query.catalog import CALLS, RIDES, sql, stream
from tidegate import left, right
from tidegate.errors import UserError
from tidegate.query.node.asof import AsOf
from tidegate.query.node.node import Filter, Input, Node, Project

FROM = "FROM rides AS r ASOF JOIN calls AS c"


def found(node: Node) -> AsOf:
    """The as-of join below the stateless nodes."""
    while not isinstance(node, AsOf):
        assert isinstance(node, Filter | Project)
        node = node.child
    return node


def test_the_node_of_an_as_of_join() -> None:
    node = found(
        sql(
            "SELECT tip FROM rides AS r ASOF LEFT JOIN calls AS c [RANGE 5 SECONDS] "
            "MATCH_CONDITION (r.ts > c.ts) ON c.route = r.route AND r.fare = c.fare + 1"
        )
    )
    assert (node.comparison, node.tolerance_us, node.keep) == (">", 5_000_000, True)
    assert [e.sql() for e in node.equalities] == ["r.route = c.route", "r.fare = c.fare + 1"]
    assert node.names[:2] == ("ts", "r.ts")
    assert node.event_names == {"ts", "r.ts", "r.dropoff_time"}


@pytest.mark.parametrize(
    ("text", "comparison"),
    [
        ("MATCH_CONDITION (r.ts >= c.ts) ON r.route = c.route", ">="),
        ("MATCH_CONDITION (r.dropoff_time >= c.ts) ON r.route = c.route", ">="),
        ("MATCH_CONDITION (c.ts < r.ts) USING (route)", ">"),
        ("ON r.route = c.route AND r.ts > c.ts", ">"),
        ("ON c.ts <= r.ts AND r.route = c.route", ">="),
        ("USING (route, ts)", ">="),
        ("MATCH_CONDITION (ts >= c.ts) USING (route)", ">="),
    ],
)
def test_ways_to_write_it(text: str, comparison: str) -> None:
    node = found(sql(f"SELECT tip {FROM} {text}"))
    assert node.comparison == comparison
    assert [e.sql() for e in node.equalities] == ["r.route = c.route"]


WINDOW = "(SELECT route, COUNT(*) AS n FROM calls {} GROUP BY route) AS c"


@pytest.mark.parametrize(
    ("window", "written", "meant"),
    [
        ("[RANGE 1 MINUTE]", "r.ts >= c.window_end", ">"),
        ("[RANGE 1 MINUTE]", "c.window_end > r.ts", "<="),
        ("[ROWS 5]", "r.ts >= c.window_end", ">="),
        ("[ROWS 5]", "r.ts > c.window_end", ">"),
    ],
)
def test_the_end_of_a_window_is_compared_as_written(window: str, written: str, meant: str) -> None:
    """A window of time happens a microsecond before its end."""
    text = f"SELECT n FROM rides AS r ASOF JOIN {WINDOW.format(window)}"
    if meant == "<=":
        text += " [RANGE 1 MINUTE]"
    node = found(sql(f"{text} MATCH_CONDITION ({written}) ON r.route = c.route"))
    assert node.comparison == meant


def test_python_builds_the_same_nodes() -> None:
    rides, calls = stream(Input(RIDES)), stream(Input(CALLS))
    node = rides.join_asof(calls, on="route", tolerance="5 seconds", how="left").node
    assert isinstance(node, AsOf)
    assert (node.comparison, node.tolerance_us, node.keep) == (">=", 5_000_000, True)
    assert [e.sql() for e in node.equalities] == ["left.route = right.route"]
    asked = rides.join_asof(
        calls,
        on=(left.route == right.route) & (right.fare == left.fare),
        direction="forward",
        allow_equal=False,
        tolerance="1 minute",
    ).node
    assert isinstance(asked, AsOf)
    assert asked.comparison == "<"
    assert len(asked.equalities) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"direction": "nearest"},
            "join_asof direction: must be 'backward' or 'forward'; got 'nearest'.",
        ),
        ({"how": "outer"}, "join_asof how: must be 'inner' or 'left'; got 'outer'."),
        (
            {"on": "rout"},
            "join_asof on: no column has this name; got rout. Did you mean route? There are: ts, "
            "dropoff_time, route, fare, tip, paid, stops.",
        ),
        ({"on": "route", "tolerance": "-1 second"}, "tolerance"),
        ({"on": left.fare > right.fare}, "ON: an as-of join takes equalities of its two sides"),
        ({"by": "route"}, "join_asof: has no argument of this name; got by."),
    ],
)
def test_mistakes_in_python(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as caught:
        stream(Input(RIDES)).join_asof(stream(Input(CALLS)), **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_what_is_decided_later_cannot_be_a_side() -> None:
    ahead = f"{FROM} [RANGE 1 MINUTE] MATCH_CONDITION (r.ts <= c.ts) ON r.route = c.route"
    with pytest.raises(UserError) as caught:
        sql(
            f"SELECT x.tip FROM (SELECT r.route, tip {ahead}) AS x ASOF JOIN calls AS d "
            "MATCH_CONDITION (x.ts >= d.ts) USING (route)"
        )
    assert "needs rows that are decided at their own time" in str(caught.value)
