"""Takes requests for a running query from any thread; they take effect between batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidegate.clock import Clock, utc_now
from tidegate.driver.connection import Connection
from tidegate.driver.pipeline import Pipeline
from tidegate.elastic.request import Request
from tidegate.elastic.share import SHED, ShareRequest
from tidegate.elastic.switchboard import Taken, WaitingRequest
from tidegate.errors import OptionError
from tidegate.state.epoch import time_of


class Controls:
    """Changes of mappings, sources, shedding and batch size, from the next batch on."""

    def __init__(self, pipeline: Pipeline, clock: Clock, closed: Callable[[], bool]) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._closed = closed

    def ask(self, request: Request) -> dict[str, Taken]:
        """Request other mappings from the next batch on, for one subquery or all.

        Replaces a request that waits for these subqueries. An impossible request raises an
        OptionError, and the query goes on as before. Returns, by subquery, the switch as it would
        be now.
        """
        self.refuse_ended(str(request.change).partition(" ")[0])
        return self._pipeline.subqueries.ask(request, self._clock.now())

    def shed(self, asked: ShareRequest) -> dict[str, dict[str, float]]:
        """Request another share of tuples to shed, from the next batch on.

        Returns the old and the new share by subquery. Raises an OptionError if it is impossible.
        """
        self.refuse_ended(SHED)
        timed = replace(asked, time=time_of(utc_now()))
        return self._pipeline.subqueries.shedding.ask(timed)

    def refuse_ended(self, where: str) -> None:
        """Raise an OptionError if no more batches will come."""
        finished = self._pipeline.manifest.finished
        if finished or self._closed():
            raise OptionError(
                where,
                "needs a query that runs",
                f"one that has {'finished' if finished else 'ended'}",
                "Say it when you start the query: .start(instances=4, policy=...).",
            )

    def waiting(self) -> dict[str, WaitingRequest]:
        """By subquery, the request that waits for the next batch."""
        return self._pipeline.subqueries.waiting()

    def announce(self, connection: Connection, promised_us: int | None = None) -> None:
        """Let a source join at the next batch; it promises event times from `promised_us` on.

        The default promise is the frontier. The next commit makes the source part of the
        checkpoint. A restart opens its URI again; a source without a URI must be announced again,
        and until then it holds the frontier back. To announce a source twice changes nothing.
        """
        if self._pipeline.manifest.finished:
            raise OptionError(
                "announce",
                "needs a query that runs",
                "one that has finished",
                "Start it on another checkpoint with all its sources.",
            )
        self._pipeline.inputs.join(connection, promised_us)

    def remove(self, source_id: str) -> None:
        """Let a source leave at the next batch; what was read of it is still processed."""
        self._pipeline.inputs.remove(source_id)

    def ask_rows(self, rows: int) -> None:
        """Set the number of rows in a batch, from the next batch on."""
        self._pipeline.limit.ask(rows)

    @property
    def rows_at_hand(self) -> int:
        """The rows of the current batch; while it is being cut, the most it may have."""
        return self._pipeline.rows_at_hand
