"""Flink SQL in a cluster inside this process, in streaming mode, with checkpoints every second.

Files are CSV, because PyPI's Flink brings no Parquet. Its readers take the files of a folder in any
order (LocalityAwareSplitAssigner), and rows behind a watermark are dropped. So each reader,
of which there are as many as cores, has one file with its share of all rows in the order of time;
no other engine drops rows for that, and they have files of 100,000 rows. Mini-batches and two-phase
aggregation are on, as Flink's page of performance tuning advises; for latency mini-batches are off,
as that page says that they delay rows, and checkpoints, which publish files, come ten times a
second. Its as-of join wants a table of versions by key. The seconds are its own of the job, without
its start.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

HOP = "TABLE(HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '60' SECOND))"
TUMBLE = "TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '60' SECOND))"
MEANS = (
    "SELECT UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000000 AS end_us, key, AVG(v) AS mean,"
    " COUNT(*) AS n FROM {} GROUP BY window_start, window_end, key"
)
LIVE = "TABLE(HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '10' SECOND))"
QUERIES = {
    "tumbling": (MEANS.format(TUMBLE), "end_us BIGINT, key BIGINT, mean DOUBLE, n BIGINT"),
    "sliding": (MEANS.format(HOP), "end_us BIGINT, key BIGINT, mean DOUBLE, n BIGINT"),
    "latency": (MEANS.format(LIVE), "end_us BIGINT, key BIGINT, mean DOUBLE, n BIGINT"),
    "median": (
        "SELECT UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000000 AS end_us, key,"
        f" PERCENTILE(v, 0.5) AS m FROM {HOP} GROUP BY window_start, window_end, key",
        "end_us BIGINT, key BIGINT, m DOUBLE",
    ),
    "equality": (
        "SELECT l.key, l.v AS a, r.v AS b FROM l JOIN r ON l.key = r.key"
        " AND r.ts BETWEEN l.ts - INTERVAL '60' SECOND AND l.ts + INTERVAL '60' SECOND",
        "key BIGINT, a DOUBLE, b DOUBLE",
    ),
    "asof": (
        "SELECT l.key, l.v AS a, r.v AS b"
        " FROM l JOIN r FOR SYSTEM_TIME AS OF l.ts ON l.key = r.key",
        "key BIGINT, a DOUBLE, b DOUBLE",
    ),
}
SETTINGS = {
    "execution.checkpointing.interval": "1 s",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    "table.local-time-zone": "UTC",
}


LIVE_SETTINGS = {
    "execution.checkpointing.interval": "100 ms",
    "table.exec.mini-batch.enabled": "false",
    "pipeline.auto-watermark-interval": "50 ms",
    # A reader that gets no file holds no window back.
    "table.exec.source.idle-timeout": "500 ms",
}


def run(job: dict[str, Any]) -> dict[str, Any]:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    live = job["case"] == "latency"
    settings = SETTINGS | (LIVE_SETTINGS if live else {})
    settings["parallelism.default"] = str(job["cores"])
    settings["execution.checkpointing.dir"] = f"file://{job['work']}/state"
    for name, text in settings.items():
        table.get_config().set(name, text)
    sql, columns = QUERIES[job["case"]]
    data = Path(job["data"])
    sides = {"l": "left", "r": "right"} if " JOIN " in sql else {"events": "events"}
    for name, folder in sides.items():
        _source(
            table,
            name,
            data if live else data / f"csv-{job['cores']}" / folder,
            watched=live,
            by_key=(job["case"], name) == ("asof", "r"),
        )
    out = f"{job['work']}/out"
    table.execute_sql(
        f"CREATE TEMPORARY TABLE answer ({columns}) WITH ('connector'='filesystem',"
        f" 'format'='csv', 'path'='file://{out}')".replace("key BIGINT", "`key` BIGINT")
    )
    insert = f"INSERT INTO answer {sql}".replace(" key", " `key`").replace(".key", ".`key`")
    client = table.execute_sql(insert).get_job_client()
    print("ABOUT", json.dumps(about(job)), flush=True)
    ended = client.get_job_execution_result().result()
    lines = [f.read_text() for f in sorted(Path(out).rglob("part-*"))]
    Path(job["work"], "rows.csv").write_text("".join(lines))
    return {"seconds": ended.get_net_runtime() / 1e3, **about(job)}


def _source(
    table: TableEnvironment, name: str, folder: Path, *, watched: bool, by_key: bool
) -> None:
    """A table of the CSV files of a folder: those that are there, or those that come as well."""
    key = ", PRIMARY KEY (`key`) NOT ENFORCED" if by_key else ""
    watch = ", 'source.monitor-interval'='20 ms'" if watched else ""
    table.execute_sql(
        f"CREATE TEMPORARY TABLE {name} (ts TIMESTAMP(3), `key` BIGINT, v DOUBLE,"
        f" WATERMARK FOR ts AS ts{key}) WITH ('connector'='filesystem', 'format'='csv',"
        f" 'path'='file://{folder}'{watch})"
    )


def about(job: dict[str, Any]) -> dict[str, str]:
    live = job["case"] == "latency"
    how = ("100 ms", "CSV") if live else ("second, mini-batches", "CSV, a file in order per core")
    return {
        "version": version("apache-flink"),
        "settings": f"parallelism {job['cores']}, checkpoints each {how[0]}, {how[1]}",
    }


if __name__ == "__main__":
    print("RESULT", json.dumps(run(json.loads(sys.argv[1]))), flush=True)
