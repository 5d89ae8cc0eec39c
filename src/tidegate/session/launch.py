"""From a logical query and options to a loop that is ready to run; used by every surface."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike, cpu_count
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileSystem

from tidegate.clock import Clock
from tidegate.driver.connection import inlets_of
from tidegate.driver.loop import Loop, Observer, RowsSeen
from tidegate.driver.metrics import BatchReport
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.execute.executor import Draft, Executor, Outcomes
from tidegate.execute.java import ensure_java
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalExecutor
from tidegate.plan.lower import lower
from tidegate.plan.method import JoinOptions
from tidegate.plan.physical import OPERATOR_SET, Plan
from tidegate.query.join import has_join
from tidegate.query.output import Output
from tidegate.session.preview import first_rows
from tidegate.sink.protocol import Sink
from tidegate.source.protocol import Connector
from tidegate.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = "none"
DEFAULT_MASTER = "local[*]"
EXCHANGES = ("auto", "shared", "shuffle")

Location = str | PathLike[str] | tuple[FileSystem, str]
"""Where a checkpoint is: a folder, a URI of `pyarrow.fs`, or a file system and a path in it."""


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


def plan_for(
    outputs: Sequence[Output],
    place: Place,
    join: JoinOptions | None = None,
    connectors: Mapping[str, Connector] | None = None,
    strategy: str = OPERATOR_SET,
) -> Plan:
    """Lower a query; Spark is asked for types only where kernels do not know an expression.

    `join` is how joins are to be done. What it leaves open is decided by the first rows of the
    streams; `connectors` are those of sources that are not named by a URI. `strategy` is how the
    query is cut into subqueries.
    """
    join = join or JoinOptions()
    if join.chosen and not any(has_join(o.node) for o in outputs):
        option, value = join.chosen[0]
        raise OptionError(
            option, "is for joins", f"{value} for a query without one", "Leave it out."
        )
    rows = first_rows(connectors or {})
    if not place.on_spark:
        return lower(outputs, None, join, rows, strategy)

    def typer(*arguments: Any) -> Any:
        from tidegate.execute.spark.executor import types_by_spark

        session = place.connected().session
        assert session is not None
        return types_by_spark(session)(*arguments)

    return lower(outputs, typer, join, rows, strategy)


def prepare(
    plan: Plan,
    place: Place,
    sinks: Mapping[str | None, Sink],
    options: RunOptions,
    checkpoint: Location | None = None,
    connectors: Mapping[str, Connector] | None = None,
    clock: Clock | None = None,
    observer: Observer | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    on_rows: RowsSeen | None = None,
) -> Loop:
    """Open sources, checkpoint and sinks, and make the loop; nothing has been read yet.

    `sinks` are by the names of the outputs, None for the only one. `connectors` are those of
    sources that are not named by a URI, by the name they have in the plan. Without a checkpoint the
    state lives in a temporary folder that ends with the loop.
    """
    inlets = inlets_of(plan.streams, connectors or {}, options.follow)
    if place.on_spark and place.session is None:
        ensure_java()  # else a checkpoint would be begun before the first batch asks for one
    options = replace(options, default_instances=place.default_instances())
    temporary = tempfile.mkdtemp(prefix="tidegate-") if checkpoint is None else None
    try:
        loop = Loop(
            plan,
            inlets,
            Store.open(checkpoint or str(temporary)),
            sinks,
            DeferredExecutor(place),
            options,
            clock=clock,
            observer=observer,
            on_batch=on_batch,
            on_rows=on_rows,
        )
    except BaseException:
        _discard(temporary)
        raise
    loop.on_close(lambda: _discard(temporary))
    return loop


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


def _discard(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
