"""Processes to be killed, between a test and `driver.py`: forked from one that has it all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.jvm import light

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("driver.py")
KILLED = -signal.SIGKILL

# A process that is killed or forked many times had better not start threads it does not need.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}

QUICK_JVM = {"JDK_JAVA_OPTIONS": f"{light()} -Xmx512m"}

WARM_WORKERS = {"spark.python.daemon.module": "tests.spark.daemon"}
"""Settings of a Spark whose Python workers are forked with what they import."""


class Nursery:
    """Starts drivers, one at a time; each is a process of its own, forked where that is quick."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(DRIVER), "--serve"],
            env={**ENVIRONMENT, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, request: dict[str, Any]) -> int:
        """Start a driver and return its process id; `wait` must follow."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._answer()["pid"])

    def wait(self) -> int:
        """The exit code of the driver that was started last, negative for a signal."""
        return int(self._answer()["status"])

    def run(self, request: dict[str, Any]) -> int:
        self.start(request)
        return self.wait()

    def close(self) -> None:
        self._server.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, f"the process that forks drivers has ended itself: {self._server.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer


def gone(pid: int) -> bool:
    """Whether a process has ended; its parent may not have taken note yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 300) -> None:
    """Return as soon as a condition holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s"
        time.sleep(0.001)
