"""Where tasks run, between what a user names and the executor that runs them there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from os import cpu_count
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate import schedule
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

    def connected(self) -> Place:
        """The same place with a session; starts Spark where it is not running yet."""
        if not self.on_spark or self.session is not None:
            return self
        from tidegate.execute.spark.executor import connect

        # Not on the main thread: there a Spark context takes Ctrl-C for itself, and cancels the
        # jobs of all queries. And the wait for this one can be interrupted.
        connecting = schedule.current().start(
            "tidegate-connect", lambda: connect(self.master), daemon=True
        )
        return replace(self, session=connecting.result())

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

    def abort(self) -> bool:
        return self._executor is not None and self._executor.abort()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()
