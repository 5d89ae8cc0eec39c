"""Scripts: statements sorted out, windows and options read."""

from __future__ import annotations

import pytest

from tidegate.errors import QueryError
from tidegate.query.clause.error import ErrorBound
from tidegate.query.clause.latency import LatencyTarget
from tidegate.query.clause.shed import Shed
from tidegate.query.window import TimeWindow, TupleWindow
from tidegate.sql.clause import read_clause, read_window
from tidegate.sql.dialect import parse
from tidegate.sql.script import Create, read_script
from tidegate.sql.syntax import StreamWindow


def test_a_script_is_its_streams_and_one_select() -> None:
    script = read_script(
        """
        CREATE STREAM rides FROM 'a.parquet', "b.parquet" TIME dropoff DISORDER 1.5 SECONDS;
        SELECT * FROM rides; -- the query may stand anywhere
        CREATE STREAM calls FROM 'generator:calls?rows=10' IDLE '2 minutes';
        """
    )
    assert script.creates == (
        Create("rides", ("a.parquet", "b.parquet"), "dropoff", 1_500_000, None),
        Create("calls", ("generator:calls?rows=10",), None, 0, 120_000_000),
    )
    assert script.views == ()
    (output,) = script.outputs
    assert output.name is None
    assert output.tree.sql("tidegate", comments=False) == "SELECT * FROM rides"


def test_streams_that_are_queries_and_outputs_with_names() -> None:
    script = read_script(
        """
        CREATE STREAM rides FROM 'rides.parquet';
        INSERT INTO routes SELECT route, COUNT(*) AS n FROM dear [RANGE 1 HOUR] GROUP BY route;
        CREATE STREAM dear AS SELECT * FROM rides WHERE fare > 10;
        INSERT INTO Last_3 SELECT fare FROM dear;
        """
    )
    assert [c.name for c in script.creates] == ["rides"]
    assert [v.name for v in script.views] == ["dear"]
    assert script.views[0].tree.sql("tidegate") == "SELECT * FROM rides WHERE fare > 10"
    assert [o.name for o in script.outputs] == ["routes", "Last_3"]
    assert script.outputs[1].tree.sql("tidegate") == "SELECT fare FROM dear"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "SQL: a script needs a SELECT; got none. Add a SELECT statement."),
        (
            "CREATE STREAM a FROM 'x'; CREATE STREAM b AS SELECT * FROM a",
            "SQL: a script needs a SELECT; got none. Add a SELECT statement.",
        ),
        (
            "SELECT 1 FROM a; SELECT 2 FROM a",
            "SQL: each of several queries needs a name; got SELECT 1 FROM a. "
            "Name each with INSERT INTO name SELECT ...",
        ),
        (
            "INSERT INTO b SELECT 1 FROM a; SELECT 2 FROM a",
            "SQL: each of several queries needs a name; got SELECT 2 FROM a. "
            "Name each with INSERT INTO name SELECT ...",
        ),
        (
            "INSERT INTO b SELECT 1 FROM a; INSERT INTO B SELECT 2 FROM a",
            "INSERT INTO: a name can be used once; got B twice. "
            "Give one of the outputs another name, or make both one with UNION ALL.",
        ),
        (
            "INSERT INTO `../b` SELECT 1 FROM a",
            "INSERT INTO: a name must be letters, digits and _, and begin with a letter; "
            "got ../b. Give the output another name.",
        ),
        (
            "INSERT INTO _late SELECT 1 FROM a",
            "INSERT INTO: a name must be letters, digits and _, and begin with a letter; "
            "got _late. Give the output another name.",
        ),
        (
            "WITH t AS (SELECT 1 FROM a) INSERT INTO b SELECT * FROM t",
            "SQL line 1, column 1: WITH must stand after the name of the output; "
            "got WITH before INSERT INTO. Write INSERT INTO b WITH ... SELECT ...",
        ),
        (
            "DROP TABLE x",
            "SQL: a script holds CREATE STREAM, INSERT INTO and SELECT; got DROP TABLE x. "
            "Leave it out; results go where --out says.",
        ),
        (
            "CREATE STREAM a FROM 'x'; CREATE STREAM A AS SELECT * FROM b; SELECT * FROM a",
            "CREATE STREAM: a name can be used once; got A twice. "
            "Give one of the streams another name.",
        ),
        (
            "CREATE STREAM a FROM 'x'; CREATE STREAM A FROM 'y'; SELECT * FROM a",
            "CREATE STREAM: a name can be used once; got A twice. "
            "Give one of the streams another name.",
        ),
        (
            "CREATE STREAM a FROM 'x' DISORDER -1 SECONDS; SELECT * FROM a",
            "CREATE STREAM a: DISORDER must not be negative; got -1 seconds.",
        ),
        (
            "CREATE STREAM a FROM 'x' IDLE 0 SECONDS; SELECT * FROM a",
            "CREATE STREAM a: IDLE must be longer than zero; got 0 seconds.",
        ),
    ],
)
def test_scripts_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        read_script(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("[RANGE 15 MINUTES SLIDE 5 MINUTES]", TimeWindow(900_000_000, 300_000_000)),
        ("[RANGE '15 minutes' SLIDE '5 minutes']", TimeWindow(900_000_000, 300_000_000)),
        ("[RANGE 0.5 SECONDS]", TimeWindow(500_000, 500_000)),
        ("[RANGE 7 MICROSECONDS SLIDE 2 MICROSECONDS]", TimeWindow(7, 2)),
        ("[RANGE 1 WEEK SLIDE 1 DAY]", TimeWindow(604_800_000_000, 86_400_000_000)),
        ("[ROWS 5]", TupleWindow(5, 5)),
        ("[ROWS 5 SLIDE 2]", TupleWindow(5, 2)),
    ],
)
def test_windows(text: str, window: TimeWindow | TupleWindow) -> None:
    found = parse(f"SELECT COUNT(*) FROM a {text}")[0].find(StreamWindow)
    assert found is not None
    assert read_window(found) == window


def test_a_part_of_a_row_is_no_window() -> None:
    found = parse("SELECT COUNT(*) FROM a [ROWS 2.5]")[0].find(StreamWindow)
    assert found is not None
    with pytest.raises(QueryError, match=r"ROWS: must be a whole number of rows; got 2\.5"):
        read_window(found)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("ERROR 10 PERCENT", ErrorBound(0.1)),
        ("ERROR 10 PERCENT CONFIDENCE 99.5 PERCENT", ErrorBound(0.1, 0.995)),
        ("ERROR 5 PERCENT BUDGET 1000 ROWS", ErrorBound(0.05, 0.95, 1000)),
        ("ERROR 5 PERCENT BUDGET 99 ROWS BY MEAN", ErrorBound(0.05, 0.95, 99, "mean")),
        ("SHED 98 PERCENT", Shed(0.98)),
        ("SHED 98 PERCENT BY UNIFORM", Shed(0.98, "uniform")),
        ("LATENCY 2 SECONDS", LatencyTarget(2_000_000)),
        ("LATENCY 2 SECONDS ERROR 10 PERCENT", LatencyTarget(2_000_000, 0.1)),
        ("LATENCY 500 MS COST 8 INSTANCES", LatencyTarget(500_000, None, 8)),
    ],
)
def test_options(text: str, option: ErrorBound | Shed | LatencyTarget) -> None:
    (tree,) = parse(f"SELECT a FROM x WITH {text}")
    assert read_clause(tree.expressions[0]) == option
