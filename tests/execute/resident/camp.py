"""A crew of real processes without Spark, and somebody who starts them again when they die."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.execute.resident import task
from tidegate.execute.resident.channel import door_at
from tidegate.execute.resident.crew import Crew
from tidegate.execute.resident.message import Hello
from tidegate.execute.work import SentWork

SIZE = 2
SECRET = b"between us"


class Camp:
    """A crew whose workers are forked from one process that has all they need.

    Those that are `apart` share no files: each has a depot of its own, below `disk`.
    """

    def __init__(self, folder: Path, hung_s: float = 1.0, apart: bool = False) -> None:
        self.replaced: list[Hello] = []
        self.address = str(folder / "crew")
        self.crew = Crew(door_at(self.address), SECRET, SIZE, self._replace, hung_s)
        words = [sys.executable, "-m", task.__name__, self.address, SECRET.hex(), str(SIZE)]
        self.disk = folder / "blockmgr-here"
        place = {"SPARK_LOCAL_DIRS": str(self.disk), "SPARK_LOCAL_IP": "127.0.0.1"}
        self._keeper = subprocess.Popen(
            [*words, "apart" if apart else "together"], env=os.environ | place
        )

    def run(self, function: Any, data: bytes = b"", count: int = 1) -> list[Any]:
        key = hashlib.sha256(data).hexdigest()
        return self.crew.run([(function, SentWork(key), n, {key: data}) for n in range(count)])

    def gather(self, data: bytes = b"") -> set[int]:
        """Wait until all workers have come, and have been sent something; their processes."""
        while len(found := {pid for _, _, pid in self.run(task.told, data, count=8)}) < SIZE:
            pass
        return found

    def close(self) -> None:
        """Let the workers go; it is an error if one stays."""
        self.crew.close()
        assert self._keeper.wait(120) == 0

    def _replace(self, worker: Hello) -> None:
        self.replaced.append(worker)
        os.kill(worker.process, signal.SIGKILL)
