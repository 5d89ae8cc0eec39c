"""Mistakes in a query: one line each, saying what was found and what to do next."""

from __future__ import annotations

import pytest

from tests.cli.mistake import elsewhere
from tests.query.catalog import sql
from tidegate.errors import UnavailableError, UserError
from tidegate.sql.dialect import parse

HOUR = "[RANGE 1 HOUR]"
RIDES = "ts, dropoff_time, route, fare, tip, paid, stops"
AGGREGATES = (
    "COUNT, SUM, AVG, MEAN, MIN, MAX, VAR, VARIANCE, VAR_SAMP, STDDEV, STDDEV_SAMP, STD, MEDIAN, "
    "QUANTILE, PERCENTILE, FIRST, FIRST_VALUE, LAST, LAST_VALUE, MIN_BY, ..."
)
MISTAKES = {
    "SELECT fare FROM ridez": "FROM: no stream has this name; got ridez. Did you mean rides? "
    "There are: rides, calls, odd.",
    "SELECT fare FROM db.rides": "FROM: no stream has this name; got db.rides. Did you mean rides? "
    "There are: rides, calls, odd.",
    "SELECT far FROM rides": "SELECT: no column has this name; got far. Did you mean fare? "
    f"There are: {RIDES}.",
    "SELECT fare FROM rides WHERE tipp > 1": "WHERE: no column has this name; got tipp. "
    f"Did you mean tip? There are: {RIDES}.",
    "SELECT r.tipp FROM rides r": "SELECT: no column has this name; got tipp. "
    f"Did you mean tip? There are: {RIDES}.",
    "SELECT s.fare FROM rides r": "SELECT: a qualified column must begin with the name of a "
    "stream in FROM; got s.fare. There are: r.",
    "SELECT s.* FROM rides r": "SELECT: no stream in FROM has this name; got s. There are: r.",
    "SELECT COUNT(*) FROM rides": (
        "SELECT: an aggregate needs a window; got FROM rides without one. Write FROM rides [RANGE"
        " 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
    ),
    "SELECT route FROM rides r GROUP BY route": (
        "SELECT: an aggregate needs a window; got FROM rides AS r without one. Write FROM rides "
        "AS r [RANGE 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
    ),
    f"SELECT fare FROM rides {HOUR}": "[RANGE 1 hour]: a window needs an aggregate in the select "
    "list, or GROUP BY; got SELECT fare FROM rides [RANGE 1 HOUR]. Leave the window out, or add "
    "for example COUNT(*).",
    f"SELECT fare, COUNT(*) FROM rides {HOUR}": "SELECT: a column must be a key of GROUP BY or "
    "inside an aggregate; got fare. Write GROUP BY fare.",
    f"SELECT fare, COUNT(*) FROM rides {HOUR} GROUP BY route, tip": "SELECT: a column must be a "
    "key of GROUP BY or inside an aggregate; got fare. Add fare to GROUP BY route, tip.",
    f"SELECT COUNT(*) FROM rides {HOUR} HAVING tip > 1": "HAVING: a column must be a key of GROUP "
    "BY or inside an aggregate; got tip. Write GROUP BY tip.",
    f"SELECT COUNT(*) AS n FROM rides {HOUR} ORDER BY tip": "ORDER BY: a column must be a key of "
    "GROUP BY or inside an aggregate; got tip. Write GROUP BY tip.",
    f"SELECT COUNT(*) AS n FROM rides {HOUR} ORDER BY m": "ORDER BY: no column has this name; got "
    f"m. There are: {RIDES}, n.",
    "SELECT fare FROM rides WHERE COUNT(*) > 1": "WHERE: an aggregate cannot stand here; got "
    "COUNT. Write the condition in HAVING.",
    f"SELECT SUM(AVG(fare)) FROM rides {HOUR}": "SUM: an aggregate cannot be inside another; got "
    "AVG(fare). Aggregate in a subquery first.",
    f"SELECT PRODUCT(fare) FROM rides {HOUR}": (
        "SELECT: no aggregate has this name; got PRODUCT. There is no way yet in SQL; in Python "
        "there is tg.aggregate: see docs/python.md."
    ),
    f"SELECT SUMM(fare) FROM rides {HOUR}": "SELECT: no aggregate has this name; got SUMM. "
    f"Did you mean SUM? There are: {AGGREGATES}",
    f"SELECT route, AVGE(fare) FROM rides {HOUR} GROUP BY route": "SELECT: no aggregate has this "
    f"name; got AVGE. Did you mean AVG? There are: {AGGREGATES}",
    f"SELECT APROX_COUNT_DISTINCT(tip) FROM rides {HOUR}": "SELECT: no aggregate has this name; "
    f"got APROX_COUNT_DISTINCT. Did you mean APPROX_COUNT_DISTINCT? There are: {AGGREGATES}",
    f"SELECT CORREL(fare, tip) FROM rides {HOUR}": "SELECT: no aggregate has this name; got "
    f"CORREL. Did you mean CORR? There are: {AGGREGATES}",
    f"SELECT MAXBY(route, tip) FROM rides {HOUR}": "SELECT: no aggregate has this name; got MAXBY. "
    f"Did you mean MAX_BY or MAX? There are: {AGGREGATES}",
    f"SELECT CORR(fare) FROM rides {HOUR}": "CORR: takes two arguments; got 1.",
    f"SELECT COVAR_POP(*) FROM rides {HOUR}": "COVAR_POP: takes two arguments; got 0.",
    f"SELECT MAX_BY(route, fare, 3) FROM rides {HOUR}": "MAX_BY: takes two arguments; got 3.",
    f"SELECT EVERY(paid, paid) FROM rides {HOUR}": "EVERY: takes one argument; got 2.",
    f"SELECT ANY() FROM rides {HOUR}": "ANY: takes one argument; got 0.",
    f"SELECT CORR(fare, paid) FROM rides {HOUR}": "corr(fare, paid): the argument must be a "
    "number; got boolean for paid. CAST it to one, or use COUNT, MIN or MAX.",
    f"SELECT MIN_BY(fare, stops) FROM rides {HOUR}": "min_by(fare, stops): the argument must have "
    "an order; got array<string> for stops.",
    f"SELECT SOME(fare) FROM rides {HOUR}": "bool_or(fare): the argument must be boolean; got "
    "double. Compare it with something.",
    f"SELECT COUNT_IF(fare) FROM rides {HOUR}": "count_if(fare): the argument must be boolean; got "
    "double. Compare it with something.",
    f"SELECT APPROX_COUNT_DISTINCT(fare, 2) FROM rides {HOUR}": "APPROX_COUNT_DISTINCT: the "
    "relative standard deviation must be between 0.001 and 0.39; got 2.0.",
    f"SELECT APPROX_COUNT_DISTINCT(fare, tip) FROM rides {HOUR}": "APPROX_COUNT_DISTINCT: the "
    "relative standard deviation must be a number between 0.001 and 0.39; got tip.",
    f"SELECT MIN_BY(SUM(fare), tip) FROM rides {HOUR}": "MIN_BY: an aggregate cannot be inside "
    "another; got SUM(fare). Aggregate in a subquery first.",
    "SELECT route FROM rides WHERE EVERY(paid)": "WHERE: an aggregate cannot stand here; got "
    "EVERY. Write the condition in HAVING.",
    "SELECT ANY(paid) FROM rides": (
        "SELECT: an aggregate needs a window; got FROM rides without one. Write FROM rides [RANGE"
        " 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
    ),
    f"SELECT MIN_BY(route, far) FROM rides {HOUR}": "MIN_BY: no column has this name; got far. "
    f"Did you mean fare? There are: {RIDES}.",
    f"SELECT COUNT(fare, tip) FROM rides {HOUR}": "COUNT: takes one argument; got 2.",
    f"SELECT COUNT(DISTINCT fare, tip) FROM rides {HOUR}": "COUNT: takes one argument; got 2.",
    f"SELECT QUANTILE(fare, 2) FROM rides {HOUR}": "QUANTILE: the fraction must be between 0 and "
    "1; got 2.0.",
    f"SELECT QUANTILE(fare, tip) FROM rides {HOUR}": "QUANTILE: the fraction must be a number "
    "between 0 and 1; got tip.",
    f"SELECT SUM(paid) FROM rides {HOUR}": "sum(paid): the argument must be a number; got boolean. "
    "CAST it to one, or use COUNT, MIN or MAX.",
    f"SELECT stops FROM rides {HOUR} GROUP BY stops": "GROUP BY: stops must be a plain value; got "
    "array<string>.",
    "SELECT COUNT(*) FROM rides [RANGE 1 HOUR SLIDE 2 HOURS]": "window: SLIDE must not be longer "
    "than RANGE; got RANGE 1 hour SLIDE 2 hours. Tuples between the windows would be lost; filter "
    "them with WHERE instead.",
    "SELECT COUNT(*) FROM rides [RANGE 0 HOURS]": "window: RANGE must be longer than zero; got 0 "
    "seconds.",
    "SELECT COUNT(*) FROM rides [RANGE -1 HOUR]": "window: RANGE must be longer than zero; got -1 "
    "hours.",
    "SELECT COUNT(*) FROM rides [RANGE 1 HOUR SLIDE 0 SECONDS]": "window: SLIDE must be longer "
    "than zero; got 0 seconds.",
    f"SELECT COUNT(*) FROM rides {HOUR} LIMIT x": "LIMIT: must be a whole number from 0 on; got x.",
    f"SELECT COUNT(*) FROM rides {HOUR} LIMIT 1.5": "LIMIT: must be a whole number from 0 on; "
    "got 1.5.",
    "SELECT fare FROM rides ORDER BY fare": (
        "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
        "changed; got fare. Rows are in the order of event time. Give the stream a window and an "
        "aggregate, or leave ORDER BY out."
    ),
    "SELECT fare FROM rides UNION ALL SELECT fare FROM calls ORDER BY fare LIMIT 3": (
        "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
        "changed; got fare. Rows are in the order of event time. Give the stream a window and an "
        "aggregate, or leave ORDER BY out."
    ),
    "SELECT COUNT(*) AS n FROM rides [ROWS 5 SLIDE 2] GROUP BY route ORDER BY n": "ORDER BY and "
    "LIMIT: a window of tuples gives one row, so there is nothing to order or to leave out; got "
    "[ROWS 5 SLIDE 2]. Leave ORDER BY and LIMIT out.",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM rides [ROWS 5] HAVING n > 1) LIMIT 3": "ORDER BY and "
    "LIMIT: a window of tuples gives one row, so there is nothing to order or to leave out; got "
    "[ROWS 5]. Leave ORDER BY and LIMIT out.",
    "SELECT COUNT(*) FROM rides [ROWS 5 SLIDE 6]": "window: SLIDE must be at least 1 and at most "
    "ROWS; got ROWS 5 SLIDE 6.",
    "SELECT DISTINCT fare FROM rides": (
        "SELECT: rows can be distinct in a window only; got DISTINCT. Write a window after "
        "the stream or the subquery in FROM, as [RANGE 1 HOUR]."
    ),
    "SELECT SUM(fare) OVER () FROM rides": (
        "OVER: the order must be that of the event time; got no ORDER BY. Write ORDER BY ts in "
        "OVER (...); QUALIFY over the rows of a window takes any order."
    ),
    "SELECT fare FROM rides WHERE fare IN (SELECT fare FROM calls)": (
        "WHERE: a subquery can stand in FROM only; got IN (SELECT ...). There is no way yet."
    ),
    "SELECT fare FROM rides HAVING fare > 3": "HAVING: needs an aggregate; got fare > 3. Write "
    "the condition in WHERE.",
    "SELECT 1": (
        "SELECT: needs FROM and a stream; got SELECT 1. Write for example SELECT route FROM rides"
    ),
    "SELECT FROM rides": "SELECT: needs at least one column.",
    f"SELECT *, COUNT(*) FROM rides {HOUR}": "SELECT: * cannot stand beside an aggregate; got *. "
    "Name the columns of GROUP BY.",
    f"SELECT COUNT(*), COUNT(*) FROM rides {HOUR}": "SELECT: every column needs a name of its "
    "own; got count(1) twice. Give one of them another name with AS.",
    "SELECT fare, tip AS Fare FROM rides": "SELECT: every column needs a name of its own; got "
    "Fare twice. Give one of them another name with AS.",
    "SELECT fare AS ts FROM rides": "SELECT: the name ts belongs to the event time; got fare. "
    "Give the column another name with AS.",
    f"SELECT COUNT(*) AS window_start FROM rides {HOUR}": "SELECT: the name window_start belongs "
    "to the window; got count(1). Give the column another name with AS.",
    f"SELECT COUNT(*) FROM rides {HOUR} GROUP BY 2": "GROUP BY: a number must be a position from "
    "1 to 1 in the select list; got 2.",
    f"SELECT COUNT(*) AS n FROM rides {HOUR} GROUP BY n": "GROUP BY: a key cannot be an "
    "aggregate; got COUNT(*).",
    f"SELECT COUNT(*) AS n FROM rides {HOUR} GROUP BY rout": "GROUP BY: no column has this name; "
    f"got rout. Did you mean route? There are: {RIDES}, n.",
    "SELECT route FROM rides UNION SELECT route FROM calls": (
        "SQL line 1, column 25: only UNION ALL is possible on an unbounded stream; got "
        "UNION. There is no way yet."
    ),
    "SELECT route FROM rides INTERSECT SELECT route FROM calls": (
        "SQL line 1, column 25: streams are put together by UNION ALL only; got INTERSECT. "
        "There is no way yet."
    ),
    "SELECT route FROM rides UNION ALL SELECT fare FROM calls": "UNION ALL: every side of column "
    "route must have one type; got string and int. Add a CAST.",
    "SELECT route, fare FROM rides UNION ALL SELECT fare FROM calls": "UNION ALL: every side must "
    "have the same number of columns; got 2 and 1. Add a column, or leave one out.",
    "SELECT fare FROM rides TABLESAMPLE (10 PERCENT)": (
        "SQL line 1, column 24: streams are not sampled yet; got TABLESAMPLE. There is no way yet."
    ),
    "WITH p AS (SELECT fare FROM rides), q AS (SELECT far FROM p) SELECT fare FROM p": (
        "SELECT: no column has this name; got far. Did you mean fare? There are: ts, fare."
    ),
    f"SELECT COUNT(*) IGNORE NULLS AS n FROM rides {HOUR}": (
        "SQL line 1, column 17: IGNORE NULLS is not available yet; got IGNORE NULLS. There is no "
        "way yet."
    ),
    f"SELECT FIRST(*) IGNORE NULLS AS n FROM rides {HOUR}": "FIRST: takes one argument; got 0.",
    "SELECT ROW_NUMBER(fare) OVER (ORDER BY ts) AS n FROM rides": (
        "ROW_NUMBER(): takes no arguments; got fare. Write ROW_NUMBER() OVER (...)."
    ),
    "SELECT ROW_NUMBER() OVER (ORDER BY ts ROWS 3 PRECEDING) AS n FROM rides": (
        "ROW_NUMBER(): has no frame; got a frame. Leave ROWS or RANGE out."
    ),
    **{
        text: f"SQL line 1, column {column}: expected another operand or argument; got {got}."
        for text, column, got in [
            ("SELECT fare,, tip FROM rides", 13, ","),
            ("SELECT fare, FROM rides", 14, "FROM"),
            ("SELECT , fare FROM rides", 8, ","),
            ("SELECT COALESCE(fare,) AS f FROM rides", 22, ")"),
            ("SELECT fare IN (1,) AS f FROM rides", 19, ")"),
            (f"SELECT route FROM rides {HOUR} GROUP BY route,", 55, "the end of the statement"),
        ]
    },
    "SELECT fare FROM rides,": (
        "SQL line 1, column 24: expected the name of a stream; got the end of the statement."
    ),
    "SELECT fare FROM rides OFFSET 3": (
        "SQL line 1, column 24: the first rows of a window can be taken, not later ones; got "
        "OFFSET. There is no way yet."
    ),
    "SELECT DISTINCT ON (route) fare FROM rides": (
        "DISTINCT ON: must say for how long a key is remembered; got no KEEP. Write at the end "
        "KEEP FIRST WITHIN '1 hour'."
    ),
    "SELECT fare FROM rides KEEP FIRST WITHIN 1 HOUR": (
        "SQL line 1, column 24: expected SELECT DISTINCT ON (...) before KEEP; got KEEP."
    ),
    "SELECT DISTINCT ON (route) fare FROM rides KEEP FIRST WITHIN 0 SECONDS": (
        "WITHIN: must be longer than zero; got 0 seconds."
    ),
    f"SELECT DISTINCT ON (route) fare FROM rides {HOUR} KEEP FIRST WITHIN 1 HOUR": (
        "DISTINCT ON: takes the tuples of a stream, or the rows of a subquery; got a window or an "
        "aggregate beside it. Write the aggregate in a subquery: SELECT DISTINCT ON (id) ... FROM "
        "(SELECT ...)."
    ),
    "SELECT fare FROM rides QUALIFY fare > 1": (
        "QUALIFY: needs a function OVER (...); got none. Write the condition in WHERE."
    ),
    f"SELECT route FROM rides {HOUR} GROUP BY route QUALIFY route > 'a'": (
        "QUALIFY: must compare the place of a row in its partition with a number; got "
        "route > 'a'. Write for example QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY n "
        "DESC) <= 3, with ROW_NUMBER, RANK, DENSE_RANK, NTILE, PERCENT_RANK, CUME_DIST and =, <=, "
        "<, >=, > or BETWEEN."
    ),
    "SELECT fare FROM rides LIMIT 3 BY route": (
        "LIMIT BY: takes the first rows of each window; got a stream without one. Give the stream "
        "a window and an aggregate; for the first tuple of each key write SELECT DISTINCT ON "
        "(route) ... KEEP FIRST WITHIN '1 hour'."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH ERROR 110 PERCENT": "WITH ERROR: the error must be "
    "between 0 and 100 percent; got 110 PERCENT. Write for example ERROR 10 PERCENT, in "
    "Python error=0.1.",
    f"SELECT COUNT(*) FROM rides {HOUR} WITH ERROR 0 PERCENT": "WITH ERROR: the error must be "
    "between 0 and 100 percent; got 0 PERCENT. Write for example ERROR 10 PERCENT, in "
    "Python error=0.1.",
    f"SELECT COUNT(*) FROM rides {HOUR} WITH ERROR 10 PERCENT CONFIDENCE 100 PERCENT": (
        "WITH ERROR: the confidence must be between 0 and 100 percent; got 100 PERCENT. "
        "Write for example CONFIDENCE 95 PERCENT, in Python confidence=0.95."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH ERROR 10 PERCENT BUDGET 29 ROWS": (
        "WITH ERROR: the budget must be at least 30 rows; got 29. Write a greater one, or leave "
        "BUDGET out: windows then take what they need."
    ),
    f"SELECT COUNT(DISTINCT fare) FROM rides {HOUR} WITH ERROR 10 PERCENT": (
        "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: each aggregate must be one that a sample can "
        "answer: a sample does not hold the values that are rare; got count(DISTINCT fare). Ask "
        "for it in a query of its own, without the clause."
    ),
    "SELECT COUNT(*) FROM rides [ROWS 5] WITH ERROR 10 PERCENT": (
        "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: is for windows of time; those of tuples "
        "hold no more than they are given; got [ROWS 5]. Write a window of time, "
        "[RANGE 1 MINUTE], or leave the clause out."
    ),
    "SELECT fare FROM rides WITH ERROR 10 PERCENT": (
        "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: is for an aggregate; got a query without "
        "one. Write it after the SELECT that has the aggregate."
    ),
    f"SELECT SUM(fare) / COUNT(*) AS m FROM rides {HOUR} WITH ERROR 10 PERCENT": (
        "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: each column must be a key or one aggregate, "
        "because the error of what is computed from several is not known; got sum(fare) / "
        "count(1). Select the aggregates, and compute with them in a query around this one: "
        "SELECT a / b FROM (SELECT ... WITH ERROR ...)."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH ERROR 9 PERCENT WITH ERROR 10 PERCENT": (
        "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: an aggregate has one error bound; got also "
        "ERROR 9 PERCENT CONFIDENCE 95 PERCENT. Leave one of them out."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH BALANCE ERROR 0 PERCENT": (
        "WITH BALANCE: the error must be between 0 and 100 percent; got 0 PERCENT. Write for "
        "example BALANCE ERROR 10 PERCENT, in Python .balance(error=0.1)."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH BALANCE ERROR 9 PERCENT CONFIDENCE 100 PERCENT": (
        "WITH BALANCE: the confidence must be between 0 and 100 percent; got 100 PERCENT. Write "
        "for example CONFIDENCE 95 PERCENT, in Python confidence=0.95."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH BALANCE ERROR 9 PERCENT SAVING 100 PERCENT": (
        "WITH BALANCE: the saving must be between 0 and 100 percent; got 100 PERCENT. Write for "
        "example SAVING 15 PERCENT, in Python saving=0.15."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH BALANCE ERROR 9 PERCENT COLD 0 ROWS": (
        "WITH BALANCE: COLD must be a whole number of rows, 1 or more; got 0. Write for example "
        "COLD 1000 ROWS, in Python cold=1000."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH BALANCE ERROR 9 PERCENT": (
        "WITH BALANCE ERROR 9 PERCENT CONFIDENCE 95 PERCENT: is for groups, of which the largest "
        "are trimmed; got an aggregate without GROUP BY. Add GROUP BY, or write WITH ERROR in "
        "place of WITH BALANCE ERROR."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH LATENCY 2 SECONDS WITH LATENCY 3 SECONDS": (
        "WITH LATENCY 3 seconds: a query has one WITH LATENCY; got two. Leave one of them out."
    ),
    f"SELECT COUNT(*) FROM rides {HOUR} WITH LATENCY 2 SECONDS COST 0 INSTANCES": (
        "WITH LATENCY: the cost must be at least 1 instance; got 0."
    ),
    f"SELECT COUNT(*) FROM ridez {HOUR} WITH LATENCY 2 SECONDS": "FROM: no stream has this name; "
    "got ridez. Did you mean rides? There are: rides, calls, odd.",
}
NOT_YET = {
    f"SELECT SUM(DISTINCT fare) FROM rides {HOUR}": (
        "SUM(DISTINCT): is not available yet: only COUNT, ARRAY_AGG and STRING_AGG can be. "
        "There is no way yet."
    ),
    f"SELECT CORR(DISTINCT fare, tip) FROM rides {HOUR}": (
        "CORR(DISTINCT): is not available yet: only COUNT, ARRAY_AGG and STRING_AGG can be. "
        "There is no way yet."
    ),
    f"SELECT COUNT_IF(DISTINCT paid) FROM rides {HOUR}": (
        "COUNT_IF(DISTINCT): is not available yet: only COUNT, ARRAY_AGG and STRING_AGG can be. "
        "There is no way yet."
    ),
    f"SELECT MAX(fare) IGNORE NULLS FROM rides {HOUR}": (
        "SQL line 1, column 18: IGNORE NULLS is not available yet; got IGNORE NULLS. There "
        "is no way yet."
    ),
    f"SELECT COLLECT_SET(fare ORDER BY tip) FROM rides {HOUR}": (
        "SQL line 1, column 25: this function takes tuples in the order of event time; got ORDER "
        "BY. There is no way yet."
    ),
    f"SELECT ARRAY_AGG(DISTINCT fare ORDER BY tip) FROM rides {HOUR}": (
        "ARRAY_AGG: another order of a set is not available yet; got ORDER BY. There is no way yet."
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items())
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        sql(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(("text", "message"), NOT_YET.items())
def test_what_is_parsed_and_checked_but_not_run_yet(text: str, message: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        sql(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("sql", [m.sql for m in elsewhere.MISTAKES.values()])
def test_other_sql_that_is_cut_off_anywhere_is_told_as_a_mistake(sql: str) -> None:
    """The rules look at words before and after, which may not be there."""
    words, refused = sql.split(" "), 0
    for count in range(1, len(words)):
        try:
            parse(" ".join(words[:count]))
        except UserError:
            refused += 1
    assert refused


def test_advice_about_other_sql_minds_what_stands_before() -> None:
    with pytest.raises(UserError, match=r"EMIT CHANGES\. Write EMIT EVERY '1 second'"):
        parse(f"SELECT COUNT(*) AS n FROM rides {HOUR} HAVING AVG(fare) > 1.5 EMIT CHANGES")
    with pytest.raises(UserError, match=r"Write FROM rides \[RANGE 5 MINUTES\]"):
        parse("SELECT 'a\nb' TUMBLE(ts, INTERVAL '5' MINUTES) FROM rides")
