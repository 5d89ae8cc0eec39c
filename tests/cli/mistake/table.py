"""What people write of tables, and what is said about it."""

from __future__ import annotations

from tests.cli.mistake.kind import RIDES, Mistake

FILES = {"names.csv": "id,name,since\na,A,2024-01-01T00:00:00Z\nb,B,2024-01-01T00:00:02Z\n"}
TABLE = "CREATE TABLE names FROM 'names.csv'; "
JOINED = f"{TABLE}SELECT route, name FROM rides JOIN names ON route = id"
VERSIONS = JOINED.replace("csv'", "csv' VALID FROM since")
BOTH = "00:00:01,a,A; 00:00:02,b,B"


def told(sql: str, message: str) -> Mistake:
    return Mistake(message=message, sql=sql, options=RIDES, files=FILES)


MISTAKES = {
    "no files": told(
        JOINED.replace(" FROM 'names.csv'", " (id STRING)"),
        "SQL line 1, column 31: expected FROM 'uri'; got the end of the statement.",
    ),
    "no name": told(
        JOINED.replace("TABLE names", "TABLE"),
        "SQL line 1, column 14: expected the name of the table; got FROM.",
    ),
    "made of a query": told(
        "CREATE TABLE x AS SELECT route FROM rides; SELECT route FROM x",
        "SQL line 1, column 1: what a script makes of a query is a stream; got CREATE TABLE ... "
        "AS. Write CREATE STREAM x AS SELECT ...",
    ),
    "replaced": told(
        JOINED.replace("CREATE", "CREATE OR REPLACE"),
        "SQL line 1, column 1: a table is made of files; got CREATE OR REPLACE TABLE. Write "
        "CREATE TABLE names FROM 'uri'",
    ),
    "if not exists": told(
        JOINED.replace("TABLE", "TABLE IF NOT EXISTS"),
        "SQL line 1, column 1: a table lasts as long as the script; got IF NOT EXISTS. Leave IF "
        "NOT EXISTS out.",
    ),
    "alone": told(
        "CREATE TABLE rides FROM 'rides.csv'; SELECT route FROM rides",
        "FROM: a query needs a stream, which a table can be joined to; got table rides. Join a "
        "stream to it, FROM ... JOIN rides ON ..., or make it a stream with CREATE STREAM rides "
        "FROM 'uri' TIME ts.",
    ),
    "first": told(
        f"{TABLE}SELECT route, name FROM names JOIN rides ON route = id",
        "FROM: a query needs a stream, which a table can be joined to; got table names. Join a "
        "stream to it, FROM ... JOIN names ON ..., or make it a stream with CREATE STREAM names "
        "FROM 'uri' TIME ts.",
    ),
    "in a window": told(
        JOINED.replace("JOIN names", "JOIN names [RANGE 5 MINUTES]"),
        "JOIN: a table has no window, because its rows have no event time; got names [RANGE 5 "
        "MINUTES]. Write JOIN names ON ...",
    ),
    "right join": told(
        JOINED.replace("JOIN", "RIGHT JOIN"),
        "JOIN: a stream is joined to table names by JOIN, LEFT JOIN, SEMI JOIN or ANTI JOIN; got "
        "RIGHT JOIN. Its rows have no event time, and cannot stand alone: leave RIGHT out.",
    ),
    "as-of join": told(
        JOINED.replace("JOIN names", "ASOF JOIN names MATCH_CONDITION (rides.ts >= names.since)"),
        "ASOF JOIN: is for streams, because rows of a table have no event time; got table names. "
        "Write CREATE TABLE names ... VALID FROM column, and JOIN, for the newest row of a key at "
        "the time of each tuple.",
    ),
    "MATCH_CONDITION": told(
        JOINED.replace("names ON", "names MATCH_CONDITION (rides.ts >= names.since) ON"),
        "MATCH_CONDITION: is for streams, because rows of a table have no event time; got table "
        "names. Write CREATE TABLE names ... VALID FROM column, and JOIN, for the newest row of a "
        "key at the time of each tuple.",
    ),
    "clause misspelt": told(
        JOINED.replace("csv';", "csv' VALID since;").replace("VALID since", "VALD FROM since"),
        "SQL line 1, column 37: expected VALID FROM, REFRESH EVERY, OPTIONS or ; at the end of "
        "the statement; got VALD.",
    ),
    "both clauses": told(
        JOINED.replace("csv';", "csv' VALID FROM since REFRESH EVERY '1 hour';"),
        "table names: is read again, or has versions by VALID FROM; got both. Leave one of them "
        "out.",
    ),
    "valid from what is no time": told(
        JOINED.replace("csv';", "csv' VALID FROM name;"),
        "table names: VALID FROM must be a column of times; got name of type string. Declare it: "
        "CREATE TABLE names (name TIMESTAMP, ...) FROM ...",
    ),
    "valid from no column": told(
        JOINED.replace("csv';", "csv' VALID FROM sinc;"),
        "table names: VALID FROM must name one of its columns; got sinc. Did you mean since? "
        "There are: id, name, since.",
    ),
    "versions without a key": told(
        JOINED.replace("csv';", "csv' VALID FROM since;").replace("route = id", "route >= id"),
        "ON: table names has versions, so its key must be compared with =; got route >= names.id. "
        "Write ON ... = names.id, with the column that its versions have in common.",
    ),
    "a name twice": told(
        JOINED.replace("names FROM 'names.csv'; ", "names FROM 'names.csv'; " + TABLE),
        "CREATE TABLE: a name can be used once; got names twice. Give one of the tables another "
        "name.",
    ),
}

EDITS: dict[str, tuple[str, ...]] = {
    "no files": (" (id STRING)", " FROM 'names.csv'"),
    "no name": ("TABLE FROM", "TABLE names FROM"),
    "made of a query": ("CREATE TABLE", "CREATE STREAM"),
    "replaced": (" OR REPLACE", ""),
    "if not exists": (" IF NOT EXISTS", ""),
    "alone": ("CREATE TABLE", "CREATE STREAM"),
    "first": ("names JOIN rides", "rides JOIN names"),
    "in a window": (" [RANGE 5 MINUTES]", ""),
    "right join": ("RIGHT ", ""),
    "as-of join": ("", VERSIONS),
    "MATCH_CONDITION": ("", VERSIONS),
    "clause misspelt": ("VALD", "VALID"),
    "both clauses": (" VALID FROM since", ""),
    "valid from what is no time": (" VALID FROM name", " VALID FROM since"),
    "valid from no column": ("sinc;", "since;"),
    "versions without a key": (">=", "="),
    "a name twice": (f"{TABLE}CREATE", "CREATE"),
}
"""By mistake a text of the query, and what stands in its place when the message is followed."""

ANSWERS = dict.fromkeys(EDITS, BOTH) | {
    "made of a query": "00:00:01,a; 00:00:02,b",
    "alone": "00:00:01,a; 00:00:02,b",
}
