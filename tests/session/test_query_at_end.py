"""A query that is still running when the program ends: it ends first, and properly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.crash.process import ENVIRONMENT

SCENE = """
import atexit, sys, threading
import tidegate as tg
from tests.driver.scene import memory

source = memory(*[(t, "abc"[t % 3], t) for t in range(60)], end=END)
counted = tg.Session(master="none").stream(source, time="ts").window(10).agg(n=tg.count())
begun, leaving = threading.Event(), threading.Event()
"""

NOBODY_WAITS = (
    SCENE.replace("END", "False")
    + """
def deliver(rows, batch):
    begun.set()
    leaving.wait()
    for row in rows.column("n").to_pylist():
        print(row)

counted.start(sink=tg.sink.call(deliver))
begun.wait()
atexit.register(leaving.set)  # called before what was registered earlier
sys.exit(3)
"""
)

A_THREAD_WAITS = (
    SCENE.replace("END", "True")
    + """
def deliver(rows, batch):
    threading.main_thread().join()

def wait():
    print(query.wait().text())

query = counted.start(sink=tg.sink.call(deliver), batch_rows=10)
threading.Thread(target=wait).start()
"""
)


def run(program: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=ENVIRONMENT | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_running_batch_is_finished_and_nothing_stays_behind(tmp_path: Path) -> None:
    """Python would end its thread inside the batch, and abort if that was writing a row."""
    ended = run(NOBODY_WAITS, tmp_path)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout.split() == ["10"] * 5
    assert list(tmp_path.glob("tidegate-*")) == []


def test_a_query_that_a_thread_waits_for_goes_on_after_the_main_thread(tmp_path: Path) -> None:
    """With compaction, though pools of threads take no more work then."""
    ended = run(A_THREAD_WAITS, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("finished: 60 rows in, 6 out")
