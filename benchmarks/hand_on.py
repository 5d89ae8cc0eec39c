"""Handing tuples on in order without processing them, shared and shuffled: STRETCH's figure 4b.

    python benchmarks/hand_on.py                                two cores, one and two instances
    python benchmarks/hand_on.py --cores 16 --instances 1 4 16
    python benchmarks/hand_on.py --rows 20000 --rounds 1        a quick look

Two sources of generated messages with hashtags are merged by event time. Every instance reads all
of them, as STRETCH's threads do, and an equality join on a key that never matches lets each one
pass without work. `shared` (V_SN) lets instances read the same files, `shuffle` (P_SN) sends every
tuple to each through Spark's shuffle, which sorts. Speed of the replayed sources in batches, then
the latency from arrival to commit at a fixed rate.

Each run is on Spark in a process of its own. Results go to benchmarks/results/hand_on.json, of
other than two cores to hand_on-N.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from measure import (
    CORES,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    middle,
    run_sql,
    write_report,
)
from sustained import latency

ROWS, RATE, SECONDS, WARM = 600_000, 5_000, 12, 3
BATCHES = 10
EXCHANGES = ("shared", "shuffle")
QUERY = """
CREATE STREAM l FROM 'generator:tweets?rows={rows}&seed=1&{more}' TIME ts;
CREATE STREAM r FROM 'generator:tweets?rows={rows}&seed=2&{more}' TIME ts;
SELECT l.text, r.text AS other FROM l [RANGE 1 SECOND] JOIN r [RANGE 1 SECOND]
ON l.user_id = -r.user_id;
"""
"""Users are numbered from 1 on, so no pair has opposite numbers."""


def child(asked: argparse.Namespace) -> None:
    exchange, _, kind = asked.child.partition(" ")
    more, options = "rate=20000", ["--batch-rows", 2 * asked.rows // BATCHES]
    rows = asked.rows
    if kind == "live":
        more, options, rows = f"pace={asked.rate}", [], asked.rate * asked.seconds
    sql = QUERY.format(rows=rows, more=more)
    options += ["--exchange", exchange, "--routing", "round-robin"]
    give(run_sql(sql, Path(asked.work), *options, instances=asked.instances[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--instances", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, default=ROWS, help="of each source")
    parser.add_argument("--rate", type=int, default=RATE, help="of each source, for the latency")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="at that rate")
    asked = parser.parse_args()
    if asked.child:
        child(asked)
        return
    sizes = {"rows": asked.rows, "rate": asked.rate, "seconds": asked.seconds}
    options = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    speeds: dict[str, dict[str, list[float]]] = {}
    waits: dict[str, dict[str, list[dict[str, float]]]] = {}
    for _ in range(asked.rounds):
        for exchange in EXCHANGES:
            for count in asked.instances:
                given = {"instances": count, "cores": max(count, CORES)}
                did = in_child(__file__, "--child", exchange, *options, **given)
                check_count(f"{exchange}, {count}", 0, did["rows_out"])
                found = figures_of([batch for batch in did["batches"][WARM:] if batch["rows"]])
                of = speeds.setdefault(exchange, {}).setdefault(str(count), [])
                of.append(found["rows_per_second"])
                live = in_child(__file__, "--child", f"{exchange} live", *options, **given)
                wait = latency(live["batches"][WARM:])
                waits.setdefault(exchange, {}).setdefault(str(count), []).append(wait)
                said = f"{of[-1]:,.0f} tuples/s, latency {wait['p50']:.0f} ms, {wait['p99']:.0f} ms"
                print(f"{exchange}, {count}: {said}", flush=True)
    found = {
        "rows_per_second": {e: {n: middle(of) for n, of in by.items()} for e, by in speeds.items()},
        "latency_ms": {
            e: {n: {k: middle([w[k] for w in of]) for k in of[0]} for n, of in by.items()}
            for e, by in waits.items()
        },
    }
    name = "hand_on" if CORES == 2 else f"hand_on-{CORES}"
    write_report(name, {**sizes, "rounds": asked.rounds, **found})


if __name__ == "__main__":
    main()
