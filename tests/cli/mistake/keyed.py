"""DISTINCT ON, LIMIT BY, QUALIFY and OVER, written as they cannot be here."""

from __future__ import annotations

from tests.cli.mistake.elsewhere import told

TEN = "[RANGE 10 SECONDS]"

MISTAKES = {
    "distinct on of groups": told(
        f"SELECT DISTINCT ON (route) route, COUNT(*) AS n FROM rides {TEN} GROUP BY route "
        "KEEP FIRST WITHIN 1 HOUR",
        "DISTINCT ON: takes the tuples of a stream, or the rows of a subquery; got a window or an "
        "aggregate beside it. Write the aggregate in a subquery: SELECT DISTINCT ON (id) ... FROM "
        "(SELECT ...).",
    ),
    "keep without distinct on": told(
        "SELECT route FROM rides KEEP FIRST WITHIN 1 HOUR",
        "SQL line 1, column 25: expected SELECT DISTINCT ON (...) before KEEP; got KEEP.",
    ),
    "limit by of a stream": told(
        "SELECT fare FROM rides LIMIT 1 BY route",
        "LIMIT BY: takes the first rows of each window; got a stream without one. Give the stream "
        "a window and an aggregate; for the first tuple of each key write SELECT DISTINCT ON "
        "(route) ... KEEP FIRST WITHIN '1 hour'.",
    ),
    "limit by and qualify": told(
        f"SELECT route, COUNT(*) AS n FROM rides {TEN} GROUP BY route "
        "QUALIFY ROW_NUMBER() OVER (ORDER BY n) <= 3 LIMIT 3 BY route",
        "QUALIFY: rows are chosen by QUALIFY or by LIMIT BY; got both. Leave one out.",
    ),
    "qualify by a column": told(
        f"SELECT route, COUNT(*) AS n FROM rides {TEN} GROUP BY route QUALIFY n > 1",
        "QUALIFY: must compare the place of a row in its partition with a number; got n > 1. Write "
        "for example QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY n DESC) <= 3, with "
        "ROW_NUMBER, RANK, DENSE_RANK, NTILE, PERCENT_RANK, CUME_DIST and =, <=, <, >=, > or "
        "BETWEEN.",
    ),
    "qualify of sessions": told(
        "SELECT route, COUNT(*) AS n FROM rides [SESSION GAP 1 SECOND] GROUP BY route "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY route ORDER BY n DESC) <= 3",
        "QUALIFY: each session ends at a time of its own, and comes then: there is nothing to "
        "order it among; got [SESSION GAP 1 second]. Number the rows as they come, with the "
        "aggregate in a subquery: SELECT * FROM (SELECT ...) QUALIFY ROW_NUMBER() OVER (PARTITION "
        "BY route ORDER BY window_end) <= 3",
    ),
    "lag of NULL at hand": told(
        "SELECT LAG(fare, 0) IGNORE NULLS OVER (ORDER BY ts) AS f FROM rides",
        "LAG IGNORE NULLS: must look back; got 0. Write LAG(x, 1).",
    ),
    "nth value from 0": told(
        "SELECT NTH_VALUE(fare, 0) OVER (ORDER BY ts) AS f FROM rides",
        "NTH_VALUE: counts from 1 on; got 0.",
    ),
    "qualify without over": told(
        "SELECT route FROM rides QUALIFY fare > 6",
        "QUALIFY: needs a function OVER (...); got none. Write the condition in WHERE.",
    ),
    "over beside a window": told(
        f"SELECT COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY window_end) AS p FROM rides {TEN}",
        "OVER: looks at the tuples of a stream, or the rows of a subquery; got a window or GROUP "
        "BY beside it. Write the aggregate in a subquery: SELECT ..., LAG(n) OVER (PARTITION BY "
        "route ORDER BY window_end) FROM (SELECT ...).",
    ),
    "over of a function": told(
        "SELECT ABS(fare) OVER (ORDER BY ts) AS f FROM rides",
        "OVER: needs an aggregate, LAG, LEAD, NTH_VALUE, ROW_NUMBER, RANK or DENSE_RANK; "
        "got ABS(fare). There "
        "is no way yet.",
    ),
    "lag with a frame": told(
        "SELECT LAG(fare) OVER (ORDER BY ts ROWS 3 PRECEDING) AS f FROM rides",
        "LAG: has no frame; got a frame. Leave ROWS or RANGE out.",
    ),
    "lead with a frame": told(
        "SELECT LEAD(fare) OVER (ORDER BY ts ROWS 3 PRECEDING) AS f FROM rides",
        "LEAD: has no frame; got a frame. Leave ROWS or RANGE out.",
    ),
    "lead of the tuple itself": told(
        "SELECT LEAD(fare, 0) OVER (ORDER BY ts) AS f FROM rides",
        "LEAD: must look forward; got 0. Write LEAD(x, 1).",
    ),
    "lag by a column": told(
        "SELECT LAG(fare, fare) OVER (ORDER BY ts) AS f FROM rides",
        "LAG: the number of tuples must be a whole number; got fare.",
    ),
    "frame of half a row": told(
        "SELECT SUM(fare) OVER (ORDER BY ts ROWS 1.5 PRECEDING) AS f FROM rides",
        "OVER: a frame ends with the current row; got ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW. "
        "Write ROWS 5 PRECEDING, RANGE '5 minutes' PRECEDING, or ROWS UNBOUNDED PRECEDING.",
    ),
    "frame that looks forward": told(
        "SELECT SUM(fare) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS f "
        "FROM rides",
        "SQL line 1, column 41: a frame ends with the current row; got BETWEEN. Write ROWS 5 "
        "PRECEDING, RANGE '5 minutes' PRECEDING or ROWS UNBOUNDED PRECEDING.",
    ),
}
