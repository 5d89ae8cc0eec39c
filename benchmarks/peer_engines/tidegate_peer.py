"""Tidegate by its command line, on Spark in local mode, with its defaults."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import tidegate
from tidegate.cli.main import invoke

LIVE = """
CREATE STREAM e FROM '{data}' TIME ts;
SELECT key, AVG(value) AS mean, COUNT(*) AS n FROM e [RANGE 10 SECONDS SLIDE 1 SECOND] GROUP BY key;
"""
EVENTS = "CREATE STREAM e FROM '{data}/events' TIME ts;\n"
SIDES = """
CREATE STREAM l FROM '{data}/keyed/left' TIME ts;
CREATE STREAM r FROM '{data}/keyed/right' TIME ts;
"""
BAND = """
CREATE STREAM r FROM '{data}/band/r.parquet' TIME ts;
CREATE STREAM s FROM '{data}/band/s.parquet' TIME ts;
"""
MEANS = (
    "SELECT key, AVG(value) AS mean, COUNT(*) AS n FROM e [RANGE 60 SECONDS{slide}] GROUP BY key;"
)
QUERIES = {
    "latency": LIVE,
    "tumbling": EVENTS + MEANS.replace("{slide}", ""),
    "sliding": EVENTS + MEANS.replace("{slide}", " SLIDE 10 SECONDS"),
    "median": EVENTS
    + "SELECT key, MEDIAN(value) AS m FROM e [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY key;",
    "equality": SIDES + "SELECT l.key, l.value AS a, r.value AS b"
    " FROM l [RANGE 60 SECONDS] JOIN r [RANGE 60 SECONDS] ON l.key = r.key;",
    "band": BAND + "SELECT r.x, r.y, s.a, s.b FROM r [RANGE 20 SECONDS] JOIN s [RANGE 20 SECONDS]"
    " ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10;",
    "asof": SIDES + "SELECT l.key, l.value AS a, r.value AS b"
    " FROM l ASOF JOIN r MATCH_CONDITION (l.ts >= r.ts) ON l.key = r.key;",
    "tiny": EVENTS.replace("events", "tiny") + MEANS.replace("{slide}", " SLIDE 10 SECONDS"),
}
COLUMNS = {
    "tumbling": ["window_end", "key", "mean", "n"],
    "median": ["window_end", "key", "m"],
    "equality": ["key", "a", "b"],
    "band": ["x", "y", "a", "b"],
    "asof": ["key", "a", "b"],
}
COLUMNS |= dict.fromkeys(("sliding", "tiny"), COLUMNS["tumbling"])


def run(job: dict[str, Any]) -> dict[str, Any]:
    case, work = job["case"], Path(job["work"])
    query, summary = work / "query.sql", work / "summary.json"
    query.write_text(QUERIES[case].format(data=job["data"]))
    words = ["run", str(query), "--out", f"{work}/out", "--checkpoint", f"{work}/state"]
    words += ["--master", f"local[{job['cores']}]", "--instances", str(job["cores"])]
    words += ["--summary", str(summary)]
    if case == "latency":
        words += ["--follow"]
    else:
        words += ["--batch-rows", str(job["batch_rows"])]
    began = time.perf_counter()
    if code := invoke(words):
        raise SystemExit(code)
    whole = time.perf_counter() - began
    told = json.loads(summary.read_text())
    _keep(work, COLUMNS[case])
    return {
        "seconds": told["seconds"],
        "with_start_s": whole,
        "batches": told["batches"],
        **about(job),
    }


def about(job: dict[str, Any]) -> dict[str, str]:
    batches = f"batches of {job['batch_rows']:,} rows"
    if job["case"] == "latency":
        batches = "--follow"
    return {
        "version": tidegate.__version__,
        "settings": f"local[{job['cores']}], as many instances, {batches}",
    }


def _keep(work: Path, columns: list[str]) -> None:
    files = [str(file) for file in sorted(work.glob("out/batch=*/*.parquet"))]
    rows = ds.dataset(files).to_table(columns)
    if columns[0] == "window_end":
        end = rows.column(0).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        rows = rows.set_column(0, "end_us", end)
    pq.write_table(rows, work / "rows.parquet")


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print("ABOUT", json.dumps(about(asked)), flush=True)
    print("RESULT", json.dumps(run(asked)), flush=True)
