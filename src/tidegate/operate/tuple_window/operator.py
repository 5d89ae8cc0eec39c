"""Aggregates over windows of tuples as an operator, between dealt tuples and full windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.collect.trigger import TriggerOrder, triggered
from tidegate.duration import rows_text
from tidegate.operate.bucket_state import WHOLE, BucketHorizon, BucketKeeper
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Operator,
    Result,
    Share,
    plain_names,
    together,
)
from tidegate.operate.port import Port
from tidegate.operate.tuple_window.window import TupleSpec, advance, live
from tidegate.route.hash import BY_HASH
from tidegate.route.partitioner import Partitioner
from tidegate.state.bucket_set import BucketSet
from tidegate.state.compaction import by_bucket
from tidegate.state.segment import read_segment, write_segment

TUPLES = "tuples"
"""What the segments hold."""

WINDOW = ("window_start", "window_end")

_MOST_SEGMENTS = 32
"""How many segments may add to a bucket before it is written whole."""

_FEW_ROWS = 1_024
"""Dead rows that are not worth writing a bucket again for."""

Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class TupleAggregate(Operator):
    """Keeps the newest tuples of each group, and puts out a window when a tuple fills it."""

    kind: ClassVar[str] = "aggregate"

    spec: TupleSpec
    key_names: tuple[str, ...]
    partitioner: Partitioner = BY_HASH

    order = TriggerOrder("the tuple that fills a window")

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        tuples = plain_names(tuples)
        keys = [tuples.column(name).combine_chunks() for name, _ in self.spec.keys]
        bucket = work.router(self.partitioner).buckets(keys, tuples.num_rows)
        work.spans.mark("map fold")
        return work.by_bucket(tuples.add_column(0, "bucket", pa.array(bucket)))

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Add the batch's tuples to their groups, and put out the windows that they fill."""
        spec, news = self.spec, together(arrived)
        if news is None:
            nothing = spec.result_schema.empty_table()
            return Result(tuple(_rows(port, nothing) for port in work.ports), 0)
        touched = np.unique(ints(news, "bucket"))
        held, segments = _held(work, spec, touched)
        work.spans.mark("instance read state")
        results, ranked = advance(spec, held, news)
        work.spans.mark("instance advance")
        every = pa.concat_tables([held, ranked]).combine_chunks()
        alive = live(spec, every)
        dead = len(alive) - int(alive.sum())
        if segments >= _MOST_SEGMENTS or dead > max(len(alive) // 2, _FEW_ROWS):
            kept = every.filter(pa.array(alive))
            rows = by_bucket(pa.concat_tables([kept, _emptied(spec, touched, kept)]), "rank")
            made = write_segment(work.store, work.name, rows, "rank", WHOLE)
        else:
            made = write_segment(work.store, work.name, by_bucket(ranked, "rank"), "rank", 0)
        work.spans.mark("instance write")
        output = tuple(_rows(port, results) for port in work.ports)
        work.spans.mark("instance finish")
        return Result(output, news.num_rows, {TUPLES: (made,)})

    def keepers(self) -> Mapping[str, BucketKeeper]:
        return {TUPLES: BucketKeeper("rank", added=True)}

    def title(self) -> str:
        window = rows_text(self.spec.rows, self.spec.slide)
        return f"aggregate over [{window}] by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return ["keeps tuples, fills windows: one task per instance, shuffle by bucket"]


def _held(work: InstanceWork, spec: TupleSpec, touched: Int64s) -> tuple[pa.Table, int]:
    """What is stored of some buckets, dead tuples among it, and in how many segments."""
    wanted = BucketSet.of(touched)
    parts = [spec.state_schema.empty_table()]
    stored = work.state.get(TUPLES, ())
    horizon = BucketHorizon.of(stored)
    for segment in stored:
        mine = horizon.needed(segment) & wanted
        if mine:
            rows = read_segment(work.store, segment, mine).select(spec.state_schema.names)
            parts.append(rows.filter(pa.array(ints(rows, "rank") >= 0)))
    return pa.concat_tables(parts), len(parts) - 1


def _emptied(spec: TupleSpec, touched: Int64s, kept: pa.Table) -> pa.Table:
    """A row that is no tuple for each bucket of which nothing is left: it hides older segments."""
    left = np.setdiff1d(touched, ints(kept, "bucket"))
    columns = []
    for place in spec.state_schema:
        if place.name == "bucket":
            columns.append(pa.array(left, pa.int32()))
        elif place.name in ("rank", "ts", "src", "seq"):
            columns.append(pa.array(np.full(len(left), -1, np.int64)))
        else:
            columns.append(pa.nulls(len(left), place.type))
    return pa.table(columns, schema=spec.state_schema)


def _rows(port: Port, results: pa.Table) -> pa.Table:
    results = port.filtered(results)
    named = {name: results.column(name) for name in WINDOW}
    return triggered(named | port.selected(results), results)
