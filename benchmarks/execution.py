"""Large batches with tasks that stay beside jobs of each batch: the cases of other benchmarks.

    python benchmarks/execution.py                        all cases, three rounds
    python benchmarks/execution.py sliding join-band --rounds 1

In each round every case runs with `--execution resident` and with `--execution jobs`, in turns that
change who is first; each run is a process of its own. Starting a job matters little to a large
batch, so neither should be faster by much: what is looked for is a case that got slower. Both must
give as many rows. Results go to benchmarks/results/execution.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import batch_cost
import join_band
import join_equi
import strategies
import window_aggregate
from data import write_band, write_events, write_keyed
from measure import (
    CORES,
    MASTER,
    Batch,
    batches_of,
    check_count,
    common_arguments,
    give,
    in_child,
    middle,
    rows_written,
    speed,
    write_report,
)

WAYS = ("resident", "jobs")
WANTED_RATIO = 0.97


@dataclass(frozen=True)
class Case:
    """One workload: where its input is made, how it runs, and the batches to leave out first."""

    run: Callable[[Path, Path, str], list[Batch]]
    input: Callable[[Path], Path] = lambda data: data
    warm: int = 3


def _window(name: str, warm: int = 3) -> Case:
    case = window_aggregate.CASES[name]

    def made(data: Path) -> Path:
        folder = data / f"{case.rows}-{case.file_rows}-{case.keys}-{case.per_second}"
        write_events(folder, case.rows, case.file_rows, case.keys, case.per_second)
        return folder

    def run(data: Path, work: Path, way: str) -> list[Batch]:
        return window_aggregate.run_tidegate(case, data, work, execution=way)

    return Case(run, made, warm)


def _band(name: str) -> Case:
    case = join_band.CASES[name]

    def made(data: Path) -> Path:
        folder = data / f"band-{case.rows}-{case.per_second}-{case.domain}"
        write_band(folder, case.rows, case.per_second, case.domain)
        return folder

    def run(data: Path, work: Path, way: str) -> list[Batch]:
        done: list[Batch] = join_band.run_case(case, data, work, "--execution", way)["batches"]
        return done

    return Case(run, made)


def _equal() -> Case:
    rows, file_rows, keys = join_equi.ROWS, join_equi.FILE_ROWS, join_equi.KEYS

    def made(data: Path) -> Path:
        folder = data / f"keyed-{rows}-{file_rows}-{keys}"
        write_keyed(folder, rows, file_rows, keys)
        return folder

    def run(data: Path, work: Path, way: str) -> list[Batch]:
        done: list[Batch] = join_equi.run_tidegate(data, work, "--execution", way)["batches"]
        return done

    return Case(run, made)


def _generated(make: Callable[[Any], Any], batch_rows: int) -> Case:
    """A query over generated rows, through Python."""

    def run(data: Path, work: Path, way: str) -> list[Batch]:
        import tidegate as tg

        stream = make(tg.Session(master=MASTER))
        where = {"sink": tg.sink.files(str(work / "out")), "checkpoint": str(work / "checkpoint")}
        options: dict[str, Any] = {"instances": CORES, "batch_rows": batch_rows, "execution": way}
        return batches_of(lambda: stream.start(**where, **options).wait())

    return Case(run)


def _calls(session: Any) -> Any:
    rate = strategies.PER_SECOND
    return session.sql(strategies.QUERY.format(rows=1_500_000, rate=rate))


CASES = {
    "sliding": _window("sliding"),
    "tumbling": _window("tumbling"),
    "few-keys": _window("few-keys"),
    "median": _window("median", warm=1),
    "small-batches": _window("small-batches"),
    "join-band": _band("small"),
    "join-equi": _equal(),
    "calls": _generated(_calls, strategies.BATCH_ROWS),
    "process": _generated(lambda session: batch_cost.process(session, 400_000), 40_000),
}


def child(name: str, way: str, data: Path, work: Path) -> None:
    """One run of one case, in the process made for it."""
    batches = CASES[name].run(data, work, way)
    give({"batches": batches, "rows_out": rows_written(work / "out")})


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| case | resident, rows/s | jobs, rows/s | resident / jobs |"
    yield "|---|---|---|---|"
    for name, case in found.items():
        speeds = [f"{case[way]['median']:,.0f}" for way in WAYS]
        ratio = case["ratio"]
        times = f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
        yield f"| {name} | {' | '.join(speeds)} | {times} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    data = Path(arguments.data)
    if arguments.child:
        child(arguments.child, arguments.way, data, Path(arguments.work))
        return
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(CASES)}")
    names = arguments.cases or list(CASES)
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {n: {w: [] for w in WAYS} for n in names}
    wanted: dict[str, int] = {}
    for number in range(arguments.rounds):
        for name in names:
            folder = CASES[name].input(data)
            for way in WAYS if number % 2 == 0 else WAYS[::-1]:
                done = in_child(__file__, "--child", name, "--way", way, "--data", str(folder))
                check_count(name, wanted.setdefault(name, done["rows_out"]), done["rows_out"])
                run = speed(done["batches"][CASES[name].warm : -1])
                runs[name][way].append(run)
                print(f"round {number} {name} {way}: {run['rows_per_second']:,.0f} rows/s")
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        speeds = {w: [r["rows_per_second"] for r in runs[name][w]] for w in WAYS}
        ratios = [a / b for a, b in zip(*(speeds[w] for w in WAYS), strict=True)]
        found[name] = {**{w: middle(speeds[w]) for w in WAYS}, "ratio": middle(ratios)}
        found[name]["kept"] = found[name]["ratio"]["median"] >= WANTED_RATIO
    print("\n".join(table(found)))
    for name in names:
        if not found[name]["kept"]:
            print(f"{name}: slower than {WANTED_RATIO} times")
    write_report("execution", {"wanted_ratio": WANTED_RATIO, "cases": found, "runs": runs})


if __name__ == "__main__":
    main()
