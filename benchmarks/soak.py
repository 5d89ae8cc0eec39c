"""An hour of Kafka to Delta on three executors, with switches and a kill -9 of the driver.

    python benchmarks/soak.py                                   60 minutes, 1,000 records/s
    python benchmarks/soak.py --minutes 3 --switches 8 --every 1

A producer writes to a topic of six partitions, at a steady rate, whatever the query does. A query
of sliding windows follows the topic on a Spark cluster of three workers (tools/cluster.py), and
adds its rows to a Delta table. Its parallelism is switched between two and three instances, again
and again. After a seventh of the time the driver is killed, and started again with the same
command. At the end the query is stopped, and a last run closes the windows. The table must then
have, row for row and in order, what this program counts by itself.

Every few seconds it notes the memory, descriptors and threads of the driver, its JVM, executors and
Python's workers, and the disk of the checkpoint. They must be flat (`soak_samples.py` has the
rule). Results go to benchmarks/results/soak.json and soak.svg; the exit status is 1 where a figure
is not flat.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Producer
from data import START_US
from kafka_topic import PARTITIONS, Topics
from measure import HERE, RESULTS, check_count, write_report
from soak_samples import Sample, below, draw, judged, processes, sample, table

sys.path.insert(0, str(HERE.parent))  # the broker and the cluster are those of tools/

KEYS, PANE_S, PANES = 100, 10, 3
WORKERS, MEMORY = 3, "512m"
KILL_AT = 1 / 7
"""When the driver is killed, as a share of the time."""
TICK_S, PATIENCE_S = 0.1, 300
STOPPED = 130
"""The exit status of a run that somebody stopped."""
QUERY = """
CREATE STREAM r (ts TIMESTAMP, k STRING, v BIGINT)
FROM 'kafka://{address}/{topic}' TIME ts OPTIONS (format 'json');

SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS]
GROUP BY k;
"""

Row = tuple[int, str, int, int]


def keys_of(first: int, last: int) -> np.ndarray[Any, Any]:
    """The keys of records, by their number: all equally often, without a plain pattern."""
    return np.arange(first, last, dtype=np.int64) * 2_654_435_761 % 1_000_003 % KEYS


def values_of(first: int, last: int) -> np.ndarray[Any, Any]:
    return np.arange(first, last, dtype=np.int64) * 977 % 1_460


def bodies(first: int, last: int, rate: int) -> list[bytes]:
    """The values of these records; record n has the event time START + n / rate."""
    ts = START_US + np.arange(first, last, dtype=np.int64) * 1_000_000 // rate
    texts = np.datetime_as_string(ts.astype("M8[us]"), timezone="UTC").tolist()
    keys, values = keys_of(first, last).tolist(), values_of(first, last).tolist()
    return [
        b'{"ts":"%s","k":"k%02d","v":%d}' % (ts.encode(), k, v)
        for ts, k, v in zip(texts, keys, values, strict=True)
    ]


def counted(records: int, rate: int) -> list[Row]:
    """What the query must give: start of the window, key, count and sum, in the output's order."""
    slide_us = PANE_S * 1_000_000
    ts = START_US + np.arange(records, dtype=np.int64) * 1_000_000 // rate
    first = START_US // slide_us
    panes = ts // slide_us - first
    places = panes * KEYS + keys_of(0, records)
    shape = (int(panes[-1]) + 1, KEYS)
    counts = np.bincount(places, minlength=shape[0] * KEYS).reshape(shape)
    sums = np.bincount(places, values_of(0, records), shape[0] * KEYS).reshape(shape)
    found: list[Row] = []
    for window in range(1 - PANES, shape[0]):
        held = slice(max(window, 0), window + PANES)
        n, s = counts[held].sum(axis=0), sums[held].sum(axis=0)
        start_us = int((first + window) * slide_us)
        found += [(start_us, f"k{k:02d}", int(n[k]), int(s[k])) for k in np.flatnonzero(n).tolist()]
    return found


def rows_in(table_path: Path) -> list[Row]:
    """The rows of the Delta table, in the order of its files and of their rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    files = sorted(DeltaTable(str(table_path)).file_uris())
    rows = pa.concat_tables([pq.read_table(file.removeprefix("file://")) for file in files])
    starts = rows["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    columns = [starts, rows["k"], rows["n"], rows["s"]]
    return [(a, b, c, d) for a, b, c, d in zip(*(c.to_pylist() for c in columns), strict=True)]


class Feed(threading.Thread):
    """Sends records when they are due until it is told to end; `sent` have been taken then."""

    def __init__(self, producer: Producer, topic: str, rate: int) -> None:
        super().__init__(daemon=True)
        self._producer, self._topic, self._rate = producer, topic, rate
        self._end = threading.Event()
        self.sent = 0

    def run(self) -> None:
        begun = time.monotonic()
        while not self._end.wait(TICK_S):
            due = int((time.monotonic() - begun) * self._rate)
            for n, body in enumerate(bodies(self.sent, due, self._rate), self.sent):
                self._producer.produce(self._topic, body, partition=n % PARTITIONS)
            self.sent = due
            self._producer.poll(0)
        if self._producer.flush(PATIENCE_S):
            raise SystemExit(f"{self._topic}: not all records could be written.")

    def end(self) -> int:
        self._end.set()
        self.join()
        self._producer.close()
        return self.sent


@dataclass
class Query:
    """The query of this program on a cluster, as a process that can be killed and started again."""

    work: Path
    master: str
    trigger: str
    log: Path
    process: Any = None

    @property
    def checkpoint(self) -> Path:
        return self.work / "checkpoint"

    @property
    def table(self) -> Path:
        return self.work / "table"

    def start(self, *more: str) -> None:
        memory = [f"--conf=spark.{of}.memory={MEMORY}" for of in ("driver", "executor")]
        words = ["run", self.work / "query.sql", "--out", f"delta:{self.table}"]
        words += ["--checkpoint", self.checkpoint, "--master", self.master, *memory]
        words += ["--conf", "spark.ui.enabled=false", "--instances", WORKERS, *more]
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tidegate", *map(str, words)],
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            )

    def follow(self) -> None:
        """Start it, and wait until it has done a batch more than it had."""
        before = self._newest()["batch"]
        self.start("--follow", "--trigger", self.trigger)
        self._wait(lambda: self._newest()["batch"] > before, "its first batch")

    def finish(self) -> None:
        """Take what is left, close the windows, and end."""
        self.start()
        if self.process.wait(PATIENCE_S):
            self._fail("it failed")

    def ctl(self, *words: str) -> str:
        command = [sys.executable, "-m", "tidegate", "ctl", str(self.checkpoint), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def scale(self, instances: int) -> None:
        """Switch, and see that it has switched."""
        self.ctl("scale", str(instances))
        switched = f"its switch to {instances} instances"
        self._wait(lambda: self._newest()["instances"] == instances, switched)

    def kill(self) -> None:
        """Kill -9; what it had started must end by itself."""
        left = below(self.process.pid, processes())
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._until(lambda: not set(left) & set(processes()), "the end of its processes")

    def stop(self) -> None:
        self.ctl("stop")
        if self.process.wait(PATIENCE_S) != STOPPED:
            self._fail("it failed")

    def follow_until(self, moment_s: float) -> None:
        """Wait until then, by the clock of `time.monotonic`; it must not end before."""
        while (left_s := moment_s - time.monotonic()) > 0:
            self._check_runs("its end was due")
            time.sleep(min(1.0, left_s))

    def _wait(self, come: Callable[[], bool], what: str) -> None:
        def come_or_ended() -> bool:
            self._check_runs(what)
            return come()

        self._until(come_or_ended, what)

    def _check_runs(self, before: str) -> None:
        if self.process.poll() is not None:
            self._fail(f"it ended before {before}")

    def _until(self, come: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not come():
            if time.monotonic() > until:
                self._fail(f"{what} did not come in {PATIENCE_S} s")
            time.sleep(0.5)

    def _newest(self) -> dict[str, Any]:
        """What the journal has of the newest batch; `tidegate ctl status` costs 3 s of CPU."""
        files = sorted((self.checkpoint / "journal").glob("[0-9]*.jsonl"))
        lines = files[-1].read_text().splitlines() if files else []
        return json.loads(lines[-1]) if lines else {"batch": -1}

    def _fail(self, what: str) -> None:
        raise SystemExit(f"{what}:\n{self.log.read_text(errors='replace')[-4000:]}")


@contextmanager
def watching(take: Callable[[], Sample], every_s: float) -> Iterator[list[Sample]]:
    """Samples that are taken beside the block."""
    found: list[Sample] = []
    end = threading.Event()

    def run() -> None:
        while not end.wait(every_s):
            found.append(take())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        end.set()
        thread.join()


def events(length_s: float, switches: int) -> list[tuple[float, str, int]]:
    """What is done to the query and when, from its first batch on: scale, kill, and so on.

    The switches are those after the kill. Each quarter of the time that is left then has a quarter
    of them, and the same instances for as long.
    """
    killed_s = KILL_AT * length_s
    step_s = (length_s - killed_s) / switches
    after = [
        (killed_s + step_s * (n + 0.5), "scale", WORKERS - (n + 1) % 2) for n in range(switches)
    ]
    return [
        (killed_s / 3, "scale", WORKERS - 1),
        (2 * killed_s / 3, "scale", WORKERS),
        (killed_s, "kill", 0),
        *after,
    ]


def soaked(query: Query, asked: argparse.Namespace, hosts: list[int]) -> dict[str, Any]:
    """The run while records come: its samples, and what was done when."""
    query.follow()
    begun = time.monotonic()
    marks: list[tuple[float, str]] = []
    since_s = 0.0

    def passed() -> float:
        return time.monotonic() - begun

    def take() -> Sample:
        return sample(passed(), query.process.pid, hosts, query.checkpoint)

    with watching(take, asked.every) as samples:
        for at_s, what, instances in events(60 * asked.minutes, asked.switches):
            query.follow_until(begun + at_s)
            if what == "kill":
                query.kill()
                query.follow()
                since_s = passed()
            else:
                query.scale(instances)
            marks.append((passed(), "kill" if what == "kill" else f"{instances}"))
            print(f"{passed():,.0f} s: {what} {instances or ''}", flush=True)
        query.follow_until(begun + 60 * asked.minutes)
    query.stop()
    return {"samples": samples, "marks": marks, "since_s": since_s}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=1_000, help="records/s")
    parser.add_argument("--trigger", default="2 seconds", help="between the starts of batches")
    parser.add_argument("--switches", type=int, default=40, help="after the kill; of 8, 16, ...")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples")
    parser.add_argument("--log", default="soak-driver.log", help="standard error of the drivers")
    asked = parser.parse_args()
    if asked.switches < 8 or asked.switches % 8:
        parser.error(f"--switches: must be a multiple of 8; got {asked.switches}.")
    return asked


def main() -> None:
    from tools.cluster import running as cluster_running
    from tools.kafka import PORT, Broker
    from tools.server import running

    asked = arguments()
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-soak-") as work,
        running(Broker, PORT, 0) as broker,
        cluster_running(WORKERS, 1, "1g", 0) as cluster,
    ):
        topics = Topics(broker.address)
        topics.make("in")
        query = Query(Path(work), cluster.url, asked.trigger, Path(asked.log))
        names = {"address": broker.address, "topic": "in"}
        spans = {"range_s": PANE_S * PANES, "slide_s": PANE_S}
        (query.work / "query.sql").write_text(QUERY.format(**names, **spans))
        feed = Feed(topics.producer(linger_ms=50), "in", asked.rate)
        feed.start()
        hosts = [p.pid for name, p in cluster.processes.items() if name != "master"]
        done = soaked(query, asked, hosts)
        records = feed.end()
        query.finish()
        wanted, found = counted(records, asked.rate), rows_in(query.table)
    check_count("the Delta table", len(wanted), len(found))
    odd = [pair for pair in zip(wanted, found, strict=True) if pair[0] != pair[1]]
    if odd:
        raise SystemExit(f"the Delta table: {len(odd):,} rows differ, as {odd[0]}.")
    figures = judged(done["samples"], done["since_s"])
    print(f"{records:,} records, {len(found):,} rows, as counted\n" + "\n".join(table(figures)))
    given = {
        name: getattr(asked, name) for name in ("minutes", "rate", "trigger", "switches", "every")
    }
    content = {**given, "query": QUERY.strip(), "records": records, "rows": len(found)}
    write_report("soak", {**content, "figures": figures, **done})
    draw(done["samples"], done["marks"], RESULTS / "soak.svg")
    grown = [name for name, one in figures.items() if not one["flat"]]
    if grown:
        raise SystemExit(f"not flat: {', '.join(grown)}.")


if __name__ == "__main__":
    main()
