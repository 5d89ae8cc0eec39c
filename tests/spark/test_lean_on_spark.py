"""Three hundred batches in the same Python workers: after half of its work none grows further."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.driver.test_lean import CALLS, MEAN
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.memory import Allowance
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.call import CallSink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.timeout(600)
def test_memory_of_workers_does_not_grow(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(session=spark)
    script = read_script(CALLS.format(rows=300_000, rate=2_000) + MEAN)
    # Caches fill what they may hold; here that is little, and soon full.
    options = RunOptions(instances=2, batch_rows=1_000, memory=Allowance(cache_bytes=16 * 2**20))
    plan = plan_for(bind(script, streams_of(script)), place)
    sink = CallSink(lambda rows, batch: None)
    loop = prepare(plan, place, {None: sink}, options, str(tmp_path))
    before = {pid: _cpu_ticks(pid) for pid in _workers()}
    seen: dict[int, list[tuple[int, int]]] = {}

    def look(report: BatchReport) -> None:
        if report.batch % 10 == 9:
            for pid in _workers():
                work = _cpu_ticks(pid) - before.get(pid, 0)
                seen.setdefault(pid, []).append((work, _resident_bytes(pid)))

    loop._on_batch = look
    assert loop.run().batches == 300
    most = max(looks[-1][0] for looks in seen.values())
    for looks in seen.values():
        work = looks[-1][0]
        if work * 2 < most:  # a tiny batch is done by one of them, and this one had few
            continue
        early, late = (
            [size for done, size in looks if (done * 2 > work) == is_late]
            for is_late in (False, True)
        )
        assert early, looks
        # Arrow's allocator gives back in large pieces: the size goes up and down by 50 MB.
        assert max(late) < max(early) + 64 * 2**20, looks


def _workers() -> list[int]:
    """The processes that the Python daemon of this process's Spark has forked, and no other's."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = Path(f"/proc/{_parent(folder)}/cmdline").read_bytes().split(b"\0")
                mine = b"tests.spark.daemon" in words and _is_mine(folder)
            except OSError:
                continue  # it has ended
            if mine:
                found.append(int(folder.name))
    return found


def _is_mine(folder: Path) -> bool:
    """Whether a process, or one that it is of, was started by this one."""
    while (parent := _parent(folder)) > 1:
        if parent == os.getpid():
            return True
        folder = Path(f"/proc/{parent}")
    return False


def _parent(folder: Path) -> int:
    return int((folder / "stat").read_text().rpartition(")")[2].split()[1])


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _resident_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")
