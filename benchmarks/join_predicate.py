"""Pairs a second of a predicate that is no interval: hedges, compiled and evaluated as before.

    python benchmarks/join_predicate.py                  200,000 stored trades, 5,000 that ask
    python benchmarks/join_predicate.py --rows 20000     a quick look

The predicate is `l.id <> r.id AND (r.off / l.off) BETWEEN -1.05 AND -0.95`, where `off` is the
distance of a price from its average, as a share. One process and one core. Every run counts its
pairs, and the evaluation as before must find the same ones among the pairs of its share. `ready` is
the time until the loop is loaded or compiled. Results go to benchmarks/results/join_predicate.json.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa
from measure import check_count, common_arguments, give, in_child, middle, write_report

WANTED = 1e9
EVALUATED_ASKS = 20
"""The evaluation as before looks at the pairs of so many only: it takes a hundred times as long."""


def _spec() -> Any:
    from tidegate.expression.tree import Call, Column, Expr, Literal
    from tidegate.operate.join.spec import SCAN, JoinSide, JoinSpec, WindowExtent

    real, whole, truth = pa.float64(), pa.int32(), pa.bool_()

    def of(op: str, *args: Expr) -> Expr:
        return Call(op, args, real)

    def off(side: str) -> Expr:
        price, mean = (Call("cast", (Column(f"{side}{i}", whole),), real) for i in (1, 2))
        return of("divide", of("subtract", price, mean), mean)

    ratio = of("divide", off("r"), off("l"))
    low, high = Literal(-1.05, real), Literal(-0.95, real)
    between = Call(
        "and", (Call("ge", (ratio, low), truth), Call("le", (ratio, high), truth)), truth
    )
    unlike = Call("ne", (Column("l0", pa.string()), Column("r0", pa.string())), truth)
    types = (pa.string(), whole, whole)
    left, right = (
        JoinSide(tuple((f"{s}{i}", t) for i, t in enumerate(types)), WindowExtent(1, None))
        for s in "lr"
    )
    return JoinSpec(left, right, (unlike, between), None, (), SCAN, None)


def _trades(side: str, rows: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    mean = generator.integers(2_000, 100_000, 64)
    company = generator.integers(0, 64, rows)
    away = generator.normal(0, 0.01, rows)
    price = np.round(mean[company] * (1 + away)).astype(np.int32)
    price += price == mean[company]
    names = pa.array([f"C{i:03}" for i in range(64)])
    columns = (names.take(pa.array(company)), price, mean[company].astype(np.int32))
    return pa.table({f"{side}{i}": c for i, c in enumerate(columns)})


def run(rows: int, asks: int) -> dict[str, float]:
    """One batch of tuples that ask a window of stored ones."""
    from tidegate.operate.join.kind import RIGHT
    from tidegate.operate.join.pair_step import compiled_pairs
    from tidegate.operate.join.predicate.decide import GatheredRows, true_of
    from tidegate.operate.join.predicate.program import ASKING, STORED
    from tidegate.operate.join.predicate.program_columns import SideColumns, pair_run

    spec, stored, asking = _spec(), _trades("r", rows, 1), _trades("l", asks, 2)
    program = spec.programs[RIGHT]
    first, last = np.zeros(asks, np.int64), np.full(asks, rows)
    begin = time.perf_counter()
    columns = SideColumns.of(program, STORED, stored), SideColumns.of(program, ASKING, asking)
    ready = pair_run(*columns, None, None).ordered(first, last)
    ready_s = time.perf_counter() - begin
    begin, cpu = time.perf_counter(), time.process_time()
    found = [(p, s) for p, s, _ in compiled_pairs(ready, first, last, ((), (), ()))]
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - begin
    few = min(EVALUATED_ASKS, asks)
    left = GatheredRows(asking, np.repeat(np.arange(few), rows))
    right = GatheredRows(stored, np.tile(np.arange(rows), few))
    begin = time.perf_counter()
    kept = len(true_of(spec, left, right))
    evaluated = time.perf_counter() - begin
    check_count("pairs of the first asks", kept, sum(int((p < few).sum()) for p, _ in found))
    return {
        "pairs_per_second": rows * asks / seconds,
        "pairs_per_cpu_second": rows * asks / cpu,
        "evaluated_per_second": rows * few / evaluated,
        "found_share": sum(len(p) for p, _ in found) / rows / asks,
        "ready_seconds": ready_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--asks", type=int, default=5_000)
    common_arguments(parser, rounds=3)
    arguments = parser.parse_args()
    if arguments.child:
        give(run(arguments.rows, arguments.asks))
        return
    sizes = ("--rows", str(arguments.rows), "--asks", str(arguments.asks))
    runs = [in_child(__file__, "--child", "run", *sizes) for _ in range(arguments.rounds)]
    speeds = {name: middle([r[name] for r in runs]) for name in runs[0]}
    for name, figure in speeds.items():
        print(f"{name}: {figure}", flush=True)
    write_report("join_predicate", {"wanted_per_core": WANTED, "runs": runs, **speeds})


if __name__ == "__main__":
    main()
