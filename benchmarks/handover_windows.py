"""How long a handover lasts and what it moves, by window, number of keys and instances.

    python benchmarks/handover_windows.py                     figure 19 of StreamCloud
    python benchmarks/handover_windows.py --windows 1 --keys 1000
    python benchmarks/handover_windows.py --rate 100          a quick look

Calls are counted and averaged by caller over windows of 1, 5 and 10 seconds, each sliding by a
fifth, from 1 instance to 2 and from 15 to 16, by state recreation and by window recreation, with
50,000 callers, and with one instance also 1,000. `windows_moved` are the open windows of the moved
buckets that are to be expected, of callers that are all alike. Event time is what tuples carry,
4,000 of them a second, and a batch is half a second of it: `event_s` is from the batch of the
switch to the one with which former owners are done, and 0 where that is the same; `batch_ms` is how
long the batch of the switch took, `usual_ms` the median of its neighbours. It runs in this process,
without Spark and without a network; `handover.py` has a cluster. Results go to
benchmarks/results/handover_windows.json.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from typing import Any

from measure import batches_of, write_report

import tidegate as tg

RATE, BATCH_S, NEAR = 4_000, 0.5, 3
WINDOWS, KEYS, STARTS = (1, 5, 10), (50_000, 1_000), (1, 15)
HANDOVERS = ("state", "window")
BUCKETS = 128
QUERY = """
CREATE STREAM calls FROM 'generator:calls?rows={rows}&rate={rate}&keys={keys}&skew=0' TIME ts;
SELECT src, COUNT(*) AS n, AVG(lat) AS lat
FROM calls [RANGE {range} MILLISECONDS SLIDE {slide} MILLISECONDS] GROUP BY src;
"""


def run(window_s: int, keys: int, before: int, handover: str, rate: int) -> dict[str, float]:
    """One run with one switch, once a window has gone by."""
    batch_rows = round(rate * BATCH_S)
    switch = round(window_s / BATCH_S) + NEAR
    rows = batch_rows * (switch + round(window_s / BATCH_S) + 3 * NEAR)
    of = {"range": window_s * 1_000, "slide": window_s * 200}
    stream = tg.Session(master="none").sql(QUERY.format(rows=rows, rate=rate, keys=keys, **of))
    with tempfile.TemporaryDirectory() as work:
        begun = []

        def whole() -> None:
            query = stream.start(
                sink=tg.sink.files(f"{work}/out"),
                checkpoint=f"{work}/checkpoint",
                instances=before,
                buckets=BUCKETS,
                batch_rows=batch_rows,
                switches={switch: before + 1},
                handover=handover,
            )
            begun.append(query)
            query.wait()

        batches = batches_of(whole)
        (epoch,) = [e for e in begun[0].status()["epochs"] if e["epoch"]]
    near = [*batches[switch - NEAR : switch], *batches[switch + 1 : switch + 1 + NEAR]]
    usual_s = statistics.median(b["seconds"] for b in near)
    over = [i for i, b in enumerate(batches) if b["frontier_us"] >= epoch.get("over_us", 0)]
    last = max(over[0], switch) if handover == "window" else switch
    share = epoch["buckets_moved"] / BUCKETS
    return {
        "event_s": (last - switch) * BATCH_S,
        "batch_ms": batches[switch]["seconds"] * 1e3,
        "usual_ms": usual_s * 1e3,
        "bytes_moved": epoch["bytes_moved"],
        "buckets_moved": epoch["buckets_moved"],
        "windows_moved": round(5 * share * keys * (1 - (1 - 1 / keys) ** (rate * window_s))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, nargs="+", default=list(WINDOWS), metavar="SECONDS")
    parser.add_argument("--keys", type=int, nargs="+", default=list(KEYS))
    parser.add_argument("--starts", type=int, nargs="+", default=list(STARTS), metavar="INSTANCES")
    parser.add_argument("--rate", type=int, default=RATE, help="calls a second of event time")
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    for before in asked.starts:
        for handover in HANDOVERS:
            for keys in asked.keys if before == asked.starts[0] else asked.keys[:1]:
                for window_s in asked.windows:
                    one = run(window_s, keys, before, handover, asked.rate)
                    by_start = found.setdefault(f"{before} to {before + 1}", {})
                    by_keys = by_start.setdefault(handover, {}).setdefault(str(keys), {})
                    by_keys[str(window_s)] = one
                    said = ", ".join(f"{name} {value:,.4g}" for name, value in one.items())
                    print(
                        f"{before} to {before + 1}, {handover}, {keys} keys, {window_s} s: {said}"
                    )
    write_report("handover_windows", {"rate": asked.rate, "batch_s": BATCH_S, "switches": found})


if __name__ == "__main__":
    main()
