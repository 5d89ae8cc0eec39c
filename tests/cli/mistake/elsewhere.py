"""What SQL has elsewhere, each with the whole line that says how it is written here."""

from __future__ import annotations

from tests.cli.mistake.kind import RIDES, Mistake

FILES = {
    "rides.csv": (
        "ts,route,fare,note,dropoff\n"
        "2024-01-01T00:00:01Z,a,5.0,x,2024-01-01T00:00:03Z\n"
        "2024-01-01T00:00:02Z,b,7.5,y,2024-01-01T00:00:05Z\n"
    ),
    "stops.csv": "ts,route,name,lat\n2024-01-01T00:00:01Z,a,A,1.5\n",
}


def told(sql: str, message: str) -> Mistake:
    """A query over rides and stops."""
    return Mistake(
        message=message, sql=sql, options=(*RIDES, "--stream", "stops=stops.csv"), files=FILES
    )


MISTAKES = {
    "from file": told(
        "SELECT * FROM 'rides.csv'",
        "FROM: no stream has this name; got rides.csv. Write CREATE STREAM r FROM 'rides.csv' TIME "
        "ts; and FROM r.",
    ),
    "avg interval": told(
        "SELECT AVG(dropoff - ts) AS d FROM rides [RANGE 10 SECONDS]",
        (
            "mean(dropoff - ts): the argument must be a number; got interval. In seconds, write "
            "mean((unix_micros(dropoff) - unix_micros(ts)) / 1e6)."
        ),
    ),
    "sum interval": told(
        "SELECT SUM(dropoff - ts) AS d FROM rides [RANGE 10 SECONDS]",
        (
            "sum(dropoff - ts): the argument must be a number; got interval. In seconds, write "
            "sum((unix_micros(dropoff) - unix_micros(ts)) / 1e6)."
        ),
    ),
    "avg time": told(
        "SELECT AVG(dropoff) AS d FROM rides [RANGE 10 SECONDS]",
        (
            "mean(dropoff): the argument must be a number; got timestamp. In seconds, write "
            "mean(unix_micros(dropoff) / 1e6)."
        ),
    ),
    "temporal": told(
        (
            "SELECT rides.route FROM rides JOIN stops FOR SYSTEM_TIME AS OF rides.ts ON "
            "rides.route = stops.route"
        ),
        ("SQL line 1, column 42: a stream has no versions yet; got FOR. There is no way yet."),
    ),
    "similar to": told(
        "SELECT route FROM rides WHERE route SIMILAR TO 'a%'",
        "WHERE: SIMILAR TO is not there; got route SIMILAR TO 'a%'. Use RLIKE or LIKE.",
    ),
    "group_concat": told(
        "SELECT route, GROUP_CONCAT(note, ',') AS f FROM rides [RANGE 10 SECONDS] GROUP BY route",
        (
            "SELECT: no aggregate has this name; got GROUP_CONCAT. Use STRING_AGG(x, ','), with "
            "ORDER BY before the parenthesis closes."
        ),
    ),
    "any_value": told(
        "SELECT route, ANY_VALUE(fare) AS f FROM rides [RANGE 10 SECONDS] GROUP BY route",
        (
            "SELECT: no aggregate has this name; got ANY_VALUE. Did you mean LAST_VALUE or "
            "FIRST_VALUE? There are: COUNT, SUM, AVG, MEAN, MIN, MAX, VAR, VARIANCE, VAR_SAMP, "
            "STDDEV, STDDEV_SAMP, STD, MEDIAN, QUANTILE, PERCENTILE, FIRST, FIRST_VALUE, LAST, "
            "LAST_VALUE, MIN_BY, ..."
        ),
    ),
    "histogram": told(
        (
            "SELECT route, HISTOGRAM_NUMERIC(fare, 5) AS f FROM rides [RANGE 10 SECONDS] GROUP BY"
            " route"
        ),
        (
            "SELECT: no aggregate has this name; got HISTOGRAM_NUMERIC. There is no way "
            "yet in SQL; in Python there is tg.aggregate: see docs/python.md."
        ),
    ),
    "map_agg": told(
        "SELECT route, MAP_AGG(note, fare) AS f FROM rides [RANGE 10 SECONDS] GROUP BY route",
        "SELECT: no aggregate has this name; got MAP_AGG. There is no way yet.",
    ),
    "sum distinct": told(
        "SELECT route, SUM(DISTINCT fare) AS f FROM rides [RANGE 10 SECONDS] GROUP BY route",
        (
            "SUM(DISTINCT): is not available yet: only COUNT, ARRAY_AGG and STRING_AGG can be. "
            "There is no way yet."
        ),
    ),
    "lead": told(
        "SELECT LEAD(fare) OVER (PARTITION BY route ORDER BY ts) AS after, LEAD(route) OVER "
        "(ORDER BY ts) AS r FROM rides",
        "LEAD: is available by one key in a query; got 2 keys. There is no way yet.",
    ),
    "lag no over": told(
        "SELECT route, LAG(fare) AS before FROM rides",
        "SELECT: no aggregate has this name; got LAG. Write OVER (PARTITION BY route ORDER "
        "BY ts) after it.",
    ),
    "lag in where": told(
        "SELECT route FROM rides WHERE fare > LAG(fare) OVER (ORDER BY ts)",
        (
            "SQL line 1, column 48: stands in the select list or in QUALIFY; got OVER. Write "
            "it in a subquery, or the condition in QUALIFY."
        ),
    ),
    "rank": told(
        "SELECT route, RANK() OVER (ORDER BY fare DESC) AS i FROM rides",
        (
            "OVER: the order must be that of the event time; got fare DESC. Write ORDER BY ts "
            "in OVER (...); QUALIFY over the rows of a window takes any order."
        ),
    ),
    "named window": told(
        "SELECT route, SUM(fare) OVER v AS s FROM rides WINDOW w AS (PARTITION BY route ORDER BY "
        "ts)",
        "OVER: no window has this name (there are: w); got v.",
    ),
    "named window for nothing": told(
        "SELECT SUM(fare) OVER v AS s FROM rides WINDOW v AS (ORDER BY ts), w AS (ORDER BY far)",
        "WINDOW: a window with a name is for a function OVER it; got w. Write OVER w, or leave it "
        "out.",
    ),
    "arguments of a rank": told(
        "SELECT RANK(fare) OVER (ORDER BY ts) AS s FROM rides",
        "RANK(): takes no arguments; got fare. Write RANK() OVER (...).",
    ),
    "two queries of one name": told(
        "WITH p AS (SELECT fare FROM rides), P AS (SELECT note FROM rides) SELECT * FROM p",
        "WITH: a name can be used once; got P twice. Give one of the queries another name.",
    ),
    "two named windows": told(
        "SELECT SUM(fare) OVER w AS s FROM rides WINDOW w AS (ORDER BY ts), W AS (ORDER BY ts)",
        "WINDOW: a name stands for one window; got W.",
    ),
    "named window again": told(
        "SELECT SUM(fare) OVER (w ORDER BY ts) AS s FROM rides WINDOW w AS (ORDER BY ts)",
        "OVER: the window w has ORDER BY already; got ORDER BY.",
    ),
    "ntile": told(
        "SELECT NTILE(4) OVER (ORDER BY fare) AS f FROM rides",
        (
            "OVER: depends on all tuples of its key, also on those to come, so it is never "
            "decided; got NTILE(4). Rank the rows of a window: SELECT route, COUNT(*) AS n FROM "
            "rides [RANGE 1 HOUR] GROUP BY route QUALIFY NTILE(4) OVER (ORDER BY n DESC) = 1"
        ),
    ),
    "cte recursive": told(
        "WITH RECURSIVE x AS (SELECT route FROM rides) SELECT route FROM x",
        (
            "SQL line 1, column 6: a query cannot read itself; got RECURSIVE. Leave "
            "RECURSIVE out if none does."
        ),
    ),
    "distinct": told(
        "SELECT DISTINCT route FROM rides",
        (
            "SELECT: rows can be distinct in a window only; got DISTINCT. Write a window "
            "after the stream or the subquery in FROM, as [RANGE 1 HOUR]."
        ),
    ),
    "union": told(
        "SELECT route FROM rides UNION SELECT route FROM stops",
        (
            "SQL line 1, column 25: only UNION ALL is possible on an unbounded stream; got "
            "UNION. There is no way yet."
        ),
    ),
    "intersect": told(
        "SELECT route FROM rides INTERSECT SELECT route FROM stops",
        (
            "SQL line 1, column 25: streams are put together by UNION ALL only; got "
            "INTERSECT. There is no way yet."
        ),
    ),
    "except": told(
        "SELECT route FROM rides EXCEPT SELECT route FROM stops",
        (
            "SQL line 1, column 25: streams are put together by UNION ALL only; got EXCEPT "
            "(or MINUS). There is no way yet."
        ),
    ),
    "minus": told(
        "SELECT route FROM rides MINUS SELECT route FROM stops",
        (
            "SQL: streams are put together by UNION ALL only; got EXCEPT (or MINUS). There "
            "is no way yet."
        ),
    ),
    "union by name": told(
        "SELECT route FROM rides UNION ALL BY NAME SELECT route FROM stops",
        (
            "SQL line 1, column 35: columns are matched by position; got BY NAME. List the "
            "columns of both sides in one order, and leave BY NAME out."
        ),
    ),
    "in subquery": told(
        "SELECT route FROM rides WHERE route IN (SELECT route FROM stops)",
        ("WHERE: a subquery can stand in FROM only; got IN (SELECT ...). There is no way yet."),
    ),
    "not in subquery": told(
        "SELECT route FROM rides WHERE route NOT IN (SELECT route FROM stops)",
        ("WHERE: a subquery can stand in FROM only; got NOT IN (SELECT ...). There is no way yet."),
    ),
    "exists": told(
        (
            "SELECT route FROM rides WHERE EXISTS (SELECT 1 FROM stops WHERE stops.route = "
            "rides.route)"
        ),
        ("WHERE: a subquery can stand in FROM only; got EXISTS (SELECT ...). There is no way yet."),
    ),
    "not exists": told(
        (
            "SELECT route FROM rides WHERE NOT EXISTS (SELECT 1 FROM stops WHERE stops.route = "
            "rides.route)"
        ),
        (
            "WHERE: a subquery can stand in FROM only; got NOT EXISTS (SELECT ...). There "
            "is no way yet."
        ),
    ),
    "scalar subquery": told(
        ("SELECT route FROM rides WHERE fare > (SELECT AVG(fare) FROM rides [RANGE 10 SECONDS])"),
        ("WHERE: a subquery can stand in FROM only; got (SELECT ...). There is no way yet."),
    ),
    "scalar subquery select": told(
        "SELECT route, (SELECT MAX(fare) FROM rides [RANGE 10 SECONDS]) AS m FROM rides",
        ("SELECT: a subquery can stand in FROM only; got (SELECT ...). There is no way yet."),
    ),
    "pivot": told(
        "SELECT * FROM rides PIVOT (SUM(fare) FOR route IN ('a', 'b'))",
        (
            "SQL line 1, column 21: columns are made by hand; got PIVOT. Write an "
            "aggregate for each: SUM(fare) FILTER (WHERE route = 'a') AS a."
        ),
    ),
    "unpivot": told(
        "SELECT * FROM rides UNPIVOT (v FOR k IN (fare))",
        (
            "SQL line 1, column 21: columns are made by hand; got UNPIVOT. Write UNION ALL "
            "of a SELECT for each column."
        ),
    ),
    "qualify": told(
        (
            "SELECT route, fare FROM rides QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY"
            " fare DESC) = 1"
        ),
        (
            "OVER: the order must be that of the event time; got fare DESC. Write ORDER BY ts "
            "in OVER (...); QUALIFY over the rows of a window takes any order."
        ),
    ),
    "session window": told(
        ("SELECT route, COUNT(*) AS n FROM rides GROUP BY route, session_window(ts, '5 minutes')"),
        (
            "SQL line 1, column 56: a window is written after its stream; got "
            "SESSION_WINDOW(...). Write FROM rides [SESSION GAP 5 MINUTES], and leave "
            "SESSION_WINDOW out; window_start and window_end are columns of the result."
        ),
    ),
    "session flink": told(
        ("SELECT route, COUNT(*) AS n FROM rides GROUP BY route, SESSION(ts, INTERVAL '5' MINUTE)"),
        (
            "SQL line 1, column 56: a window is written after its stream; got "
            "SESSION(...). Write FROM rides [SESSION GAP 5 MINUTES], and leave SESSION out; "
            "window_start and window_end are columns of the result."
        ),
    ),
    "session bracket": told(
        "SELECT route, COUNT(*) AS n FROM rides [SESSION 5 MINUTES] GROUP BY route",
        (
            "SQL line 1, column 49: expected GAP after SESSION; got 5. Write for example "
            "[SESSION GAP 30 MINUTES]."
        ),
    ),
    "session tvf": told(
        (
            "SELECT route, COUNT(*) AS n FROM TABLE(SESSION(TABLE rides, DESCRIPTOR(ts), INTERVAL"
            " '5' MINUTES)) GROUP BY route"
        ),
        (
            "SQL line 1, column 40: a window is written after its stream; got "
            "SESSION(...). Write FROM rides [SESSION GAP 5 MINUTES], and leave SESSION out; "
            "window_start and window_end are columns of the result."
        ),
    ),
    "tumble flink": told(
        ("SELECT route, COUNT(*) AS n FROM rides GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE), route"),
        (
            "SQL line 1, column 49: a window is written after its stream; got TUMBLE(...). Write "
            "FROM rides [RANGE 5 MINUTES], and leave TUMBLE out; window_start and window_end are "
            "columns of the result."
        ),
    ),
    "tumble tvf": told(
        (
            "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE rides, DESCRIPTOR(ts), "
            "INTERVAL '5' MINUTES)) GROUP BY window_start, window_end"
        ),
        (
            "SQL line 1, column 47: a window is written after its stream; got TUMBLE(...). Write "
            "FROM rides [RANGE 5 MINUTES], and leave TUMBLE out; window_start and window_end are "
            "columns of the result."
        ),
    ),
    "tumble rw": told(
        (
            "SELECT window_start, COUNT(*) AS n FROM TUMBLE(rides, ts, INTERVAL '5 MINUTES') "
            "GROUP BY window_start"
        ),
        (
            "SQL line 1, column 41: a window is written after its stream; got TUMBLE(...). Write "
            "FROM rides [RANGE 5 MINUTES], and leave TUMBLE out; window_start and window_end are "
            "columns of the result."
        ),
    ),
    "hop flink": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides GROUP BY HOP(ts, INTERVAL '5' MINUTE, "
            "INTERVAL '10' MINUTE), route"
        ),
        (
            "SQL line 1, column 49: a window is written after its stream; got HOP(...). Write "
            "FROM rides [RANGE 10 MINUTES SLIDE 5 MINUTES], and leave HOP out; window_start and "
            "window_end are columns of the result."
        ),
    ),
    "tumble_start": told(
        (
            "SELECT TUMBLE_START(ts, INTERVAL '5' MINUTE) AS s, COUNT(*) AS n FROM rides [RANGE "
            "10 SECONDS]"
        ),
        (
            "SQL line 1, column 8: is a column of the result; got TUMBLE_START(...). Write "
            "window_start."
        ),
    ),
    "spark window": told(
        "SELECT window, COUNT(*) AS n FROM rides GROUP BY window(ts, '5 minutes')",
        (
            "SQL line 1, column 50: a window is written after its stream; got WINDOW(...). Write "
            "FROM rides [RANGE 5 MINUTES], and leave WINDOW out; window_start and window_end are "
            "columns of the result."
        ),
    ),
    "spark window slide": told(
        (
            "SELECT window.start, route, COUNT(*) AS n FROM rides GROUP BY window(ts, '10 "
            "minutes', '5 minutes'), route"
        ),
        ("SQL line 1, column 8: is a column of the result; got window.start. Write window_start."),
    ),
    "spark window col": told(
        "SELECT window, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY window",
        (
            "SQL line 1, column 69: every row is of one window already; got GROUP BY window. "
            "Leave it out; window_start and window_end are columns of the result."
        ),
    ),
    "spark window w": told(
        "SELECT window(ts, '5 minutes') AS w, COUNT(*) AS n FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 8: a window is written after its stream; got WINDOW(...). Write "
            "FROM rides [RANGE 5 MINUTES], and leave WINDOW out; window_start and window_end are "
            "columns of the result."
        ),
    ),
    "ksql": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides WINDOW TUMBLING (SIZE 5 MINUTES) GROUP BY "
            "route EMIT CHANGES"
        ),
        (
            "SQL line 1, column 40: a window is written after its stream; got WINDOW TUMBLING "
            "(...). Write FROM rides [RANGE 5 MINUTES]."
        ),
    ),
    "emit": told(
        ("SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route EMIT CHANGES"),
        (
            "SQL line 1, column 74: rows of a window come when it is final, and before that at "
            "multiples of a time; got EMIT CHANGES. Write EMIT EVERY '1 second'."
        ),
    ),
    "emit on close": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route EMIT ON "
            "WINDOW CLOSE"
        ),
        (
            "SQL line 1, column 74: every window is put out once, when it is final; got "
            "EMIT ON WINDOW CLOSE. Leave EMIT ON WINDOW CLOSE out."
        ),
    ),
    "create view": told(
        "CREATE VIEW x AS SELECT route FROM rides; SELECT route FROM x",
        (
            "SQL line 1, column 1: what a script makes is a stream; got CREATE VIEW. Write CREATE"
            " STREAM x AS SELECT ..."
        ),
    ),
    "create if not exists": told(
        "CREATE STREAM IF NOT EXISTS x AS SELECT route FROM rides; SELECT route FROM x",
        (
            "SQL line 1, column 1: a stream lasts as long as the script; got IF NOT EXISTS. Leave"
            " IF NOT EXISTS out."
        ),
    ),
    "create materialized": told(
        "CREATE MATERIALIZED VIEW x AS SELECT route FROM rides",
        (
            "SQL line 1, column 1: what a script makes is a stream; got CREATE MATERIALIZED VIEW."
            " Write CREATE STREAM x AS SELECT ..."
        ),
    ),
    "create function": told(
        "CREATE FUNCTION f AS 'x'",
        (
            "SQL line 1, column 1: functions are not made in SQL; got CREATE FUNCTION. "
            "There is no way yet in SQL; in Python there is @tg.function: see "
            "docs/python.md."
        ),
    ),
    "insert values": told(
        "INSERT INTO x VALUES (1, 2)",
        (
            "SQL line 1, column 1: INSERT INTO names the output of a query, and takes no rows; "
            "got VALUES. Write INSERT INTO x SELECT ...; rows come from files: CREATE STREAM r "
            "FROM 'rows.csv'."
        ),
    ),
    "insert overwrite": told(
        "INSERT OVERWRITE x SELECT route FROM rides",
        (
            "SQL line 1, column 1: an output is added to, batch by batch, and never written over;"
            " got INSERT OVERWRITE. Write INSERT INTO name SELECT ...; --out says where it goes."
        ),
    ),
    "insert cols": told(
        "INSERT INTO x (route) SELECT route FROM rides",
        (
            "SQL line 1, column 1: an output has the columns of its query; got a list of "
            "columns after x. Write INSERT INTO x SELECT ... AS name"
        ),
    ),
    "no from": told(
        "SELECT 1 + 1",
        (
            "SELECT: needs FROM and a stream; got SELECT 1 + 1. Write for example SELECT route "
            "FROM rides"
        ),
    ),
    "no window": told(
        "SELECT route, COUNT(*) AS n FROM rides GROUP BY route",
        (
            "SELECT: an aggregate needs a window; got FROM rides without one. Write FROM rides "
            "[RANGE 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
        ),
    ),
    "no window alias": told(
        "SELECT COUNT(*) AS n FROM rides r",
        (
            "SELECT: an aggregate needs a window; got FROM rides AS r without one. Write FROM "
            "rides AS r [RANGE 15 MINUTES SLIDE 5 MINUTES], or [ROWS 100]."
        ),
    ),
    "join no window": told(
        "SELECT rides.route, stops.name FROM rides JOIN stops ON rides.route = stops.route",
        (
            "JOIN: both sides need a window; got rides. Write rides [RANGE 5 MINUTES]: how much "
            "earlier it may be than its partner."
        ),
    ),
    "join half window": told(
        (
            "SELECT r.route, s.name FROM rides r [RANGE 10 SECONDS] JOIN stops s ON r.route = "
            "s.route"
        ),
        (
            "JOIN: both sides need a window; got stops AS s. Write stops AS s [RANGE 5 MINUTES]: "
            "how much earlier it may be than its partner."
        ),
    ),
    "top n": told(
        "SELECT TOP 10 route FROM rides",
        "SQL line 1, column 8: is written at the end; got TOP 10. Write LIMIT 10.",
    ),
    "offset": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route ORDER BY n "
            "LIMIT 5 OFFSET 5"
        ),
        (
            "SQL line 1, column 93: the first rows of a window can be taken, not later "
            "ones; got OFFSET. There is no way yet."
        ),
    ),
    "tablesample": told(
        "SELECT * FROM rides TABLESAMPLE (10 PERCENT)",
        (
            "SQL line 1, column 21: streams are not sampled yet; got TABLESAMPLE. There is "
            "no way yet."
        ),
    ),
    "cluster by": told(
        "SELECT * FROM rides CLUSTER BY route",
        (
            "SQL line 1, column 21: rows are in the order of event time; got CLUSTER BY. "
            "There is no way yet."
        ),
    ),
    "distribute by": told(
        "SELECT * FROM rides DISTRIBUTE BY route",
        (
            "SQL line 1, column 21: how work is spread is no part of a query; got "
            "DISTRIBUTE BY. Leave it out."
        ),
    ),
    "sort by": told(
        "SELECT * FROM rides SORT BY route",
        (
            "SQL line 1, column 21: rows are in the order of event time; got SORT BY. "
            "There is no way yet."
        ),
    ),
    "values": told(
        "SELECT * FROM VALUES (1, 2) AS t(a, b)",
        (
            "SQL line 1, column 15: must name a stream or hold a subquery; got VALUES. "
            "Write CREATE STREAM name FROM 'rides.csv' TIME ts; and FROM name."
        ),
    ),
    "from read_csv": told(
        "SELECT * FROM read_csv('rides.csv')",
        (
            "FROM: must name a stream or hold a subquery; got READ_CSV('rides.csv'). Write CREATE"
            " STREAM name FROM 'rides.csv' TIME ts; and FROM name."
        ),
    ),
    "from range": told(
        "SELECT * FROM range(10)",
        (
            "FROM: must name a stream or hold a subquery; got RANGE(10). Write CREATE STREAM name"
            " FROM 'rides.csv' TIME ts; and FROM name."
        ),
    ),
    "match_recognize": told(
        (
            "SELECT * FROM rides MATCH_RECOGNIZE (PARTITION BY route ORDER BY ts MEASURES A.fare "
            "AS f PATTERN (A B) DEFINE A AS fare > 1)"
        ),
        (
            "SQL line 1, column 21: patterns of rows are not available yet; got "
            "MATCH_RECOGNIZE. There is no way yet in SQL; in Python there is tg.Process: "
            "see docs/process.md."
        ),
    ),
    "describe": told(
        "DESCRIBE rides",
        (
            "SQL line 1, column 1: a script holds CREATE STREAM, INSERT INTO and SELECT; got "
            "DESCRIBE. Run `tidegate explain QUERY.sql` to see the plan, the streams and their "
            "columns."
        ),
    ),
    "show": told(
        "SHOW TABLES",
        (
            "SQL line 1, column 1: a script holds CREATE STREAM, INSERT INTO and SELECT; got "
            "SHOW. Run `tidegate explain QUERY.sql` to see the plan, the streams and their "
            "columns."
        ),
    ),
    "explain": told(
        "EXPLAIN SELECT route FROM rides",
        (
            "SQL line 1, column 1: a script holds CREATE STREAM, INSERT INTO and SELECT; got "
            "EXPLAIN. Run `tidegate explain QUERY.sql` to see the plan, the streams and their "
            "columns."
        ),
    ),
    "watermark": told(
        (
            "CREATE STREAM x FROM 'rides.csv' WATERMARK FOR ts AS ts - INTERVAL '5' SECOND; "
            "SELECT * FROM x"
        ),
        (
            "SQL line 1, column 34: how far tuples may be out of order is said by DISORDER; got "
            "WATERMARK FOR. Write TIME ts DISORDER 5 SECONDS."
        ),
    ),
    "where alias": told(
        "SELECT route, fare * 2 AS f FROM rides WHERE f > 1",
        ("WHERE: does not see the names of the select list; got f. Write fare * 2 in its place."),
    ),
    "cql now": told(
        "SELECT COUNT(*) AS n FROM rides [NOW]",
        (
            "SQL line 1, column 33: windows of one instant are not available yet; got "
            "[NOW]. There is no way yet."
        ),
    ),
    "cql unbounded": told(
        "SELECT COUNT(*) AS n FROM rides [RANGE UNBOUNDED]",
        (
            "SQL line 1, column 33: a window must have a size, else its state grows for "
            "ever; got [RANGE UNBOUNDED]. There is no way yet."
        ),
    ),
    "cql partition": told(
        "SELECT COUNT(*) AS n FROM rides [PARTITION BY route ROWS 5]",
        (
            "SQL line 1, column 33: windows of rows are of the groups of GROUP BY; got "
            "[PARTITION BY ...]. There is no way yet."
        ),
    ),
    "istream": told(
        "SELECT ISTREAM(COUNT(*)) AS n FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 8: every result is a stream of new rows already; got "
            "ISTREAM(...). Leave ISTREAM out."
        ),
    ),
}
