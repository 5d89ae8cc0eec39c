"""Whether memory stays as it is over thousands of batches: of driver, JVM and workers that stay.

    python benchmarks/resident_memory.py                           10,000 batches of each query
    python benchmarks/resident_memory.py join --batches 2000

Each query runs in a process of its own with tasks that stay, ten rows to a batch, over rides whose
routes are few, so that its state is soon as large as it gets. Now and then the memory of driver,
JVM and Python's workers is read from the system, without files that are mapped, and the JVM's heap
after its garbage is collected. What counts is the line through these over the second half: the
driver keeps the reports of 4,096 batches. Results go to benchmarks/results/resident_memory.json.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from batch_cost import CASES
from measure import CORES, MASTER, common_arguments, give, in_child, write_report

BATCHES, BATCH_ROWS, SAMPLES = 10_000, 10, 50
QUERIES = ("aggregate", "join", "process")
WANTED_MIB = 10.0
"""How much a process may seem to grow over the second half: allocators keep more than is used, and
the line through samples that jump is never quite level."""


def anonymous_mib(process: int) -> float:
    """The memory of a process that is not a mapped file."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("RssAnon:"))
    return int(found.split()[1]) / 1024


def processes() -> dict[str, list[int]]:
    """The JVM below this process, and Python's workers below that: those that have no child."""
    below: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue  # it has ended meanwhile
            below.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    (jvm,) = [p for p in below.get(os.getpid(), []) if "java" in os.readlink(f"/proc/{p}/exe")]
    daemons = below.get(jvm, [])
    return {"jvm": [jvm], "workers": [w for d in daemons for w in below.get(d, [])]}


def sample(batch: int) -> dict[str, float]:
    """What the processes hold after a batch."""
    from pyspark import SparkContext

    found = processes()
    gc.collect()
    context: Any = SparkContext._active_spark_context
    lang = context._jvm.java.lang
    lang.System.gc()
    heap = lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    workers = sorted((anonymous_mib(w) for w in found["workers"]), reverse=True)[:CORES]
    return {
        "batch": batch,
        "driver_mib": anonymous_mib(os.getpid()),
        "driver_objects": len(gc.get_objects()),
        "jvm_mib": anonymous_mib(found["jvm"][0]),
        "jvm_heap_mib": heap / 2**20,
        "workers": len(found["workers"]),
        "worker_mib": max(workers, default=0.0),
    }


def child(case: str, batches: int, work: Path) -> None:
    """One query, and what was sampled while it ran."""
    import tidegate as tg
    from tidegate.driver.report.metrics import BatchReport, Summary

    samples: list[dict[str, float]] = []
    add, every = Summary.add, max(batches // SAMPLES, 1)

    def noted(self: Summary, report: BatchReport) -> None:
        add(self, report)
        if report.batch % every == every - 1:
            samples.append(sample(report.batch))

    Summary.add = noted  # type: ignore[method-assign]
    stream = CASES[case](tg.Session(master=MASTER), BATCH_ROWS * batches, "&keys=200")
    stream.start(
        sink=tg.sink.files(str(work / "out")),
        checkpoint=str(work / "checkpoint"),
        batch_rows=BATCH_ROWS,
        instances=CORES,
        execution="resident",
    ).wait()
    give(samples)


def grown(samples: list[dict[str, float]], name: str) -> dict[str, float]:
    """Where a figure begins and ends in the second half, and the line's rise between them."""
    late = samples[len(samples) // 2 :]
    batches, values = [s["batch"] for s in late], [s[name] for s in late]
    slope = float(np.polyfit(batches, values, 1)[0])
    return {
        "first": round(values[0], 2),
        "last": round(values[-1], 2),
        "rise": round(slope * (batches[-1] - batches[0]), 2),
        "per_thousand_batches": round(slope * 1_000, 4),
    }


def table(cases: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| query | driver | a worker | JVM heap | JVM |"
    yield "|---|---|---|---|---|"
    for name, case in cases.items():
        held = (case["grown"][n] for n in ("driver_mib", "worker_mib", "jvm_heap_mib", "jvm_mib"))
        cells = [f"{h['first']:.0f} MiB ({h['rise']:+.1f})" for h in held]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=1)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(QUERIES))
    parser.add_argument("--batches", type=int, default=BATCHES)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.batches, Path(arguments.work))
        return
    unknown = [name for name in arguments.cases if name not in QUERIES]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(QUERIES)}")
    results: dict[str, Any] = {}
    for case in arguments.cases or QUERIES:
        samples = in_child(__file__, "--child", case, "--batches", str(arguments.batches))
        names = [name for name in samples[0] if name != "batch"]
        found = {name: grown(samples, name) for name in names}
        held = ("driver_mib", "jvm_heap_mib", "worker_mib")
        flat = all(found[name]["rise"] <= WANTED_MIB for name in held)
        results[case] = {"flat": flat, "grown": found, "samples": samples}
        shown = ", ".join(f"{n} {found[n]['first']:.0f} ({found[n]['rise']:+.1f})" for n in names)
        print(f"{case}: {'flat' if flat else 'grows'}: {shown}", flush=True)
    print("\n".join(table(results)))
    write_report(
        "resident_memory",
        {
            "batches": arguments.batches,
            "batch_rows": BATCH_ROWS,
            "wanted_rise_mib": WANTED_MIB,
            "cases": results,
        },
    )


if __name__ == "__main__":
    main()
