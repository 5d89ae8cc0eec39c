"""The dialect: what parses, what is printed again, and how mistakes are told."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.nesting import MOST_NESTED
from tidegate.sql.dialect import Tidegate, parse
from tidegate.sql.syntax import CreateStream, QueryWith, StreamWindow

ROUND_TRIPS = [
    "CREATE STREAM rides FROM 'rides.parquet'",
    "CREATE STREAM rides FROM 'a', 'b' TIME dropoff_time DISORDER 0.5 SECONDS IDLE 2 MINUTES",
    "CREATE STREAM `odd name` FROM 'a' DISORDER '3 seconds'",
    "CREATE STREAM x AS SELECT * FROM y",
    "CREATE STREAM x AS SELECT a FROM y UNION ALL SELECT b FROM z [ROWS 5] GROUP BY b",
    "CREATE STREAM x AS WITH t AS (SELECT a FROM y) SELECT a FROM t",
    "INSERT INTO x SELECT COUNT(*) AS n FROM y [RANGE 1 HOUR] WHERE a > 1",
    "INSERT INTO x SELECT a FROM y UNION ALL SELECT b FROM z WITH LATENCY 2 SECONDS",
    "INSERT INTO x WITH t AS (SELECT a FROM y) SELECT a FROM t [ROWS 9 SLIDE 3] GROUP BY a",
    "INSERT INTO x (SELECT a FROM y)",
    "CREATE STREAM x AS SELECT COUNT(*) AS n FROM y [RANGE 1 DAY] WITH LATENCY 2 SECONDS",
    "CREATE STREAM x FROM 'delta:y' THEN 'kafka://h:9/z?from=history' TIME ts",
    "CREATE STREAM x FROM 'y' THEN 'kafka://h:9/z' UNTIL '2024-01-31T12:00:00Z' DISORDER 1 SECOND",
    "SELECT COUNT(*) AS n FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]",
    "SELECT COUNT(*) AS n FROM rides [RANGE '15 minutes' SLIDE '5 minutes']",
    "SELECT COUNT(*) AS n FROM rides [RANGE 0.5 SECONDS]",
    "SELECT COUNT(*) AS n FROM rides [RANGE -5 MINUTES]",
    "SELECT COUNT(*) AS n FROM rides AS r [RANGE 1 WEEK] WHERE r.fare > 0",
    "SELECT COUNT(*) AS n FROM rides [ROWS 10 SLIDE 2]",
    "SELECT a, b, COUNT(*) AS n FROM y [RANGE 1 HOUR] GROUP BY a, b ORDER BY n LIMIT 3 BY a",
    "SELECT SUM(a) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS t FROM y",
    "SELECT LAG(a, 2, 0) OVER (ORDER BY ts) AS p FROM y QUALIFY a <> p",
    "SELECT a FROM y [RANGE 1 HOUR] GROUP BY a QUALIFY RANK() OVER (ORDER BY a) <= 3",
    "SELECT DISTINCT ON (a, b + 1) a FROM y WHERE a > 1 LIMIT 5 KEEP FIRST WITHIN 1 HOUR",
    "SELECT COUNT(*) AS n FROM (SELECT a FROM x) [ROWS 5]",
    "SELECT COUNT(*) AS n FROM (SELECT a FROM x) AS t [ROWS 5] GROUP BY a",
    "SELECT a FROM (SELECT a FROM x UNION ALL SELECT a FROM y) [RANGE 1 HOUR] GROUP BY a",
    "SELECT r.x FROM r [RANGE 5 MINUTES] JOIN s [RANGE 5 MINUTES] ON r.x BETWEEN s.a - 1 AND s.a",
    "SELECT r.x FROM r [ROWS 9] JOIN s AS t [ROWS 9] ON r.x = t.x WHERE t.y > 1 LIMIT 3",
    "SELECT a[0] AS a FROM x WHERE b[1] > 2",
    "SELECT a FROM x GROUP BY a WITH ERROR 10 PERCENT",
    "SELECT a FROM x ORDER BY a WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT BUDGET 1000 ROWS",
    "SELECT a FROM x WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT BUDGET 1000 ROWS BY RMS",
    "SELECT a FROM x WITH ERROR 10 PERCENT BY MAX WITH PARTITIONER 'pk'",
    "SELECT a FROM x WITH ERROR 0.5 ABSOLUTE CONFIDENCE 95 PERCENT BUDGET 1000 ROWS BY MEAN",
    "SELECT a FROM x WITH BALANCE ERROR 10 PERCENT WITH PARTITIONER 'cam'",
    "SELECT a FROM x GROUP BY a WITH BALANCE ERROR 10 PERCENT CONFIDENCE 99 PERCENT",
    "SELECT a FROM x GROUP BY a WITH BALANCE ERROR 10 PERCENT SAVING 20 PERCENT COLD 99 ROWS",
    "SELECT a FROM x GROUP BY a WITH BALANCE ERROR 10 PERCENT COLD 99 ROWS TRIM ALL",
    "SELECT a FROM x ORDER BY a DESC LIMIT 3 WITH SHED 98 PERCENT BY CONCEPT",
    "SELECT a FROM x WITH SHED 9.5 PERCENT BY UNIFORM WITH LATENCY 2 SECONDS",
    "WITH t AS (SELECT a FROM x) SELECT a FROM t",
]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("5 | 3 & 1", "5 | (3 & 1)"),
        ("1 ^ 3 & 2", "1 ^ (3 & 2)"),
        ("1 | 3 ^ 2", "1 | (3 ^ 2)"),
        ("6 & 3 << 1", "6 & (3 << 1)"),
        ("8 >> 1 >> 1 & 3", "((8 >> 1) >> 1) & 3"),
        ("1 << 1 + 1", "1 << (1 + 1)"),
        ("5 & 3 = 1", "(5 & 3) = 1"),
        ("s || 1 + 2", "(s || 1) + 2"),
        ("5 - 3 || s", "(5 - 3) || s"),
        ("s || 2 * 3", "s || (2 * 3)"),
        ("NOT a = b AND c OR d", "((NOT (a = b)) AND c) OR d"),
    ],
)
def test_operators_bind_as_in_spark(written: str, meant: str) -> None:
    """What Spark 4.3 gives for them is in tests/spark/expression_cases.py."""

    def bare(text: str) -> exp.Expr:
        (tree,) = parse(f"SELECT {text} AS x FROM y")
        for paren in list(tree.find_all(exp.Paren)):
            paren.replace(paren.this)
        return tree

    assert bare(written) == bare(meant)


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_what_is_parsed_is_printed_again(text: str) -> None:
    (tree,) = parse(text)
    assert tree.sql(dialect=Tidegate) == text
    assert parse(tree.sql(dialect="tidegate")) == [tree]


@pytest.mark.parametrize(
    "text",
    [
        "rides AS r [RANGE 1 HOUR]",
        "rides r [RANGE 1 HOUR]",
        "rides [RANGE 1 HOUR] AS r",
        "rides [range 1 hour] r",
    ],
)
def test_the_alias_may_stand_on_either_side_of_the_window(text: str) -> None:
    (tree,) = parse(f"SELECT COUNT(*) FROM {text} WHERE r.a > 0")
    window = tree.find(StreamWindow)
    assert window is not None
    assert window.this.alias == "r"
    assert window.args["kind"] == "RANGE"
    assert tree.args["where"] is not None


def test_the_alias_may_stand_on_either_side_of_a_subquery_s_window() -> None:
    first, second = (
        parse(f"SELECT COUNT(*) FROM (SELECT a FROM x) {end}")[0]
        for end in ("AS t [ROWS 5]", "[ROWS 5] t")
    )
    assert first == second


def test_statements_are_separated_and_empty_ones_left_out() -> None:
    create, select = parse("CREATE STREAM a FROM 'x;y';; SELECT * FROM a -- the end\n;")
    assert isinstance(create, CreateStream)
    assert create.args["uris"][0].name == "x;y"
    assert isinstance(select, exp.Select)


def test_several_with_clauses_are_kept_in_order() -> None:
    (tree,) = parse("SELECT a FROM x WITH LATENCY 2 SECONDS WITH ERROR 5 PERCENT")
    assert isinstance(tree, QueryWith)
    assert [clause.name for clause in tree.expressions] == ["LATENCY", "ERROR"]


def test_names_of_aggregates_that_spark_lacks() -> None:
    (tree,) = parse("SELECT MEAN(a), VAR(a), STD(a), STDDEV_SAMP(a), QUANTILE(a, 0.5) FROM x")
    assert [type(e) for e in tree.expressions] == [
        exp.Avg,
        exp.Variance,
        exp.Stddev,
        exp.Stddev,
        exp.Quantile,
    ]


MISTAKES = {
    "CREATE TABLE x (a INT)": (
        "line 1, column 23: expected FROM 'uri'; got the end of the statement."
    ),
    "CREATE STREM x": "line 1, column 8: expected STREAM or TABLE after CREATE; got STREM. Did you "
    "mean STREAM?",
    "CREATE STREAM": "line 1, column 14: expected the name of the stream; got the end of the "
    "statement.",
    "CREATE STREAM FROM 'x'": "line 1, column 15: expected the name of the stream; got FROM.",
    "CREATE STREAM x": "line 1, column 16: expected FROM 'uri' or AS SELECT; got the end of the "
    "statement.",
    "CREATE STREAM x FROM y": "line 1, column 22: expected the address of a source in quotes; "
    "got y.",
    "CREATE STREAM x FROM 'y' TIM z": "line 1, column 26: expected TIME, DISORDER, IDLE, OPTIONS "
    "or ; at the end of the statement; got TIM.",
    "CREATE STREAM x FROM 'y' THEN z": "line 1, column 31: expected the address of a topic in "
    "quotes after THEN; got z.",
    "CREATE STREAM x FROM 'y' THEN 'z' UNTIL noon": "line 1, column 41: expected a time in quotes "
    "after UNTIL; got noon.",
    "CREATE STREAM x FROM 'y', 'w' THEN 'z'": "line 1, column 31: expected one address, of files "
    "or a table, before THEN; got THEN.",
    "CREATE STREAM x FROM TABLE y THEN 'z'": "line 1, column 30: expected one address, of files "
    "or a table, before THEN; got THEN.",
    "CREATE STREAM x FROM 'y' TIME a TIME b": "line 1, column 33: expected TIME only once; "
    "got TIME.",
    "CREATE STREAM x FROM 'y' DISORDER five": "line 1, column 35: expected a duration such as "
    "15 MINUTES; got five.",
    "CREATE STREAM x AS": "line 1, column 19: expected SELECT after AS; got the end of the "
    "statement.",
    "CREATE STREAM x AS y": "line 1, column 20: expected SELECT after AS; got y.",
    "INSERT x SELECT a FROM y": "line 1, column 8: expected INTO after INSERT; got x.",
    "INSERT OVERWRITE x SELECT a FROM y": (
        "line 1, column 1: an output is added to, batch by batch, and never written over; got "
        "INSERT OVERWRITE. Write INSERT INTO name SELECT ...; --out says where it goes."
    ),
    "INSERT INTO SELECT a FROM y": "line 1, column 13: expected the name of the output; got "
    "SELECT.",
    "INSERT INTO x": "line 1, column 14: expected SELECT after the name of the output; got the "
    "end of the statement.",
    "INSERT INTO x VALUES (1)": (
        "line 1, column 1: INSERT INTO names the output of a query, and takes no rows; got "
        "VALUES. Write INSERT INTO x SELECT ...; rows come from files: CREATE STREAM r FROM "
        "'rows.csv'."
    ),
    "INSERT INTO x (a, b) SELECT a, b FROM y": (
        "line 1, column 1: an output has the columns of its query; got a list of columns after x."
        " Write INSERT INTO x SELECT ... AS name"
    ),
    "INSERT INTO x SELECT a FROM y RANGE 5 MINUTES": "line 1, column 31: a window must stand in "
    "square brackets; got RANGE. Write [RANGE 5 ...].",
    "SHOW TABLES": (
        "line 1, column 1: a script holds CREATE STREAM, INSERT INTO and SELECT; got SHOW. Run "
        "`tidegate explain QUERY.sql` to see the plan, the streams and their columns."
    ),
    "SELECT a FROM x [RANGE 5]": "line 1, column 25: expected a unit of time such as MINUTES; "
    "got ].",
    "SELECT a FROM x [RANGE 5 FORTNIGHTS]": "line 1, column 26: expected a unit of time such as "
    "MINUTES; got FORTNIGHTS.",
    "SELECT a FROM x [RANGE '5 foo']": "line 1, column 24: expected a duration such as "
    "'15 minutes'; got '5 foo'.",
    "SELECT a FROM x [NOW]": (
        "line 1, column 17: windows of one instant are not available yet; got [NOW]. There is no "
        "way yet."
    ),
    "SELECT a FROM x [ROWS]": "line 1, column 22: expected a number; got ].",
    "SELECT a,\n  b FROM x [RANGE 5 MINUTES": (
        "line 2, column 28: expected SLIDE, OFFSET, TIME ZONE or ]; got the end of the statement."
    ),
    "SELECT a FROM x [ROWS 5] [ROWS 5]": "line 1, column 26: expected only one window after a "
    "stream; got [.",
    "SELECT a FROM": "line 1, column 14: expected the name of a stream; got the end of the "
    "statement.",
    "SELECT a FROM x WHERE": "line 1, column 22: expected another operand or argument; got the "
    "end of the statement.",
    "SELECT (a FROM x": "line 1, column 11: expected ); got FROM.",
    "SELECT a + FROM x": "line 1, column 12: expected another operand or argument; got FROM.",
    "SELECT a b c FROM x": "line 1, column 12: expected another clause or the end of the "
    "statement; got c. Is a comma, an operator or a keyword missing before it?",
    "SELECT a FROM x WITH FOO": "line 1, column 22: expected PARTITIONER, ERROR, BALANCE, SHED "
    "or LATENCY after WITH; got FOO.",
    "SELECT a FROM x WITH BALANCE 9 PERCENT": "line 1, column 30: expected ERROR after BALANCE; "
    "got 9.",
    "SELECT a FROM x WITH ERROR 10": "line 1, column 30: expected PERCENT or ABSOLUTE; got "
    "the end of the statement. Write for example 10 PERCENT.",
    "SELECT a FROM x WITH ERROR 9 PERCENT BY SUM": "line 1, column 41: expected MAX, MEAN or RMS "
    "after BY; got SUM.",
    "SELECT a FROM x WITH SHED 9 PERCENT BY X": "line 1, column 40: expected CONCEPT, "
    "CONCEPT TOTAL or UNIFORM after BY; got X.",
    "SELECT 'a\nFROM x": "line 2: expected a closing '; got the end of the text.",
    "SELECT a /* b": "line 1: expected quotes and comments to be closed; got the end of the text.",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items())
def test_a_mistake_is_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == f"SQL {message}"


def test_text_nested_too_deeply_is_a_mistake_too() -> None:
    for text in ("(" * 3000 + "a" + ")" * 3000, "NOT " * 3000 + "a", "CASE WHEN a THEN " * 3000):
        with pytest.raises(QueryError) as caught:
            parse(f"SELECT {text} FROM x")
        assert "expressions and queries may be nested 200 levels deep; got" in str(caught.value)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("abs(", ")"), ("CASE WHEN b THEN ", " END"), ("1 + (", ")"), ("NOT ", "")],
)
def test_text_nested_as_deeply_as_is_allowed_is_read(opening: str, closing: str) -> None:
    (select,) = parse(f"SELECT {opening * MOST_NESTED}a{closing * MOST_NESTED} FROM x")
    assert sum(1 for _ in select.find_all(exp.Column)) >= 1


def test_a_doubled_quote_inside_a_string_is_one_quote():
    (select,) = parse("SELECT a FROM s WHERE a = 'it''s'")
    assert select.args["where"].this.expression.this == "it's"
