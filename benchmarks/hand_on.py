"""Handing tuples on in order without processing them, shared and shuffled: STRETCH's figure 4b.

    python benchmarks/hand_on.py --cores 2                  one and two instances on two cores
    python benchmarks/hand_on.py --instances 1,4,16         on as many cores as instances
    python benchmarks/hand_on.py --rows 20000 --rounds 1    a quick look

Two sources of generated messages with hashtags are merged by event time. Every instance reads all
of them, as STRETCH's threads do, and an equality join on a key that never matches lets each one
pass without work. `shared` (V_SN) lets instances read the same files, `shuffle` (P_SN) sends every
tuple to each through Spark's shuffle, which sorts. Speed of the replayed sources in batches, then
the latency from arrival to commit at a fixed rate.

Each run is on Spark in a process of its own. Results go to benchmarks/results/hand_on-sweep.json.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from measure import (
    CORES,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    run_sql,
)
from sustained import latency
from sweep import sweep_arguments, swept

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


def measured(exchange: str, asked: argparse.Namespace, instances: int, cores: int) -> Any:
    """The speed of a replay, and the latency of a live run."""
    sizes = {"rows": asked.rows, "rate": asked.rate, "seconds": asked.seconds}
    options = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    given = {"instances": instances, "cores": cores}
    did = in_child(__file__, "--child", exchange, *options, **given)
    check_count(f"{exchange}, {instances}", 0, did["rows_out"])
    found = figures_of([batch for batch in did["batches"][WARM:] if batch["rows"]])
    live = in_child(__file__, "--child", f"{exchange} live", *options, **given)
    return {**found, "latency_ms": latency(live["batches"][WARM:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each source")
    parser.add_argument("--rate", type=int, default=RATE, help="of each source, for the latency")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="at that rate")
    sweep_arguments(parser, [1, CORES])
    asked = parser.parse_args()
    if asked.child:
        child(asked)
        return
    swept("hand_on", {name: partial(measured, name, asked) for name in EXCHANGES}, asked)


if __name__ == "__main__":
    main()
