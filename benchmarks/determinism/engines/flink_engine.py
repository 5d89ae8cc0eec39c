"""Flink SQL in a cluster inside this process: a table and a watermark for each source.

Event time, watermarks behind by what rows may be late by, made for each source by itself and
merged by UNION ALL, so that a source that is read ahead of the other makes no row late.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

TRADES = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
QUERIES = {
    "sliding_avg": "SELECT window_start, window_end, k, AVG(price) AS mean, COUNT(*) AS n FROM"
    " TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))"
    " GROUP BY window_start, window_end, k",
    "first_last": "SELECT window_start, window_end, k, FIRST_VALUE(price) AS f,"
    f" LAST_VALUE(price) AS l FROM {TRADES.format('trades')} GROUP BY window_start, window_end, k",
    "join": "SELECT t.ts AS tts, q.ts AS qts, t.id AS t, q.id AS q, t.price - q.price AS spread"
    " FROM trades AS t JOIN quotes AS q ON t.k = q.k"
    " AND q.ts BETWEEN t.ts - INTERVAL '1' SECOND AND t.ts + INTERVAL '1' SECOND",
    "dedup": "SELECT ts, id, price FROM (SELECT *, ROW_NUMBER() OVER"
    " (PARTITION BY id ORDER BY ts ASC) AS n FROM trades) WHERE n = 1",
    "late": "SELECT window_start, window_end, k, COUNT(*) AS n, SUM(qty) AS qty"
    f" FROM {TRADES.format('late')} GROUP BY window_start, window_end, k",
    "top": "SELECT window_start, window_end, k, qty FROM (SELECT *, ROW_NUMBER() OVER"
    " (PARTITION BY window_start, window_end ORDER BY qty DESC) AS n FROM (SELECT window_start,"
    f" window_end, k, SUM(qty) AS qty FROM {TRADES.format('trades')}"
    " GROUP BY window_start, window_end, k)) WHERE n <= 2",
}
COLUMNS = (
    "ts TIMESTAMP(3), k STRING, price DOUBLE, qty BIGINT, id BIGINT,"
    " WATERMARK FOR ts AS ts - INTERVAL '10' SECOND"
)


def run(job: dict[str, Any]) -> None:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": job["parallelism"],
        "execution.buffer-timeout.interval": "0 ms" if job["cut"] else "100 ms",
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": f"file://{job['work']}/state",
    }
    for name, value in settings.items():
        table.get_config().set(name, str(value))
    for stream in (s for s in ("trades", "quotes", "late") if s in QUERIES[job["query"]]):
        for name in ("a", "b"):
            table.execute_sql(
                f"CREATE TEMPORARY TABLE {stream}_{name} ({COLUMNS}) WITH"
                f" ('connector'='filesystem', 'format'='csv', 'path'='file://{job['data']}/whole/{stream}-{name}.csv')"
            )
        first, second = ("b", "a") if job["arrival"] == "b first" else ("a", "b")
        table.execute_sql(
            f"CREATE TEMPORARY VIEW {stream} AS SELECT * FROM {stream}_{first}"
            f" UNION ALL SELECT * FROM {stream}_{second}"
        )
    _write(table, job)


def _write(table: TableEnvironment, job: dict[str, Any]) -> None:
    """Into files that one task writes in the order in which rows come to it."""
    result = table.sql_query(QUERIES[job["query"]])
    columns = ", ".join(
        f"`{name}` {type_!s}" for name, type_ in zip(_names(result), _types(result), strict=True)
    )
    table.execute_sql(
        f"CREATE TEMPORARY TABLE answer ({columns}) WITH ('connector'='filesystem',"
        f" 'format'='json', 'path'='file://{job['work']}/out', 'sink.parallelism'='1')"
    )
    result.execute_insert("answer").wait()
    files = sorted(Path(job["work"], "out").rglob("part-*"), key=_number)
    lines = [line for file in files for line in file.read_text().splitlines()]
    with Path(job["out"]).open("w") as out:
        for line in lines:
            row = json.loads(line)
            out.write(
                json.dumps([v.hex() if isinstance(v, float) else v for v in row.values()]) + "\n"
            )


def _names(result: Any) -> list[str]:
    return result.get_schema().get_field_names()


def _types(result: Any) -> list[str]:
    return [str(t).partition(" ")[0] for t in result.get_schema().get_field_data_types()]


def _number(file: Path) -> list[int]:
    return [int(n) for n in file.name.rsplit("-", 2)[1:]]


if __name__ == "__main__":
    for each in json.loads(Path(sys.argv[1]).read_text()):
        Path(each["work"]).mkdir(parents=True, exist_ok=True)
        run(each)
