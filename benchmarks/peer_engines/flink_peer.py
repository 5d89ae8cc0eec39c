"""Flink SQL in a cluster inside this process, in streaming mode, with checkpoints every second.

Files are CSV, because PyPI's Flink brings no Parquet. Mini-batches and two-phase aggregation are
on, as Flink's page of performance tuning advises. It has no join without an equality that forgets
old rows, and its as-of join wants a table of versions by key.
"""

from __future__ import annotations

import json
import sys
import time
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
QUERIES = {
    "tumbling": (MEANS.format(TUMBLE), "end_us BIGINT, key BIGINT, mean DOUBLE, n BIGINT"),
    "sliding": (MEANS.format(HOP), "end_us BIGINT, key BIGINT, mean DOUBLE, n BIGINT"),
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


def run(job: dict[str, Any]) -> dict[str, Any]:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {**SETTINGS, "parallelism.default": str(job["cores"])}
    settings["execution.checkpointing.dir"] = f"file://{job['work']}/state"
    for name, text in settings.items():
        table.get_config().set(name, text)
    sql, columns = QUERIES[job["case"]]
    sides = {"l": "left", "r": "right"} if " JOIN " in sql else {"events": "events"}
    for name, folder in sides.items():
        versions = (
            ", PRIMARY KEY (key) NOT ENFORCED" if (job["case"], name) == ("asof", "r") else ""
        )
        table.execute_sql(
            f"CREATE TEMPORARY TABLE {name} (ts TIMESTAMP(3), key BIGINT, v DOUBLE,"
            f" WATERMARK FOR ts AS ts{versions}) WITH ('connector'='filesystem', 'format'='csv',"
            f" 'path'='file://{job['data']}/csv/{folder}')".replace(" key ", " `key` ").replace(
                "(key)", "(`key`)"
            )
        )
    out = f"{job['work']}/out"
    table.execute_sql(
        f"CREATE TEMPORARY TABLE answer ({columns}) WITH ('connector'='filesystem',"
        f" 'format'='csv', 'path'='file://{out}')".replace("key BIGINT", "`key` BIGINT")
    )
    began = time.perf_counter()
    insert = f"INSERT INTO answer {sql}".replace(" key", " `key`").replace(".key", ".`key`")
    table.execute_sql(insert).wait()
    seconds = time.perf_counter() - began
    lines = [f.read_text() for f in sorted(Path(out).rglob("part-*"))]
    Path(job["work"], "rows.csv").write_text("".join(lines))
    return {
        "seconds": seconds,
        "version": version("apache-flink"),
        "settings": f"parallelism {job['cores']}, checkpoints each second, mini-batches, CSV",
    }


if __name__ == "__main__":
    print("RESULT", json.dumps(run(json.loads(sys.argv[1]))), flush=True)
