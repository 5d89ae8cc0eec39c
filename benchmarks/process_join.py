"""ScaleJoin as a process of one's own beside the built-in scan: comparisons a CPU second.

    python benchmarks/process_join.py                  windows of 20,000 and of 100,000 tuples
    python benchmarks/process_join.py --case small     the first of them

Cases have 16 buckets; `many` is the medium one with 64, each of which costs its calls in a batch.

The process is that of examples/scalejoin_columns.py; both read the same files, in one process
without Spark, with one instance and the same buckets and batches. Each run is a process of its own,
which first runs the same query over little input, so that loops are compiled; the two take turns.
Comparisons are those of the definition, pairs of r and s at most a window apart; the rows of both
must be the same, in the same order. Results go to benchmarks/results/process_join.json.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from count import near_pairs
from data import write_band
from measure import HERE, common_arguments, give, in_child, middle, write_report

BUILT_IN, OWN = "built_in", "own"
WANTED = 3.0
"""How many times the CPU seconds of the built-in join the process may take."""


@dataclass(frozen=True)
class Case:
    """Rows are of each side; ten more batches follow those that fill the windows."""

    window_rows: int
    batch_rows: int
    buckets: int = 16
    per_second: int = 10_000
    domain: int = 10_000

    @property
    def window_us(self) -> int:
        return self.window_rows * 1_000_000 // self.per_second

    @property
    def rows(self) -> int:
        return self.window_rows + 10 * self.batch_rows

    def written(self, data: Path) -> Path:
        """The folder of the input."""
        folder = data / f"band-{self.rows}-{self.per_second}-{self.domain}"
        write_band(folder, self.rows, self.per_second, self.domain)
        return folder


WARM = Case(2_000, 500)
MEDIUM = Case(100_000, 10_000)
CASES = {"small": Case(20_000, 2_000), "medium": MEDIUM, "many": replace(MEDIUM, buckets=64)}


@cache
def example() -> ModuleType:
    """The example as a module, with the functions `own` and `built_in`."""
    path = HERE.parent / "examples" / "scalejoin_columns.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(kind: str, case: Case, folder: Path, checkpoint: Path) -> dict[str, Any]:
    """One run of one of the two in this process."""
    import tidegate as tg

    session, sink = tg.Session(master="none"), tg.sink.memory()
    sides = (session.stream(str(folder / f"{n}.parquet"), time="ts", name=n) for n in "rs")
    query = getattr(example(), kind)(*sides, timedelta(microseconds=case.window_us))
    how: dict[str, Any] = {"instances": 1, "buckets": case.buckets, "checkpoint": str(checkpoint)}
    how |= {"batch_rows": 2 * case.batch_rows}
    how |= {"method": "scan"} if kind == BUILT_IN else {}
    begin, cpu = time.perf_counter(), time.process_time()
    query.start(sink=sink, **how).wait()
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - begin
    rows = sink.table()
    digest = hashlib.sha256(repr([c.to_pylist() for c in rows.columns]).encode()).hexdigest()
    return {"cpu_seconds": cpu, "seconds": seconds, "pairs": rows.num_rows, "digest": digest}


def measure(name: str, rounds: int, data: Path) -> dict[str, Any]:
    """Both by turns, and the ratio of their CPU seconds in each round."""
    case = CASES[name]
    WARM.written(data)
    compared = near_pairs(case.written(data), case.window_us)
    runs: dict[str, list[dict[str, Any]]] = {BUILT_IN: [], OWN: []}
    for number in range(rounds):
        for kind, found in runs.items():
            done = in_child(__file__, "--child", kind, "--case", name, "--data", str(data))
            found.append({**done, "comparisons_per_cpu_second": compared / done["cpu_seconds"]})
        if runs[OWN][-1]["digest"] != runs[BUILT_IN][-1]["digest"]:
            raise SystemExit(f"{name}: the rows of the process are not those of the built-in join")
        speeds = [found[-1]["comparisons_per_cpu_second"] / 1e9 for found in runs.values()]
        print(f"{name}, round {number}: built-in {speeds[0]:.2f}, process {speeds[1]:.2f} "
              "billion comparisons a CPU second", flush=True)  # fmt: skip
    pairs = zip(runs[BUILT_IN], runs[OWN])
    return {
        "case": name,
        **vars(case),
        "comparisons": compared,
        "comparisons_per_cpu_second": {
            kind: middle([r["comparisons_per_cpu_second"] for r in found])
            for kind, found in runs.items()
        },
        "times_slower": middle([own["cpu_seconds"] / built["cpu_seconds"] for built, own in pairs]),
        "runs": runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="all", choices=[*CASES, "all"])
    common_arguments(parser, rounds=3)
    arguments = parser.parse_args()
    data = Path(arguments.data)
    if arguments.child:
        case, work = CASES[arguments.case], Path(arguments.work)
        run(arguments.child, WARM, WARM.written(data), work / "warm")
        give(run(arguments.child, case, case.written(data), work / "checkpoint"))
        return
    names = list(CASES) if arguments.case == "all" else [arguments.case]
    cases = [measure(name, arguments.rounds, data) for name in names]
    write_report("process_join", {"wanted_times_slower": WANTED, "cases": cases})


if __name__ == "__main__":
    main()
