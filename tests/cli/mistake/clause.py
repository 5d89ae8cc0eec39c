"""Clauses and parts of expressions that a parser reads and that nothing here would act on."""

from __future__ import annotations

from tests.cli.mistake.elsewhere import told

LISTS = "(SELECT ARRAY_AGG(note) AS tags FROM rides [RANGE 10 SECONDS])"

MISTAKES = {
    "final": told(
        "SELECT * FROM rides FINAL",
        (
            "SQL line 1, column 21: a word of a clause needs AS to be a name; got FINAL. "
            "Write AS FINAL if it is a name; if it is a clause, there is no way yet."
        ),
    ),
    "keep": told(
        "SELECT route keep FROM rides",
        (
            "SQL line 1, column 14: a word of a clause needs AS to be a name; got keep. "
            "Write AS keep if it is a name; if it is a clause, there is no way yet."
        ),
    ),
    "error without AS": told(
        "SELECT * FROM rides error",
        (
            "SQL line 1, column 21: a word of a clause needs AS to be a name; got error. "
            "Write AS error if it is a name; if it is a clause, begin it with WITH."
        ),
    ),
    "limit with an offset": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route "
            "ORDER BY n LIMIT 1, 5"
        ),
        (
            "SQL: the first rows of a window can be taken, not later ones; got OFFSET. "
            "There is no way yet."
        ),
    ),
    "offset after a subquery": told(
        "(SELECT route FROM rides) LIMIT 3 OFFSET 1",
        (
            "SQL line 1, column 35: the first rows of a window can be taken, not later "
            "ones; got OFFSET. There is no way yet."
        ),
    ),
    "with ties": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route "
            "ORDER BY n FETCH FIRST 3 ROWS WITH TIES"
        ),
        (
            "SQL line 1, column 104: LIMIT must be a whole number of rows; got WITH TIES. "
            "There is no way yet."
        ),
    ),
    "percent": told(
        (
            "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route "
            "ORDER BY n LIMIT 3 PERCENT"
        ),
        (
            "SQL line 1, column 93: LIMIT must be a whole number of rows; got PERCENT. "
            "There is no way yet."
        ),
    ),
    "with fill": told(
        "SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS] ORDER BY n WITH FILL",
        (
            "SQL line 1, column 63: windows without tuples are not put out; got WITH FILL. "
            "There is no way yet."
        ),
    ),
    "all columns left out": told(
        "SELECT * EXCEPT (route, fare, note, dropoff) FROM rides",
        "SELECT: needs at least one column.",
    ),
    "hint": told(
        "SELECT /*+ BROADCAST(rides) */ route FROM rides",
        (
            "SQL line 1, column 8: how a query is run is no part of it; got /*+ ... */. "
            "Leave the hint out."
        ),
    ),
    "hint of a table": told(
        "SELECT route FROM rides WITH (NOLOCK)",
        (
            "SQL line 1, column 25: how a query is run is no part of it; got WITH. Leave "
            "WITH (...) out."
        ),
    ),
    "for update": told(
        "SELECT route FROM rides FOR UPDATE",
        (
            "SQL line 1, column 25: a stream is read only, so nothing is locked; got FOR "
            "UPDATE. Leave it out."
        ),
    ),
    "select as struct": told(
        "SELECT AS STRUCT route FROM rides",
        (
            "SQL line 1, column 1: rows are put out as columns; got SELECT AS. Leave AS "
            "and its word out."
        ),
    ),
    "select into": told(
        "SELECT route INTO x FROM rides",
        (
            "SQL line 1, column 14: an output is named before its query; got INTO. Write "
            "INSERT INTO name SELECT ..."
        ),
    ),
    "materialized": told(
        "WITH w AS MATERIALIZED (SELECT route FROM rides) SELECT route FROM w",
        (
            "SQL line 1, column 11: a query of WITH is computed once; got MATERIALIZED. "
            "Leave MATERIALIZED out."
        ),
    ),
    "using key": told(
        "WITH w USING KEY (route) AS (SELECT route FROM rides) SELECT route FROM w",
        ("SQL line 1, column 8: a query cannot read itself; got USING KEY. There is no way yet."),
    ),
    "natural join with a condition": told(
        (
            "SELECT name FROM rides [RANGE 10 SECONDS] NATURAL JOIN stops [RANGE 10 "
            "SECONDS] ON fare > lat"
        ),
        (
            "SQL line 1, column 81: NATURAL JOIN has no condition of its own; got ON. "
            "Leave NATURAL or ON out."
        ),
    ),
    "natural join of nothing in common": told(
        (
            "SELECT a FROM (SELECT route AS a FROM rides) AS l [RANGE 10 SECONDS] "
            "NATURAL JOIN (SELECT name AS b FROM stops) AS r [RANGE 10 SECONDS]"
        ),
        ("NATURAL JOIN: needs a column that both sides have; got none. Write JOIN ... ON ..."),
    ),
    "join by a column misspelt": told(
        (
            "SELECT route FROM rides AS l [RANGE 0 SECONDS] "
            "JOIN rides AS r [RANGE 0 SECONDS] USING (rout)"
        ),
        (
            "USING: l has no column of this name; got rout. Did you mean route? There are: ts, "
            "route, fare, note, dropoff."
        ),
    ),
    "list of columns": told(
        "SELECT r FROM rides AS x (t, r, f, n, d)",
        (
            "SQL line 1, column 24: only a window and an alias may follow a stream; got "
            "rides AS x(t, r, f, n, d). Leave the list of columns out, and name them in a "
            "subquery: (SELECT route AS r FROM rides)."
        ),
    ),
    "list of columns in WITH": told(
        "WITH w (a, b) AS (SELECT route FROM rides) SELECT a FROM w",
        ("WITH: the list of columns must name each of the 1 that the query has; got a, b."),
    ),
    "partition": told(
        "SELECT * FROM rides PARTITION (p)",
        (
            "SQL line 1, column 21: only a window and an alias may follow a stream; got "
            "rides AS PARTITION(p). Leave the list of columns out, and name them in a "
            "subquery: (SELECT route AS r FROM rides)."
        ),
    ),
    "except in count": told(
        "SELECT COUNT(* EXCEPT (fare)) AS n FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 16: COUNT(*) counts tuples, whatever their columns are; "
            "got EXCEPT. Write COUNT(*)."
        ),
    ),
    "except of no column": told(
        "SELECT * EXCEPT (far) FROM rides",
        (
            "* EXCEPT: no column has this name; got far. Did you mean fare? There are: ts, "
            "route, fare, note, dropoff."
        ),
    ),
    "replace of no column": told(
        "SELECT * REPLACE (1 AS far) FROM rides",
        (
            "* REPLACE: no column has this name; got far. Did you mean fare? There are: "
            "route, fare, note, dropoff."
        ),
    ),
    "star ilike": told(
        "SELECT * ILIKE 'r%' FROM rides",
        "SQL line 1, column 10: * stands for all columns; got ILIKE. List the columns.",
    ),
    "star of no stream": told(
        "SELECT x.* FROM rides",
        "SELECT: no stream in FROM has this name; got x. There are: rides.",
    ),
    "distinct on": told(
        "SELECT DISTINCT ON (route) fare FROM rides",
        (
            "DISTINCT ON: must say for how long a key is remembered; got no KEEP. Write at "
            "the end KEEP FIRST WITHIN '1 hour'."
        ),
    ),
    "distinct star": told(
        "SELECT DISTINCT * FROM rides [RANGE 10 SECONDS]",
        "SELECT DISTINCT: the columns must be listed; got *. List the columns.",
    ),
    "distinct groups": told(
        "SELECT DISTINCT COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route",
        (
            "SELECT: the rows of groups are not made distinct yet; got DISTINCT. There is "
            "no way yet."
        ),
    ),
    "distinct in a function": told(
        "SELECT ABS(DISTINCT fare) AS f FROM rides",
        ("SQL line 1, column 12: only an aggregate can be DISTINCT; got DISTINCT. Leave it out."),
    ),
    "filter of a function": told(
        "SELECT ABS(fare) FILTER (WHERE fare > 1) AS f FROM rides",
        "SQL line 1, column 18: only an aggregate has FILTER; got FILTER. Leave it out.",
    ),
    "order in an aggregate": told(
        "SELECT FIRST(fare ORDER BY note) AS f FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 19: this function takes tuples in the order of event time; "
            "got ORDER BY. There is no way yet."
        ),
    ),
    "limit in an aggregate": told(
        "SELECT SUM(fare LIMIT 1) AS f FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 17: an aggregate takes all tuples of its group; got LIMIT. "
            "There is no way yet."
        ),
    ),
    "having in an aggregate": told(
        "SELECT MAX(fare HAVING MAX note) AS f FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 17: an aggregate takes all tuples of its group; got "
            "HAVING. There is no way yet."
        ),
    ),
    "within group": told(
        "SELECT MAX(fare) WITHIN GROUP (ORDER BY fare) AS f FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 18: this aggregate takes tuples in the order of event time; got "
            "WITHIN GROUP. There is no way yet."
        ),
    ),
    "order of a set": told(
        "SELECT ARRAY_AGG(DISTINCT fare ORDER BY note) AS f FROM rides [RANGE 10 SECONDS]",
        (
            "ARRAY_AGG: another order of a set is not available yet; got ORDER BY. "
            "There is no way yet."
        ),
    ),
    "grouping of one set": told(
        "SELECT GROUPING(route) AS g, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route",
        (
            "SELECT: needs GROUPING SETS, ROLLUP or CUBE in GROUP BY; got GROUPING(route). Leave "
            "it out: every key is grouped by."
        ),
    ),
    "grouping of no key": told(
        "SELECT GROUPING(rute) AS g FROM rides [RANGE 10 SECONDS] GROUP BY ROLLUP (route)",
        "SELECT: GROUPING takes keys of GROUP BY; got rute. Did you mean route? There are: route.",
    ),
    "explode of a text": told(
        (
            "SELECT EXPLODE(note) AS tag FROM (SELECT ARRAY_AGG(note) AS tags, MAX(note) AS note "
            "FROM rides [RANGE 10 SECONDS])"
        ),
        (
            "EXPLODE: must be of an array; got note, which is string. SPLIT(x, ',') makes an array "
            "of a text."
        ),
    ),
    "explode in an expression": told(
        f"SELECT UPPER(EXPLODE_OUTER(tags)) AS tag FROM {LISTS}",
        (
            "SQL line 1, column 14: must stand alone in the select list; got EXPLODE_OUTER. Write "
            "it in FROM: CROSS JOIN UNNEST(tags) AS t(tag)."
        ),
    ),
    "two explodes": told(
        f"SELECT EXPLODE(tags) AS a, EXPLODE(tags) AS b FROM {LISTS}",
        (
            "SELECT: can have one EXPLODE; got 2. Write the others in FROM: CROSS JOIN "
            "UNNEST(tags) AS t(tag)."
        ),
    ),
    "unnest of two": told(
        f"SELECT a, b FROM {LISTS} CROSS JOIN UNNEST(tags, tags) AS t(a)",
        "UNNEST: takes one list; got 2. Write CROSS JOIN for each of them.",
    ),
    "lateral of another function": told(
        f"SELECT tag FROM {LISTS} LATERAL VIEW STACK(2, tags) t AS tag",
        (
            "LATERAL: must be EXPLODE or POSEXPLODE of a list; got STACK(2, tags). Write LATERAL "
            "VIEW EXPLODE(tags) t AS tag."
        ),
    ),
    "two names for explode": told(
        f"SELECT tag FROM {LISTS} LATERAL VIEW EXPLODE(tags) t AS place, tag",
        (
            "EXPLODE: gives one column, POSEXPLODE two; got 2 names. Write EXPLODE(tags) AS tag, "
            "or POSEXPLODE(tags) AS (place, tag)."
        ),
    ),
    "unnest of pairs": told(
        "SELECT tag FROM rides AS a [RANGE 1 SECOND] JOIN rides AS b [RANGE 1 SECOND] ON a.route = "
        "b.route CROSS JOIN UNNEST(a.tags) AS t(tag)",
        (
            "FROM: a list stands beside one stream; got rides AS a [RANGE 1 second] JOIN rides AS "
            "b [RANGE 1 SECOND] ON a.route = b.route. Join in a subquery, and write the list after "
            "it: FROM (SELECT ...) AS pairs CROSS JOIN UNNEST(tags) AS t(tag)."
        ),
    ),
    "with totals": told(
        "SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route WITH TOTALS",
        (
            "SQL line 1, column 79: the total of all groups is a set of its own; got TOTALS. Write "
            "GROUP BY GROUPING SETS ((route), ())."
        ),
    ),
    "two names": told(
        "SELECT fare AS (a, b) FROM rides",
        "SQL line 1, column 13: an expression is one column; got AS. Give it one name.",
    ),
    "in without parentheses": told(
        "SELECT route FROM rides WHERE fare IN note",
        (
            "SQL line 1, column 36: the list of IN must stand in parentheses; got IN. "
            "Write fare IN (...)."
        ),
    ),
    "in unnest": told(
        "SELECT route IN UNNEST(note) AS i FROM rides",
        ("SQL line 1, column 14: IN must have a list of values; got IN. There is no way yet."),
    ),
    "cast default": told(
        "SELECT CAST(note AS INT DEFAULT 3 ON CONVERSION ERROR) AS n FROM rides",
        (
            "SQL line 1, column 25: CAST has no other value for what it cannot read; got "
            "DEFAULT. There is no way yet."
        ),
    ),
    "cast format": told(
        "SELECT CAST(note AS STRING FORMAT 'x') AS n FROM rides",
        (
            "SQL line 1, column 28: CAST reads and writes text in one way only; got "
            "FORMAT. There is no way yet."
        ),
    ),
    "argument that would be lost": told(
        "SELECT DATE_TRUNC('day', ts, 'Europe/Paris') AS d FROM rides",
        "SELECT: DATE_TRUNC must have 2 argument(s); got 3.",
    ),
    "with before insert": told(
        "WITH w AS (SELECT route FROM rides) INSERT INTO x SELECT route FROM w",
        (
            "SQL line 1, column 1: WITH must stand after the name of the output; got WITH "
            "before INSERT INTO. Write INSERT INTO x WITH ... SELECT ..."
        ),
    ),
    "outer mark": told(
        (
            "SELECT name FROM rides [RANGE 10 SECONDS], stops [RANGE 10 SECONDS] WHERE "
            "rides.route = stops.route (+)"
        ),
        (
            "SQL line 1, column 102: outer joins are written in FROM; got (+). Write LEFT JOIN ... "
            "ON ... there."
        ),
    ),
    "straight join": told(
        (
            "SELECT name FROM rides AS a [RANGE 10 SECONDS] STRAIGHT_JOIN stops [RANGE 10 "
            "SECONDS] ON rides.route = stops.route"
        ),
        (
            "SQL line 1, column 48: this way to join is not available yet; got STRAIGHT_JOIN. "
            "There is no way yet."
        ),
    ),
    "cumulate": told(
        (
            "SELECT COUNT(*) AS n FROM rides GROUP BY CUMULATE(ts, INTERVAL '1' MINUTE, "
            "INTERVAL '1' HOUR)"
        ),
        (
            "SQL line 1, column 42: windows that grow are not available yet; got "
            "CUMULATE(...). There is no way yet."
        ),
    ),
    "ksql session": told(
        "SELECT COUNT(*) AS n FROM rides WINDOW SESSION (5 MINUTES) GROUP BY route",
        (
            "SQL line 1, column 33: a window is written after its stream; got WINDOW "
            "SESSION (...). Write FROM rides [SESSION GAP 5 MINUTES]."
        ),
    ),
    "dstream": told(
        "SELECT DSTREAM(COUNT(*)) AS n FROM rides [RANGE 10 SECONDS]",
        (
            "SQL line 1, column 8: rows that leave a window are not put out; got "
            "DSTREAM(...). There is no way yet."
        ),
    ),
    "create index": told(
        "CREATE INDEX i ON rides (route)",
        (
            "SQL line 1, column 1: a script makes streams only; got CREATE INDEX. There is "
            "no way yet."
        ),
    ),
    "create source": told(
        "CREATE SOURCE x WITH (connector = 'kafka'); SELECT * FROM x",
        (
            "SQL line 1, column 1: what a script makes is a stream; got CREATE SOURCE. "
            "Write CREATE STREAM x FROM 'uri' TIME ts"
        ),
    ),
    "create sink": told(
        "CREATE SINK x AS SELECT route FROM rides",
        (
            "SQL line 1, column 1: an output is named before its query; got CREATE SINK. "
            "Write INSERT INTO x SELECT ..."
        ),
    ),
    "create or replace stream": told(
        "CREATE OR REPLACE STREAM x AS SELECT route FROM rides; SELECT * FROM x",
        (
            "SQL line 1, column 1: what a script makes is a stream; got CREATE OR REPLACE "
            "STREAM. Write CREATE STREAM x ..."
        ),
    ),
    "a stream in parentheses": told(
        "SELECT * FROM (rides)",
        "SQL: a query must be a SELECT; got rides.",
    ),
    "star in a sum": told(
        "SELECT COUNT(*) + * AS n FROM rides [RANGE 10 SECONDS]",
        "SELECT: * cannot stand beside an aggregate; got *.",
    ),
    "key of no column": told(
        "SELECT COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY rout",
        (
            "GROUP BY: no column has this name; got rout. Did you mean route? There are: "
            "ts, route, fare, note, dropoff, n."
        ),
    ),
    "aggregate in ON": told(
        (
            "SELECT name FROM rides [RANGE 10 SECONDS] JOIN stops [RANGE 10 SECONDS] ON "
            "SUM(fare) > 1"
        ),
        (
            "ON: an aggregate cannot stand here; got SUM. Compare tuples with tuples; "
            "aggregates are over windows."
        ),
    ),
    "column of neither side": told(
        ("SELECT name FROM rides [RANGE 10 SECONDS] JOIN stops [RANGE 10 SECONDS] ON far > 1"),
        (
            "ON: no column has this name; got far. There are: rides.ts, rides.route, "
            "rides.fare, rides.note, rides.dropoff, stops.ts, stops.route, stops.name, "
            "stops.lat."
        ),
    ),
    "type of no column": told(
        "CREATE STREAM x (a INTERVAL) FROM 'rides.csv'; SELECT * FROM x",
        (
            "CREATE STREAM x, a: the type must be one that columns can have; got INTERVAL. "
            "Use STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, "
            "DECIMAL(p,s), DATE, TIMESTAMP, BINARY, ARRAY<...> or STRUCT<...>."
        ),
    ),
    "idle of zero": told(
        "CREATE STREAM x FROM 'rides.csv' TIME ts IDLE 0 SECONDS; SELECT * FROM x",
        "CREATE STREAM x: IDLE must be longer than zero; got 0 seconds.",
    ),
    "option twice": told(
        ("CREATE STREAM x FROM 'rides.csv' OPTIONS (header true, header true); SELECT * FROM x"),
        "CREATE STREAM x: an option can be given once; got header twice.",
    ),
    "half a row": told(
        "SELECT COUNT(*) AS n FROM rides [ROWS 1.5]",
        "ROWS: must be a whole number of rows; got 1.5.",
    ),
    "comment not closed": told(
        "SELECT route FROM rides /* here",
        ("SQL line 1: expected quotes and comments to be closed; got the end of the text."),
    ),
}
