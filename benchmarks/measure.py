"""What the benchmarks share: runs in processes of their own, speeds of batches, reports as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

HERE = Path(__file__).parent
RESULTS = Path(os.environ.get("TIDEGATE_BENCH_RESULTS", HERE / "results"))
PICTURES = HERE.parent / "docs" if RESULTS == HERE / "results" else RESULTS
"""Where programs draw what pages show: beside the results, where these are not to be kept."""
DATA = Path(tempfile.gettempdir()) / "tidegate-bench-data"
MARK = "RESULT "
_CORES, _CPUS = "TIDEGATE_BENCH_CORES", "TIDEGATE_BENCH_CPUS"
"""How a program tells those that it starts how many cores to use, and which."""


def _cores_given() -> int | None:
    """Those of `--cores`; known before modules are imported that make constants of them."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cores", type=int, default=os.environ.get(_CORES))
    return parser.parse_known_args()[0].cores


if _CPUS in os.environ:  # before threads and processes are started: they inherit it
    os.sched_setaffinity(0, {int(cpu) for cpu in os.environ[_CPUS].split(",")})
CORES_GIVEN = _cores_given()
CORES = CORES_GIVEN or 2
MASTER = f"local[{CORES}]"

Batch = dict[str, Any]


def environment_on(cpus: Iterable[int]) -> dict[str, str]:
    """That of a program of benchmarks/ that is to use these processors alone."""
    return {**os.environ, _CPUS: ",".join(map(str, cpus))}


def beside_argument(parser: argparse.ArgumentParser) -> None:
    """The option of programs whose cases can run at once, see `beside`."""
    parser.add_argument(
        "--beside", type=int, default=1, help="cases at once, on cores of their own"
    )


def common_arguments(parser: argparse.ArgumentParser, rounds: int | None = None) -> None:
    """The options that every benchmark has; --child and --work are for its own runs.

    `--rounds` is an option of those alone that repeat what they measure.
    """
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--cores", type=int, default=CORES, help="of local[N] (default: 2)")
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)


def in_child(
    program: str,
    *arguments: str,
    instances: int | None = None,
    cores: int = CORES,
    cpus: Sequence[int] | None = None,
    python: str = sys.executable,
    limit_s: float | None = None,
) -> Any:
    """Run a benchmark in a process of its own, and give what it hands to `give`.

    It is told `--work DIR`, a folder that is gone when this returns, and `--instances` where they
    are given. Its MASTER has so many `cores`; where `cpus` are given, it runs on these alone.
    One that takes longer than `limit_s` is killed: a TimeoutExpired.
    """
    if instances is not None:
        arguments = (*arguments, "--instances", str(instances))
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
        command = [python, program, *arguments, "--work", work]
        environment = {**os.environ, "PYSPARK_PYTHON": python, _CORES: str(cores)}
        if cpus is not None:
            environment[_CPUS] = ",".join(map(str, cpus))
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=limit_s,
        )
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not found:
        text = f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        raise SystemExit(f"{' '.join(arguments)} failed:\n{text}")
    return json.loads(found[-1].removeprefix(MARK))


def beside(
    many: int, run: Callable[[str, Sequence[int] | None], Any], names: Sequence[str]
) -> list[Any]:
    """Call `run` for each name, `many` at once: each has CORES processors that no other uses."""
    if many == 1:
        return [run(name, None) for name in names]
    free: SimpleQueue[list[int]] = SimpleQueue()
    there = sorted(os.sched_getaffinity(0))
    if many * CORES > len(there):
        raise SystemExit(f"--beside {many}: needs {many * CORES} cores; got {len(there)}.")
    for place in range(many):
        free.put(there[place * CORES : (place + 1) * CORES])

    def one(name: str) -> Any:
        cpus = free.get()
        try:
            return run(name, cpus)
        finally:
            free.put(cpus)

    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(one, names))


def give(result: Any) -> None:
    """Hand a result to the process that called `in_child`."""
    print(MARK + json.dumps(result), flush=True)


def own_session() -> None:
    """Make this process the first of a session, for `cpu_seconds`; called where it begins."""
    os.setsid()


def cpu_seconds(session: int = 0) -> float:
    """Processor time of all processes of a session, of this one unless given, and of those that
    have ended: the driver, the JVM and its workers."""
    session = session or os.getsid(0)
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def trees_beside(revision: str) -> Iterator[dict[str, Path]]:
    """This tree as `now`, and that of another commit as `before` for as long as the block lasts."""
    root = HERE.parent
    git = ["git", "-C", str(root), "worktree"]
    with tempfile.TemporaryDirectory(prefix="tidegate-before-") as folder:
        before = Path(folder) / "tree"
        added = [*git, "add", "--detach", str(before), revision]
        subprocess.run(added, check=True, capture_output=True)
        try:
            yield {"before": before, "now": root}
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)


def run_command(arguments: Sequence[str]) -> list[Batch]:
    """Run Tidegate's command line in this process; every batch's report."""
    from tidegate.cli.main import invoke

    def run() -> None:
        code = invoke([str(a) for a in arguments])
        if code:
            raise SystemExit(code)

    return batches_of(run)


def run_sql(sql: str, work: Path, *options: Any, instances: int = CORES) -> dict[str, Any]:
    """Run a query through the command line on Spark: its batches, and the rows that it wrote."""
    query, out = work / "query.sql", work / "out"
    query.write_text(sql)
    arguments = ["run", query, "--out", out, "--checkpoint", work / "checkpoint"]
    arguments += ["--master", MASTER, "--instances", instances]
    return {"batches": run_command([*arguments, *options]), "rows_out": rows_written(out)}


def batches_of(run: Callable[[], object]) -> list[Batch]:
    """Call what runs a query in this process; every batch's report."""
    from tidegate.driver.report.metrics import BatchReport, Summary

    reports: list[BatchReport] = []
    add = Summary.add

    def noted(self: Summary, report: BatchReport) -> None:
        reports.append(report)
        add(self, report)

    Summary.add = noted  # type: ignore[method-assign]
    try:
        run()
    finally:
        Summary.add = add  # type: ignore[method-assign]
    return [
        {
            "rows": r.rows_in,
            "out": r.rows_out,
            "seconds": r.seconds,
            "frontier_us": r.frontier_us,
            "comparisons": r.comparisons,
            "compared": r.compared,
            "state_rows": r.state_rows,
            "state_bytes": r.state_bytes,
            "fetched_bytes": sum(c.get("fetched_bytes", 0) for c in r.instance_counts),
            "cpu_us": sum(c["cpu_us"] + c.get("map_cpu_us", 0) for c in r.instance_counts),
            "taken": sum(c.get("taken", 0) for c in r.instance_counts),
            "per_instance": {
                name: [c.get(name, 0) for c in r.instance_counts] for name in ("cpu_us", "compared")
            },
            "task_time": _task_time(r),
            "spans_ms": dict(r.spans_ms),
            "tasks_ms": dict(r.tasks_ms),
            "latency_ms": None if (found := _latency(r)) is None else found.as_dict(),
        }
        for r in reports
    ]


def _task_time(report: Any) -> list[float] | None:
    """Wall time, that with tasks at work, and their work, in seconds; older trees have none."""
    if getattr(report, "speed_up", None) is None:
        return None
    from tidegate.driver.metric.serial import of_all

    found = of_all(report.speed_up)
    return [found.wall_s, found.at_work_s, found.work_s, found.instances]


def serial(batches: Sequence[Batch]) -> dict[str, Any]:
    """The serial share of these batches and the speed-up that it allows, as a summary says it."""
    from tidegate.driver.metric.serial import NO_TIME, TaskTime, figures

    total = NO_TIME
    for wall_s, at_work_s, work_s, instances in (b["task_time"] for b in batches):
        total = TaskTime(wall_s, at_work_s, work_s, int(instances)).after(total)
    return figures(total)


def _latency(report: Any) -> Any:
    """From arrival to commit, by a batch's own account; older trees have none."""
    return getattr(report, "latency", None)


def spark_session(settings: Mapping[str, str]) -> Any:
    """A session for Spark's own queries, with as many partitions as cores."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(MASTER)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def progress_of(query: Any) -> list[Batch]:
    """The batches of a Spark query that had input."""
    return [
        {"rows": p["numInputRows"], "seconds": p["durationMs"]["triggerExecution"] / 1e3}
        for p in query.recentProgress
        if p["numInputRows"]
    ]


def rows_written(folder: Path) -> int:
    """How many rows the Parquet files of an output folder hold; side outputs do not count."""
    import pyarrow.parquet as pq

    files = [
        file
        for file in folder.rglob("*.parquet")
        if not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    ]
    return sum(pq.read_metadata(file).num_rows for file in files)


def check_count(what: str, wanted: int, got: int) -> None:
    """Nothing lost, nothing twice: end the benchmark otherwise."""
    if wanted != got:
        raise SystemExit(f"{what}: {wanted:,} rows must come out; got {got:,}.")


def steady(batches: Sequence[Batch], since_us: int) -> list[Batch]:
    """Batches that began when the frontier was at `since_us` or later, without the last one.

    The last one flushes what was waiting, and is seldom a whole one.
    """
    pairs = pairwise(batches[:-1])
    return [now for before, now in pairs if before["frontier_us"] >= since_us]


def speed(batches: Sequence[Batch]) -> dict[str, float]:
    """Rows a second over these batches, and the median batch."""
    if not batches:
        raise SystemExit("no batch is left to measure: more rows or smaller batches are needed.")
    rows, seconds = sum(b["rows"] for b in batches), sum(b["seconds"] for b in batches)
    return {
        "rows_per_second": rows / seconds,
        "batch_ms_median": statistics.median(b["seconds"] for b in batches) * 1e3,
        "batches": len(batches),
    }


def medians(batches: Sequence[Batch], name: str) -> dict[str, float]:
    """The median of each span over the batches; `name` is spans_ms or tasks_ms."""
    keys = list(dict.fromkeys(key for b in batches for key in b[name]))
    return {k: round(statistics.median(b[name].get(k, 0.0) for b in batches), 2) for k in keys}


def figures_of(batches: Sequence[Batch]) -> dict[str, Any]:
    """A run of Tidegate: its speed, its serial share, and where the time went."""
    where = {name: medians(batches, name) for name in ("spans_ms", "tasks_ms")}
    return {**speed(batches), "serial": serial(batches), **where}


def percentiles(values: Any) -> dict[str, float]:
    """The median, the 95th and the 99th percentile, and the largest, of a list or an array."""
    import numpy as np

    if not len(values):
        raise SystemExit("nothing is left to measure: a longer run is needed.")
    found = dict(zip(("p50", "p95", "p99"), np.percentile(values, (50, 95, 99)), strict=True))
    return {
        **{name: round(float(v), 3) for name, v in found.items()},
        "max": round(float(max(values)), 3),
    }


def middle(values: Sequence[float]) -> dict[str, float]:
    """The median of several runs and how far they lie apart."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def commit() -> str:
    """That of this tree, and nothing where there is no git."""
    command = ["git", "-C", str(HERE), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def origin() -> dict[str, str]:
    """When something was measured, and with what."""
    from tidegate.clock import utc_now

    return {"date": f"{utc_now():%Y-%m-%d %H:%M} UTC", "commit": commit()}


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor by its maker's name; where Linux does not say it, its architecture."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, named), platform.machine())


def write_report(name: str, content: Mapping[str, Any]) -> None:
    """Write results/NAME.json: the content after command, date, versions, machine and load.

    Of a command, absolute paths are left out: they are of one machine.
    Of what docs/papers/ show, it is noted which state of the package was measured.
    """
    import paper_index

    packages = ("pyspark", "pyarrow", "numpy", "numba")
    report = {
        "command": " ".join(["python", *("FOLDER" if of[:1] == "/" else of for of in sys.argv)]),
        **origin(),
        "versions": {
            "tidegate": version("tidegate"),
            **{package: version(package) for package in packages},
            "python": platform.python_version(),
        },
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "machine_cores": os.cpu_count(),
        "load": os.getloadavg(),
        **content,
    }
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{name}.json"
    target.write_text(json.dumps(report, indent=2) + "\n")
    if RESULTS == HERE / "results":
        paper_index.note(name)
    print(f"written to {target}")
