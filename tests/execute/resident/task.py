"""Tasks for workers of a crew, and the program that a worker's process runs."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tidegate.errors import TaskError
from tidegate.execute.resident.worker import serve
from tidegate.execute.work import Work


def told(work: Work, number: int) -> tuple[str, int, int]:
    """What was sent, for which number, and who says so."""
    return work.open().to_pybytes().decode(), number, os.getpid()


def dies_first(work: Work, number: int) -> int:
    """Kills its process the first time; the work names a file that tells it is not."""
    mark = Path(work.open().to_pybytes().decode())
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def dies(work: Work, number: int) -> None:
    """Kills its process every time."""
    os.kill(os.getpid(), signal.SIGKILL)


def stands_still_first(work: Work, number: int) -> int:
    """Stops its process the first time, as one that swaps or hangs in the kernel does."""
    mark = Path(work.open().to_pybytes().decode())
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return number


def raises(work: Work, number: int) -> None:
    """Fails as a user's code does, in a way that cannot be sent as it is."""

    class Local(Exception):
        pass

    raise Local(f"number {number}")


def refuses(work: Work, number: int) -> None:
    """Fails with an error of ours."""
    raise TaskError("task", "must fail", str(number))


if __name__ == "__main__":
    address, secret, worker = sys.argv[1:]
    serve(address, bytes.fromhex(secret), int(worker), os.getpid(), beat_s=0.1)
