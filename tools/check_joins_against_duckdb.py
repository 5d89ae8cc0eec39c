"""Several joins of two Parquet files with Tidegate and with DuckDB, and whether they agree.

    python tools/check_joins_against_duckdb.py LEFT.parquet RIGHT.parquet --time COLUMN \\
        --key COLUMN [--value COLUMN --band NUMBER] [--range '1 second']

`--time`, `--key` and `--value` name a column of both files, or two as LEFT,RIGHT. Each engine reads
the files by itself. The end status is 0 when all answers are equal.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter  # noqa: TID251 - only to tell the user how long each engine took
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import tidegate as tg
from tests.duckdb.batch import duration_us, place
from tests.duckdb.compare import differences
from tests.duckdb.join import rewrite_join
from tidegate.session.place import Place
from tidegate.sink.memory import MemorySink

KEYS = "l.{lk} AS l_key, r.{rk} AS r_key, l.{lt} AS l_time, r.{rt} AS r_time"
QUERIES = {
    "equality": f"""
        SELECT {KEYS} FROM l [RANGE {{range}}] JOIN r [RANGE {{range}}] ON l.{{lk}} = r.{{rk}}""",
    "equality, right after left": f"""
        SELECT {KEYS} FROM l [RANGE {{range}}] JOIN r [RANGE 0 SECONDS]
        ON l.{{lk}} = r.{{rk}} AND r.{{rt}} > l.{{lt}}""",
    "equality, different ranges, where": f"""
        SELECT {KEYS} FROM l [RANGE {{half}} MICROSECONDS] JOIN r [RANGE {{range}}]
        ON l.{{lk}} = r.{{rk}} WHERE l.{{lk}} IS NOT NULL AND r.{{rt}} <> l.{{lt}}""",
}
BANDS = {
    "band": f"""
        SELECT {KEYS}, l.{{lv}} AS l_value, r.{{rv}} AS r_value
        FROM l [RANGE {{short}} MICROSECONDS] JOIN r [RANGE {{short}} MICROSECONDS]
        ON l.{{lv}} BETWEEN r.{{rv}} - {{band}} AND r.{{rv}} + {{band}}""",
    "band and equality": f"""
        SELECT {KEYS}, l.{{lv}} - r.{{rv}} AS apart
        FROM l [RANGE {{range}}] JOIN r [RANGE {{range}}]
        ON l.{{lk}} = r.{{rk}} AND abs(l.{{lv}} - r.{{rv}}) <= {{band}}""",
    "equality and order": f"""
        SELECT {KEYS} FROM l [RANGE {{short}} MICROSECONDS] JOIN r [RANGE {{short}} MICROSECONDS]
        ON l.{{lk}} = r.{{rk}} AND l.{{lv}} > r.{{rv}}""",
}
SIDES = ("l", "r")


def main() -> int:
    """Read the arguments, run every query, report."""
    options = _arguments().parse_args()
    files = dict(zip(SIDES, (options.left, options.right), strict=True))
    times, keys, values = (_pair(text) for text in (options.time, options.key, options.value))
    for side, file in files.items():
        known = pq.read_schema(file).names
        for column in (times[side], keys[side], values[side]):
            if column and column not in known:
                print(f"{file} has no column {column}; there are {', '.join(known)}")
                return 2
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    for side, file in files.items():
        path = file.replace("'", "''")
        read = f"read_parquet('{path}', file_row_number = true)"
        source = f'(SELECT * RENAME (file_row_number AS "~seq") FROM {read})'
        place(connection, side, [source], times[side], duration_us(options.disorder))
    range_us = duration_us(options.range)
    names = {"range": options.range, "half": range_us // 2, "short": max(range_us // 20, 1)}
    names |= {"band": options.band}
    for letter, columns in zip("tkv", (times, keys, values), strict=True):
        names |= {f"{side}{letter}": f"`{columns[side]}`" for side in SIDES}
    chosen = QUERIES | (BANDS if options.value else {})
    return 1 if _unequal(connection, options, files, times, chosen, names) else 0


def _unequal(
    connection: duckdb.DuckDBPyConnection,
    options: argparse.Namespace,
    files: dict[str, str],
    times: dict[str, str],
    queries: dict[str, str],
    names: dict[str, Any],
) -> int:
    """How many of the queries have different answers."""
    unequal = 0
    where = Place(options.master).connected()
    session = tg.Session(where.session, master=options.master)
    for title, template in queries.items():
        text = template.format(**names)
        started = perf_counter()
        wanted = connection.sql(rewrite_join(text, hint=True)).to_arrow_table()
        between = perf_counter()
        got = _by_tidegate(session, text, options, files, times)
        ended = perf_counter()
        found = differences(got, wanted)
        unequal += bool(found)
        took = f"duckdb {between - started:.2f} s, tidegate {ended - between:.2f} s"
        print(f"  {'DIFFERENT' if found else 'equal':9} {title}: {wanted.num_rows} rows, {took}")
        for line in found:
            print(f"            {line[:300]}")
    if where.session is not None:
        where.session.stop()
    return unequal


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("left", metavar="LEFT.parquet")
    parser.add_argument("right", metavar="RIGHT.parquet")
    parser.add_argument("--time", required=True, help="the columns with the event time")
    parser.add_argument("--key", required=True, help="the columns that must be equal")
    parser.add_argument("--value", default="", help="the columns that must be near each other")
    parser.add_argument("--band", default="1", help="how near values must be")
    parser.add_argument("--range", default="1 second", help="the length of the windows")
    parser.add_argument("--disorder", default="0 seconds", help="how far rows may be out of order")
    parser.add_argument("--master", default="none", help="a Spark master; none is without Spark")
    parser.add_argument("--batch-rows", type=int, default=20_000)
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--method", default="auto", choices=["auto", "scan"])
    parser.add_argument("--routing", default="auto", choices=["auto", "key", "round-robin"])
    return parser


def _pair(text: str) -> dict[str, str]:
    """A column of each side: one name for both, or two with a comma between them."""
    left, _, right = text.partition(",")
    return {"l": left, "r": right or left}


def _by_tidegate(
    session: tg.Session,
    text: str,
    options: argparse.Namespace,
    files: dict[str, str],
    times: dict[str, str],
) -> pa.Table:
    sink = MemorySink()
    streams = {
        side: session.stream(files[side], time=times[side], name=side, disorder=options.disorder)
        for side in SIDES
    }
    session.sql(text, **streams).start(
        sink=sink,
        batch_rows=options.batch_rows,
        instances=options.instances,
        method=options.method,
        routing=options.routing,
    ).wait()
    return sink.table()


if __name__ == "__main__":
    sys.exit(main())
