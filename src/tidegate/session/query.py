"""The handle of a running query: a program waits for it, changes it and asks for its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from tidegate import schedule
from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.microsecond import time_text
from tidegate.connector import Connector
from tidegate.driver.connection import Connection, opened
from tidegate.driver.loop import Loop
from tidegate.driver.report.metrics import Summary
from tidegate.driver.report.status import status_of
from tidegate.elastic import registry as policies
from tidegate.elastic.owners import buckets_of, owners_of, whole
from tidegate.elastic.policy import Policy
from tidegate.elastic.request import MappingChange, Move, Rebalance, Request, Scale, Switch
from tidegate.elastic.share import ShareRequest, share_of
from tidegate.errors import OptionError, near
from tidegate.execute.shutdown import stop_at_end
from tidegate.query.node.node import StreamDef
from tidegate.query.output import Output
from tidegate.schema import columns_text
from tidegate.session.interrupt import wait_for
from tidegate.session.notebook import LiveCell, in_notebook, query_html
from tidegate.session.options import given_us
from tidegate.source.backfill.address import is_backfill
from tidegate.source.memory import MemorySource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RunningQuery:
    """A started query; its batches run in a thread of their own.

    If the query fails, its thread ends, and the next call of `wait` or `stop` raises the error.
    Committed batches stay; a new start on the same checkpoint continues after them. A program that
    ends stops its queries and waits for their current batches.
    """

    def __init__(
        self,
        loop: Loop,
        page: str | None = None,
        outputs: Sequence[Output] = (),
        connectors: Mapping[str, Connector] | None = None,
    ) -> None:
        self._loop = loop
        self._outputs, self._connectors = outputs, connectors or {}
        self.dashboard = page
        """The URL of its page, as `http://127.0.0.1:8123/`; None without a page."""
        self._running: Future[None] = Future()
        self._failure: BaseException | None = None
        self._cell: LiveCell | None = None

    def __repr__(self) -> str:
        manifest, counts = self._loop.summary.manifest, self._loop.summary.counters
        done = counts.get("rows_in", 0), counts.get("rows_out", 0)
        seen = MIN_US < manifest.frontier_us < MAX_US
        parts = [
            f"{manifest.batch + 1:,} batch{'' if manifest.batch == 0 else 'es'}",
            f"{done[0]:,} row{'' if done[0] == 1 else 's'} in",
            f"{done[1]:,} out",
            *([f"watermark {time_text(manifest.frontier_us)}"] if seen else []),
        ]
        return f"RunningQuery({self._state}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        """HTML for a notebook: the text, more figures, and a link to the page."""
        text = f"<code>{escape(repr(self))}</code>{query_html(self._loop)}"
        link = "" if self.dashboard is None else f'<a href="{escape(self.dashboard)}">dashboard</a>'
        return f"{text} {link}".strip()

    def _ipython_display_(self) -> None:
        """Called by IPython: a notebook shows the query live, until it ends or is shown again."""
        if not in_notebook():
            raise NotImplementedError  # IPython then shows the text
        if self._cell is not None:
            self._cell.stop()
        self._cell = LiveCell(
            lambda: {"text/plain": repr(self), "text/html": self._repr_html_()}, self._running
        )

    @property
    def _state(self) -> str:
        if self._failure is not None:
            return f"failed, {type(self._failure).__name__}"
        if not self._running.done():
            return "running"
        return "finished" if self._loop.manifest.finished else "stopped"

    def begin(self) -> RunningQuery:
        """Start the thread; called once, by whoever made the query."""
        # A daemon thread: Ctrl-C can then end a program that waits for a slow batch.
        self._running = schedule.current().start("tidegate-query", self._run, daemon=True)
        stop_at_end(self._running, self._loop.stop)
        return self

    def wait(self, timeout_s: float | None = None) -> Summary:
        """Block until the input has ended or the time is over; return the summary so far.

        Ctrl-C raises KeyboardInterrupt here while the query goes on: wait again, or stop it.
        """
        wait_for(self._running, timeout_s)
        return self._result()

    def stop(self) -> Summary:
        """End the query after the current batch; open windows stay in the checkpoint."""
        self._loop.stop()
        wait_for(self._running)
        return self._result()

    def pause(self) -> None:
        """Start no batch after the current one until `resume`; input stays in its sources."""
        self._loop.controls.refuse_ended("pause")
        self._loop.pause()

    def resume(self) -> None:
        """Undo `pause`."""
        self._loop.controls.refuse_ended("resume")
        self._loop.resume()

    def scale(self, instances: int, subquery: str | None = None, *, why: str = "") -> None:
        """Use another number of instances from the next batch on.

        It applies to every subquery, or to one by its name; `explain` shows the names. The request
        replaces one that still waits. An impossible request raises an OptionError, and the query
        goes on as before. `why` goes into the timeline in `status()["epochs"]`. All this holds for
        `rebalance`, `move` and `switch` too. On one host no state moves.
        """
        self._ask(Scale(whole(instances, "scale")), subquery, why)

    def rebalance(self, subquery: str | None = None, *, why: str = "") -> None:
        """Spread the load of the buckets evenly over the current instances, with few moves."""
        self._ask(Rebalance(), subquery, why)

    def move(
        self,
        buckets: int | str | Iterable[int],
        instance: int,
        subquery: str | None = None,
        *,
        why: str = "",
    ) -> None:
        """Move buckets to an instance; they are a number, several, or a text as `"3,4,10-12"`."""
        self._ask(Move(buckets_of(buckets), whole(instance, "move")), subquery, why)

    def switch(
        self,
        mapping: Sequence[int] | Mapping[int | str, str | Iterable[int]] | str,
        subquery: str | None = None,
        *,
        why: str = "",
    ) -> None:
        """Set the owner of every bucket, as a list `[0, 1, 0, 1]`.

        Or give the buckets of each instance, as `{0: "0-31", 1: range(32, 64)}`.
        """
        self._ask(Switch(*owners_of(mapping)), subquery, why)

    def shed(self, share: float | str, *, why: str = "") -> None:
        """Shed another share of the tuples from the next batch on: 0.9, "90 percent" or "off".

        Only for a query with `shed`. It applies to tuples later than all that were read so far;
        `status()["shedding"]` has that event time. If the query has `shed(up_to=...)`, the share
        stays fixed until "auto" leaves it to the backlog again.
        """
        self._loop.controls.shed(ShareRequest(share_of(share), "user", why))

    def use(self, policy: Policy | str) -> None:
        """Use another policy from the next batch on: an object, or a name as "threshold"."""
        chosen = policies.of(policy)
        self._loop.controls.refuse_ended("use")
        self._loop.manager.use(chosen)

    def _ask(self, change: MappingChange, subquery: str | None, why: str) -> None:
        self._loop.controls.ask(Request(change, subquery, by="user", why=why))

    def announce(
        self, stream: str, source: str | MemorySource, promise: str | datetime | int | None = None
    ) -> None:
        """Let a source join a stream; it promises to bring nothing older than the frontier.

        `promise` is the smallest event time it may bring, as a time or in microseconds since 1970;
        by default it is the frontier at the time it joins. A restart opens a URI again by itself. A
        memory source must be announced again, and the output waits until then. To announce a source
        that is there already changes nothing.
        """
        streams = self._loop.plan.streams
        positions = [i for i, s in enumerate(streams) if s.name == stream]
        if not positions:
            names = list(dict.fromkeys(s.name for s in streams))
            raise OptionError(
                "announce", "needs a stream of the query", stream, near(stream, names)
            )
        promised_us = None if promise is None else given_us(promise, "announce")
        for position in positions:
            connector = self._opened(streams[position], source)
            uri = source if isinstance(source, str) else None
            self._loop.controls.announce(Connection(position, connector, uri), promised_us)

    def remove(self, source_id: str) -> None:
        """Let a source leave: rows that were read of it are still processed, no more are read."""
        self._loop.controls.remove(source_id)

    def status(self) -> dict[str, Any]:
        """The state and the figures of the query so far, as plain data."""
        return {
            "running": not self._running.done(),
            "failure": str(self._failure) if self._failure else None,
            **status_of(self._loop),
        }

    def why(self, row: int | str, *, output: str | None = None) -> dict[str, Any]:
        """Explain a committed row: its input tuples, and the rows that the query makes of them.

        `row` is its number, from 0 on, or a condition in SQL: the first row for which it is true.
        The sources are read again in this process and must still have their rows; the run itself
        goes on. It works without Spark, so functions that only Spark has are refused.
        """
        from tidegate.session.why.answer import why  # needs kernels that a run may not

        loop = self._loop
        return why(loop.manifest, loop.store, self._outputs, self._connectors, output, row)

    def to_dataframe(
        self, spark: SparkSession | None = None, *, output: str | None = None, stream: bool = False
    ) -> DataFrame:
        """The committed rows as a DataFrame of Spark, in the order of the output.

        Each action of Spark sees the batches that are committed when Spark plans it. With `stream`
        it is a streaming DataFrame, which gets each batch exactly once. `spark` is by default the
        session of the process. It works for results in Parquet files, and without `stream` for
        those of a memory sink, which are copied.
        """
        from tidegate.execute.spark.data_source import result_frame

        sink = self._loop.pipeline.outlets.sink_of(output)
        return result_frame(sink, spark, stream=stream)

    def _opened(self, stream: StreamDef, source: str | MemorySource) -> Connector:
        connector: Connector
        if isinstance(source, str):
            if is_backfill(source):
                remedy = "Announce the topic alone, or begin the stream with both."
                raise OptionError("announce", "a source joins from one place", source, remedy)
            connector = opened(source, stream, self._loop.options)
        elif isinstance(source, MemorySource):
            connector = source
        else:
            raise OptionError(
                "announce", "a source must be a path, a URI or a memory source", repr(source)
            )
        if not connector.schema.equals(stream.schema):
            raise OptionError(
                f"stream {stream.name}",
                f"a joining source must have its columns ({columns_text(stream.schema)})",
                columns_text(connector.schema),
            )
        return connector

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as failure:
            self._failure = failure

    def _result(self) -> Summary:
        if self._failure is not None:
            raise self._failure
        return self._loop.summary
