"""Tidegate, by its command line without Spark; killed from outside, as a user's run would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2]))

from determinism.answer import write_rows

QUERIES = {
    "sliding_avg": "SELECT k, AVG(price) AS mean, COUNT(*) AS n"
    " FROM trades [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k",
    "first_last": "SELECT k, FIRST(price) AS first, LAST(price) AS last"
    " FROM trades [RANGE 10 SECONDS] GROUP BY k",
    "join": "SELECT t.id AS t, q.id AS q, t.price - q.price AS spread"
    " FROM trades AS t [RANGE 1 SECOND] JOIN quotes AS q [RANGE 1 SECOND] ON t.k = q.k",
    "dedup": "SELECT DISTINCT ON (id) id, price FROM trades KEEP FIRST WITHIN '10 seconds'",
    "late": "SELECT k, COUNT(*) AS n, SUM(qty) AS qty FROM late [RANGE 10 SECONDS] GROUP BY k",
    "top": "SELECT k, SUM(qty) AS qty FROM trades [RANGE 10 SECONDS] GROUP BY k"
    " ORDER BY qty DESC LIMIT 2",
}
_KILL_AFTER = 3
_EVERY = 16
"""So many files come between two runs: 24 seconds of each source."""
_DEADLINE_S = 120


def command(job: dict[str, Any], places: dict[str, Path], *options: str) -> list[str]:
    """The command line of a run; a stream has the sources that are there, each by itself."""
    streams = [s for s in ("trades", "quotes", "late") if s in QUERIES[job["query"]]]
    made = "\n".join(
        f"CREATE STREAM {s} FROM '{places['a'] / s}-a.parquet', '{places['b'] / s}-b.parquet'"
        f" TIME ts{' DISORDER 10 SECONDS' if s == 'late' else ''};"
        for s in streams
    )
    work = Path(job["work"])
    query = work / "query.sql"
    query.write_text(f"{made}\n{QUERIES[job['query']]};\n")
    kept = ["--out", f"{work}/out", "--checkpoint", f"{work}/state"]
    cut = ["--batch-rows", str(job["cut"])] if job["cut"] else []
    where = ["--master", "none", "--instances", str(job["parallelism"])]
    return ["run", str(query), *kept, *where, *cut, *options]


def run(job: dict[str, Any]) -> None:
    from tidegate.cli.main import invoke

    whole = Path(job["data"], "whole")
    options = [] if job["rescale"] is None else ["--switch", f"2={job['rescale']}"]
    if job["arrival"] != "in step":
        _arrive(job, invoke)
    elif job["kill"]:
        _kill([sys.executable, "-m", "tidegate", *command(job, {"a": whole, "b": whole})], job)
        _check(invoke(command(job, {"a": whole, "b": whole})))
    else:
        _check(invoke(command(job, {"a": whole, "b": whole}, *options)))
    out = Path(job["work"], "out")
    tables = [pq.read_table(f) for f in sorted(out.glob("batch=*/*.parquet"))]
    rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    write_rows(Path(job["out"]), rows)


def _arrive(job: dict[str, Any], invoke: Any) -> None:
    """Each source is a folder; a run takes what is there, and the next one what has come since."""
    work = Path(job["work"], "input")
    for stream in ("trades", "quotes", "late"):
        for name in ("a", "b"):
            (work / f"{stream}-{name}.parquet").mkdir(parents=True)
    arrived = Path(job["data"], job["arrival"].replace(" ", "-"))
    folders = {
        stream: sorted((arrived / stream).iterdir(), key=lambda f: f.stat().st_mtime)
        for stream in ("trades", "quotes", "late")
    }
    steps = max(map(len, folders.values()))
    for step in range(steps):
        for stream, files in folders.items():
            for file in files[step : step + 1]:
                name = file.stem.partition("-")[0]
                os.link(file, work / f"{stream}-{name}.parquet" / file.name)
        if step % _EVERY == _EVERY - 1:
            _check(invoke(command(job, {"a": work, "b": work}, "--available-now")))
    _check(invoke(command(job, {"a": work, "b": work})))


def _kill(program: list[str], job: dict[str, Any]) -> None:
    """SIGKILL when some batches have been published."""
    out, until = Path(job["work"], "out"), time.monotonic() + _DEADLINE_S
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while len(list(out.glob("batch=*"))) < _KILL_AFTER:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the run ended before it could be killed")
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)


def _check(code: int) -> None:
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    for each in json.loads(Path(sys.argv[1]).read_text()):
        Path(each["work"]).mkdir(parents=True, exist_ok=True)
        run(each)
