"""A band join from topics to a topic, through kills, switches and a broker that goes away.

Records arrive all the while. A reader of committed records must find the rows of the oracle, each
once and in order, and the late tuples. In long mode: a million records, on Spark.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from tools.kafka import Broker

from tests.conftest import LONG
from tests.crash.process import ENVIRONMENT, QUICK_JVM
from tests.kafka.band import PARTITIONS, BandRecords, sql
from tests.kafka.proxy import END, OFFSET_COMMIT, PRODUCE, Call, Proxy, between
from tests.kafka.reading import committed, in_order
from tests.seed import SEED
from tidegate.cli.main import invoke
from tidegate.control.client import ask
from tidegate.errors import CheckpointError

RECORDS, MASTER = (1_000_000, "local[2]") if LONG else (6_000, "none")

EVENTS = ["kill"] * 7 + ["kill inside"] * 3 + ["switch"] * 2 + ["restart"]
if not LONG:
    EVENTS = ["kill", "kill inside", "switch", "restart"]

INSIDE = [(END, True), (END, False), (OFFSET_COMMIT, True), (PRODUCE, False)]
"""Requests of a commit at which a run is killed: when they are done, or before they arrive."""

PATIENCE_S = 900 if LONG else 180


class Runs:
    """The query in processes of its own, one after the other, on one checkpoint."""

    def __init__(self, folder: Path, sql: str, out: str, proxy: Proxy) -> None:
        (folder / "q.sql").write_text(sql)
        self.checkpoint = str(folder / "c")
        self._log = folder / "log"
        self._proxy = proxy
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [sys.executable, "-m", "tidegate", "run", str(folder / "q.sql")]
        self._command += ["--follow", "--master", MASTER, "--instances", "2", "--out", out]
        self._command += ["--checkpoint", self.checkpoint, "--log", "info"]

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The one that runs; it is started where none does."""
        if self._process is None:
            environment = {**ENVIRONMENT, **QUICK_JVM} if MASTER != "none" else ENVIRONMENT
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._begun_with = self._proxy.count[END]
        return self._process

    def committed(self) -> int:
        """How many transactions the process that runs has ended."""
        return self._proxy.count[END] - self._begun_with

    def wait_for(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self._log.read_text()[-5000:]
            assert time.monotonic() < until, self._log.read_text()[-5000:]
            time.sleep(0.02)

    def let_commit(self, count: int) -> None:
        """Wait until the run that there is has committed so often."""
        assert self.process.pid
        self.wait_for(lambda: self.committed() >= count)

    def told(self, name: str) -> int:
        """A figure of the newest batch; -1 while a run starts, when it does not answer yet."""
        try:
            return int(ask(self.checkpoint, {"command": "status"})[name])
        except CheckpointError:
            return -1

    def kill(self) -> None:
        self.process.kill()
        self.ended()

    def ended(self) -> None:
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL, self._log.read_text()[-5000:]
        self._process = None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) in (0, 130), self._log.read_text()[-5000:]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Course:
    """What happens to the runs, one thing after the other, drawn from the seed."""

    def __init__(self, runs: Runs, proxy: Proxy, broker: Broker) -> None:
        self._runs, self._proxy, self._broker = runs, proxy, broker
        self._chance = random.Random(SEED)
        self._inside = self._chance.sample(INSIDE, len(INSIDE))
        self._instances = [3, 1]
        self.happened: Counter[str] = Counter()

    def take(self) -> None:
        does = {
            "kill": self._kill,
            "kill inside": self._kill_inside,
            "switch": self._switch,
            "restart": self._restart,
        }
        for event in self._chance.sample(EVENTS, len(EVENTS)):
            does[event]()
            self.happened[event] += 1

    def _kill(self) -> None:
        """At any moment, also while it starts."""
        self._runs.let_commit(self._chance.randrange(0, 10))
        time.sleep(self._chance.uniform(0, 1))
        self._runs.kill()

    def _kill_inside(self) -> None:
        """In a commit: at a request that belongs to it."""
        self._runs.let_commit(2)
        kind, done = self._inside.pop()
        pid = self._runs.process.pid
        fate = Call(lambda: os.kill(pid, signal.SIGKILL), done)
        self._proxy.plan(kind, fate, self._chance.randrange(10))
        self._runs.ended()

    def _switch(self) -> None:
        """To another number of instances, which a batch then has."""
        self._runs.let_commit(2)
        self._runs.wait_for(lambda: self._runs.told("instances") > 0)  # a start may commit before
        instances = self._instances.pop()
        assert invoke(["ctl", self._runs.checkpoint, "scale", str(instances)]) == 0
        self._runs.wait_for(lambda: self._runs.told("instances") == instances)

    def _restart(self) -> None:
        """Of the broker, which is killed while the query runs, and which the query outlives."""
        self._runs.let_commit(2)
        self._broker.kill()
        self._broker.start()
        before = self._runs.committed()
        self._runs.wait_for(lambda: self._runs.committed() > before + 1)


@contextmanager
def sending(records: BandRecords, broker: Broker, proxy: Proxy) -> Iterator[None]:
    """Records arrive for as long as the block lasts; then the rest of them comes at once."""
    calm = Event()
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(records.send, broker, lambda: proxy.count[END], calm)
        try:
            yield
        finally:
            calm.set()
        sent.result()


def test_a_band_join_from_topics_to_a_topic_outlives_kills_switches_and_a_restart(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    records = BandRecords(RECORDS, (f"{topic}-l", f"{topic}-r"))
    for name in records.topics:
        broker.create(name, PARTITIONS)
    with between(broker.port) as proxy:
        out = f"kafka://{proxy.address}/{topic}?partitions=6&late={topic}-late"
        runs = Runs(tmp_path, sql(broker.address, records.topics), out, proxy)
        try:
            course = Course(runs, proxy, broker)
            with sending(records, broker, proxy):
                course.take()
            runs.wait_for(lambda: runs.told("frontier_us") >= records.ready_us)
            runs.stop()
        finally:
            runs.close()
    assert course.happened == Counter(EVENTS)
    rows, late = records.answer()
    assert [record.row for record in in_order(committed(broker, topic))] == rows
    found = [record.row["n"] for record in committed(broker, f"{topic}-late")]
    assert sorted(found) == sorted(late)
    assert len(rows) > RECORDS // 4
    assert late
