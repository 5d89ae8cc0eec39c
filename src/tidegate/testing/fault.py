"""Injects faults on cue: kills processes at a step, at a file change or inside a task."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import IO, Any, TypeVar

from tidegate.connector import Reader, Rows
from tidegate.execute.job import Job, Outcome
from tidegate.execute.runner import Draft, JobRunner, Outcomes
from tidegate.state.handle import StoreHandle
from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.storage.disk import Disk
from tidegate.testing.tap import DiskChange, TappedDisk

T = TypeVar("T")

STEPS = (
    "before gate",
    "after gate",
    "after operate",
    "before commit",
    "after commit",
    "after publish",
)
"""The steps of a batch, in order, which the loop reports to observers."""

PHASES = ("read", "state")
"""The phases of tasks, in order: map tasks read their splits, instances open the state."""

VICTIMS = ("driver", "worker", "daemon", "jvm")
"""The processes that can be killed from inside a task of Spark; without Spark only the driver."""


@dataclass(frozen=True)
class KillAt:
    """An observer that kills this process (SIGKILL) at one step of one batch."""

    step: str
    batch: int

    def __call__(self, step: str, batch: int) -> None:
        if (step, batch) == (self.step, self.batch):
            kill(os.getpid())


class KillAtChange(TappedDisk):
    """Kills this process (SIGKILL) just before its n-th change to the file system.

    Changes are those of the engine's disk (`CHANGES`): files created, bytes written, also by Arrow,
    files and folders synced, renamed, linked and removed. Bytes count by blocks, as they reach a
    disk; if the n-th change is a write, half of it is written. Changes count from `arm` on; as an
    observer it arms itself at a step of a batch. It stays armed until the process ends, so use it
    only in processes that are meant to be killed.
    """

    def __init__(self, change: int, step: str | None = None, batch: int | None = None) -> None:
        super().__init__()
        self.change = change
        self.step = step
        self.batch = batch
        self.count = 0
        self.bytes = 0
        self._lock = threading.Lock()
        self._in_place: AbstractContextManager[Disk] | None = None

    def __call__(self, step: str, batch: int) -> None:
        if (step, batch) == (self.step, self.batch):
            self.arm()

    def arm(self) -> None:
        """Begin to count."""
        if self._in_place is None:
            self._in_place = disk.using(self)
            self._in_place.__enter__()

    def strike(self) -> None:
        """The fault at the chosen change."""
        kill(os.getpid())

    def before(self, change: DiskChange) -> None:
        if self._is_next():
            self.strike()

    def write(self, file: IO[bytes], change: DiskChange, data: Any) -> int:
        with self._lock:
            self.bytes += change.bytes
        blocks = change.offset // _BLOCK_BYTES, (change.offset + change.bytes) // _BLOCK_BYTES
        if (change.offset == 0 or blocks[0] != blocks[1]) and self._is_next():
            file.write(memoryview(data).cast("B")[: change.bytes // 2])
            file.flush()
            self.strike()
        file.write(data)
        return change.bytes

    def _is_next(self) -> bool:
        with self._lock:
            self.count += 1
            return self.count == self.change


_BLOCK_BYTES = 8192


class FailAtChange(KillAtChange):
    """Makes the n-th change fail instead, by default as on a full disk; later changes work."""

    def __init__(
        self,
        change: int,
        step: str | None = None,
        batch: int | None = None,
        error: int = errno.ENOSPC,
    ) -> None:
        super().__init__(change, step, batch)
        self.error = error

    def strike(self) -> None:
        raise OSError(self.error, os.strerror(self.error))


class FullAtByte(KillAtChange):
    """A disk that is full after so many bytes: the rest of that write and all later ones fail.

    Removing files makes no room. `bytes` counts all bytes that were to be written.
    """

    def before(self, change: DiskChange) -> None:
        return

    def write(self, file: IO[bytes], change: DiskChange, data: Any) -> int:
        with self._lock:
            room = max(self.change - self.bytes, 0)
            self.bytes += change.bytes
        if change.bytes > room:
            file.write(memoryview(data).cast("B")[:room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file.write(data)
        return change.bytes


@dataclass(frozen=True)
class Trap:
    """Kills a process of this host from inside a task, the first `times` times it is sprung.

    The victim is the driver; in Spark's tasks also the worker that runs the task, the daemon that
    forked it, or their JVM. Each kill leaves a file in the folder `tally`, so a second try of the
    task knows of it.
    """

    victim: str
    driver: int
    times: int
    tally: str

    def spring(self) -> None:
        """Kill the victim, if it is one of ours and not enough have died."""
        pid = self._pid()
        if pid is None or not self._counted():
            return
        kill(pid)
        if self.victim in ("daemon", "jvm"):
            kill(os.getpid())  # this task could finish before the loss of its parents shows

    def _pid(self) -> int | None:
        if self.victim == "driver":
            return self.driver
        if os.getpid() == self.driver:
            return None
        if self.victim == "worker":
            return os.getpid()
        daemon = os.getppid()
        pid = {"daemon": daemon, "jvm": _parent(daemon)}[self.victim]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        java = os.path.basename(words[0]) == b"java"
        is_spark = java if self.victim == "jvm" else b"pyspark.daemon" in words
        return pid if is_spark else None

    def _counted(self) -> bool:
        folder = Path(self.tally)
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(self.times):
            try:
                (folder / f"{self.victim}-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False


class KillInOperate(JobRunner):
    """A runner around another that kills processes while the tasks of one batch run.

    In the phase `read` it kills when the map task of split number `place` begins to read. In the
    phase `state` it kills when an instance opens the state, after `place` others in the same
    process have done so. Assign it to `Loop.runner`.
    """

    def __init__(
        self,
        runner: JobRunner,
        batch: int,
        phase: str,
        tally: str,
        place: int = 0,
        victim: str = "driver",
        times: int = 1,
    ) -> None:
        self._runner = runner
        self._batch = batch
        self._phase = phase
        self._place = place
        self._trap = Trap(victim, os.getpid(), times, tally)

    def connected(self) -> JobRunner:
        self._runner = self._runner.connected()
        return self

    def start(self, drafts: Sequence[Draft]) -> bool:
        return self._runner.start(drafts)

    def run(self, job: Job) -> list[Outcome]:
        return self._runner.run(self._rigged(job) if job.batch == self._batch else job)

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        if drafts[0].job.batch == self._batch:
            drafts = [replace(d, job=self._rigged(d.job)) for d in drafts]
        return self._runner.run_batch(drafts)

    def maps_ahead(self, drafts: Sequence[Draft]) -> bool:
        return self._runner.maps_ahead(drafts)

    def map_ahead(self, jobs: Sequence[Job]) -> None:
        self._runner.map_ahead([self._rigged(j) if j.batch == self._batch else j for j in jobs])

    def until_at_work(self) -> None:
        self._runner.until_at_work()

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._runner.submit(function, *arguments)

    def release(self, jobs: Sequence[Job]) -> None:
        self._runner.release(jobs)

    def close(self) -> None:
        self._runner.close()

    def _rigged(self, job: Job) -> Job:
        if self._phase == "state":
            after = self._place % job.mapping.running
            handle = _RiggedHandle(job.store.location, None, None, job.store, self._trap, after)
            return replace(job, store=handle)
        place = self._place % max(len(job.splits), 1)
        splits = list(job.splits)
        for number, split in enumerate(splits):
            if split.index == place:
                reader = split.reader
                rigged = _RiggedReader(reader, self._trap, reader.start, reader.stop)
                splits[number] = replace(split, reader=rigged)
        return replace(job, splits=tuple(splits))


@dataclass(frozen=True)
class _RiggedReader(Reader):
    """Springs the trap when it is read."""

    reader: Reader
    trap: Trap
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> Rows:
        self.trap.spring()
        return self.reader.read(columns)


@dataclass(frozen=True)
class _RiggedHandle(StoreHandle):
    """Springs the trap once more than `after` instances have opened the state in one process."""

    inner: StoreHandle | None = None
    trap: Trap | None = None
    after: int = 0
    opened: list[int] = field(default_factory=list)

    def open(self) -> Store:
        assert self.inner is not None
        assert self.trap is not None
        if _called_by("run_instance"):
            self.opened.append(os.getpid())
            if len(self.opened) > self.after:
                self.trap.spring()
        return self.inner.open()


def _called_by(function: str) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def kill(pid: int) -> None:
    """Kill a process of this host; does nothing where it is gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
