"""From the arrival of a tuple to the commit of what it completes, beside Spark's own streaming.

    python benchmarks/latency.py                       5,000 and 20,000 tuples/s, two minutes each
    python benchmarks/latency.py --seconds 20 --rates 5000 --engines tidegate-window

Live generated streams: a window of 60 s that slides by 1 s over 1,000 groups, and a band join of
10 s (both sides together have the rate, a tuple finds about one other). Each run is a process of
its own; engines take turns at each rate. What is measured here is independent of what Tidegate says
of itself, which is reported beside it: from when a result's last tuple was due (of a window: the
one that lets it close) to when the folder with it got its name. Spark runs the windows as
micro-batches and in real-time mode (`latency_spark.py`), and is asked for the join.
Results go to benchmarks/results/latency.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import latency_spark
from data import START_US
from measure import (
    CORES,
    MASTER,
    common_arguments,
    give,
    in_child,
    middle,
    percentiles,
    run_command,
    write_report,
)
from published import generators_begun, published_ms

RATES, SECONDS, WARM_S = (5_000, 20_000), 120, 30
"""Tuples a second, and how long each run is measured after it has warmed up: Spark's start and the
backlog that it leaves."""
RANGE_S = 10
WANTED = {"p50_ms": 30.0, "p99_ms": 100.0}
_START = "start=2024-01-01T00:00:00Z&seed=7"
QUERIES = {
    "window": """
CREATE STREAM packets FROM 'generator:packets?pace={rate}&rows={rows}&keys=1000&skew=0&{start}';
SELECT src, COUNT(*) AS packets, AVG(size) AS size
FROM packets [RANGE 60 SECONDS SLIDE 1 SECOND] GROUP BY src;
""",
    "join": """
CREATE STREAM r FROM 'generator:r?pace={half}&rows={half_rows}&domain={domain}&{start}' TIME ts;
CREATE STREAM s FROM 'generator:s?pace={half}&rows={half_rows}&domain={domain}&{start}' TIME ts;
SELECT r.x, r.y, s.a, s.b FROM r [RANGE 10 SECONDS] JOIN s [RANGE 10 SECONDS]
ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10;
""",
}
COMPLETED = {"window": "window_end", "join": "ts"}
"""The column with the event time of the tuple that completes a result."""
ENGINES = (
    "tidegate-window",
    "spark-micro-batches",
    "spark-real-time",
    "tidegate-join",
    "spark-real-time-tumbling",
)


def domain(rate: int) -> int:
    """The values' range for which a tuple has about one partner among those of ten seconds.

    A pair is within both bands with a probability of (21 / domain) * (20 / domain).
    """
    return round((rate / 2 * RANGE_S * 21 * 20) ** 0.5)


def script(query: str, rate: int, seconds: int) -> str:
    """A query over streams that end after so many seconds of wall time."""
    return QUERIES[query].format(
        rate=rate,
        rows=rate * seconds,
        half=rate // 2,
        half_rows=rate // 2 * seconds,
        domain=domain(rate),
        start=_START,
    )


def run_tidegate(query: str, rate: int, seconds: int, work: Path) -> dict[str, Any]:
    """One run through the command line."""
    out, file = work / "out", work / "query.sql"
    file.write_text(script(query, rate, WARM_S + seconds))
    arguments = ["run", file, "--out", out, "--checkpoint", work / "checkpoint"]
    arguments += ["--master", MASTER, "--instances", CORES, "--summary", work / "summary.json"]
    with generators_begun() as begun:
        batches = run_command(arguments)
    begun_s = begun[-QUERIES[query].count("CREATE STREAM") :]  # planning had a look before the run
    first_us = START_US + WARM_S * 1_000_000
    seen_ms = published_ms(out, COMPLETED[query], min(begun_s), first_us, seconds)
    warm = [b for b in batches if b["frontier_us"] >= first_us][:-1]
    summary = json.loads((work / "summary.json").read_text())
    return {
        "latency_ms": percentiles(seen_ms),
        "results": len(seen_ms),
        "begun_apart_ms": round((max(begun_s) - min(begun_s)) * 1e3, 3),
        "batch_ms": percentiles([b["seconds"] * 1e3 for b in warm]),
        "batch_rows": percentiles([b["rows"] for b in warm]),
        "said": {k: summary[k] for k in ("latency_ms", "backlog", "backlog_max")},
        "said_after_warm_up": _said([b["latency_ms"] for b in warm]),
    }


def _said(batches: list[dict[str, float]]) -> dict[str, float]:
    """What batches say of their tuples: the median of their medians, 99 of 100 of their p99s."""
    p50, p99, most = ([b[name] for b in batches] for name in ("p50", "p99", "max"))
    return {
        "p50": percentiles(p50)["p50"],
        "p99": percentiles(p99)["p99"],
        "max": float(max(most)),
        "tuples": sum(b["tuples"] for b in batches),
    }


def child(engine: str, rate: int, seconds: int, work: Path) -> None:
    """One run of one engine, in the process made for it."""
    if engine.startswith("tidegate-"):
        give(run_tidegate(engine.removeprefix("tidegate-"), rate, seconds, work))
    elif engine == "spark-micro-batches":
        give(latency_spark.micro_batches(rate, WARM_S, seconds, work))
    elif engine == "refusals":
        give(latency_spark.refusals(work))
    else:
        slide_s = 60 if engine.endswith("tumbling") else 1
        give(latency_spark.real_time(rate, WARM_S, seconds, work, 60, slide_s))


def reduced(engine: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The rounds of one engine at one rate; of Tidegate also whether it keeps to what is wanted."""
    measured = [r["latency_ms"] for r in runs if r["latency_ms"] is not None]
    if not measured or any(value is None for found in measured for value in found.values()):
        failed = any(r.get("error") for r in runs)
        return {"latency_ms": None, "why": "failed" if failed else "falls behind"}
    found: dict[str, Any] = {
        "latency_ms": {p: middle([m[p] for m in measured]) for p in ("p50", "p95", "p99", "max")}
    }
    if engine.startswith("tidegate-"):
        found["kept"] = {
            f"{p}_ms": found["latency_ms"][p]["median"] <= WANTED[f"{p}_ms"] for p in ("p50", "p99")
        }
    return found


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| engine and query | p50 | p95 | p99 | most |"
    yield "|---|---|---|---|---|"
    for name, case in found.items():
        latency = case["latency_ms"]
        if latency is None:
            yield f"| {name} | {case['why']} | | | |"
            continue
        cells = [f"{latency[p]['median']:,.0f} ms" for p in ("p50", "p95", "p99", "max")]
        yield f"| {name} | {' | '.join(cells)} |"


def refused_table(refused: dict[str, str]) -> Iterator[str]:
    """What Spark cannot run, and its words, in Markdown."""
    yield "| asked of Spark | its answer |"
    yield "|---|---|"
    for what, answer in refused.items():
        yield f"| {what} | {answer.replace('|', '&#124;')} |"


def measured(engine: str, rate: int, seconds: int) -> dict[str, Any]:
    """One run; one of Spark's that fails is a result too."""
    options = ("--rates", str(rate), "--seconds", str(seconds))
    try:
        run: dict[str, Any] = in_child(__file__, "--child", engine, *options)
    except SystemExit as failure:
        if not engine.startswith("spark-"):
            raise
        return {"latency_ms": None, "error": str(failure)[-2_000:]}
    return run


def report(
    runs: dict[tuple[str, int], list[dict[str, Any]]], refused: dict[str, str], seconds: int
) -> None:
    """Write what there is."""
    write_report(
        "latency",
        {
            "seconds": seconds,
            "warm_s": WARM_S,
            "wanted": WANTED,
            "queries": {name: text.strip() for name, text in QUERIES.items()},
            "spark": {
                "slots": latency_spark.SLOTS,
                "shuffle_partitions": CORES,
                "micro-batches": "append mode, Parquet files, state in memory, no trigger",
                "real-time": "update mode, RocksDB, checkpoint format 2, noop sink",
            },
            "refused": refused,
            "latency": {_name(*key): reduced(key[0], done) for key, done in runs.items()},
            "runs": {_name(*key): done for key, done in runs.items()},
        },
    )


def _name(engine: str, rate: int) -> str:
    return f"{engine}, {rate:,}/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=1)
    parser.add_argument("--rates", type=int, nargs="+", default=list(RATES))
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    arguments = parser.parse_args()
    if arguments.child:
        rate, work = arguments.rates[0], Path(arguments.work)
        child(arguments.child, rate, arguments.seconds, work)
        return
    asked = [(engine, rate) for rate in arguments.rates for engine in arguments.engines]
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    refused = {}
    if any(engine.startswith("spark-") for engine in arguments.engines):
        refused = in_child(__file__, "--child", "refusals")
    for number in range(arguments.rounds):
        for engine, rate in asked:
            run = measured(engine, rate, arguments.seconds)
            runs.setdefault((engine, rate), []).append(run)
            print(f"round {number} {engine}, {rate:,}/s: {run['latency_ms']}", flush=True)
            report(runs, refused, arguments.seconds)  # it takes long: what there is, is kept
    found = {_name(*key): reduced(key[0], done) for key, done in runs.items()}
    print("\n".join(table(found)))
    for name, case in found.items():
        missed = [bar for bar, kept in case.get("kept", {}).items() if not kept]
        if missed:
            print(f"{name}: missed {', '.join(missed)}")


if __name__ == "__main__":
    main()
