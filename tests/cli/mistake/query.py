"""Mistakes in the text of a query, each with the whole line that is said."""

from __future__ import annotations

from tests.cli.mistake.kind import COUNT, Mistake

JOINED = "SELECT l.route FROM rides AS l [RANGE 5 SECONDS] JOIN rides AS r [RANGE 5 SECONDS] ON "
ASOF = (
    "SELECT l.route FROM rides AS l ASOF JOIN rides AS r MATCH_CONDITION (l.ts >= r.ts) ON l.route "
    "= r.route"
)

MISTAKES = {
    "SELECT misspelt": Mistake(
        message=(
            "SQL line 1, column 1: expected CREATE STREAM, INSERT INTO or SELECT; got SELEC. Did "
            "you mean SELECT?"
        ),
        sql="SELEC route FROM rides",
    ),
    "nothing in it": Mistake(
        message="SQL: a script needs a SELECT; got none. Add a SELECT statement.",
        sql="",
    ),
    "only comments": Mistake(
        message="SQL: a script needs a SELECT; got none. Add a SELECT statement.",
        sql="-- nothing yet\n/* to do */\n",
    ),
    "only CREATE STREAM": Mistake(
        message="SQL: a script needs a SELECT; got none. Add a SELECT statement.",
        sql="CREATE STREAM rides FROM 'rides.csv';",
    ),
    "two queries": Mistake(
        message=(
            "SQL: each of several queries needs a name; got SELECT COUNT(*) AS n FROM rides "
            "[RANGE 10 SECONDS]. Name each with INSERT INTO name SELECT ..."
        ),
        sql=COUNT + "; SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS];",
    ),
    "another statement": Mistake(
        message=(
            "SQL: a script holds CREATE STREAM, INSERT INTO and SELECT; got DROP TABLE rides. "
            "Leave it out; results go where --out says."
        ),
        sql="DROP TABLE rides",
    ),
    "SELECT beside INSERT INTO": Mistake(
        message=(
            "SQL: each of several queries needs a name; got SELECT route FROM rides. Name each "
            "with INSERT INTO name SELECT ..."
        ),
        sql=f"INSERT INTO totals {COUNT}; SELECT route FROM rides",
    ),
    "INSERT INTO one name twice": Mistake(
        message=(
            "INSERT INTO: a name can be used once; got Totals twice. Give one of the outputs "
            "another name, or make both one with UNION ALL."
        ),
        sql=f"INSERT INTO totals {COUNT}; INSERT INTO Totals {COUNT}",
    ),
    "INSERT INTO what is no folder": Mistake(
        message=(
            "INSERT INTO: a name must be letters, digits and _, and begin with a letter; got "
            "out/totals. Give the output another name."
        ),
        sql=f"INSERT INTO `out/totals` {COUNT}",
    ),
    "INSERT without INTO": Mistake(
        message="SQL line 1, column 8: expected INTO after INSERT; got totals.",
        sql=f"INSERT totals {COUNT}",
    ),
    "INSERT misspelt": Mistake(
        message=(
            "SQL line 1, column 1: expected CREATE STREAM, INSERT INTO or SELECT; got INSRT. Did "
            "you mean INSERT?"
        ),
        sql=f"INSRT INTO totals {COUNT}",
    ),
    "an output that is read": Mistake(
        message=(
            "INSERT INTO most, FROM: no stream has this name; got totals. totals is an output: "
            "write CREATE STREAM totals AS SELECT ... to read it."
        ),
        sql=(
            f"INSERT INTO totals {COUNT}; INSERT INTO most SELECT MAX(n) AS n FROM totals [RANGE "
            "1 MINUTE]"
        ),
    ),
    "no semicolon between statements": Mistake(
        message=(
            "SQL line 1, column 38: expected TIME, DISORDER, IDLE, OPTIONS or ; at the end of the "
            "statement; got SELECT."
        ),
        sql=(
            "CREATE STREAM rides FROM 'rides.csv' SELECT COUNT(*) AS n FROM rides [RANGE 10 "
            "SECONDS]"
        ),
        options=(),
    ),
    "window after WHERE": Mistake(
        message=(
            "SQL line 1, column 49: a window must stand right after its stream; got RANGE. "
            "Move it into FROM, after the stream's name."
        ),
        sql="SELECT COUNT(*) AS n FROM rides WHERE fare > 1 [RANGE 10 SECONDS]",
    ),
    "window without brackets": Mistake(
        message=(
            "SQL line 1, column 33: a window must stand in square brackets; got RANGE. Write "
            "[RANGE 10 ...]."
        ),
        sql="SELECT COUNT(*) AS n FROM rides RANGE 10 SECONDS",
    ),
    "window in round brackets": Mistake(
        message=(
            "SQL line 1, column 34: a window must stand in square brackets; got RANGE. Write "
            "[RANGE 10 ...]."
        ),
        sql="SELECT COUNT(*) AS n FROM rides (RANGE 10 SECONDS)",
    ),
    "window without closing": Mistake(
        message=(
            "SQL line 1, column 50: expected SLIDE, OFFSET, TIME ZONE or ]; got the end of the "
            "statement."
        ),
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS",
    ),
    "SLIDE before RANGE": Mistake(
        message="SQL line 1, column 34: expected RANGE, ROWS or SESSION after [; got SLIDE.",
        sql="SELECT COUNT(*) AS n FROM rides [SLIDE 5 SECONDS RANGE 10 SECONDS]",
    ),
    "window without a unit": Mistake(
        message="SQL line 1, column 42: expected a unit of time such as MINUTES; got ].",
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 10]",
    ),
    "smart quotes": Mistake(
        message="SQL line 1, column 66: quotes must be straight; got ‘a’. Write 'text' and `name`.",
        sql=COUNT + " WHERE route = ‘a’",
    ),
    "quote not closed": Mistake(
        message="SQL line 1: expected a closing '; got the end of the text.",
        sql=COUNT + " WHERE route = 'a",
    ),
    "comma forgotten": Mistake(
        message=(
            "SQL line 1, column 19: expected another clause or the end of the statement; got "
            "(. Is a comma, an operator or a keyword missing before it?"
        ),
        sql="SELECT route COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route",
    ),
    "bracket not closed": Mistake(
        message="SQL line 1, column 16: expected ); got AS.",
        sql="SELECT COUNT(* AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "== for =": Mistake(
        message=(
            "SQL line 1, column 71: expected another operand or argument; got the end of the "
            "statement."
        ),
        sql=COUNT + " WHERE fare == 5 AND",
    ),
    "source without quotes": Mistake(
        message="SQL line 1, column 26: expected the address of a source in quotes; got rides.",
        sql=(
            "CREATE STREAM rides FROM rides.csv; SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]"
        ),
        options=(),
    ),
    "CREATE STREAM without FROM": Mistake(
        message="SQL line 1, column 21: expected FROM 'uri' or AS SELECT; got 'rides.csv'.",
        sql=("CREATE STREAM rides 'rides.csv'; SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]"),
        options=(),
    ),
    "clause of CREATE STREAM misspelt": Mistake(
        message=(
            "SQL line 1, column 38: expected TIME, DISORDER, IDLE, OPTIONS or ; at the end of the "
            "statement; got TIMES."
        ),
        sql=(
            "CREATE STREAM rides FROM 'rides.csv' TIMES ts; SELECT COUNT(*) AS n FROM rides "
            "[RANGE 10 SECONDS]"
        ),
        options=(),
    ),
    "negative DISORDER": Mistake(
        message="CREATE STREAM rides: DISORDER must not be negative; got -5 seconds.",
        sql=(
            "CREATE STREAM rides FROM 'rides.csv' TIME ts DISORDER -5 SECONDS; SELECT COUNT(*) "
            "AS n FROM rides [RANGE 10 SECONDS]"
        ),
        options=(),
    ),
    "stream twice": Mistake(
        message=(
            "CREATE STREAM: a name can be used once; got Rides twice. Give one of the streams "
            "another name."
        ),
        sql=(
            "CREATE STREAM rides FROM 'rides.csv'; CREATE STREAM Rides FROM 'rides.csv'; "
            "SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]"
        ),
        options=(),
    ),
    "stream misspelt": Mistake(
        message="FROM: no stream has this name; got ride. Did you mean rides? There are: rides.",
        sql="SELECT COUNT(*) AS n FROM ride [RANGE 10 SECONDS]",
    ),
    "column misspelt": Mistake(
        message=(
            "GROUP BY: no column has this name; got rout. Did you mean route? There are: ts, "
            "route, fare, note."
        ),
        sql="SELECT rout, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY rout",
    ),
    "column misspelt in WHERE": Mistake(
        message=(
            "WHERE: no column has this name; got far. Did you mean fare? There are: ts, route, "
            "fare, note."
        ),
        sql=COUNT + " WHERE far > 1",
    ),
    "column of no likeness": Mistake(
        message="SUM: no column has this name; got kilometres. There are: ts, route, fare, note.",
        sql="SELECT SUM(kilometres) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "qualifier misspelt": Mistake(
        message=(
            "WHERE: a qualified column must begin with the name of a stream in FROM; got "
            "s.fare. There are: r."
        ),
        sql="SELECT COUNT(*) AS n FROM rides AS r [RANGE 10 SECONDS] WHERE s.fare > 1",
    ),
    "aggregate misspelt": Mistake(
        message=(
            "SELECT: no aggregate has this name; got AVERAGE. Did you mean AVG? There are: "
            "COUNT, SUM, AVG, MEAN, MIN, MAX, VAR, VARIANCE, VAR_SAMP, STDDEV, STDDEV_SAMP, "
            "STD, MEDIAN, QUANTILE, PERCENTILE, FIRST, FIRST_VALUE, LAST, LAST_VALUE, MIN_BY, ..."
        ),
        sql="SELECT AVERAGE(fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "aggregate of two arguments misspelt": Mistake(
        message=(
            "SELECT: no aggregate has this name; got COVAR_SAMPLE. Did you mean COVAR_SAMP or "
            "VAR_SAMP or COVAR_POP? There are: COUNT, SUM, AVG, MEAN, MIN, MAX, VAR, VARIANCE, "
            "VAR_SAMP, STDDEV, STDDEV_SAMP, STD, MEDIAN, QUANTILE, PERCENTILE, FIRST, "
            "FIRST_VALUE, LAST, LAST_VALUE, MIN_BY, ..."
        ),
        sql="SELECT COVAR_SAMPLE(fare, fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "aggregate with an argument too few": Mistake(
        message="CORR: takes two arguments; got 1.",
        sql="SELECT CORR(fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "aggregate with an argument too many": Mistake(
        message="MAX_BY: takes two arguments; got 3.",
        sql="SELECT MAX_BY(route, fare, 2) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "aggregate of two arguments over dates": Mistake(
        message=(
            "covar_pop(ts, fare): the argument must be a number; got timestamp for ts. In "
            "seconds, write covar_pop(unix_micros(ts) / 1e6, fare)."
        ),
        sql="SELECT COVAR_POP(ts, fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "aggregate of a condition over a number": Mistake(
        message=(
            "count_if(fare): the argument must be boolean; got double. Compare it with something."
        ),
        sql="SELECT COUNT_IF(fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "relative standard deviation out of bounds": Mistake(
        message=(
            "APPROX_COUNT_DISTINCT: the relative standard deviation must be between 0.001 and "
            "0.39; got 0.5."
        ),
        sql="SELECT APPROX_COUNT_DISTINCT(route, 0.5) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "relative standard deviation that is a column": Mistake(
        message=(
            "APPROX_COUNT_DISTINCT: the relative standard deviation must be a number between "
            "0.001 and 0.39; got fare."
        ),
        sql="SELECT APPROX_COUNT_DISTINCT(route, fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "function misspelt": Mistake(
        message=(
            "SELECT: UPER needs Spark, it is not among the functions that run without it; got "
            "UPER(route). Did you mean upper? Else run with a Spark master."
        ),
        sql=(
            "SELECT uper(route) AS r, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY "
            "uper(route)"
        ),
    ),
    "function of no likeness": Mistake(
        message=(
            "WHERE: FROBNICATE needs Spark, it is not among the functions that run without it; "
            "got FROBNICATE(fare). Run with a Spark master."
        ),
        sql=COUNT + " WHERE frobnicate(fare) > 1",
    ),
    "function that only Spark has": Mistake(
        message=(
            "SELECT: DATE_FORMAT needs Spark, it is not among the functions that run without "
            "it; got DATE_FORMAT(ts, 'HH'). Run with a Spark master."
        ),
        sql=(
            "SELECT date_format(ts, 'HH') AS h, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] "
            "GROUP BY date_format(ts, 'HH')"
        ),
    ),
    "aggregate without a window": Mistake(
        message=(
            "SELECT: an aggregate needs a window; got FROM rides without one. Write FROM rides "
            "[RANGE 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
        ),
        sql="SELECT COUNT(*) AS n FROM rides",
    ),
    "window without an aggregate": Mistake(
        message=(
            "[RANGE 10 seconds]: a window needs an aggregate in the select list, or GROUP BY; "
            "got SELECT route FROM rides [RANGE 10 SECONDS]. Leave the window out, or add for "
            "example COUNT(*)."
        ),
        sql="SELECT route FROM rides [RANGE 10 SECONDS]",
    ),
    "SLIDE longer than RANGE": Mistake(
        message=(
            "window: SLIDE must not be longer than RANGE; got RANGE 5 seconds SLIDE 10 "
            "seconds. Tuples between the windows would be lost; filter them with WHERE "
            "instead."
        ),
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 5 SECONDS SLIDE 10 SECONDS]",
    ),
    "a tuple in too many windows": Mistake(
        message=(
            "window RANGE 1 hour SLIDE 1 microsecond: a tuple must be in at most 1,000,000 "
            "windows; got 3,600,000,000. Make SLIDE longer, or ask for so many: with "
            "--max-windows-per-tuple 3600000000, in Python with "
            "max_windows_per_tuple=3600000000."
        ),
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 1 HOUR SLIDE 1 MICROSECOND]",
    ),
    "RANGE of zero": Mistake(
        message="window: RANGE must be longer than zero; got 0 seconds.",
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 0 SECONDS]",
    ),
    "unknown unit": Mistake(
        message="SQL line 1, column 43: expected a unit of time such as MINUTES; got PARSECS.",
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 10 PARSECS]",
    ),
    "unit misspelt": Mistake(
        message="SQL line 1, column 43: expected a unit of time such as MINUTES; got SECOUNDS.",
        sql="SELECT COUNT(*) AS n FROM rides [RANGE 10 SECOUNDS]",
    ),
    "GROUP BY missing": Mistake(
        message=(
            "SELECT: a column must be a key of GROUP BY or inside an aggregate; got route. "
            "Write GROUP BY route."
        ),
        sql="SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "GROUP BY incomplete": Mistake(
        message=(
            "SELECT: a column must be a key of GROUP BY or inside an aggregate; got note. Add "
            "note to GROUP BY route."
        ),
        sql="SELECT route, note, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route",
    ),
    "GROUP BY position": Mistake(
        message="GROUP BY: a number must be a position from 1 to 2 in the select list; got 3.",
        sql="SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY 3",
    ),
    "aggregate in WHERE": Mistake(
        message="WHERE: an aggregate cannot stand here; got SUM. Write the condition in HAVING.",
        sql=COUNT + " WHERE SUM(fare) > 1",
    ),
    "aggregate in GROUP BY": Mistake(
        message="GROUP BY: a key cannot be an aggregate; got COUNT(*).",
        sql=COUNT + " GROUP BY COUNT(*)",
    ),
    "aggregate in an aggregate": Mistake(
        message=(
            "MAX: an aggregate cannot be inside another; got SUM(fare). Aggregate in a "
            "subquery first."
        ),
        sql="SELECT MAX(SUM(fare)) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "HAVING without an aggregate": Mistake(
        message="HAVING: needs an aggregate; got fare > 3. Write the condition in WHERE.",
        sql="SELECT fare FROM rides HAVING fare > 3",
    ),
    "HAVING over a plain column": Mistake(
        message=(
            "HAVING: a column must be a key of GROUP BY or inside an aggregate; got fare. Add "
            "fare to GROUP BY route."
        ),
        sql=(
            "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route HAVING "
            "fare > 3"
        ),
    ),
    "WHERE that is no condition": Mistake(
        message=(
            "WHERE: a condition must be boolean; got fare of type double. Compare it with "
            "something."
        ),
        sql=COUNT + " WHERE fare",
    ),
    "ORDER BY unknown": Mistake(
        message="ORDER BY: no column has this name; got m. There are: ts, route, fare, note, n.",
        sql=("SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route ORDER BY m"),
    ),
    "ORDER BY without a window": Mistake(
        message=(
            "ORDER BY: an unbounded stream has no last tuple to wait for, so its order cannot be "
            "changed; got route. Rows are in the order of event time. Give the stream a window "
            "and an aggregate, or leave ORDER BY out."
        ),
        sql="SELECT route FROM rides ORDER BY route",
    ),
    "LIMIT that is no number": Mistake(
        message="LIMIT: must be a whole number from 0 on; got many.",
        sql=COUNT + " ORDER BY n LIMIT many",
    ),
    "LIMIT negative": Mistake(
        message="LIMIT: must be a whole number from 0 on; got -1.",
        sql=COUNT + " ORDER BY n LIMIT -1",
    ),
    "DISTINCT": Mistake(
        message=(
            "SELECT: rows can be distinct in a window only; got DISTINCT. Write a window "
            "after the stream or the subquery in FROM, as [RANGE 1 HOUR]."
        ),
        sql="SELECT DISTINCT route FROM rides",
    ),
    "text plus number": Mistake(
        message=(
            "sum('a' + 1): a constant set beside a bigint must be readable as one; got 'a'. "
            "Correct the constant, or CAST the other side."
        ),
        sql="SELECT SUM('a' + 1) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "text column plus number": Mistake(
        message=(
            "sum(route + TRUE): arithmetic must be over numbers; got string + boolean. Add a CAST."
        ),
        sql="SELECT SUM(route + true) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "AVG of a time": Mistake(
        message=(
            "mean(ts): the argument must be a number; got timestamp. In seconds, write "
            "mean(unix_micros(ts) / 1e6)."
        ),
        sql="SELECT AVG(ts) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "comparison of a time and a number": Mistake(
        message=(
            "WHERE: the two sides of a comparison must have one type; got timestamp and int. "
            "Add a CAST."
        ),
        sql=COUNT + " WHERE ts > 5",
    ),
    "bad time in text": Mistake(
        message=(
            "WHERE: a constant set beside a timestamp must be readable as one; got "
            "'2024-13-45'. Correct the constant, or CAST the other side."
        ),
        sql=COUNT + " WHERE ts > '2024-13-45'",
    ),
    "argument missing": Mistake(
        message="SQL line 1, column 12: expected another operand or argument; got ).",
        sql="SELECT SUM() AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "argument too many": Mistake(
        message="WHERE: ABS must have 1 argument(s); got 2.",
        sql=COUNT + " WHERE abs(fare, 2) > 1",
    ),
    "fraction of a quantile": Mistake(
        message="QUANTILE: the fraction must be between 0 and 1; got 95.0.",
        sql="SELECT QUANTILE(fare, 95) AS p FROM rides [RANGE 10 SECONDS]",
    ),
    "output names equal": Mistake(
        message=(
            "SELECT: every column needs a name of its own; got n twice. Give one of them "
            "another name with AS."
        ),
        sql="SELECT COUNT(*) AS n, SUM(fare) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "output named as the window": Mistake(
        message=(
            "SELECT: the name window_end belongs to the window; got count(1). Give the column "
            "another name with AS."
        ),
        sql="SELECT COUNT(*) AS window_end FROM rides [RANGE 10 SECONDS]",
    ),
    "UNION": Mistake(
        message=(
            "SQL line 1, column 25: only UNION ALL is possible on an unbounded stream; got "
            "UNION. There is no way yet."
        ),
        sql="SELECT route FROM rides UNION SELECT route FROM rides",
    ),
    "UNION ALL of other numbers of columns": Mistake(
        message=(
            "UNION ALL: every side must have the same number of columns; got 2 and 1. Add a "
            "column, or leave one out."
        ),
        sql="SELECT route, fare FROM rides UNION ALL SELECT route FROM rides",
    ),
    "UNION ALL of other types": Mistake(
        message=(
            "UNION ALL: every side of column route must have one type; got string and double. "
            "Add a CAST."
        ),
        sql="SELECT route FROM rides UNION ALL SELECT fare FROM rides",
    ),
    "subquery in WHERE": Mistake(
        message=(
            "WHERE: a subquery can stand in FROM only; got IN (SELECT ...). There is no way yet."
        ),
        sql="SELECT fare FROM rides WHERE fare IN (SELECT fare FROM rides)",
    ),
    "OVER": Mistake(
        message=(
            "OVER: the order must be that of the event time; got no ORDER BY. Write ORDER BY "
            "ts in OVER (...); QUALIFY over the rows of a window takes any order."
        ),
        sql="SELECT SUM(fare) OVER (PARTITION BY route) AS s FROM rides",
    ),
    "no FROM": Mistake(
        message=(
            "SELECT: needs FROM and a stream; got SELECT 1 AS one. Write for example SELECT route"
            " FROM rides"
        ),
        sql="SELECT 1 AS one",
    ),
    "order of a window of tuples": Mistake(
        message=(
            "ORDER BY and LIMIT: a window of tuples gives one row, so there is nothing to order "
            "or to leave out; got [ROWS 5]. Leave ORDER BY and LIMIT out."
        ),
        sql="SELECT route, COUNT(*) AS n FROM rides [ROWS 5] GROUP BY route ORDER BY n LIMIT 3",
    ),
    "window of tuples that slides too far": Mistake(
        message="window: SLIDE must be at least 1 and at most ROWS; got ROWS 5 SLIDE 6.",
        sql="SELECT COUNT(*) AS n FROM rides [ROWS 5 SLIDE 6]",
    ),
    "window over a window: group by the window": Mistake(
        message=(
            "GROUP BY: every result is of one window, and FROM has a column of this name; got "
            "window_end. Leave it out, or say whose it is, as in w.window_end."
        ),
        sql=f"SELECT MAX(n) AS n FROM ({COUNT}) [RANGE 1 MINUTE] GROUP BY window_end",
    ),
    "window over a window: the event time": Mistake(
        message=("WHERE: no column has this name; got ts. There are: window_start, window_end, n."),
        sql=f"SELECT MAX(n) AS n FROM ({COUNT}) [RANGE 1 MINUTE] WHERE ts > '2024-01-01'",
    ),
    "window over a window: what only Spark knows": Mistake(
        message=(
            "max(soundex(n)): SOUNDEX needs Spark, it is not among the functions that run "
            "without it; got SOUNDEX(n). After a window there is no Spark SQL: compute it before "
            "the aggregate, or from the output."
        ),
        sql=f"SELECT MAX(soundex(n)) AS n FROM ({COUNT}) [RANGE 1 MINUTE]",
    ),
    "join: condition that is not boolean": Mistake(
        message=(
            "ON: a condition must be boolean; got l.fare + r.fare of type double. Compare it "
            "with something."
        ),
        sql=JOINED + "l.fare + r.fare",
    ),
    "join: column of both sides": Mistake(
        message="ON: a column of both sides must be qualified; got fare. l.fare or r.fare?",
        sql=JOINED + "fare > 1",
    ),
    "join: unknown side": Mistake(
        message="ON: no stream in FROM has this name; got q. There are: l, r.",
        sql=JOINED + "l.route = q.route",
    ),
    "join: misspelt column": Mistake(
        message=(
            "ON: no column has this name; got l.rout. Did you mean route? There are: ts, route, "
            "fare, note."
        ),
        sql=JOINED + "l.rout = r.route",
    ),
    "join: missing window": Mistake(
        message=(
            "JOIN: both sides need a window; got rides AS r. Write rides AS r [RANGE 5 MINUTES]: "
            "how much earlier it may be than its partner."
        ),
        sql=JOINED.replace("AS r [RANGE 5 SECONDS]", "AS r") + "l.route = r.route",
    ),
    "join: without ON": Mistake(
        message=(
            "JOIN: needs ON and a condition; got rides AS l JOIN rides AS r. Write ON ..., or "
            "CROSS JOIN for all pairs."
        ),
        sql=JOINED.removesuffix(" ON "),
    ),
    "join: window that slides": Mistake(
        message=(
            "JOIN: the window of a join moves with every tuple, so it has no SLIDE; got [RANGE 5 "
            "seconds SLIDE 1 second]. Leave SLIDE out."
        ),
        sql=JOINED.replace("SECONDS]", "SECONDS SLIDE 1 SECOND]", 1) + "l.route = r.route",
    ),
    "join: aggregate": Mistake(
        message=(
            "JOIN: an aggregate over the pairs of a join needs a window over them. Write SELECT "
            "COUNT(*) AS n FROM (rides AS l [RANGE 5 SECONDS] JOIN rides AS r [RANGE 5 SECONDS] ON "
            "l.route = r.route) [RANGE ...]"
        ),
        sql=JOINED.replace("l.route", "COUNT(*) AS n") + "l.route = r.route",
    ),
    "join: three streams": Mistake(
        message=(
            "JOIN: pairs of windows of tuples need a window of their own to be joined again; got "
            "rides AS l [ROWS 5] JOIN rides AS r [ROWS 5] ON TRUE. Write FROM (rides AS l [ROWS 5] "
            "JOIN rides AS r [ROWS 5] ON TRUE) [RANGE ...] JOIN rides AS q [RANGE 5 SECONDS] ON "
            "q.route = r.route"
        ),
        sql=JOINED.replace("RANGE 5 SECONDS", "ROWS 5")
        + "true JOIN rides AS q [RANGE 5 SECONDS] ON q.route = r.route",
    ),
    "join: parentheses with a name": Mistake(
        message=(
            "FROM: streams that are joined in parentheses keep their own names; got (...) AS p. "
            "Leave p out, or write (SELECT ... FROM ...) AS p."
        ),
        sql=JOINED.replace("FROM rides", "FROM (rides") + "l.route = r.route) AS p",
    ),
    "join: MATCH_CONDITION": Mistake(
        message=(
            "MATCH_CONDITION: is for an as-of join; got JOIN. Write ASOF JOIN, or use ON alone."
        ),
        sql=JOINED.replace(" ON ", " MATCH_CONDITION (l.ts >= r.ts) ON ") + "l.route = r.route",
    ),
    "asof: window of the left side": Mistake(
        message=(
            "ASOF JOIN: only the right side has a window, its tolerance; got rides AS l [RANGE 5 "
            "seconds]. Write FROM rides AS l ASOF JOIN ..."
        ),
        sql=JOINED.replace("JOIN", "ASOF JOIN") + "l.route = r.route AND l.ts >= r.ts",
    ),
    "asof: window of pairs": Mistake(
        message=(
            "ASOF JOIN: only the right side has a window, its tolerance; got rides AS l [RANGE 5 "
            "seconds] JOIN rides AS r [RANGE 5 SECONDS] ON l.route = r.route [RANGE 2 seconds]. "
            "Write FROM rides AS l [RANGE 5 seconds] JOIN rides AS r [RANGE 5 SECONDS] ON l.route "
            "= r.route ASOF JOIN ..."
        ),
        sql=JOINED.replace("FROM rides", "FROM (rides")
        + "l.route = r.route) [RANGE 2 SECONDS] ASOF JOIN rides AS q MATCH_CONDITION (ts >= q.ts)",
    ),
    "asof: pairs on the right": Mistake(
        message=(
            "MATCH_CONDITION: needs one comparison of the event times of both sides, by >=, >, <= "
            "or <; got q.ts >= l_r.r.ts. The right side needs a name: ASOF JOIN (SELECT ... FROM "
            "...) AS r MATCH_CONDITION (q.ts >= r.ts)."
        ),
        sql=JOINED.replace("FROM rides", "FROM rides AS q ASOF JOIN (rides")
        + "l.route = r.route) MATCH_CONDITION (q.ts >= r.ts)",
    ),
    "asof: no comparison": Mistake(
        message=(
            "ASOF JOIN: needs one comparison of the event times of both sides, by >=, >, <= or <; "
            "got none. Write MATCH_CONDITION (l.ts >= r.ts)."
        ),
        sql="SELECT l.route FROM rides AS l ASOF JOIN rides AS r ON l.route = r.route",
    ),
    "asof: comparison of other columns": Mistake(
        message=(
            "MATCH_CONDITION: needs one comparison of the event times of both sides, by >=, >, <= "
            "or <; got l.fare >= r.fare. Write MATCH_CONDITION (l.ts >= r.ts)."
        ),
        sql=ASOF.replace("ts", "fare"),
    ),
    "asof: other conditions": Mistake(
        message=(
            "ON: an as-of join takes equalities of its two sides only, joined by AND; got r.fare > "
            "5. Write for example l.k = r.k; filter a side in a subquery: (SELECT * FROM ... WHERE "
            "...) AS r."
        ),
        sql=ASOF + " AND r.fare > 5",
    ),
    "asof: ahead without a tolerance": Mistake(
        message=(
            "ASOF JOIN: <= waits for a later tuple, so it needs a tolerance; got none. Write r "
            "[RANGE 5 SECONDS], in Python tolerance='5 seconds': how long to wait."
        ),
        sql=ASOF.replace(">=", "<="),
    ),
    "asof: tolerance in tuples": Mistake(
        message=(
            "ASOF JOIN: the tolerance must be a time; got rides AS r [ROWS 5]. Write rides AS r "
            "[RANGE 5 SECONDS]."
        ),
        sql=ASOF.replace("AS r", "AS r [ROWS 5]"),
    ),
    "asof: end of a window": Mistake(
        message=(
            "MATCH_CONDITION: a window ends just before window_end, so this would take in later "
            "tuples; got l.ts > r.window_end. Write > for >=, or >= for >, and the same of < and "
            "<=."
        ),
        sql=ASOF.replace(
            "rides AS r",
            "(SELECT route, COUNT(*) AS n FROM rides [RANGE 1 SECOND] GROUP BY route) AS r",
        ).replace(">= r.ts", "> r.window_end"),
    ),
    "join: * with one name twice": Mistake(
        message=(
            "SELECT: * needs columns with names of their own; got route in l and in r. List the "
            "columns, and rename one of the two with AS."
        ),
        sql=JOINED.replace("l.route", "*") + "l.route = r.route",
    ),
    "join: one name for both sides": Mistake(
        message=(
            "JOIN: both sides need a name of their own; got rides twice. Give one of them "
            "another name with AS."
        ),
        sql="SELECT rides.route FROM rides [RANGE 5 SECONDS] JOIN rides [RANGE 5 SECONDS] ON true",
    ),
    "outer join": Mistake(
        message=(
            "SQL line 1, column 50: a join is INNER, LEFT, RIGHT, FULL, SEMI, ANTI or CROSS; got "
            "OUTER JOIN. Say of which side rows without a partner are kept, for example LEFT JOIN."
        ),
        sql=(
            "SELECT l.route FROM rides AS l [RANGE 5 SECONDS] OUTER JOIN rides AS r [RANGE 5 "
            "SECONDS] ON l.route = r.route"
        ),
    ),
    "column of the other side of an anti join": Mistake(
        message=(
            "SELECT: rows of a semi or anti join have the columns of its left side only; got "
            "r.fare. Write JOIN, or LEFT JOIN, for those of both."
        ),
        sql=(
            "SELECT r.fare FROM rides AS l [RANGE 5 SECONDS] ANTI JOIN rides AS r [RANGE 5 "
            "SECONDS] ON l.route = r.route"
        ),
    ),
    "left join of tuple windows": Mistake(
        message=(
            "LEFT JOIN: needs windows of time, which tell when no partner can come any more; got "
            "[ROWS 5]. Write [RANGE 5 MINUTES] in place of it, or JOIN for the pairs alone."
        ),
        sql=(
            "SELECT l.route FROM rides AS l [ROWS 5] LEFT JOIN rides AS r [RANGE 5 SECONDS] ON "
            "l.route = r.route"
        ),
    ),
    "outer join in another order": Mistake(
        message=(
            "ORDER BY: rows come in the order in which they are decided, some later than their "
            "ts, so this order would have to wait for them; got ts. Leave ORDER BY out."
        ),
        sql=(
            "SELECT l.route FROM rides AS l [RANGE 5 SECONDS] LEFT JOIN rides AS r [RANGE 5 "
            "SECONDS] ON l.route = r.route ORDER BY ts"
        ),
    ),
    "WITH ERROR of different values": Mistake(
        message=(
            "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: each aggregate must be one that a sample "
            "can answer: a sample does not hold the values that are rare; got "
            "count(DISTINCT fare). Ask for it in a query of its own, without the clause."
        ),
        sql="SELECT COUNT(DISTINCT fare) AS f FROM rides [RANGE 1 HOUR] WITH ERROR 10 PERCENT",
    ),
    "WITH LATENCY inside": Mistake(
        message=(
            "WITH LATENCY: is for a whole query; got one inside another. Write it after the "
            "outermost SELECT, in Python as the last call before start."
        ),
        sql=f"SELECT MAX(n) AS n FROM ({COUNT} WITH LATENCY 2 SECONDS) [RANGE 2 HOURS]",
    ),
    "WITH SHED nothing": Mistake(
        message=(
            "WITH SHED: the share must be between 0 and 100 percent; got 0 PERCENT. Write for "
            "example WITH SHED 98 PERCENT, in Python .shed(0.98), or leave it out."
        ),
        sql=COUNT + " WITH SHED 0 PERCENT",
    ),
    "WITH SHED everything": Mistake(
        message=(
            "WITH SHED: the share must be between 0 and 100 percent; got 100 PERCENT. Write for "
            "example WITH SHED 98 PERCENT, in Python .shed(0.98), or leave it out."
        ),
        sql=COUNT + " WITH SHED 100 PERCENT BY UNIFORM",
    ),
    "WITH SHED more": Mistake(
        message=(
            "WITH SHED: the share must be between 0 and 100 percent; got 150 PERCENT. Write for "
            "example WITH SHED 98 PERCENT, in Python .shed(0.98), or leave it out."
        ),
        sql=COUNT + " WITH SHED 150 PERCENT",
    ),
    "WITH SHED over tuples": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY CONCEPT: is for windows of time: one of tuples counts those "
            "that would be shed; got [ROWS 5]. Write a window of time, [RANGE 1 MINUTE], or "
            "leave the clause out."
        ),
        sql="SELECT COUNT(*) AS n FROM rides [ROWS 5] WITH SHED 90 PERCENT",
    ),
    "WITH SHED of a join without an equality": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY UNIFORM: needs an equality of both sides in the condition of "
            "a join, whose values are the keys; got l.fare < r.fare. Write it after an aggregate "
            "over the pairs, which are shed then, or leave it out."
        ),
        sql=JOINED + "l.fare < r.fare WITH SHED 90 PERCENT BY UNIFORM",
    ),
    "WITH SHED as a total of a join": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY CONCEPT TOTAL: sheds one share of both sides of a join, and "
            "keeps every key; got TOTAL. Write WITH SHED 90 PERCENT BY CONCEPT."
        ),
        sql=JOINED + "l.route = r.route WITH SHED 90 PERCENT BY CONCEPT TOTAL",
    ),
    "WITH SHED up to of a join": Mistake(
        message=(
            "WITH SHED UP TO 90 PERCENT BY CONCEPT: sheds one share of both sides of a join, and "
            "keeps every key; got UP TO. Write WITH SHED 90 PERCENT BY CONCEPT."
        ),
        sql=JOINED + "l.route = r.route WITH SHED UP TO 90 PERCENT",
    ),
    "WITH SHED without a window": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY UNIFORM: is for aggregates over windows of time and for joins "
            "by equality; got a query without one. Write it after the SELECT that has the "
            "aggregate or the join, or leave it out."
        ),
        sql="SELECT route FROM rides WITH SHED 90 PERCENT BY UNIFORM",
    ),
    "WITH SHED twice": Mistake(
        message=(
            "WITH SHED 50 PERCENT BY UNIFORM: an aggregate sheds once; got also SHED 90 PERCENT "
            "BY CONCEPT. Leave one of them out."
        ),
        sql=COUNT + " WITH SHED 90 PERCENT WITH SHED 50 PERCENT BY UNIFORM",
    ),
    "WITH SHED of distinct values": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY CONCEPT: must be able to estimate each aggregate: how "
            "many values only shed tuples have cannot be told from the others; got count(DISTINCT "
            "route). Ask for it in a query of its own, without the clause."
        ),
        sql="SELECT COUNT(DISTINCT route) AS n FROM rides [RANGE 1 HOUR] WITH SHED 90 PERCENT",
    ),
    "WITH SHED and WITH ERROR": Mistake(
        message=(
            "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: an aggregate sheds or has an error "
            "bound, because no bound holds for what is shed; got also SHED 90 PERCENT BY CONCEPT. "
            "Leave one of them out."
        ),
        sql=COUNT + " WITH SHED 90 PERCENT WITH ERROR 10 PERCENT",
    ),
    "WITH ERROR and WITH SHED": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY CONCEPT: an aggregate sheds or has an error bound, because "
            "no bound holds for what is shed; got also ERROR 10 PERCENT CONFIDENCE 95 PERCENT. "
            "Leave one of them out."
        ),
        sql=COUNT + " WITH ERROR 10 PERCENT WITH SHED 90 PERCENT",
    ),
    "WITH SHED and a column kept": Mistake(
        message=(
            "WITH SHED 90 PERCENT BY CONCEPT: adds a column kept, so no other may have this name; "
            "got a column kept in the query. Give that one another name with AS."
        ),
        sql="SELECT COUNT(*) AS kept FROM rides [RANGE 1 HOUR] WITH SHED 90 PERCENT",
    ),
    "WITH ERROR and a name that is taken": Mistake(
        message=(
            "WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT: adds a column n_low, so no other may "
            "have this name; got a column n_low in the query. Give that one another name with AS."
        ),
        sql=(
            "SELECT AVG(fare) AS n, SUM(fare) AS n_low FROM rides [RANGE 1 HOUR] "
            "WITH ERROR 10 PERCENT"
        ),
    ),
    "WITH ERROR of no percent": Mistake(
        message=(
            "SQL line 1, column 65: expected PERCENT or ABSOLUTE; got the end of the statement. "
            "Write for example 10 PERCENT."
        ),
        sql=COUNT + " WITH ERROR 10",
    ),
    "WITH ERROR of nothing": Mistake(
        message=(
            "WITH ERROR: the error must be between 0 and 100 percent; got 0 PERCENT. Write for "
            "example ERROR 10 PERCENT, in Python error=0.1."
        ),
        sql=COUNT + " WITH ERROR 0 PERCENT",
    ),
    "WITH ERROR of nothing, ABSOLUTE": Mistake(
        message=(
            "WITH ERROR: an absolute error must be a number above 0; got 0.0. Write for example "
            "ERROR 0.5 ABSOLUTE, in Python absolute=0.5."
        ),
        sql=COUNT + " WITH ERROR 0 ABSOLUTE",
    ),
    "WITH ERROR ABSOLUTE over a join that sheds": Mistake(
        message=(
            "WITH ERROR 5.0 ABSOLUTE CONFIDENCE 95 PERCENT: over a join that sheds an error must "
            "be relative, because it says how many tuples of a key are kept; got ERROR 5.0 "
            "ABSOLUTE CONFIDENCE 95 PERCENT. Write for example WITH ERROR 10 PERCENT."
        ),
        sql=(
            "SELECT COUNT(*) AS n FROM (SELECT a.route FROM rides AS a [RANGE 5 MINUTES] "
            "JOIN rides AS b [RANGE 5 MINUTES] ON a.route = b.route) [RANGE 1 HOUR] "
            "WITH SHED 50 PERCENT WITH ERROR 5 ABSOLUTE"
        ),
    ),
    "WITH ERROR and CONFIDENCE misspelt": Mistake(
        message=(
            "SQL line 1, column 74: expected another clause or the end of the statement; got "
            "CONFIDANCE. Did you mean CONFIDENCE?"
        ),
        sql=COUNT + " WITH ERROR 10 PERCENT CONFIDANCE 95 PERCENT",
    ),
    "WITH ERROR and a budget of nothing": Mistake(
        message=(
            "SQL line 1, column 82: expected ROWS; got the end of the statement. Write for "
            "example BUDGET 1000 ROWS."
        ),
        sql=COUNT + " WITH ERROR 10 PERCENT BUDGET 5",
    ),
    "WITH BALANCE and no COLD rows": Mistake(
        message=(
            "WITH BALANCE: COLD must be a whole number of rows, 1 or more; got 0. Write for "
            "example COLD 1000 ROWS, in Python cold=1000."
        ),
        sql=COUNT + " GROUP BY route WITH BALANCE ERROR 10 PERCENT COLD 0 ROWS",
    ),
    "WITH BALANCE and SAVING everything": Mistake(
        message=(
            "WITH BALANCE: the saving must be between 0 and 100 percent; got 100 PERCENT. Write "
            "for example SAVING 15 PERCENT, in Python saving=0.15."
        ),
        sql=COUNT + " GROUP BY route WITH BALANCE ERROR 10 PERCENT SAVING 100 PERCENT",
    ),
    "WITH BALANCE and TRIM of some": Mistake(
        message=(
            "SQL line 1, column 102: expected COSTLY or ALL after TRIM; got ALLS. Did you mean ALL?"
        ),
        sql=COUNT + " GROUP BY route WITH BALANCE ERROR 10 PERCENT TRIM ALLS",
    ),
    "ERROR without WITH": Mistake(
        message=(
            "SQL line 1, column 67: expected another clause or the end of the statement; got "
            "ERROR. Write WITH before it: WITH ERROR ..."
        ),
        sql=COUNT + " GROUP BY route ERROR 10 PERCENT",
    ),
    "CONFIDENCE without ERROR": Mistake(
        message=(
            "SQL line 1, column 73: expected another clause or the end of the statement; got "
            "CONFIDENCE. It is a part of WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT BUDGET 1000 "
            "ROWS BY MAX."
        ),
        sql=COUNT + " WITH SHED 98 PERCENT CONFIDENCE 95 PERCENT",
    ),
    "WITH ERROR before ORDER BY": Mistake(
        message=(
            "SQL line 1, column 89: expected another clause or the end of the statement; got "
            "ORDER BY. Clauses come in this order: WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, WITH."
        ),
        sql=COUNT + " GROUP BY route WITH ERROR 10 PERCENT ORDER BY n",
    ),
    "WITH SHED after UNION ALL": Mistake(
        message=(
            "WITH SHED 50 PERCENT BY CONCEPT: is for one SELECT; got a UNION ALL. Write it where "
            "the SELECT is that it is for: SELECT * FROM (SELECT ... WITH ...) UNION ALL ..."
        ),
        sql=f"{COUNT} UNION ALL {COUNT} WITH SHED 50 PERCENT",
    ),
    "WITH SHED by what is not there": Mistake(
        message=(
            "SQL line 1, column 76: expected CONCEPT, CONCEPT TOTAL or UNIFORM after BY; got "
            "CONCEPTS. Did you mean CONCEPT?"
        ),
        sql=COUNT + " WITH SHED 98 PERCENT BY CONCEPTS",
    ),
    "WITH PARTITIONER and parameters without quotes": Mistake(
        message=(
            "SQL line 1, column 71: expected another clause or the end of the statement; got ? "
            "Write a name with parameters in quotes, for example WITH PARTITIONER 'pk?d=3'."
        ),
        sql=COUNT + " WITH PARTITIONER pk?d=3",
    ),
    "WITH unknown": Mistake(
        message=(
            "SQL line 1, column 57: expected PARTITIONER, ERROR, BALANCE, SHED or LATENCY "
            "after WITH; got ERRORS. Did you mean ERROR?"
        ),
        sql=COUNT + " WITH ERRORS 10 PERCENT",
    ),
    "CREATE STREAM AS of itself": Mistake(
        message=(
            "CREATE STREAM a: a stream cannot be made of itself; got a from b from a. Read from "
            "a source, or give one of the streams another name."
        ),
        sql=(
            "CREATE STREAM a AS SELECT route FROM b; CREATE STREAM b AS SELECT route FROM a; "
            "SELECT route FROM a"
        ),
    ),
    "CREATE STREAM AS under a name that is taken": Mistake(
        message=(
            "CREATE STREAM rides: a name can be used once; got rides, which is there already. "
            "Give the new stream another name."
        ),
        sql="CREATE STREAM rides AS SELECT route FROM rides; SELECT route FROM rides",
    ),
    "CREATE STREAM AS with a column misspelt": Mistake(
        message=(
            "CREATE STREAM a, SELECT: no column has this name; got rout. Did you mean route? "
            "There are: ts, route, fare, note."
        ),
        sql=f"CREATE STREAM a AS SELECT rout FROM rides; {COUNT}",
    ),
    "column misspelt, Windows line ends": Mistake(
        message=(
            "WHERE: no column has this name; got far. Did you mean fare? There are: ts, route, "
            "fare, note."
        ),
        sql="SELECT COUNT(*) AS n\r\nFROM rides [RANGE 10 SECONDS]\r\nWHERE far > 1\r\n",
    ),
    "placeholder": Mistake(
        message="WHERE: values must be written out; got ? for one.",
        sql=COUNT + " WHERE fare > ?",
    ),
    "random number": Mistake(
        message=(
            "WHERE: an expression must give the same value whenever a batch is replayed; got "
            "RAND(). Use the event time, or a column of the stream."
        ),
        sql=COUNT + " WHERE rand() > 0.5",
    ),
    "time of the clock": Mistake(
        message=(
            "WHERE: an expression must give the same value whenever a batch is replayed; got "
            "NOW(). Use the event time, or a column of the stream."
        ),
        sql=COUNT + " WHERE ts > now()",
    ),
    "star with aggregate": Mistake(
        message="SELECT: * cannot stand beside an aggregate; got *. Name the columns of GROUP BY.",
        sql="SELECT *, COUNT(*) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "comment with #": Mistake(
        message=(
            "SQL line 1, column 1: expected CREATE STREAM, INSERT INTO or SELECT; got #. Comments "
            "begin with --."
        ),
        sql="# my query\nSELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS]",
    ),
    "alias twice": Mistake(
        message=(
            "SELECT: every column needs a name of its own; got N twice. Give one of them "
            "another name with AS."
        ),
        sql="SELECT COUNT(*) AS n, COUNT(*) AS N FROM rides [RANGE 10 SECONDS]",
    ),
    "field of what has none": Mistake(
        message="WHERE: only a struct has fields; got .x of a string. Leave it out.",
        sql=COUNT + " WHERE note.x = 1",
    ),
}
