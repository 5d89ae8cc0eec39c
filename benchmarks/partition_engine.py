"""How long a window takes with many instances, by the processor time of each: figures 12 to 19.

    python benchmarks/partition_engine.py                    all streams, 8 and 32 instances
    python benchmarks/partition_engine.py --window-rows 20000 --instances 4 --only taxi

The engine runs the query of a stream with each partitioner, a window to a batch, and its instances
take turns in one process. Each says what processor time it took, so a window takes as long as the
slowest of them would, were each on a core of its own: the map tasks' time divided among them, the
slowest instance, and the slowest of those that merge. `at_one_s` is the dissertation's way, in
which one worker merges. State, checkpoint and rows are written as in any run, and are part of it.
Tuples are routed one by one (`--partial instance`), as Storm routes them.

`partitioners.py` computes the same from the costs of the kernels. Figures are medians over the
windows after the first ones. Results go to benchmarks/results/partition_engine.json.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import (
    Batch,
    beside,
    beside_argument,
    check_count,
    common_arguments,
    give,
    in_child,
    rows_written,
    run_command,
    write_report,
)
from partition_spark import QUERY
from partition_streams import GENERATED, WINDOW_ROWS, Case

PARTITIONERS = ("hash", "shuffle", "pk", "am", "cam")
INSTANCES = (8, 32)
WINDOWS, SETTLED = 6, 2


def run(case: Case, partitioner: str, instances: int, rows: int, work: Path) -> dict[str, Any]:
    """One run to its end; its batches and the rows that it wrote."""
    work.mkdir()
    query = work / "query.sql"
    uri = case.uri(f"rows={rows * WINDOWS}&rate={rows}")
    keys = ", ".join(case.keys)
    query.write_text(QUERY.format(uri=uri, time=case.time, keys=keys, value=case.value))
    words = ["run", query, "--out", work / "out", "--checkpoint", work / "state"]
    words += ["--master", "none", "--partial", "instance", "--batch-rows", rows]
    batches = run_command([*words, "--instances", instances, "--partitioner", partitioner])
    return {"batches": batches, "rows_out": rows_written(work / "out")}


def path_of(batch: Batch, instances: int) -> dict[str, float]:
    """What a batch takes with a core for each instance, in seconds."""
    each = [us / 1e6 for us in batch["per_instance"]["cpu_us"]]
    evaluate, merge = each[:instances], each[instances:]
    map_s = (batch["cpu_us"] / 1e6 - sum(each)) / instances
    return {
        "map_s": map_s,
        "evaluate_s": max(evaluate),
        "merge_s": max(merge, default=0.0),
        "path_s": map_s + max(evaluate) + max(merge, default=0.0),
        "at_one_s": map_s + max(evaluate) + sum(merge),
        "busiest": max(evaluate) / statistics.fmean(evaluate),
    }


def of_case(case: Case, counts: Sequence[int], rows: int, work: Path) -> dict[str, Any]:
    """All partitioners with each number of instances; all must give as many rows."""
    found: dict[str, Any] = {}
    run(case, "cam", 2, min(rows, 2_000), work / "warm")  # what is compiled with a query
    wanted = None
    for count in counts:
        for name in PARTITIONERS:
            did = run(case, name, count, rows, work / f"{name}-{count}")
            wanted = wanted or did["rows_out"]
            check_count(f"{case.name}, {name}, {count}", wanted, did["rows_out"])
            paths = [path_of(batch, count) for batch in did["batches"][SETTLED : WINDOWS - 1]]
            middle = {k: statistics.median(path[k] for path in paths) for k in paths[0]}
            found.setdefault(str(count), {})[name] = middle
    return found | {"rows_out": wanted}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser)
    beside_argument(parser)
    parser.add_argument("--only", default="", help="the streams with this text in their names")
    parser.add_argument("--instances", type=int, nargs="+", default=INSTANCES)
    parser.add_argument("--window-rows", type=int, default=WINDOW_ROWS)
    asked = parser.parse_args()
    cases = {case.name: case for case in GENERATED if asked.only in case.name}
    if asked.child:
        case = cases[asked.child]
        give(of_case(case, asked.instances, asked.window_rows, Path(asked.work)))
        return
    options = ["--window-rows", str(asked.window_rows), "--instances", *map(str, asked.instances)]

    def one(name: str, cpus: Sequence[int] | None) -> Any:
        began = time.perf_counter()
        found = in_child(__file__, "--child", name, *options, cpus=cpus)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        return found

    found = dict(zip(cases, beside(asked.beside, one, list(cases)), strict=True))
    sizes = {"window_rows": asked.window_rows, "windows": WINDOWS - 1 - SETTLED}
    write_report("partition_engine", {**sizes, "beside": asked.beside, "cases": found})


if __name__ == "__main__":
    main()
