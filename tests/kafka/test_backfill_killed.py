"""Runs over a history and its topic that are killed: in the history, at the seam, and after it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tools.kafka import Broker

from tests.conftest import LONG
from tests.crash.process import ENVIRONMENT, KILLED
from tests.kafka.history import SQL, fill, in_time, more, read, records, write_delta, write_files
from tests.kafka.topic import START
from tests.oracle.backfill import Record, by_offset, by_time
from tidegate.testing import STEPS

SERVER = """
import json, os, sys
import confluent_kafka, deltalake, pyarrow.parquet
import tidegate as tg
from tidegate.source.backfill import connector
from tidegate.testing import KillAt


def run(asked):
    session = tg.Session(master="none")
    stream = session.stream(asked["history"], then=asked["then"], until=asked["until"], name="r")
    query = session.sql(asked["sql"], r=stream).start(
        sink=asked["out"],
        checkpoint=asked["checkpoint"],
        batch_rows=asked["batch_rows"],
        instances=asked["instances"],
        observer=KillAt(*asked["fault"]) if asked["fault"] else None,
    )
    query.wait(60)


for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        run(json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Forks a process for each request, which saves the imports."""

BATCH_ROWS = 30
KILLS = range(10) if LONG else range(6)
"""The batches at which a run is killed: the history ends in the fifth."""


class Runs:
    """Runs a query in processes of its own, to its end or to a fault."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self.server = subprocess.Popen(
                [sys.executable, "-c", SERVER],
                env=ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
            )

    def status(self, asked: dict[str, Any], fault: tuple[str, int] | None, instances: int) -> int:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        request = {**asked, "fault": fault, "instances": instances}
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        status = int(self.server.stdout.readline() or -1)
        assert status in (0, KILLED), self._log.read_text()
        return status


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    made = Runs(tmp_path_factory.mktemp("runs") / "log")
    yield made
    made.server.communicate()


@pytest.mark.parametrize("parted_by", ["offset", "time"])
@pytest.mark.parametrize("write", [write_delta, write_files])
def test_each_row_comes_once_and_in_its_place(
    broker: Broker, topic: str, tmp_path: Path, runs: Runs, write: Any, parted_by: str
) -> None:
    every = records(range(300), 3)
    fill(broker, topic, {p: own[:70] for p, own in every.items()})
    early = [
        in_time(every[0][:40] + every[1][:30]),
        in_time(every[0][40:60] + every[1][30:55] + every[2][:45]),
    ]
    until = START + timedelta(seconds=131)
    place = f"kafka://{broker.address}/{topic}"
    asked = {
        "history": write(tmp_path / "hist", early),
        "then": f"{place}?from=history" if parted_by == "offset" else place,
        "until": None if parted_by == "offset" else until.isoformat(),
        "sql": SQL,
        "out": str(tmp_path / "out"),
        "checkpoint": str(tmp_path / "c"),
        "batch_rows": BATCH_ROWS,
    }
    kills = 0
    for batch in KILLS:
        step = STEPS[(batch + (4 if write is write_delta else 1)) % len(STEPS)]
        kills += runs.status(asked, (step, batch), instances=1 + batch % 3) == KILLED
        if batch == 2:
            more(broker, topic, [r for own in every.values() for r in own[70:]])
            grow(tmp_path / "hist", write, every[2][45:])
    assert kills == len(KILLS)
    assert runs.status(asked, None, instances=2) == 0
    files = sorted((tmp_path / "out").glob("batch=*/*.parquet"))
    found = read([row for file in files for row in pq.read_table(file).to_pylist()])
    plain = by_offset(early, every) if parted_by == "offset" else by_time(early, every, until)
    assert found == plain
    lacking = 0 if parted_by == "offset" else missing(early, every, until)
    assert sorted({r.v for r in found}) == sorted(r.v for r in found)
    assert len(found) == 300 - lacking


def grow(folder: Path, write: Callable[..., str], rows: list[Record]) -> None:
    """Let the history get rows that the topic has as well."""
    if write is write_delta:
        write_delta(folder, [rows])
    else:
        write_files(folder.with_name("grown"), [rows])
        (folder.with_name("grown") / "000.parquet").rename(folder / "000-later.parquet")


def missing(early: list[list[Record]], every: dict[int, list[Record]], until: datetime) -> int:
    """How many rows before a time the history does not have."""
    there = {r.v for file in early for r in file}
    return sum(r.ts < until and r.v not in there for own in every.values() for r in own)
