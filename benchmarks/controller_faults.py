"""A Spark cluster of two executors on this machine; the busier one is made slow, or killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

EXECUTOR = "CoarseGrainedExecutorBackend"
WORKERS = 2
CYCLE_S = 0.05


def processes() -> dict[int, tuple[int, str]]:
    """By process id its parent's, and its command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            found[int(folder.name)] = int(parent), words.replace("\0", " ")
    return found


def below(pid: int) -> list[int]:
    """A process and all that it has started, which may change at any time."""
    every, found = processes(), [pid]
    for one in found:
        found += [child for child, (parent, _) in every.items() if parent == one]
    return found


def executor_below(worker: int) -> int:
    """The executor that a worker of the cluster has started."""
    every = processes()
    found = [pid for pid in below(worker) if EXECUTOR in every.get(pid, (0, ""))[1]]
    if not found:
        raise SystemExit(f"no executor below the worker {worker}")
    return found[-1]


def busiest(workers: Sequence[int]) -> int:
    """The executor that works most, over a second: instances may all be at one of them."""
    executors = [executor_below(worker) for worker in workers]
    before = [_ticks(executor) for executor in executors]
    time.sleep(1.0)
    used = [_ticks(executor) - at for executor, at in zip(executors, before, strict=True)]
    return executors[used.index(max(used))]


def _ticks(pid: int) -> int:
    """Processor time of a process and of those below it."""
    found = 0
    for one in below(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            found += sum(map(int, fields[11:13]))
    return found


@contextmanager
def cluster(folder: Path, cores: int) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers that share the cores: its address, and the ids of the workers."""
    from tools.cluster import Standalone

    made = Standalone(folder, cores=max(cores // WORKERS, 1), memory="1g")
    try:
        made.start_master()
        names = [f"worker-{n}" for n in range(WORKERS)]
        made.start_workers(dict.fromkeys(names, False))
        yield made.url, [made.processes[name].pid for name in names]
    finally:
        made.stop()


@dataclass(frozen=True)
class SlowExecutor:
    """One executor and its Python workers run only for a part of the time, by stopping them."""

    part: float = 0.4

    def strike(self, workers: Sequence[int], seconds: float, over: threading.Event) -> None:
        """For so long, or until the run is over."""
        executor, end = busiest(workers), time.monotonic() + seconds
        while time.monotonic() < end and not over.is_set():
            every = below(executor)
            try:
                _tell(every, signal.SIGSTOP)
                time.sleep(CYCLE_S * (1 - self.part))
            finally:
                _tell(every, signal.SIGCONT)
            time.sleep(CYCLE_S * self.part)


@dataclass(frozen=True)
class KilledExecutor:
    """One executor and its Python workers are killed; Spark starts another."""

    def strike(self, workers: Sequence[int], seconds: float, over: threading.Event) -> None:
        """At once."""
        _tell(below(busiest(workers)), signal.SIGKILL)


def _tell(every: list[int], what: signal.Signals) -> None:
    for pid in every:
        with suppress(ProcessLookupError):
            os.kill(pid, what)
