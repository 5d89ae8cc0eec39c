"""Whether the driver's part of a batch grows with what has gone by: files, above all.

    python benchmarks/driver_growth.py [CASE...] [--files N]

Each case runs in a process of its own, without Spark, and is asked for the time that the driver
spends per batch at its start and at its end (of a tenth of the batches the lower quartile), the
bytes of the manifest at both, and what it had to do. `gate_cpu_ms` is processor time of the gate
between batches, `ahead_cpu_ms` of looking ahead beside the tasks; other programs disturb them
little. Results go to benchmarks/results/driver_growth.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import quantiles
from typing import Any

from data import write_many_files, write_text
from measure import common_arguments, give, in_child, write_report

WANTED_RATIO = 1.2
FILES = 20_000
AHEAD = "look_ahead"
SUMS = """
CREATE STREAM s FROM '{source}' TIME ts;
SELECT SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 100 SECONDS];
"""


class Run:
    """One query in this process, batch by batch, and what its driver did."""

    def __init__(self, source: Path, work: Path, batch_rows: int, follow: bool = False) -> None:
        from tidegate.driver.options import RunOptions
        from tidegate.session.launch import prepare
        from tidegate.session.place import Place
        from tidegate.session.planning import plan_for
        from tidegate.session.script import streams_of
        from tidegate.sink.folder.files import FileSink
        from tidegate.sql.bind import bind
        from tidegate.sql.script import read_script

        self.checkpoint = work / "checkpoint"
        self.batches: list[dict[str, Any]] = []
        self._decodes = _counted_decodes()
        self._cpu_s = _timed_gate()
        script = read_script(SUMS.format(source=source))
        plan = plan_for(bind(script, streams_of(script)), Place("none"))
        options = RunOptions(instances=1, buckets=1, batch_rows=batch_rows, follow=follow)
        sinks = {None: FileSink(work / "out", "json")}
        self.loop = prepare(plan, Place("none"), sinks, options, str(self.checkpoint))

    def step(self) -> bool:
        """One batch; False where there was nothing to do."""
        before = len(self._decodes)
        self._cpu_s.clear()
        report = self.loop.step()
        if report is None:
            return False
        manifest = self.checkpoint / "manifest" / f"{report.batch:08d}.json"
        of_driver = ("gate", "collect", "commit", "publish")
        self.batches.append(
            {
                "rows": report.rows_in,
                "gate_ms": report.spans_ms["gate"],
                "gate_cpu_ms": sum(s for n, s in self._cpu_s.items() if n != AHEAD) * 1e3,
                "ahead_cpu_ms": self._cpu_s[AHEAD] * 1e3,
                "driver_ms": sum(report.spans_ms[s] for s in of_driver),
                "batch_ms": report.seconds * 1e3,
                "manifest_bytes": manifest.stat().st_size,
                "decodes": len(self._decodes) - before,
            }
        )
        return True

    def result(self) -> dict[str, Any]:
        """Batches at the start and at the end side by side; the first few are left out."""
        self.loop.close()
        steady = self.batches[min(5, len(self.batches) // 10) : -1]
        share = max(len(steady) // 10, 1)
        start, end = _quartiles(steady[:share]), _quartiles(steady[-share:])
        found = {
            "batches": len(self.batches),
            "rows": sum(b["rows"] for b in self.batches),
            "start": start,
            "end": end,
            "ratio": {k: round(end[k] / start[k], 2) for k in start if start[k]},
            "most_manifest_bytes": max(b["manifest_bytes"] for b in self.batches),
            "most_gate_ms": round(max(b["gate_ms"] for b in steady), 2),
            "most_decodes": max(b["decodes"] for b in self.batches),
            "decodes": sum(b["decodes"] for b in self.batches),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        return found


def files_small(work: Path, data: Path, files: int) -> dict[str, Any]:
    """Many files of 10 rows, a hundred of them in each batch."""
    return _replay(write_many_files(data, files, rows=10), work, batch_rows=1000)


def files_large(work: Path, data: Path, files: int) -> dict[str, Any]:
    """Many files of 5,000 rows, a hundred of them in each batch."""
    return _replay(write_many_files(data, files, rows=5000), work, batch_rows=500_000)


def few_of_many(work: Path, data: Path, files: int) -> dict[str, Any]:
    """Small batches over many files of 5,000 rows: the first 400 of a long series."""
    return _replay(write_many_files(data, files, rows=5000), work, batch_rows=1000, most=400)


def follow(work: Path, data: Path, files: int) -> dict[str, Any]:
    """A followed folder that gets ten files of 10 rows before each batch and keeps all of them."""
    source = write_many_files(data, files, rows=10)
    folder = work / "followed"
    folder.mkdir()
    arriving = iter(sorted(source.iterdir()))
    run: Run | None = None
    while _link_some(arriving, folder, 10):
        run = run or Run(folder, work, batch_rows=1_000_000, follow=True)
        while run.step():
            pass
    assert run is not None, "there are files"
    found = run.result()
    found["files"] = len(list(folder.iterdir()))
    return found


def csv(work: Path, data: Path, files: int) -> dict[str, Any]:
    """One CSV file in batches of 1,000 rows: the driver parses the times of each."""
    return _replay(write_text(data, "csv", rows=files * 20), work, batch_rows=1000)


def json(work: Path, data: Path, files: int) -> dict[str, Any]:
    """The same rows as lines of JSON."""
    return _replay(write_text(data, "json", rows=files * 20), work, batch_rows=1000)


CASES: dict[str, Callable[[Path, Path, int], dict[str, Any]]] = {
    "files-small": files_small,
    "files-large": files_large,
    "few-of-many": few_of_many,
    "follow": follow,
    "csv": csv,
    "json": json,
}


def _replay(source: Path, work: Path, batch_rows: int, most: int = 10**9) -> dict[str, Any]:
    run = Run(source, work, batch_rows)
    while not run.loop.manifest.finished and len(run.batches) < most:
        run.step()
    return run.result()


def _link_some(arriving: Iterator[Path], folder: Path, files: int) -> int:
    """Let files appear whole, as a writer would that renames them; how many there were."""
    count = 0
    for path in islice(arriving, files):
        os.link(path, folder / path.name)
        count += 1
    return count


def _quartiles(batches: list[dict[str, Any]]) -> dict[str, float]:
    """What three of four batches take at least: the least disturbed quarter takes less."""
    return {k: round(quantiles([b[k] for b in batches] * 2, n=4)[0], 3) for k in batches[0]}


def _timed_gate() -> dict[str, float]:
    """Sum up the processor time of what the gate does, also while tasks run; whoever else runs."""
    from tidegate.gate.intake import Intake

    spent_s: dict[str, float] = defaultdict(float)

    def timed(name: str) -> None:
        method = getattr(Intake, name)

        def measured(self: Intake, *arguments: Any) -> Any:
            started = time.thread_time()
            try:
                return method(self, *arguments)
            finally:
                spent_s[name] += time.thread_time() - started

        setattr(Intake, name, measured)

    for name in ("discover", "next_cut", AHEAD, "write_names", "saved", "forget"):
        if hasattr(Intake, name):
            timed(name)
    return spent_s


def _counted_decodes() -> list[str]:
    """Note the path of each row group that the driver decodes: for its time column alone."""
    from tidegate.source import parquet

    decoded: list[str] = []
    decode = parquet.decode_group

    def counted(path: str, version: Any, number: int, asked: Any, time: str | None) -> Any:
        if asked.names == ["ts"]:
            decoded.append(path)
        return decode(path, version, number, asked, time)

    parquet.decode_group = counted
    return decoded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=1)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--files", type=int, default=FILES)
    arguments = parser.parse_args()
    if arguments.child:
        case = CASES[arguments.child]
        give(case(Path(arguments.work), Path(arguments.data), arguments.files))
        return
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(CASES)}")
    results: dict[str, Any] = {}
    for name in arguments.cases or CASES:
        options = ("--files", str(arguments.files), "--data", arguments.data)
        results[name] = found = in_child(__file__, "--child", name, *options)
        grown = max(found["ratio"]["gate_cpu_ms"], found["ratio"]["manifest_bytes"])
        verdict = "flat" if grown <= WANTED_RATIO else "grows"
        print(f"{name}: {verdict} {found['start']} -> {found['end']}", flush=True)
    write_report("driver_growth", {"wanted_ratio": WANTED_RATIO, "cases": results})


if __name__ == "__main__":
    main()
