"""How a program ends whose JVM has died: with its own exit code, whatever PySpark's threads do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.crash.process import ENVIRONMENT, QUICK_JVM
from tidegate.execute.java import ensure_java

PROGRAM = Path(__file__).with_name("dying_jvm.py")


def run(how: str) -> subprocess.CompletedProcess[str]:
    ensure_java()
    command = [sys.executable, str(PROGRAM), how]
    environment = ENVIRONMENT | QUICK_JVM
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_no_thread_of_pyspark_prints_into_the_end_of_python() -> None:
    """The server of accumulators would be at it, and Python abort with another exit code."""
    ended = run("task")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "[]\n", "")


def test_a_query_over_a_streaming_frame_says_in_one_line_that_spark_is_gone() -> None:
    """In a session that was there before, whose JVM had a connection that we do not know."""
    ended = run("frame")
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.startswith(
        (
            "DataFrame s/0: Spark must be there while it is read; got ",
            "batch 1: Spark must be there until its tasks have finished; got ",
        )
    ), f"whoever finds it gone first says so; got {ended.stdout}"
    assert "serve_forever" not in ended.stdout
