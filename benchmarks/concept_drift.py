"""How far the concepts of windows that follow each other lie apart: figure 34 of the dissertation.

    python benchmarks/concept_drift.py                       generated rides, with drift and without
    python benchmarks/concept_drift.py --real FOLDER         real streams, of a folder
    python benchmarks/concept_drift.py --file rides.parquet --key route --time pickup_ts

The query is that of the dissertation's example: the ten most frequent keys of each window, here of
half an hour. `distance` is the share of a window's ten that the next one does not have, `overlap`
the share that it has, means over all pairs of windows that follow each other; windows with fewer
than ten keys are left out. No clock is read. `--file` prints what it finds and writes no result;
the others go to benchmarks/results/concept_drift.json and concept_drift-real.json.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from measure import run_command, write_report

TOP, WINDOW, ROWS = 10, "30 MINUTES", 400_000
TAXI = "generator:taxi?rows={rows}&rate=20"
Asked = tuple[str, str, tuple[str, ...], str]
"""What it is called, where it is, its keys, and its column of event times."""
GENERATED: tuple[Asked, ...] = (
    ("rides, no drift", TAXI, ("route",), "dropoff_time"),
    ("rides, a new route first each hour", TAXI + "&drift=0.00028", ("route",), "dropoff_time"),
    ("rides, each ten minutes", TAXI + "&drift=0.00167", ("route",), "dropoff_time"),
    ("rides, each minute", TAXI + "&drift=0.0167", ("route",), "dropoff_time"),
    ("task events", "generator:tasks?rows={rows}&rate=40", ("job_id",), "ts"),
    ("packets", "generator:packets?rows={rows}&rate=40", ("src",), "ts"),
)
REAL: tuple[Asked, ...] = (
    ("green taxis, routes", "taxi_green_2023q1.parquet", ("pu_zone", "do_zone"), "pickup_ts"),
    ("Google, jobs by name", "google_job_events.parquet", ("logical_job_name_id",), "ts"),
    ("M-Lab, senders of packets", "packets_mlab_ndt.parquet", ("src_host",), "ts"),
    ("DNS, clients", "net_dns.parquet", ("client",), "ts"),
)
QUERY = """
CREATE STREAM s FROM '{uri}' TIME {time} DISORDER 2 HOURS;
SELECT {keys}, COUNT(*) AS n FROM s [RANGE {window}] GROUP BY {keys}
ORDER BY n DESC LIMIT {top};
"""


def concepts(uri: str, keys: tuple[str, ...], time: str, window: str) -> list[set[Any]]:
    """The most frequent keys of each window, by their ends."""
    with tempfile.TemporaryDirectory() as work:
        query, out = Path(work, "query.sql"), Path(work, "out")
        asked = {"uri": uri, "keys": ", ".join(keys), "time": time, "window": window}
        query.write_text(QUERY.format(**asked, top=TOP))
        run_command(["run", query, "--out", out, "--master", "none", "--checkpoint", f"{work}/c"])
        files = [str(file) for file in sorted(out.glob("batch=*/*.parquet"))]
        rows = ds.dataset(files).to_table(["window_end", *keys]).to_pylist()
    found: dict[Any, set[Any]] = {}
    for row in rows:
        found.setdefault(row["window_end"], set()).add(tuple(row[key] for key in keys))
    return [found[end] for end in sorted(found) if len(found[end]) == TOP]


def drift(windows: list[set[Any]]) -> dict[str, float]:
    """The mean distance and overlap of windows that follow each other."""
    apart = [len(one - other) / TOP for one, other in pairwise(windows)]
    if not apart:
        raise SystemExit(f"there must be two windows with {TOP} keys; got {len(windows)}.")
    return {
        "windows": len(windows),
        "distance": statistics.fmean(apart),
        "overlap": 1 - statistics.fmean(apart),
        "distance_most": max(apart),
    }


def asked_for(given: argparse.Namespace) -> Iterator[Asked]:
    if given.file is not None:
        yield given.file, given.file, tuple(given.key), given.time
        return
    if given.real is not None:
        for name, file, keys, time in REAL:
            yield name, str(Path(given.real, file)), keys, time
        return
    for name, uri, keys, time in GENERATED:
        yield name, uri.format(rows=given.rows), keys, time


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="of each generated stream")
    parser.add_argument("--real", metavar="FOLDER", help="where the files of real streams are")
    parser.add_argument("--file", help="a file of yours, in place of all others")
    parser.add_argument("--key", nargs="+", help="its columns that are the key")
    parser.add_argument("--time", help="its column of event times")
    parser.add_argument("--window", default=WINDOW)
    given = parser.parse_args()
    if given.file is not None and (given.key is None or given.time is None):
        parser.error("--file: needs --key and --time, its columns.")
    found: dict[str, Any] = {}
    for name, uri, keys, time in asked_for(given):
        found[name] = drift(concepts(uri, keys, time, given.window))
        said = ", ".join(f"{what} {value:.3g}" for what, value in found[name].items())
        print(f"{name}: {said}", flush=True)
    if given.file is None:
        told = {"window": given.window, "top": TOP}
        name = "concept_drift" if given.real is None else "concept_drift-real"
        write_report(name, {**told, "streams": found})


if __name__ == "__main__":
    main()
