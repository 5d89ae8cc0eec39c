"""Faults on cue: processes that end the hard way at a step, at a file change or inside a task."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.runtime.job import Executor, Job, Outcome
from tidegate.source.protocol import Reader, Rows
from tidegate.state.store import Store, StoreHandle

STEPS = (
    "before gate",
    "after gate",
    "after operate",
    "before commit",
    "after commit",
    "after publish",
)
"""The steps of a batch, in order, as an observer of the loop is told of them."""

PHASES = ("read", "state")
"""What tasks do, in order: map tasks read their splits, instances open the state."""


@dataclass(frozen=True)
class KillAt:
    """An observer that ends this process with SIGKILL at one step of one batch."""

    step: str
    batch: int

    def __call__(self, step: str, batch: int) -> None:
        if (step, batch) == (self.step, self.batch):
            kill(os.getpid())


class KillAtChange:
    """Ends this process with SIGKILL just before its n-th change to the file system.

    Changes are files opened for writing, renamed or removed, and folders made or removed, by
    Python code; they count from `arm` on, which as an observer it does at a step of a batch. What
    is armed stays so until the process ends, so this is for processes that are there to be killed.
    """

    def __init__(self, change: int, step: str | None = None, batch: int | None = None) -> None:
        self.change = change
        self.step = step
        self.batch = batch
        self.count = 0
        self._armed = False

    def __call__(self, step: str, batch: int) -> None:
        if (step, batch) == (self.step, self.batch):
            self.arm()

    def arm(self) -> None:
        """Begin to count."""
        if not self._armed:
            self._armed = True
            sys.addaudithook(self._heard)

    def strike(self) -> None:
        """What happens at the chosen change."""
        kill(os.getpid())

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and _writes(arguments[2])):
            self.count += 1
            if self.count == self.change:
                self.strike()


class FailAtChange(KillAtChange):
    """Lets the n-th change fail instead, by default as on a full disk; those after it work."""

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


_CHANGES = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link"})


def _writes(flags: object) -> bool:
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


class KillInOperate:
    """An executor around another that ends a process while the tasks of one batch run.

    In the phase `read` that is when the map task of split number `place` begins to read; in the
    phase `state` when the state is opened after `place` instances of the same process have done
    so. Put it in place of `Loop.executor`. Tasks on this host, Spark's too, kill the process
    `pid`, by default the one that makes this: the driver.
    """

    def __init__(
        self, executor: Executor, batch: int, phase: str, place: int = 0, pid: int | None = None
    ) -> None:
        self._executor = executor
        self._batch = batch
        self._phase = phase
        self._place = place
        self._pid = os.getpid() if pid is None else pid

    def run(self, job: Job) -> list[Outcome]:
        if job.batch == self._batch:
            job = self._rigged(job)
        return self._executor.run(job)

    def close(self) -> None:
        self._executor.close()

    def _rigged(self, job: Job) -> Job:
        if self._phase == "state":
            after = self._place % job.mapping.instances
            handle = _LethalHandle(job.store.location, None, None, job.store, self._pid, after)
            return replace(job, store=handle)
        place = self._place % max(len(job.splits), 1)
        splits = tuple(
            replace(s, reader=_LethalReader(s.reader, self._pid)) if s.index == place else s
            for s in job.splits
        )
        return replace(job, splits=splits)


@dataclass(frozen=True)
class _LethalReader:
    """Kills when it is read."""

    reader: Reader
    pid: int

    @property
    def start(self) -> int:
        return self.reader.start

    @property
    def stop(self) -> int:
        return self.reader.stop

    def read(self, columns: Sequence[str]) -> Rows:
        kill(self.pid)
        return self.reader.read(columns)


@dataclass(frozen=True)
class _LethalHandle(StoreHandle):
    """Opens the store `after` times in one process, and kills when it is asked once more."""

    inner: StoreHandle | None = None
    pid: int = 0
    after: int = 0
    opened: list[int] = field(default_factory=list)

    def open(self) -> Store:
        assert self.inner is not None
        if len(self.opened) == self.after:
            kill(self.pid)
        self.opened.append(os.getpid())
        return self.inner.open()


def kill(pid: int) -> None:
    """End a process of this host at once, without any of its handlers; gone already is fine."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
