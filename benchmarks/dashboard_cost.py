"""What the page costs a query: processor time with a page open beside that without one.

    python benchmarks/dashboard_cost.py                              seven rounds
    python benchmarks/dashboard_cost.py --rounds 1 --batches 60      to see that it works

Each round runs the same query in this order, and the next round the other way about: without a
page, with a page that a browser's stand-in reads (all its events), and with one that is also
scraped once a second. A run is a process of its own, without Spark; who reads is another, and does
not count. A run pauses after its first batches until the page is open. The cost is what the process
takes from then on, in all its threads, and rounds are compared in pairs; so is how long a batch
takes, which says less on a busy machine. Seven rounds of 400 batches take some four minutes on two
quiet cores. Results go to
benchmarks/results/dashboard_cost.json.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from measure import CORES, common_arguments, give, in_child, write_report

import tidegate as tg

WAYS = ("without", "page", "page and metrics")
BATCHES, BATCH_ROWS = 600, 10_000
WARM, PAUSED_S = 20, 1.0
"""Batches that are not measured, and how long the last of them may take."""
WANTED = {"more_cpu_share": 0.02, "more_ms_per_batch": 1.0, "longer_ms_per_batch": 1.0}
"""The most that an open page may cost: processor time, and time that a batch takes longer."""

CONNECTED = "connected"


def child(way: str, batches: int, batch_rows: int, work: Path) -> None:
    """One run of the query, in the process made for it."""
    uri = f"generator:taxi?rows={batches * batch_rows}&rate=100&seed=7"
    rides = tg.Session(master="none").stream(uri, time="dropoff_time")
    busy = rides.window("60 seconds", slide="10 seconds").group_by("route")
    query = busy.agg(n=tg.count(), fare=tg.mean("fare")).start(
        sink=tg.sink.files(str(work / "out")),
        checkpoint=str(work / "checkpoint"),
        instances=CORES,
        batch_rows=batch_rows,
        dashboard=way != "without",
    )
    while query.status()["batch"] < WARM:
        time.sleep(0.01)
    query.pause()
    time.sleep(PAUSED_S)
    reader = None if query.dashboard is None else opened(query.dashboard, way)
    before, cpu_s, wall_s = query.status()["batch"], time.process_time(), time.perf_counter()
    query.resume()
    done = query.wait()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    if reader is not None:
        reader.terminate()
        reader.wait()
    counted = query.status()["batch"] - before
    if not done.finished or counted < batches // 2:
        raise SystemExit(f"{counted} of {batches} batches were left to measure")
    give({"cpu_ms_per_batch": cpu_s * 1e3 / counted, "batch_ms": wall_s * 1e3 / counted})


def opened(url: str, way: str) -> subprocess.Popen[str]:
    """A process that reads the page, from when it has its first answers."""
    command = [sys.executable, __file__, "--read", url, "--way", way]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    if reader.stdout.readline().strip() != CONNECTED:
        raise SystemExit("the page could not be read")
    return reader


def read(url: str, way: str) -> None:
    """Read events as a browser does; with metrics, scrape them once a second."""
    due = time.monotonic() if way.endswith("metrics") else math.inf
    with urlopen(f"{url}api/events?query=0") as events:
        for number, _ in enumerate(events):
            if time.monotonic() >= due:
                due += 1.0
                urlopen(f"{url}metrics").read()
            if number == 0:
                print(CONNECTED, flush=True)


def compared(rounds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """By way the medians, and of those with a page what they take more than without, in pairs."""
    found: dict[str, Any] = {}
    for way in WAYS:
        runs = [one[way] for one in rounds]
        found[way] = {name: round(median(run[name] for run in runs), 4) for name in runs[0]}
        if way == WAYS[0]:
            continue
        pairs = [(one[WAYS[0]]["cpu_ms_per_batch"], one[way]["cpu_ms_per_batch"]) for one in rounds]
        walls = [one[way]["batch_ms"] - one[WAYS[0]]["batch_ms"] for one in rounds]
        found[way]["longer_ms_per_batch"] = round(median(walls), 4)
        found[way]["more_ms_per_batch"] = round(median(b - a for a, b in pairs), 4)
        found[way]["more_cpu_share"] = round(median(b / a - 1 for a, b in pairs), 4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    common_arguments(parser, rounds=7)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--batch-rows", type=int, default=BATCH_ROWS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.read:
        return read(asked.read, asked.way)
    if asked.child:
        return child(asked.child, asked.batches, asked.batch_rows, Path(asked.work))
    sizes = ("--batches", str(asked.batches), "--batch-rows", str(asked.batch_rows))
    rounds = []
    for number in range(asked.rounds):
        ways = WAYS if number % 2 == 0 else WAYS[::-1]
        runs = {way: in_child(__file__, "--child", way, *sizes) for way in ways}
        rounds.append(runs)
        print(number, {way: round(run["cpu_ms_per_batch"], 2) for way, run in runs.items()})
    found = compared(rounds)
    for way in WAYS:
        print(way, found[way])
    write_report(
        "dashboard_cost",
        {
            "batches": asked.batches,
            "batch_rows": asked.batch_rows,
            "instances": CORES,
            "wanted": WANTED,
            "rounds": rounds,
            "compared": found,
        },
    )


if __name__ == "__main__":
    main()
