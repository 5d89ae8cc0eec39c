"""Stores open sessions, and reads them again.

A batch writes what it adds to sessions (`advance`). A row counts until the frontier is more than a
gap after its `live`. A session that is still open then was stored again before. So the rows of
ended sessions are deleted with their files, and no tombstones are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.function import unfolded_state
from tidegate.operate.keeper import CELLS, Keeper, OrderHorizon
from tidegate.operate.kernels.group import dense, pack, rank
from tidegate.operate.kernels.order import flat
from tidegate.operate.operator import InstanceWork
from tidegate.operate.session.advance import needed_from, together
from tidegate.operate.session.spec import BUCKET, LIVE, START, SessionSpec
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Absent, Segment, read_segment, write_segment

SESSIONS = "sessions"
"""What the segments hold."""


@dataclass(frozen=True)
class SessionKeeper(Keeper):
    """Keeps the rows of open sessions until no tuple can extend the session."""

    spec: SessionSpec
    order = LIVE

    @property
    def columns(self) -> list[str]:
        return list(self.spec.state_schema.names)

    @property
    def absent(self) -> Absent:
        return partial(unfolded_state, self.spec.functions)

    @property
    def cell(self) -> int:
        return max(self.spec.gap_us // CELLS, 1)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(LIVE, needed_from(self.spec, frontier_us))


def read_sessions(work: InstanceWork, spec: SessionSpec) -> pa.Table:
    """The open sessions of an instance: left in memory by the batch before, or read."""
    held: pa.Table | None = work.kept.take(SESSIONS)
    if held is not None:
        return held
    needed = needed_from(spec, work.previous_us)
    own = BucketSet.of(work.mapping.owned_by(work.instance))
    parts = [spec.state_schema.empty_table()]
    for segment in work.state.get(SESSIONS, ()):
        mine = segment.buckets & own
        if mine and segment.high >= needed:
            names, absent = spec.state_schema.names, SessionKeeper(spec).absent
            rows = read_segment(work.store, segment, mine, names, absent=absent)
            parts.append(rows.filter(pa.array(ints(rows, LIVE) >= needed)))
    return together(spec, pa.concat_tables(parts))


def write_sessions(work: InstanceWork, spec: SessionSpec, stored: pa.Table) -> tuple[Segment, ...]:
    """Write what a batch adds as one segment; no segment where it adds nothing.

    The rows are sorted, so that the bytes do not depend on whether the open sessions came from
    memory or from segments.
    """
    if not stored.num_rows:
        return ()
    names = (BUCKET, LIVE, START, *(name for name, _ in spec.keys))
    ranks = [rank(flat(stored.column(name))) for name in names]
    rows = stored.take(pa.array(dense(pack(ranks, stored.num_rows)).order))
    return (write_segment(work.store, work.name, rows, LIVE, tag=0),)


def leave_sessions(work: InstanceWork, opened: pa.Table) -> None:
    """Leave open sessions for the next batch."""
    work.kept.leave(SESSIONS, opened, opened.nbytes)
