"""Tasks for workers of a crew, and the program that starts those."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.crash.driver import load_loops
from tidegate.errors import TaskError
from tidegate.execute import shared_task  # noqa: F401  # once, not in each worker
from tidegate.execute.resident.depot import DepotPlan
from tidegate.execute.resident.worker import serve
from tidegate.execute.work import TaskWork


def told(work: TaskWork, number: int) -> tuple[str, int, int]:
    """What was sent, for which number, and who says so."""
    return work.open().to_pybytes().decode(), number, os.getpid()


def dies_first(work: TaskWork, number: int) -> int:
    """Kills its process the first time; the work names a file that tells it is not."""
    mark = Path(work.open().to_pybytes().decode())
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def dies(work: TaskWork, number: int) -> None:
    """Kills its process every time."""
    os.kill(os.getpid(), signal.SIGKILL)


def stands_still_first(work: TaskWork, number: int) -> int:
    """Stops its process the first time, as one that swaps or hangs in the kernel does."""
    mark = Path(work.open().to_pybytes().decode())
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return number


def hangs(work: TaskWork, number: int) -> None:
    """Opens one pipe, which tells that it has begun, and waits for ever for another."""
    begun, never = work.open().to_pybytes().decode().splitlines()
    with open(begun, "w"):
        pass
    with open(never):
        pass


def waits(work: TaskWork, number: int) -> None:
    """Waits for the end of what is written to a pipe, one for each number."""
    with open(f"{work.open().to_pybytes().decode()}-{number}") as pipe:
        pipe.read()


def notes(work: TaskWork, number: int) -> None:
    """Adds its number to a file."""
    with open(work.open().to_pybytes().decode(), "a") as file:
        file.write(f"{number} ")


def raises(work: TaskWork, number: int) -> None:
    """Fails as a user's code does, in a way that cannot be sent as it is."""

    class Local(Exception):
        pass

    raise Local(f"number {number}")


def refuses(work: TaskWork, number: int) -> None:
    """Fails with an error of ours."""
    raise TaskError("task", "must fail", str(number))


APART = DepotPlan(distant=True, shares_disk=False)
"""For workers that have no files together, though they are on one host."""


def keep(address: str, secret: bytes, size: int, depot: DepotPlan | None) -> None:
    """Fork workers, and fork them again when they die or break off, as Spark does."""
    load_loops()
    workers = {_fork(address, secret, number, depot): number for number in range(size)}
    while workers:
        pid, status = os.wait()
        number = workers.pop(pid)
        if status:
            workers[_fork(address, secret, number, depot)] = number


def _fork(address: str, secret: bytes, number: int, depot: DepotPlan | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        serve(address, secret, number, os.getpid(), beat_s=0.1, depot=depot)
    except BaseException:
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    address, secret, size, apart = sys.argv[1:]
    keep(address, bytes.fromhex(secret), int(size), APART if apart == "apart" else None)
