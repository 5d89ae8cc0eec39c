"""What partitioners make of streams: balance, aggregation cost, memory, critical path, latency.

    python benchmarks/partitioners.py                        all but what needs Spark
    python benchmarks/partitioners.py --real FOLDER          with the real streams in a folder too
    python benchmarks/partitioners.py --engine spark         latency of windows on Spark
    python benchmarks/partitioners.py --auto-only            what `auto` makes of streams, computed
                                                             with the costs of the last report
    python benchmarks/partitioners.py --plot-only            figures and tables of the last reports

Windows tumble after so many tuples, and one source decides unless it is said otherwise; figures are
means over windows but the first, in which `auto` has nothing to decide from. What is measured is
said in `partition_balance` (where tuples go, memory, decisions a second), `partition_path` and
`partition_costs` (the critical path with 8, 16 and 32 instances), and `partition_spark`.

Results go to benchmarks/results/partitioners.json and partitioners-spark.json, tables and figures
to docs/measured/partitioning.md and docs/partitioning-*.svg.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import partition_balance
import partition_costs
import partition_path
import partition_plots
import partition_spark
import tables
from measure import (
    HERE,
    RESULTS,
    beside,
    beside_argument,
    common_arguments,
    give,
    in_child,
    write_report,
)
from partition_streams import GENERATED, REAL, WINDOW_ROWS, WINDOWS, Case, Window, windows_of

INSTANCES = (8, 16, 32)
APART = ("pk", "am", "cam")
FINE_KEYS = 8_100_000
"""The keys of the dissertation's table 4."""
DIGITS = 1e-4
"""Reports have five digits of costs, so what is computed from them is the same up to this."""
REPORT, SPARK_REPORT = "partitioners", "partitioners-spark"


def streams(arguments: argparse.Namespace) -> Iterator[tuple[Case, list[Window]]]:
    """Those that are asked for, and those of the folder that is given."""
    folder = None if arguments.real is None else Path(arguments.real)
    for case in cases_of(arguments):
        yield case, list(windows_of(case, folder, arguments.window_rows, WINDOWS))


def cases_of(arguments: argparse.Namespace) -> list[Case]:
    cases = GENERATED if arguments.real is None else (*GENERATED, *REAL)
    return [case for case in cases if arguments.only in case.name]


def balance_of(case: str, windows: Sequence[Window], counts: Sequence[int]) -> dict[str, Any]:
    """All partitioners on one stream, by the number of instances."""
    found: dict[str, Any] = {}
    for count in counts:
        print(f"\n{case}, {count} instances")
        print(f"{'':14}tuples    keys    both    cost   split  ns/tuple     bytes")
        for name in partition_balance.NAMES:
            f = partition_balance.measured(name, windows, count)
            found.setdefault(str(count), {})[name] = f
            shares = ("tuple_imbalance", "key_imbalance", "hybrid_imbalance", "aggregation_cost")
            line = "".join(f"{f[share]:8.3f}" for share in (*shares, "keys_split"))
            print(f"{name:12}{line}{f['ns_per_tuple']:10.0f}{f['bytes']:10,.0f}", flush=True)
    return found


def paths_of(
    case: str, windows: Sequence[Window], counts: Sequence[int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the kernels cost on one stream, and the critical paths by instances and work."""
    works, first = partition_costs.WORKS, windows[0]
    costs = {name: partition_costs.measured(work, first) for name, work in works.items()}
    found: dict[str, Any] = {}
    for count in counts:
        found[str(count)] = at = {name: {} for name in works}
        for one in partition_path.NAMES:
            known: dict[Any, Any] = {}  # tuples go elsewhere for another work with auto only
            for name, work in works.items():
                weights = work.weights(first)
                same = (work.folds_in_map, weights if one == "auto" else None)
                if same not in known:
                    known[same] = partition_path.loads_of(
                        one, windows, count, work.folds_in_map, weights
                    )
                at[name][one] = partition_path.summed_up(one, known[same], costs[name])
        for name, by_name in at.items():
            shown = ", ".join(f"{one} {f['path_s'] * 1e3:.2f}" for one, f in by_name.items())
            print(f"{case}, {count} instances, {name}: milliseconds {shown}", flush=True)
    return {name: asdict(of) for name, of in costs.items()}, found


def measure(arguments: argparse.Namespace) -> None:
    """All but what needs Spark."""
    options = ["--window-rows", str(arguments.window_rows), "--instances"]
    options += map(str, arguments.instances)
    options += [] if arguments.real is None else ["--real", arguments.real]

    def one(name: str, cpus: Sequence[int] | None) -> Any:
        return in_child(__file__, "--child", "case", "--only", name, *options, cpus=cpus)

    names = [case.name for case in cases_of(arguments)]
    of_cases = beside(arguments.beside, one, names)
    kinds = ("balance", "sources", "costs", "paths")
    found: dict[str, Any] = {
        kind: {name: of[kind] for name, of in zip(names, of_cases, strict=True)} for kind in kinds
    }
    keys = arguments.fine_keys
    found["million_decisions_per_s"] = partition_balance.speeds(arguments.instances[0])
    found["memory_mb"] = {str(n): partition_balance.memory(keys, n) for n in arguments.instances}
    found["sketch"] = {str(n): partition_balance.sketched(keys, n) for n in arguments.instances}
    sizes = {"window_rows": arguments.window_rows, "windows": WINDOWS, "fine_keys": keys}
    told = {"deciding_sources": partition_balance.SOURCES, **rounded(found)}
    write_report(REPORT, {**sizes, **told})


def of_case(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is measured of one stream, in a process of its own."""
    ((case, windows),) = streams(arguments)
    warm = [window.part(partition_balance.FEW) for window in windows]
    for name in partition_balance.NAMES:
        partition_balance.measured(name, warm, 2)  # compiled before it is measured
    balance = balance_of(case.name, windows, arguments.instances)
    apart = {
        name: partition_balance.measured_apart(name, windows, arguments.instances[0])
        for name in APART
    }
    costs, paths = paths_of(case.name, windows, arguments.instances)
    return {"balance": balance, "sources": apart, "costs": costs, "paths": paths}


def choose_again(arguments: argparse.Namespace) -> None:
    """What `auto` chooses now, in the last report: where tuples go, and the paths that makes.

    Nothing is measured: what kernels cost, and all other partitioners, stay as they are.
    """
    file = RESULTS / f"{REPORT}.json"
    report = json.loads(file.read_text())
    for case, windows in streams(arguments):
        costs = {
            name: partition_path.Costs.of(told) for name, told in report["costs"][case.name].items()
        }
        for count, at in report["paths"][case.name].items():
            for name, work in partition_costs.WORKS.items():
                given = (windows, int(count), work.folds_in_map, work.weights(windows[0]))
                loads = partition_path.loads_of("auto", *given)
                found, told = partition_path.summed_up("auto", loads, costs[name]), at[name]["auto"]
                if any(abs(found[step] - told[step]) > DIGITS * told[step] for step in told):
                    at[name]["auto"] = rounded(found)
            placed = partition_balance.measured("auto", windows, int(count))
            del placed["ns_per_tuple"]
            report["balance"][case.name][count]["auto"] |= rounded(placed)
    file.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {file}")


def rounded(found: Any) -> Any:
    """Five digits of each number: there are many."""
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items()}
    return float(f"{found:.5g}") if isinstance(found, float) else found


def measure_on_spark(arguments: argparse.Namespace) -> None:
    """The latencies of windows: replayed streams, then the live one."""
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [path, str(HERE)]))  # for tasks
    given = ["--rounds", str(arguments.rounds), "--spark-rows", str(arguments.spark_rows)]
    given += ["--load", str(arguments.load)]
    names = [case.name for case in GENERATED if arguments.only in case.name]

    def one(name: str, cpus: Sequence[int] | None) -> Any:
        part = ["skew"] if name == "skew" else ["replayed", "--only", name]
        return in_child(__file__, "--child", *part, *given, cpus=cpus)

    *replayed, skewed = beside(arguments.beside, one, [*names, "skew"])
    found: dict[str, Any] = {"window_rows": arguments.spark_rows, "rounds": arguments.rounds}
    found |= {"beside": arguments.beside, "skew": skewed}
    found["replayed"] = {name: of[name] for name, of in zip(names, replayed, strict=True)}
    for table in (partition_spark.table, partition_spark.skew_table):
        print("\n".join(table(found)), flush=True)
    write_report(SPARK_REPORT, found)


def child(arguments: argparse.Namespace) -> None:
    """A stream without Spark, or what runs it, in a process of its own."""
    work, rows = Path(arguments.work), arguments.spark_rows
    if arguments.child == "case":
        give(of_case(arguments))
    elif arguments.child == "skew":
        give(partition_spark.skew(arguments.rounds, arguments.load, rows, work))
    else:
        give(partition_spark.replays(arguments.rounds, rows, arguments.only, work))


def show() -> None:
    """Figures and tables of the reports that there are."""
    for name, draw in (
        (REPORT, partition_plots.draw),
        (SPARK_REPORT, partition_plots.draw_spark),
    ):
        file = RESULTS / f"{name}.json"
        if file.exists():
            draw(json.loads(file.read_text()))
    tables.fill("measured/partitioning.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser, rounds=3)
    beside_argument(parser)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--only", default="", help="the streams with this text in their names")
    parser.add_argument("--real", metavar="FOLDER", help="where the files of real streams are")
    parser.add_argument("--instances", type=int, nargs="+", default=INSTANCES)
    parser.add_argument("--window-rows", type=int, default=WINDOW_ROWS)
    parser.add_argument("--fine-keys", type=int, default=FINE_KEYS, help="of the largest window")
    parser.add_argument("--spark-rows", type=int, default=partition_spark.WINDOW_ROWS)
    parser.add_argument("--load", type=float, default=partition_spark.LOAD, help="of a core")
    parser.add_argument("--auto-only", action="store_true", help="with the last report's costs")
    parser.add_argument("--no-plot", action="store_true", help="leave docs as they are")
    parser.add_argument("--plot-only", action="store_true", help="show the last results again")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if arguments.auto_only:
        choose_again(arguments)
    elif not arguments.plot_only:
        (measure_on_spark if arguments.engine == "spark" else measure)(arguments)
    if not arguments.no_plot:
        show()


if __name__ == "__main__":
    main()
