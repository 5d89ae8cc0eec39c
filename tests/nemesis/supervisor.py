"""Keeps one driver running, as systemd or Kubernetes would, and remembers how each life ended."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from tests.crash.process import ENVIRONMENT, KILLED
from tests.nemesis import driver

AGAIN_S = 0.3
"""The least time from an end to the next start."""


class Supervisor:
    """Starts the driver again whenever it ends, with one number of instances after the other.

    `wrong` are ends that must not be: errors that nobody foresaw.
    """

    def __init__(self, request: dict[str, Any], environment: Mapping[str, str]) -> None:
        self._request = request
        self._log = Path(request["log"])
        self._server = subprocess.Popen(
            [sys.executable, "-m", driver.__name__],
            env={**ENVIRONMENT, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers: SimpleQueue[dict[str, int]] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.pid: int | None = None
        self.lives = 0
        self.ends: Counter[str] = Counter()
        self.said: list[str] = []
        """What users would have been told since somebody has looked."""
        self.wrong: list[str] = []
        self._begin_at = 0.0

    def look(self) -> None:
        """Take note of an end, and start the next life when it is time."""
        if self.pid is not None:
            try:
                self._note(self._answers.get_nowait()["status"])
            except Empty:
                return
            self.pid, self._begin_at = None, time.monotonic() + AGAIN_S
        if time.monotonic() >= self._begin_at:
            self._start()

    def _start(self) -> None:
        assert self._server.stdin is not None
        asked = self._request | {"instances": 3 - self.lives % 3}
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        self.lives += 1
        self.pid = self._answers.get(timeout=60)["pid"]

    def _note(self, status: int) -> None:
        if status == KILLED:
            self.ends["killed"] += 1
            return
        lines = self._log.read_text(errors="replace").splitlines()
        if status == driver.TOLD:
            said = next(line for line in reversed(lines) if line.startswith("ended: "))
            self.ends[said.split(":")[1].strip()] += 1
            self.said.append(said)
            return
        self.wrong.append(f"a driver ended with {status}:\n" + "\n".join(lines[-30:]))

    def _read(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            self._answers.put(json.loads(line))

    def close(self) -> None:
        self._server.kill()
        self._server.wait()
