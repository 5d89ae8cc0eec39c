"""The fluent surface: the same nodes as SQL, nothing changed in place."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.query.catalog import CALLS, RIDES, sql, stream
from tidegate.errors import QueryError, UserError
from tidegate.query.aggregate import count, max_, mean, median, sum_
from tidegate.query.expression import call, col, left, right
from tidegate.query.node.node import Branch, Input, Union
from tidegate.query.window import TupleWindow

rides = stream(Input(RIDES))
calls = stream(Input(CALLS))


def test_the_query_of_the_design() -> None:
    top = (
        rides.where(col("fare") > 0)
        .window("15 minutes", slide="5 minutes")
        .group_by("route")
        .agg(fare=mean("fare"), n=count())
        .top(10, by="fare")
    )
    assert top.node == sql(
        "SELECT route, AVG(fare) AS fare, COUNT(*) AS n FROM rides "
        "[RANGE 15 MINUTES SLIDE 5 MINUTES] WHERE fare > 0 GROUP BY route "
        "ORDER BY fare DESC LIMIT 10"
    )


def test_having_order_and_expressions_after_the_window() -> None:
    made = (
        rides.window("1 hour")
        .group_by(line=call("upper", "route"))
        .agg(tips=sum_("tip"), n=count())
        .having(col("n") > 1)
        .order_by("line")
        .select("line", each=col("tips") / col("n"))
    )
    assert made.columns == ("window_start", "window_end", "line", "each")
    assert made.node == sql(
        "SELECT line, tips / n AS each FROM (SELECT UPPER(route) AS line, SUM(tip) AS tips, "
        "COUNT(*) AS n FROM rides [RANGE 1 HOUR] GROUP BY line HAVING n > 1 ORDER BY line)"
    )


def test_select_names_columns() -> None:
    made = rides.select("Route", (col("fare") * 2).alias("double"), col("tip") + 1, t="tip")
    assert made.columns == ("ts", "route", "double", "(tip + 1)", "t")


def test_select_keeps_the_event_time_unless_its_name_is_taken() -> None:
    assert rides.select("ts", "fare").columns == ("ts", "fare")
    with pytest.raises(QueryError, match="the name ts belongs to the event time"):
        rides.select(ts="fare")


def test_where_takes_several_conditions_and_is_also_called_filter() -> None:
    one = rides.where(col("fare") > 0, col("tip") > 1)
    assert one == rides.filter(col("fare") > 0).filter(col("tip") > 1)
    assert rides.node == Input(RIDES)


def test_unions_are_flat() -> None:
    a = rides.select("route", "fare")
    node = a.union(calls).union(a, a.union(calls)).node
    assert isinstance(node, Union)
    assert [len(n.names) for n in node.inputs] == [3] * 5


def test_split_gives_one_stream_per_condition_and_the_rest() -> None:
    high, low, rest = rides.split(col("fare") > 10, col("fare") > 5)
    assert [s.node.index for s in (high, low, rest) if isinstance(s.node, Branch)] == [0, 1, 2]


def test_the_parts_of_a_split_can_be_used_together() -> None:
    high, low = rides.split(col("fare") > 10)
    both = low.select("route").union(
        high.window("1 hour").group_by("route").agg(n=count()).select("route")
    )
    assert both.columns == ("ts", "route")
    pairs = high.join(low, within="1 minute", on=left.route == right.route)
    assert [c.index for c in pairs.node.children if isinstance(c, Branch)] == [0, 1]


def test_windows_of_tuples() -> None:
    made = rides.window(rows=100, slide=10).group_by("route").agg(fare=mean("fare"))
    assert made.node == sql(
        "SELECT route, AVG(fare) AS fare FROM rides [ROWS 100 SLIDE 10] GROUP BY route"
    )
    assert rides.window(rows=5).over == TupleWindow(5, 5)


def test_windows_over_windows() -> None:
    hourly = rides.window("1 hour").group_by("route").agg(n=count())
    made = hourly.where(col("n") > 3).window("1 day").agg(most=max_("n"), last=max_("window_end"))
    assert made.node == sql(
        "SELECT MAX(n) AS most, MAX(window_end) AS last FROM (SELECT route, COUNT(*) AS n "
        "FROM rides [RANGE 1 HOUR] GROUP BY route) [RANGE 1 DAY] WHERE n > 3"
    )
    by_end = hourly.window(rows=3).group_by(end="window_end").agg(n=count())
    assert by_end.columns == ("window_start", "window_end", "end", "n")


def test_groups_may_be_left_out() -> None:
    made = rides.window(60).agg(m=median("fare"))
    assert made.node == sql("SELECT MEDIAN(fare) AS m FROM rides [RANGE 1 MINUTE]")


def test_columns_can_be_taken_by_name() -> None:
    assert rides["FARE"].node.name == "fare"
    with pytest.raises(QueryError, match="column: no column has this name; got far"):
        rides["far"]


def test_start_and_explain_are_handed_in() -> None:
    assert calls.start(instances=2) == (Input(CALLS), {"instances": 2})
    assert calls.explain() == "explained ('ts', 'route', 'fare')"
    assert (
        repr(calls)
        == "Stream(ts timestamp, route string, fare int; stream calls from a.csv and 1 more)"
    )


def test_mistakes() -> None:
    with pytest.raises(QueryError, match=r"agg: n must be an aggregate; got 'fare'. Write for"):
        rides.window("1 hour").agg(n="fare")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"having: needs an aggregate. Use where"):
        rides.having(col("fare") > 1)
    with pytest.raises(QueryError, match="top: needs a whole number of rows; got 'ten'"):
        rides.window("1 hour").agg(n=count()).top("ten", by="n")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="ORDER BY: an unbounded stream"):
        rides.top(10, by="fare")
    with pytest.raises(QueryError, match="SLIDE must not be longer than RANGE"):
        rides.window("1 hour", slide="2 hours")
    with pytest.raises(QueryError, match="window range: a duration must be a number and a unit"):
        rides.window("soon")
    with pytest.raises(QueryError, match="ORDER BY and LIMIT: a window of tuples gives one row"):
        rides.window(rows=5).agg(n=count()).top(3, by="n")
    with pytest.raises(QueryError, match="got window_end twice"):
        rides.window("1 hour").agg(n=count()).window("1 day").group_by("window_end").agg(m=count())
    with pytest.raises(QueryError, match="GROUP BY: no column has this name; got rout"):
        rides.window("1 hour").group_by("rout").agg(n=count())
    with pytest.raises(QueryError, match="a qualified column needs a join"):
        rides.where(left.fare > 1)


def test_shedding_is_asked_for_after_the_aggregate() -> None:
    counted = rides.window("1 hour").group_by("route").agg(n=count())
    shed = counted.shed(0.98)
    assert shed.columns == ("window_start", "window_end", "route", "n", "kept")
    assert "SHED 98 PERCENT BY CONCEPT" in shed.node.summary
    assert counted.select("n").shed(0.5, by="uniform").columns[2:] == ("n", "kept")
    assert shed.select("n").columns[2:] == ("n",)
    wrong = {
        "WITH SHED: the share must be a number; got '98'": lambda: counted.shed("98"),  # type: ignore[arg-type]
        "must be between 0 and 100 percent; got 9800 PERCENT": lambda: counted.shed(98),
        "BY must be CONCEPT, CONCEPT TOTAL or UNIFORM; got luck": lambda: counted.shed(
            0.5, by="luck"
        ),
        "CONCEPT TOTAL or UNIFORM; got None": lambda: counted.shed(0.5, by=None),  # type: ignore[arg-type]
        "is for aggregates over windows of time and for joins by equality; got a query": lambda: (
            rides.shed(0.5)
        ),
        "an aggregate sheds once; got also SHED 98": lambda: shed.shed(0.5),
    }
    for message, ask in wrong.items():
        with pytest.raises(QueryError, match=message):
            ask()


def test_what_is_asked_of_an_aggregate_is_told_where_it_is_wrong() -> None:
    window = rides.window("1 hour").group_by("route")
    counted = window.agg(n=count())
    wrong: dict[str, Callable[[], object]] = {
        "within: has no argument of this name; got eror. Did you mean error?": lambda: (
            counted.within(eror=0.1)  # type: ignore[call-arg]
        ),
        "got 1000 PERCENT. Write for example ERROR 10 PERCENT, in Python error=0.1.": lambda: (
            counted.within(error=10)
        ),
        "an aggregate has one partitioner; got pk after cam. Leave one of them out.": lambda: (
            window.partition("cam").partition("pk")
        ),
        'Write .window("15 minutes").group_by("route").partition("cam").agg(': lambda: (
            counted.partition("cam")  # type: ignore[attr-defined]
        ),
    }
    for message, ask in wrong.items():
        with pytest.raises(UserError, match=re.escape(message)):
            ask()


def test_what_is_not_available_yet() -> None:
    with pytest.raises(QueryError, match="the error must be between 0 and 100 percent"):
        rides.within(error=2)
