"""From Kafka and to Kafka, beside Spark's own connector, in interleaved runs; and the latency.

    python benchmarks/kafka.py                            all of it, three rounds
    python benchmarks/kafka.py --part speed --case copy   a part of it (see CASES)

One broker runs beside the engines, on the same cores, and all read the same topic of JSON values.
Each run is a process of its own; speeds are those of the batches after the first ones, by each
engine's own account of them, and the CPU seconds those of a whole run with its start. The rows of
both are compared with a count of this program's own. Latency is that of windows of 100 ms: from
when the end of a window was due, records being sent when they are due, to when a consumer of
committed records had its rows, by one clock. Spark writes at least once, Tidegate exactly once.

Spark runs by the newest PySpark that Maven Central has the whole connector for (`kafka_spark.py`),
in `.venv-spark-VERSION`. Results go to results/kafka.json, of other than two cores to kafka-N.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import START_US
from kafka_spark import CONNECTOR, VERSION
from kafka_topic import PARTITIONS, PER_SECOND, Course, Topics, counted, live_ms, windows_in
from measure import (
    CORES,
    HERE,
    MASTER,
    check_count,
    common_arguments,
    cpu_seconds,
    figures_of,
    give,
    in_child,
    middle,
    own_session,
    percentiles,
    run_command,
    speed,
    write_report,
)

sys.path.insert(0, str(HERE.parent))  # the broker is that of tools/

ROWS, BATCH_ROWS, WARM = 3_000_000, 250_000, 3
RATE, WARM_S, SECONDS = 20_000, 30, 60
RANGE_MS, LIVE_RANGE_MS = 1_000, 100
ENGINES = ("tidegate", "spark")
PARTS = ("speed", "latency")
WANTED = {"aggregate": 3.0}
WANTED_P50_MS = {16: 60.0}
"""By cores; with fewer it is reported."""

STREAM = """
CREATE STREAM r (ts TIMESTAMP, k STRING, v BIGINT)
FROM 'kafka://{address}/{source}' TIME ts OPTIONS (format 'json');
"""
CASES = {
    "aggregate": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE {range_ms} MILLISECONDS] "
    "GROUP BY k",
    "copy": "SELECT k, v FROM r",
}


@dataclass(frozen=True)
class Place:
    """Where a run reads and writes."""

    address: str
    source: str
    out: str
    range_ms: int = RANGE_MS

    def script(self, case: str) -> str:
        names = {"address": self.address, "source": self.source, "range_ms": self.range_ms}
        return (STREAM + CASES[case]).format(**names)

    def command(self, case: str, work: Path, master: str) -> list[str]:
        """What `tidegate` is called with."""
        file = work / "query.sql"
        file.write_text(self.script(case))
        out = f"kafka://{self.address}/{self.out}?key=k"
        found = ["run", file, "--out", out, "--checkpoint", work / "checkpoint"]
        return [str(w) for w in [*found, "--master", master]]


def run_tidegate(
    case: str, place: Place, work: Path, batch_rows: int, master: str
) -> dict[str, Any]:
    """One run over what is in the topic, in this process."""
    options = ["--instances", str(CORES), "--batch-rows", str(batch_rows)]
    return {"batches": run_command([*place.command(case, work, master), *options])}


def check_rows(case: str, topics: Topics, out: str, rows: int) -> int:
    """End the benchmark unless a topic has what it must; the windows of the last two seconds may be
    open. How many rows it has."""
    values = topics.values(out)
    if case == "copy":
        check_count(f"{case} in {out}", rows, len(values))
        return len(values)
    upto_us = START_US + (rows // PER_SECOND - 2) * 1_000_000
    wanted = counted(rows, RANGE_MS // 1_000, upto_us)
    found = windows_in(values, RANGE_MS // 1_000, upto_us)
    if wanted != found:
        odd = [*(wanted - found), *(found - wanted)]
        raise SystemExit(f"{case} in {out}: {len(odd):,} rows differ, as {odd[:3]}.")
    return len(values)


class Bench:
    """The broker's topics, and the runs of both engines over them."""

    def __init__(self, broker: Any, spark_python: str, arguments: argparse.Namespace) -> None:
        self._broker, self._python, self._asked = broker, spark_python, arguments
        self._topics = Topics(broker.address)
        self._runs = 0

    def compare(self, case: str, source: str) -> dict[str, Any]:
        """Interleave the engines, and report medians, spreads and ratios."""
        runs: dict[str, list[dict[str, Any]]] = {e: [] for e in self._asked.engines}
        for _ in range(self._asked.rounds):
            for engine, done in runs.items():
                done.append(self._measure(engine, case, source))
        names = ("rows_per_second", "cpu_s", "broker_cpu_s")
        found = {n: {e: middle([r[n] for r in done]) for e, done in runs.items()} for n in names}
        ratio = None
        if len(runs) == len(ENGINES):
            pairs = zip(*(runs[e] for e in ENGINES), strict=True)
            ratio = middle([a["rows_per_second"] / b["rows_per_second"] for a, b in pairs])
            print(f"{case}: {ratio['median']:.2f} times as fast as Spark", flush=True)
        place = Place("HOST:PORT", source, "OUT")
        return {
            "case": case,
            "sql": place.script(case).strip(),
            "rows": self._asked.rows,
            "batch_rows": self._asked.batch_rows,
            "wanted": WANTED.get(case),
            "ratio": ratio,
            **found,
            "runs": runs,
        }

    def _measure(self, engine: str, case: str, source: str) -> dict[str, Any]:
        place, used = self._place(source), cpu_seconds(self._broker.process.pid)
        options = ["--query", case, "--batch-rows", str(self._asked.batch_rows)]
        done = self._child(engine, place, options)
        warm = done["batches"][WARM:-1]
        found = (speed if engine == "spark" else figures_of)(warm)
        rows_out = check_rows(case, self._topics, place.out, self._asked.rows)
        found |= {
            "cpu_s": done["cpu_s"],
            "broker_cpu_s": cpu_seconds(self._broker.process.pid) - used,
            "rows_out": rows_out,
        }
        print(
            f"{case} {engine}: {found['rows_per_second']:,.0f} rows/s, {found['cpu_s']:.1f} s of "
            f"CPU, {rows_out:,} rows out",
            flush=True,
        )
        return found

    def latency(self, engine: str) -> dict[str, Any]:
        """One live run, of a process that is ended when enough was seen."""
        asked, place = self._asked, self._place(f"live-{self._runs}", LIVE_RANGE_MS)
        self._topics.make(place.source)
        course = Course(asked.rate, asked.warm, asked.seconds, LIVE_RANGE_MS)
        with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
            if engine == "spark":
                program = [self._python, str(HERE / "kafka_spark.py"), *_options(place)]
                program += ["--query", "aggregate", "--live", "--work", work]
            else:
                program = [sys.executable, "-m", "tidegate"]
                program += [*place.command("aggregate", Path(work), MASTER), "--follow"]
                program += ["--instances", str(asked.instances)]
            with running_beside(program, Path(work)):
                found, late_ms = live_ms(self._topics, place.source, place.out, course)
        seen = {"latency_ms": percentiles(found), "rows": len(found)}
        print(f"latency {engine}: {seen['latency_ms']}", flush=True)
        return {**seen, "sent_late_ms": percentiles(late_ms)}

    def _place(self, source: str, range_ms: int = RANGE_MS) -> Place:
        self._runs += 1
        place = Place(self._broker.address, source, f"out-{self._runs}", range_ms)
        self._topics.make(place.out)
        return place

    def _child(self, engine: str, place: Place, options: list[str]) -> Any:
        options = [*_options(place), *options]
        if engine == "spark":
            return in_child(str(HERE / "kafka_spark.py"), *options, python=self._python)
        return in_child(__file__, "--child", engine, *options)


@contextmanager
def running_beside(program: list[str], work: Path) -> Iterator[None]:
    """A program that runs until the block ends; it must not have ended before."""
    log, environment = work / "log", {**os.environ, "PYSPARK_PYTHON": program[0]}
    with log.open("wb") as file:
        process = subprocess.Popen(program, stdout=file, stderr=file, env=environment)
    try:
        yield
        if process.poll() is not None:
            raise SystemExit(f"{program} has ended:\n{log.read_text()[-4000:]}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _options(place: Place) -> list[str]:
    names = {"--address": place.address, "--source": place.source, "--out": place.out}
    return [w for pair in names.items() for w in pair] + ["--range-ms", str(place.range_ms)]


def table(cases: list[dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| case | rows/s | Spark, rows/s | beside Spark | CPU s | Spark, CPU s |"
    yield "|---|---|---|---|---|---|"
    for case in cases:
        speeds, cpu = case["rows_per_second"], case["cpu_s"]
        yield (
            f"| {case['case']} | {_spread(speeds['tidegate'], ',.0f')} | "
            f"{_spread(speeds['spark'], ',.0f')} | {_spread(case['ratio'], '.2f')} | "
            f"{_spread(cpu['tidegate'], '.0f')} | {_spread(cpu['spark'], '.0f')} |"
        )


def latency_table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """From produce to consume, in Markdown."""
    yield "| engine | p50 | p95 | p99 | most |"
    yield "|---|---|---|---|---|"
    for engine, run in found.items():
        cells = [f"{run['latency_ms'][p]:,.0f} ms" for p in ("p50", "p95", "p99", "max")]
        yield f"| {engine} | {' | '.join(cells)} |"


def _spread(of: dict[str, float], form: str) -> str:
    return f"{of['median']:{form}} ({of['low']:{form}} to {of['high']:{form}})"


def spark_python() -> str:
    """The Python of the environment with Spark's version, which is made where it is missing."""
    made = subprocess.run(
        [HERE.parent / "tools" / "spark_venv.sh", VERSION],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return str(HERE.parent / made.stdout.strip() / "bin" / "python")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--part", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--batch-rows", type=int, default=BATCH_ROWS)
    parser.add_argument("--rate", type=int, default=RATE, help="records/s of the latency")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of the latency")
    parser.add_argument("--warm", type=int, default=WARM_S, help="seconds before them")
    parser.add_argument("--instances", type=int, default=2, help="of the latency (default: 2)")
    for name in ("query", "address", "source", "out", "range-ms"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    if asked.child:
        own_session()
        place = Place(asked.address, asked.source, asked.out, int(asked.range_ms))
        done = run_tidegate(asked.query, place, Path(asked.work), asked.batch_rows, MASTER)
        give({**done, "cpu_s": cpu_seconds()})
        return
    from tools.kafka import PORT, Broker
    from tools.server import running

    python = spark_python() if "spark" in asked.engines else ""
    with running(Broker, PORT, 0) as broker:
        bench, cases, latency = Bench(broker, python, asked), [], {}
        if "speed" in asked.part:
            topics = Topics(broker.address)
            topics.make("in")
            topics.fill("in", asked.rows)
            cases = [bench.compare(case, "in") for case in asked.case]
        if "latency" in asked.part:
            latency = {engine: bench.latency(engine) for engine in asked.engines}
    write_report(
        "kafka" if CORES == 2 else f"kafka-{CORES}",
        {
            "master": MASTER,
            "spark": {"version": VERSION, "connector": CONNECTOR},
            "partitions": PARTITIONS,
            "cases": cases,
            "latency": {
                "rate": asked.rate,
                "seconds": asked.seconds,
                "warm_s": asked.warm,
                "window_ms": LIVE_RANGE_MS,
                "instances": asked.instances,
                "wanted_p50_ms_by_cores": WANTED_P50_MS,
                "engines": latency,
            },
        },
    )


if __name__ == "__main__":
    main()
