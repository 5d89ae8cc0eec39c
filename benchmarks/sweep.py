"""A sweep over instances that benchmarks share: speed-up, efficiency and serial share.

A benchmark gives its cases as functions of the number of instances and calls `swept`. Each number
runs on as many cores (`local[n]`), or on those of `--cores N`. Results go to
benchmarks/results/NAME-sweep.json and, as a picture of each case, NAME-sweep-CASE.svg; `--draw`
makes the pictures again from the file, as of a sweep that ran on another machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from chart import Chart, Line
from measure import CORES_GIVEN, RESULTS, middle, write_report

Measure = Callable[[int, int], Mapping[str, Any]]
"""Runs a case with so many instances and cores; gives a rate and, where batches ran, their `serial`
of `measure.py`."""


def sweep_arguments(parser: argparse.ArgumentParser, default: Sequence[int] = ()) -> None:
    """The options of a sweep."""
    parser.add_argument(
        "--instances",
        type=lambda text: [int(word) for word in text.split(",")],
        default=list(default),
        metavar="N,N,...",
        help="sweep over these numbers of instances, as 1,2,4,8,16",
    )
    parser.add_argument("--draw", action="store_true", help="draw the newest sweep, run nothing")
    parser.add_argument("--append", action="store_true", help="more rounds of the newest sweep")


def is_sweep(arguments: argparse.Namespace) -> bool:
    """Whether several numbers of instances, or pictures of such a run, are asked for."""
    return arguments.draw or len(arguments.instances) > 1


def swept(
    name: str,
    cases: Mapping[str, Measure],
    arguments: argparse.Namespace,
    rate: str = "rows_per_second",
    unit: str = "rows/s",
    with_most: Collection[str] = (),
) -> dict[str, dict[int, list[Mapping[str, Any]]]]:
    """Run all cases with all numbers of instances, in turns, and report what more of them bring.

    Those `with_most` with the largest number only. Gives the runs by case and number.
    """
    runs: dict[str, dict[int, list[Mapping[str, Any]]]] = {}
    if arguments.append:
        before = json.loads((RESULTS / f"{name}-sweep.json").read_text())["runs"]
        runs = {case: {int(n): of for n, of in by.items()} for case, by in before.items()}
    if not arguments.draw:
        for number in range(arguments.rounds):
            for case, measure in cases.items():
                for n in arguments.instances[-1:] if case in with_most else arguments.instances:
                    runs.setdefault(case, {}).setdefault(n, []).append(
                        found := measure(n, CORES_GIVEN or n)
                    )
                    print(f"round {number} {case}, {n}: {found[rate]:,.0f} {unit}", flush=True)
        content = {
            "unit": unit,
            "on_cores": CORES_GIVEN or "as many as instances",
            "cases": {case: points(by, rate) for case, by in runs.items()},
            "runs": runs,
        }
        write_report(f"{name}-sweep", content)
    draw(name)
    return runs


def points(runs: Mapping[int, Sequence[Mapping[str, Any]]], rate: str) -> list[dict[str, Any]]:
    """Each number of instances beside the least one; efficiency is the speed-up by instance.

    `serial_seen` is the serial share by which Amdahl's law has the speed-up that was measured
    (Karp and Flatt); also uneven and additional work is in it. `serial` is what spans say.
    """
    found: list[dict[str, Any]] = []
    for n, done in sorted(runs.items()):
        point = {"instances": n, rate: middle([run[rate] for run in done])}
        first = found[0] if found else point
        times = n / first["instances"]
        speed_up = point[rate]["median"] / first[rate]["median"]
        point |= {"rate": point[rate]["median"], "speed_up": speed_up}
        point["efficiency"] = speed_up / times
        point["serial_seen"] = (1 / speed_up - 1 / times) / (1 - 1 / times) if times > 1 else None
        if said := [run["serial"] for run in done if run.get("serial")]:
            names = ("serial_time", "serial_share", "now", "limit", "work_s")
            point["serial"] = {k: middle([s[k] or float("inf") for s in said]) for k in names}
        found.append(point)
    return found


def table(case: str, found: Sequence[Mapping[str, Any]], unit: str) -> Iterator[str]:
    """One case, in Markdown."""
    heads = (f"{case}, instances", unit, "speed-up", "efficiency", "serial, seen", "by spans")
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|"
    for point in found:
        seen, said = point["serial_seen"], point.get("serial")
        spans = "-"
        if said is not None:
            spans = (
                f"{said['serial_time']['median']:.0%} of the time, at most "
                f"{said['now']['median']:.1f} of {said['limit']['median']:.1f} times"
            )
        yield (
            f"| {point['instances']} | {point['rate']:,.0f} | {point['speed_up']:.2f} | "
            f"{point['efficiency']:.0%} | {'-' if seen is None else f'{seen:.1%}'} | {spans} |"
        )


def draw(name: str) -> None:
    """Print the tables of the newest sweep and draw its pictures."""
    found = json.loads((RESULTS / f"{name}-sweep.json").read_text())
    for case, of in found["cases"].items():
        print("\n".join(table(case, of, found["unit"])))
        counts = [point["instances"] for point in of]
        if len(counts) < 2:
            continue
        first = of[0]
        lines = [
            Line("measured", [point["speed_up"] for point in of], counts),
            Line("work divided by instances", [n / counts[0] for n in counts], counts),
        ]
        if "serial" in first:
            amdahl = [p["serial"]["now"]["median"] for p in of]
            base = first["serial"]["now"]["median"]
            lines.append(Line("at most, by the serial share", [v / base for v in amdahl], counts))
        title = f"{name} {case}: times as fast as {counts[0]}"
        Chart(title, "speed-up", lines, time="instances").write(
            RESULTS / f"{name}-sweep-{case}.svg"
        )
