"""Several window queries over a Parquet file with Tidegate and with DuckDB, and whether they agree.

    python tools/check_against_duckdb.py FILE.parquet --time COLUMN --key COLUMN --value COLUMN

Each engine reads the file by itself. The end status is 0 when all answers are equal.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter  # noqa: TID251 - only to tell the user how long each engine took

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import tidegate as tg
from tests.duckdb.batch import duration_us, place, rewrite
from tests.duckdb.compare import differences
from tidegate.session.place import Place
from tidegate.sink.memory import MemorySink

QUERIES = {
    "tumbling, grouped": """
        SELECT {key}, COUNT(*) AS n, COUNT({value}) AS c, MIN({value}) AS lo, MAX({value}) AS hi,
               FIRST({value}) AS f, LAST({value}) AS l
        FROM s [RANGE {range}] GROUP BY {key}""",
    "sliding, all rows": """
        SELECT COUNT(*) AS n, COUNT(DISTINCT {key}) AS keys, MIN({key}) AS lo, MAX({key}) AS hi
        FROM s [RANGE {range} SLIDE {slide}]""",
    "sliding, grouped, conditions": """
        SELECT {key}, COUNT(*) AS n, COUNT(DISTINCT {value}) AS u
        FROM s [RANGE {range} SLIDE {slide}] WHERE {value} IS NOT NULL
        GROUP BY {key} HAVING n > 1""",
    "first rows of every window": """
        SELECT {key}, COUNT(*) AS n FROM s [RANGE {range} SLIDE {slide}]
        GROUP BY {key} ORDER BY n DESC LIMIT 3""",
    "no window": "SELECT {key} AS k, {value} AS v FROM s WHERE {value} IS NOT NULL",
    "union": """
        SELECT k, COUNT(*) AS n, FIRST(v) AS f
        FROM (SELECT {key} AS k, {value} AS v FROM s UNION ALL SELECT {key}, {value} FROM s)
             [RANGE {range}] GROUP BY k""",
}
NUMERIC = {
    "sums": """
        SELECT {key}, SUM({value}) AS total, AVG({value}) AS mean, COUNT({value}) AS n
        FROM s [RANGE {range} SLIDE {slide}] GROUP BY {key}""",
    "spread": """
        SELECT {key}, VAR({value}) AS v, STDDEV({value}) AS sd
        FROM s [RANGE {range} SLIDE {slide}] GROUP BY {key}""",
    "quantiles": """
        SELECT {key}, MEDIAN({value}) AS m, QUANTILE({value}, 0.9) AS q
        FROM s [RANGE {range} SLIDE {slide}] GROUP BY {key}""",
    "all rows": """
        SELECT SUM({value}) AS total, STDDEV({value}) AS sd, MEDIAN({value}) AS m
        FROM s [RANGE {range}]""",
}


def main() -> int:
    """Read the arguments, run every query, report."""
    options = _arguments().parse_args()
    known = pq.read_schema(options.file)
    for column in (options.time, options.key, options.value):
        if column not in known.names:
            print(f"no column {column}; there are {', '.join(known.names)}")
            return 2
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    path = options.file.replace("'", "''")
    read = f"read_parquet('{path}', file_row_number = true)"
    source = f'(SELECT * RENAME (file_row_number AS "~seq") FROM {read})'
    place(connection, "s", [source], options.time, duration_us(options.disorder))
    window = _window(connection, options)
    counts = _counts(connection)
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    print(f"{options.file}: {told}; RANGE {window['range']} SLIDE {window['slide']}")
    kinds = pa.types
    type_ = known.field(options.value).type
    numeric = kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_)
    texts = QUERIES | (NUMERIC if numeric else {})
    names = {"key": f"`{options.key}`", "value": f"`{options.value}`", **window}
    unequal = 0
    place_ = Place(options.master).connected()
    session = tg.Session(place_.session, master=options.master)
    for title, template in texts.items():
        text = template.format(**names)
        started = perf_counter()
        wanted = connection.sql(rewrite(text, known.names)).to_arrow_table()
        between = perf_counter()
        got, aside = _by_tidegate(session, text, options)
        ended = perf_counter()
        found = differences(got, wanted)
        found += _aside(counts, aside, times=text.count("FROM s"))
        unequal += bool(found)
        took = f"duckdb {between - started:.2f} s, tidegate {ended - between:.2f} s"
        print(f"  {'DIFFERENT' if found else 'equal':9} {title}: {wanted.num_rows} rows, {took}")
        for line in found:
            print(f"            {line[:300]}")
    if place_.session is not None:
        place_.session.stop()
    return 1 if unequal else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", metavar="FILE.parquet")
    parser.add_argument("--time", required=True, help="the column with the event time")
    parser.add_argument("--key", required=True, help="the column to group by")
    parser.add_argument("--value", required=True, help="the column to aggregate")
    parser.add_argument("--range", help="for example '10 minutes'; by default a part of the span")
    parser.add_argument("--slide", help="by default two fifths of the range")
    parser.add_argument("--disorder", default="0 seconds", help="how far rows may be out of order")
    parser.add_argument("--master", default="none", help="a Spark master; none is without Spark")
    parser.add_argument("--batch-rows", type=int, default=100_000)
    parser.add_argument("--instances", type=int, default=2)
    return parser


def _window(connection: duckdb.DuckDBPyConnection, options: argparse.Namespace) -> dict[str, str]:
    bounds = 'quantile_disc("~ts", 0.01), quantile_disc("~ts", 0.99)'
    low, high = connection.sql(f"SELECT {bounds} FROM s").fetchall()[0]
    range_ = options.range or f"{max((high - low) // 40_000_000, 5)} seconds"
    slide = options.slide or f"{duration_us(range_) * 2 // 5} microseconds"
    return {"range": range_, "slide": slide}


def _counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    views = {"in time": "s", "late": "s~late", "rejected": "s~rejected"}
    return {
        word: connection.sql(f'SELECT count(*) FROM "{view}"').fetchall()[0][0]
        for word, view in views.items()
    }


def _aside(counts: dict[str, int], aside: dict[str, int], times: int) -> list[str]:
    """Late and rejected tuples of a query that reads the stream several times."""
    return [
        f"{count} tuples {word} instead of {counts[word] * times}"
        for word, count in aside.items()
        if count != counts[word] * times
    ]


def _by_tidegate(
    session: tg.Session, text: str, options: argparse.Namespace
) -> tuple[pa.Table, dict[str, int]]:
    sink = MemorySink()
    stream = session.stream(options.file, time=options.time, name="s", disorder=options.disorder)
    running = session.sql(text, s=stream).start(
        sink=sink, batch_rows=options.batch_rows, instances=options.instances
    )
    counted = running.wait().counters
    return sink.table(), {word: counted[f"rows_{word}"] for word in ("late", "rejected")}


if __name__ == "__main__":
    sys.exit(main())
