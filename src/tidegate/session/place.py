"""Where tasks run, between what a user names and the executor that runs them there."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import cpu_count
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.errors import OptionError
from tidegate.execute.executor import Draft, Executor, Outcomes
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

NO_SPARK = "none"
DEFAULT_MASTER = "local[*]"
EXCHANGES = ("auto", "shared", "shuffle")


@dataclass(frozen=True)
class Place:
    """Where tasks run: without Spark, on a master to connect to, or in a session that is there."""

    master: str = DEFAULT_MASTER
    session: SparkSession | None = None
    exchange: str = "auto"

    def __post_init__(self) -> None:
        pattern = (
            r"none|local(\[([1-9]\d*|\*)(,\d+)?\])?|local-cluster\[.+\]|(spark|k8s|yarn|mesos).*"
        )
        if self.session is None and not re.fullmatch(pattern, self.master):
            raise OptionError(
                "--master",
                "must be none, local[N], or the URL of a Spark master",
                self.master,
                "Use for example local[2], spark://host:7077, or none to run without Spark.",
            )
        if self.exchange not in EXCHANGES:
            raise OptionError(
                "--exchange", f"must be one of {', '.join(EXCHANGES)}", str(self.exchange)
            )

    @property
    def on_spark(self) -> bool:
        return self.session is not None or self.master != NO_SPARK

    def default_instances(self) -> int:
        """As many instances as tasks can run at once here."""
        if self.session is not None:
            return int(self.session.sparkContext.defaultParallelism)
        local = re.match(r"local(?:\[(\d+|\*))?", self.master)
        if local is None:
            return 1 if not self.on_spark else 2
        if local.group(1) == "*":
            return cpu_count() or 1
        return max(int(local.group(1) or 1), 1)

    def cores(self) -> int | None:
        """How many tasks run at once here; None where only a cluster knows."""
        local = re.match(r"none$|local(\[|$)", self.master) is not None
        return self.default_instances() if local or self.session is not None else None

    def connected(self) -> Place:
        """The same place with a session; starts Spark where it is not running yet."""
        if not self.on_spark or self.session is not None:
            return self
        from tidegate.execute.spark.executor import connect

        with _interrupts_kept():
            return replace(self, session=connect(self.master))

    def executor(self) -> Executor:
        """What runs tasks here; starts Spark where it is not running yet."""
        session = self.connected().session
        if session is None:
            return LocalExecutor()
        from tidegate.execute.spark.executor import SparkExecutor

        return SparkExecutor(session, self.exchange)


class DeferredExecutor(Executor):
    """Connects to its place when the first batch comes, after everything else was found good."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._executor: Executor | None = None

    def run(self, job: Job) -> list[Outcome]:
        return self._connected().run(job)

    def run_batch(self, drafts: Sequence[Draft]) -> tuple[list[Job], Outcomes]:
        return self._connected().run_batch(drafts)

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        return self._connected().submit(function, *arguments)

    def _connected(self) -> Executor:
        if self._executor is None:
            self._executor = self._place.executor()
        return self._executor

    def release(self, jobs: Sequence[Job]) -> None:
        if self._executor is not None:
            self._executor.release(jobs)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep a handler of interrupts that was set on purpose; a Spark context sets its own."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        chosen = before not in (None, signal.default_int_handler)
        if chosen and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
