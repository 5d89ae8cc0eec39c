"""The operator of aggregates over sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.collect.window import WindowOrder
from tidegate.operate.aggregate.rows import window_rows
from tidegate.operate.bucket_work import rows_by_bucket
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    plain_names,
    together,
)
from tidegate.operate.session.advance import advance
from tidegate.operate.session.piece import fold, fold_after, placed
from tidegate.operate.session.spec import SessionSpec
from tidegate.operate.session.state import (
    SESSIONS,
    SessionKeeper,
    leave_sessions,
    read_sessions,
    write_sessions,
)
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner, Router


@dataclass(frozen=True)
class SessionFolding:
    """Where tuples are folded into pieces: map tasks call `deal`, and instances call `pieces`.

    `step` is the work of map tasks in a plan, and `side` says where functions are folded.
    """

    deal: Callable[[SessionSpec, pa.Table, Router], pa.Table]
    pieces: Callable[[SessionSpec, pa.Table, pa.Table], pa.Table]
    step: str
    side: str


def _sent(spec: SessionSpec, opened: pa.Table, pieces: pa.Table) -> pa.Table:
    return pieces


FOLDED_BY_MAP = SessionFolding(fold, _sent, "pieces", "on the map side")
"""Little is sent: a piece for each session of a group in a split."""

FOLDED_BY_INSTANCE = SessionFolding(placed, fold_after, "route", "in the instances")
"""All tuples are sent: for sessions with a MAX, and for states that keep every value."""


@dataclass(frozen=True)
class SessionAggregate(Operator):
    """Keeps the open sessions of each group, and puts out those that can get no more tuples.

    Each key is at one instance, so the total work is the same for any number of instances.
    """

    kind: ClassVar[str] = "aggregate"

    spec: SessionSpec
    key_names: tuple[str, ...]
    partitioner: Partitioner = BY_HASH
    folding: SessionFolding = FOLDED_BY_MAP

    order = WindowOrder()

    @property
    def traits(self) -> Traits:
        return Traits(deals_ahead=True, map_steps=(self.folding.step,))

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        dealt = self.folding.deal(self.spec, plain_names(tuples), work.router(self.partitioner))
        work.spans.mark("map fold")
        return work.by_bucket(dealt)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Add the batch's tuples to their sessions, and put out the sessions that have ended."""
        spec, news = self.spec, together(arrived)
        opened = read_sessions(work, spec)
        work.spans.mark("instance read state")
        pieces = spec.piece_schema.empty_table()
        if news is not None:
            pieces = self.folding.pieces(spec, opened, news)
        turn = advance(spec, opened, pieces, frontier_us=work.frontier_us, batch=work.batch)
        work.spans.mark("instance advance")
        made = write_sessions(work, spec, turn.stored)
        leave_sessions(work, turn.opened)
        work.spans.mark("instance write")
        keys = [name for name, _ in spec.keys]
        results = self.results(work, opened, pieces, turn.results)
        rows = tuple(window_rows(port, keys, results) for port in work.ports)
        work.spans.mark("instance finish")
        dealt = [arrival.rows for arrival in arrived]
        return Result(
            rows,
            sum(part.num_rows for part in dealt),
            {SESSIONS: made},
            {"closed": turn.results.num_rows},
            bucket_work=rows_by_bucket([*dealt, opened], work.mapping.buckets),
        )

    def results(
        self, work: InstanceWork, opened: pa.Table, pieces: pa.Table, ended: pa.Table
    ) -> pa.Table:
        """The rows of a batch; here simply the sessions that have ended."""
        return ended

    @property
    def state(self) -> OperatorState:
        kept = {SESSIONS: SessionKeeper(self.spec)}
        return OperatorState(kept, "its sessions last as long as tuples keep coming")

    def title(self) -> str:
        return f"aggregate over [{self.spec}] by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return [
            f"sessions folded {self.folding.side}, the open ones kept",
            "extend and end sessions: one task per instance, shuffle by bucket",
        ]
