"""Processes that are killed and brokers that are started again: every record counts once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from tools.kafka import Broker

import tidegate as tg
from tests.conftest import LONG
from tests.crash.process import ENVIRONMENT
from tests.kafka.topic import SQL, answer, given, send, spread, until
from tests.seed import SEED

KILLS = 20 if LONG else 3
ROWS = 6_000


class Runs:
    """`tidegate run --follow` in processes of their own, one after the other."""

    def __init__(self, place: str, folder: Path) -> None:
        (folder / "q.sql").write_text(SQL)
        self.out = folder / "out"
        self.log = folder / "log"
        self._command = [sys.executable, "-m", "tidegate", "run", str(folder / "q.sql")]
        self._command += ["--stream", f"r={place}", "--master", "none", "--batch-rows", "200"]
        self._command += ["--follow", "--out", str(self.out), "--checkpoint", str(folder / "c")]

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(self._command, env=ENVIRONMENT, stdout=log, stderr=log)

    def start_and_kill(self, after: int) -> None:
        """Let a process publish so many batches."""
        wanted, process = self.batches() + after, self.start()
        until(lambda: self.batches() >= wanted or process.poll() is not None)
        assert process.poll() is None, self.log.read_text()
        process.kill()
        process.wait()

    def batches(self) -> int:
        return len(list(self.out.glob("batch=*")))

    def rows(self) -> list[dict[str, Any]]:
        files = sorted(self.out.glob("batch=*/*.parquet"))
        return [row for f in files for row in pq.read_table(f).to_pylist()]


def test_a_run_that_is_killed_again_and_again_counts_every_record_once(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create(topic, 3)
    send(broker, topic, spread(range(ROWS // 2), 3))
    runs, chance = Runs(f"kafka://{broker.address}/{topic}", tmp_path), np.random.default_rng(SEED)
    for kill in range(KILLS):
        runs.start_and_kill(after=int(chance.integers(1, 5)))
        share = ROWS // 2 // KILLS
        first = ROWS // 2 + kill * share
        send(broker, topic, spread(range(first, first + share), 3))
    process = runs.start()
    closed = answer(n for n in range(ROWS) if n < (ROWS - 3) // 100 * 100)
    until(lambda: given(runs.rows()) == closed or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (0, 130), runs.log.read_text()
    assert given(runs.rows()) == closed


def test_a_broker_that_is_started_again_is_read_on(broker: Broker, topic: str) -> None:
    broker.create(topic, 2)
    send(broker, topic, spread(range(400), 2))
    session, sink = tg.Session(master="none"), tg.sink.memory()
    stream = session.stream(f"kafka://{broker.address}/{topic}", time="ts", name="r")
    query = session.sql(SQL, r=stream).start(sink=sink, follow=True)
    until(lambda: query.status().get("rows_in", 0) == 400, query)
    broker.kill()
    broker.start()
    send(broker, topic, spread(range(400, 800), 2))
    until(lambda: query.status().get("rows_in", 0) == 800, query)
    query.stop()
    assert given(sink.table().to_pylist()) == answer(range(700))
