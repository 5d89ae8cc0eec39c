"""What users of PySpark, pandas and polars type from habit: one line that says the way here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate import call, col, count, expr, left, lit, mean, right, when
from tidegate.errors import NoAttributeError, TidegateError

ROWS = [
    {"ts": "2024-01-01T00:00:01Z", "route": "a", "fare": 5.0, "note": "x"},
    {"ts": "2024-01-01T00:00:02Z", "route": "b", "fare": 7.5, "note": "y"},
]
JOIN = 'Write for example .join(other, within="5 minutes", on=left.route == right.route).'
WINDOW = 'Write .window("15 minutes")'
TRUTH = (
    "expression: an expression has no truth value before the query runs; got {}. Use & for and, "
    "| for or, ~ for not, with parentheses around each comparison, .between(a, b) for "
    "a <= x <= b, and .isin(...) for in."
)
AGGREGATE = (
    'Write for example n=tg.count() or fare=tg.mean("fare"); sum, min and max without tg. are '
    "Python's own."
)
MISTAKES = {
    # the order of calls
    "rides.start()": (
        'start: needs a sink for the results; got none. Write .start(sink="out") for files in a '
        'folder out, sink="console:" to print the rows, or sink=tg.sink.memory() to keep them.'
    ),
    'rides.start("out")': (
        "start: takes fewer arguments without a name; got more. Write for example "
        '.start(sink="out", checkpoint="ckpt").'
    ),
    'rides.start(sink="out", batchrows=5)': (
        "start: has no argument of this name; got batchrows. Did you mean batch_rows? Write for "
        'example .start(sink="out", checkpoint="ckpt", batch_rows=100_000).'
    ),
    'rides.group_by("route")': (
        f'stream: groups are made in a window; got .group_by. {WINDOW}.group_by("route")'
        ".agg(n=count())."
    ),
    'rides.groupBy("route")': (
        f'stream: groups are made in a window; got .groupBy. {WINDOW}.group_by("route")'
        ".agg(n=count())."
    ),
    "rides.agg(n=count())": (
        f"stream: an aggregate needs a window; got .agg. {WINDOW}.agg(n=count())."
    ),
    "rides.count()": (f"stream: an aggregate needs a window; got .count. {WINDOW}.agg(n=count())."),
    'rides.window("1 s").window("1 s")': (
        "window: a stream has one window at a time; got .window. Leave one out, or write the "
        "second after agg()."
    ),
    'rides.window("1 s").where(col("fare") > 5)': (
        "window: rows are chosen before the window, or after agg(); got .where. Write "
        '.where(...).window("15 minutes").agg(...), or .having(...) after agg().'
    ),
    'rides.window("1 s").start(sink="out")': (
        "window: has nothing of this name; got .start. A window waits for agg(): write "
        ".agg(n=count()).start(...)."
    ),
    'rides.window("1 s").count()': (
        'window: aggregates are made by agg(); got .count. Write .window("15 minutes")'
        '.agg(n=count(), total=sum("fare")).'
    ),
    'rides.having(col("n") > 1)': "having: needs an aggregate. Use where() on a stream.",
    # names of other libraries
    'rides.withColumn("x", 1)': (
        "stream: columns are added by with_columns(); got .withColumn. Write "
        '.with_columns(half=col("fare") / 2).'
    ),
    "rides.show()": (
        "stream: a stream has no last row to wait for; got .show. Write .preview(10) to see the "
        "first rows."
    ),
    "rides.writeStream": (
        "stream: results go to a sink when the query is started; got .writeStream. Write "
        '.start(sink="out") for files in a folder out, or sink=tg.sink.memory().'
    ),
    "rides.fare": (
        'stream: has nothing of this name; got .fare. It is a column: write stream["fare"], or '
        'col("fare").'
    ),
    "rides.selct": (
        "stream: has nothing of this name; got .selct. Did you mean select or split? There are: "
        "balance, columns, drop, drop_duplicates, emit_every, explain, explode, filter, having, "
        "join, join_asof, limit, order_by, over, preview, process, rename, schema, select, shed, "
        "..."
    ),
    'col("fare").sum()': (
        'expression: aggregates are functions of their own; got .sum. Write tg.sum("fare") inside '
        '.window("15 minutes").agg(...).'
    ),
    'col("fare").isNull()': (
        "expression: the test for NULL is is_null(); got .isNull. Write .is_null()."
    ),
    'col("route").upper()': (
        "expression: has nothing of this name; got .upper. It is a function of SQL: write "
        'call("upper", ...).'
    ),
    'col("fare").shift(1)': (
        "expression: rows before are seen by over() of the stream; got .shift. Write "
        '.over("route", before=lag("fare"), so_far=sum("fare")), or with rows=5 for the last ones.'
    ),
    "tg.avg": "module 'tidegate' has no attribute 'avg'. Write tg.mean.",
    # brackets, loops and truth
    'rides["far"]': (
        "column: no column has this name; got far. Did you mean fare? There are: ts, route, fare, "
        "note."
    ),
    'rides[rides["fare"] > 5]': (
        "stream[...]: needs the name of a column; got Expression(fare > 5). Write .where(...) to "
        "keep the rows for which it is true."
    ),
    'rides[["route", "fare"]]': (
        "stream[...]: needs the name of one column; got ['route', 'fare']. Write "
        ".select('route', 'fare')."
    ),
    'rides.__setitem__("x", 1)': (
        "stream: is never changed; every method gives a new one; got stream['x'] = ... Write "
        ".with_columns(x=...)."
    ),
    "len(rides)": (
        "stream: has no last row, so it has no length; got len(stream). Write "
        '.window("1 hour").agg(n=count()) for counts, or .preview(10) for rows.'
    ),
    "[row for row in rides]": (
        "stream: has no last row, so it cannot be walked through; got for ... in stream. Write "
        ".preview(10) to see the first rows, or .start(sink=tg.sink.call(function))."
    ),
    'rides.where(col("fare") > 5 and col("note") == "x")': TRUTH.format("fare > 5"),
    'rides.where(5 < col("fare") < 10)': TRUTH.format("fare > 5"),
    'rides.where(col("route") in ["a", "b"])': TRUTH.format("route = 'a'"),
    # text and constants for expressions
    'rides.where("fare > 5")': (
        "where: a string is the name of a column here; got 'fare > 5'. Write expr('fare > 5'), "
        "with from tidegate import expr."
    ),
    'rides.select("fare * 2")': (
        "select: a string is the name of a column here; got 'fare * 2'. Write expr('fare * 2'), "
        "with from tidegate import expr."
    ),
    "rides.where(lambda row: row.fare > 5)": (
        "where: must be an expression, not a function; got <lambda>. Write for example "
        'col("fare") > 5.'
    ),
    'rides.where(route="a")': (
        'where: has no argument of this name; got route. Write for example .where(col("fare") > 5).'
    ),
    "rides.select(count())": (
        f"select: an aggregate needs a window; got count(*). {WINDOW}.agg(n=count())."
    ),
    'expr("fare +")': (
        "expr('fare +'): expected another operand or argument; got the end of the statement."
    ),
    'expr("SUM(fare)")': (
        "expr('SUM(fare)'): an aggregate cannot stand here. Write "
        '.window("15 minutes").agg(total=sum("fare")).'
    ),
    'expr("fare FROM rides")': (
        "expr('fare FROM rides'): must be one expression. Write clauses with session.sql(...)."
    ),
    'when(col("fare") > 5)': (
        'when: needs value; got none. Write for example when(col("fare") > 5, "high")'
        '.otherwise("low").'
    ),
    # windows and aggregates
    'rides.window("ts", "10 seconds")': (
        "window: the event time is known from the stream, and need not be named; got 'ts'. Write "
        'for example window("15 minutes", slide="5 minutes").'
    ),
    "rides.window(minutes=5)": (
        "window: has no argument of this name; got minutes. Write for example "
        '.window("15 minutes", slide="5 minutes"), or .window(rows=100).'
    ),
    'rides.window("1 s").agg(mean("fare"))': (
        'agg: every aggregate needs a name; got mean(fare). Write .agg(mean_fare=mean("fare")).'
    ),
    'rides.window("1 s").agg({"fare": "mean"})': (
        "agg: every aggregate needs a name; got {'fare': 'mean'}. Write .agg(fare=mean(\"fare\"))."
    ),
    'rides.window("1 s").agg(n="count")': f"agg: n must be an aggregate; got 'count'. {AGGREGATE}",
    'rides.window("1 s").agg(n=count)': (
        f"agg: n must be an aggregate; got count without parentheses. {AGGREGATE}"
    ),
    'rides.window("1 s").agg(n=max("fare"))': (
        f"agg: n must be an aggregate; got 'r'. {AGGREGATE}"
    ),
    'rides.window("1 s").agg(n=sum(col("fare")))': (
        "expression: an expression is not a list; got fare. Python's sum, min and max take lists: "
        "write tg.sum(...), tg.min(...), tg.max(...)."
    ),
    'rides.window("1 s").agg(n=tg.sum("fare") / count())': (
        "aggregate: stands alone in agg(), under a name; got sum(fare). Compute with the results: "
        '.agg(total=sum("fare"), n=count()).select("*", each=col("total") / col("n")).'
    ),
    'rides.window("1 s").agg(n=tg.sum("fare").alias("n"))': (
        'aggregate: is named in agg(); got .alias. Write .agg(total=sum("fare")).'
    ),
    # other streams and sources
    'rides.join(rides, "route")': f"join: takes fewer arguments without a name; got more. {JOIN}",
    "rides.join(5, within='1 s', on=True)": f"join: needs another stream; got int. {JOIN}",
    "rides.union(5)": "union: needs another stream; got int. Write for example .union(other).",
    'tg.Session("local[2]")': (
        "Session: needs a Spark session, or a master by name; got 'local[2]'. Write "
        "Session(master='local[2]')."
    ),
    "session.stream()": (
        "stream: needs source; got none. Write for example "
        'session.stream("rides.parquet", time="ts").'
    ),
    'session.stream(pa.table({"at": [1]}), name="t")': (
        "stream t: needs a time column; got no time= and no column named ts. Write "
        'time="column". Timestamp columns: none; the columns are at.'
    ),
    'session.stream([{"ts": "tomorrow"}], name="t")': (
        "stream t, table 0: time column ts must be a timestamp or a date; got string. Write it as "
        "a timestamp (in text: ISO 8601, as 2024-01-31T12:00:00Z). No column holds times."
    ),
    'session.sql("q.sql")': (
        'sql: needs the text of a query; got q.sql. Write session.sql(open("q.sql").read()).'
    ),
    'session.sql("SELECT * FROM rides", rides=5)': (
        "sql rides: must be a stream or a table; got int. Write rides=session.stream(..., "
        'time="ts").'
    ),
    'session.start({"a": rides})': (
        "start: needs sinks; got none. Write for example "
        'session.start({"totals": stream}, sinks={"totals": "out"}).'
    ),
}

session = tg.Session(master="none")
rides = session.stream(ROWS, name="rides")
NAMES = {
    "tg": tg,
    "pa": pa,
    "session": session,
    "rides": rides,
    "col": col,
    "count": count,
    "mean": mean,
    "expr": expr,
    "when": when,
    "left": left,
    "right": right,
}


@pytest.mark.parametrize("code", MISTAKES)
def test_a_habit_is_answered_with_the_way_here(code: str) -> None:
    with pytest.raises((TidegateError, AttributeError)) as told:
        eval(code, dict(NAMES))
    assert str(told.value) == MISTAKES[code]


def test_a_name_that_is_not_there_is_absent_for_programs_that_ask() -> None:
    assert not hasattr(rides, "toPandas")
    assert not hasattr(rides, "_ipython_display_")
    assert getattr(rides.window("1 s"), "columns", None) is None
    assert not hasattr(col("fare"), "sum")
    assert not hasattr(count(), "alias")
    assert issubclass(NoAttributeError, AttributeError)


def test_what_can_just_work_does() -> None:
    assert "fare" in rides
    assert rides.select(["route", "fare"]).columns == ("ts", "route", "fare")
    assert rides.window("1 s").agg(n=count("*")) == rides.window("1 s").agg(n=count())
    assert repr(round(col("fare"), 1)) == "Expression(ROUND(fare, 1))"
    assert repr(np.float64(2) * col("fare")) == "Expression(2.0e0 * fare)"
    assert repr(lit(np.float64(0.5))) == "Expression(0.5e0)"


def test_tables_of_any_kind_are_bounded_sources_in_the_order_of_time(tmp_path: Path) -> None:
    import pandas as pd

    late_first = pd.DataFrame(
        {"ts": pd.to_datetime(["2024-01-02", "2024-01-01"]), "v": [2, 1]}, index=[5, 6]
    )
    arrow = pa.table({"ts": late_first["ts"].to_numpy(), "v": [2, 1]})
    frames = [
        late_first,
        late_first.set_index("ts"),
        arrow,
        arrow.to_pylist(),
        {"ts": ["2024-01-02", "2024-01-01"], "v": [2, 1]},
        arrow.to_reader(),
    ]
    for frame in frames:
        stream = session.stream(frame, time="ts")
        assert stream.columns == ("ts", "v")
        assert stream.preview().table.column("v").to_pylist() == [1, 2]
    both = session.stream([arrow, late_first], time="ts").preview()
    assert both.table.column("v").to_pylist() == [1, 1, 2, 2]
    path = tmp_path / "rides.csv"
    path.write_text("ts,v\n2024-01-01T00:00:00Z,1\n")
    assert session.stream(path).preview().to_pylist()[0]["v"] == 1


def test_columns_are_added_dropped_and_renamed() -> None:
    made = rides.with_columns(
        expr("fare / 2 AS half"),
        fare=col("fare") * 2,
        level=when(col("fare") > 7, "high").when(col("fare") > 6, "mid").otherwise("low"),
    )
    assert made.columns == ("ts", "route", "fare", "note", "half", "level")
    table = made.preview().table.select(["fare", "half", "level"])
    assert table.to_pylist() == [
        {"fare": 10.0, "half": 2.5, "level": "low"},
        {"fare": 15.0, "half": 3.75, "level": "high"},
    ]
    assert rides.drop("note", col("fare")).columns == ("ts", "route")
    assert rides.rename(fare="price").columns == ("ts", "route", "price", "note")
    assert rides.rename({"Fare": "price"}).columns == ("ts", "route", "price", "note")
    assert rides.select("*", up=call("upper", "route")).columns == (*rides.columns, "up")
    nothing = when(col("fare") > 100, 1)
    assert rides.select(x=nothing).preview().to_pylist()[0]["x"] is None


def test_a_star_after_a_join_and_after_a_window() -> None:
    names = rides.select(r="route", title="note")
    pairs = rides.join(names, within="5 seconds", on=left.route == right.r)
    assert pairs.select("*", n=col("fare") + 1).columns == (
        *("ts", "route", "fare", "note", "r", "title", "n"),
    )
    counts = rides.window("1 minute").group_by("route").agg(n=count())
    assert counts.with_columns(twice=col("n") * 2).columns == (
        *("window_start", "window_end", "route", "n", "twice"),
    )


def test_fields_of_structs_are_written_as_in_sql() -> None:
    places = session.stream([{"ts": "2024-01-01", "place": {"city": "Oslo"}}])
    made = places.select(city=expr("place.city")).preview().to_pylist()
    assert [row["city"] for row in made] == ["Oslo"]
