"""Runs a user's own operator: routes tuples to buckets, calls the objects, keeps their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import TS
from tidegate.collect.trigger import TriggerOrder, triggered
from tidegate.memory import MEMORY
from tidegate.model.operation import Operation
from tidegate.operate.bucket_work import Laps
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
from tidegate.operate.port import Port
from tidegate.operate.process.advance import advance, assign
from tidegate.operate.process.definition import InitialState, ProcessSpec, declarations_of
from tidegate.operate.process.entry import ENTRY, EntryKeeper
from tidegate.operate.process.first_rows import limit_of
from tidegate.operate.process.hot import HotState
from tidegate.operate.process.initial import InitialIndex
from tidegate.operate.process.segment_rows import StoredState
from tidegate.operate.process.snapshot import is_kept_by_attribute
from tidegate.operate.segment_cache import mapped_segments
from tidegate.route.broadcast import Broadcast
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner
from tidegate.schema import TIME
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment, read_segment, write_segment

BUCKETS = "buckets"
"""What the segments hold."""

_SHARE = 4
"""The instances of a query together keep at most this fraction (1 / 4) of the memory for caches."""


@dataclass(frozen=True)
class UserProcess(Operator):
    """Keeps one object of the user's class for each bucket, and calls it in the total order.

    With keys the total work is the same for any number of instances. Without keys every bucket gets
    every tuple, so it grows with the buckets.
    """

    kind: ClassVar[str] = "process"

    spec: ProcessSpec

    order = TriggerOrder("the tuple that makes a row, bucket")

    @property
    def traits(self) -> Traits:
        initial = self.spec.initial
        tables = () if initial is None else (initial.table,)
        return Traits(limit=limit_of(self.spec.factory), deals_ahead=True, tables=tables)

    @property
    def operation(self) -> Operation:
        return Operation(self.kind, everywhere=self.spec.keys is None)

    @property
    def partitioner(self) -> Partitioner:
        return Broadcast() if self.spec.keys is None else Hash()

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        routed = assign(self.spec, plain_names(tuples), work.router(self.partitioner))
        if self.spec.keys is None:
            return [Share.for_all(routed)]
        work.spans.mark("map fold")
        return work.by_bucket(routed)

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Call the objects of the instance's buckets for the batch and for the due timers."""
        spec, news = self.spec, together(arrived)
        mine = work.mapping.owned_by(work.instance)
        state = _state(work, mine, spec.initial)
        work.spans.mark("instance read state")
        laps = Laps(work.spans.clock, work.mapping.buckets)
        rows, changes = advance(
            spec,
            mine,
            state,
            news,
            work.previous_us,
            work.frontier_us,
            f"batch {work.batch}",
            total=work.mapping.buckets,
            laps=laps,
        )
        work.spans.mark("instance process")
        segments = _written(work, changes)
        work.kept.leave(BUCKETS, state, state.rest())
        work.spans.mark("instance write")
        output = tuple(_rows(port, rows) for port in work.ports)
        work.spans.mark("instance finish")
        tuples = 0 if news is None else news.num_rows
        return Result(output, tuples, {BUCKETS: segments}, bucket_work=laps.work())

    state = OperatorState(
        {BUCKETS: EntryKeeper()}, "it has no windows, its objects keep what they like"
    )

    def title(self) -> str:
        return f"process by {self.spec.name}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        initial = self.spec.initial
        return [
            "one object per bucket: one task per instance, shuffle by bucket",
            _reads(self.spec),
            *(() if initial is None else (f"initial state: {initial.text()}",)),
        ]


def _reads(spec: ProcessSpec) -> str:
    """What a batch reads of the state, for a plan; it makes an object to see its declarations."""
    made = spec.factory()
    declared = [state.text() for state in declarations_of(made).declared.values()]
    read = [f"the entries used of {', '.join(declared)}"] if declared else []
    if is_kept_by_attribute(made):
        attributes = made.snapshot()
        read += [f"all of {', '.join(attributes)}"] if attributes else []
    else:
        read += ["all that snapshot returns"]
    return f"reads of each bucket that a batch touches: {'; '.join(read) or 'its timers'}"


def _state(work: InstanceWork, mine: Sequence[int], initial: InitialState | None) -> HotState:
    """The state of the instance's buckets: left in memory by the batch before, or stored."""
    state: HotState | None = work.kept.take(BUCKETS)
    if state is None or state.buckets != tuple(mine):
        state = HotState(mine)
    most_bytes = MEMORY.limit_bytes // _SHARE // work.mapping.instances
    index = None if initial is None else _index(work, initial)
    state.begin(partial(_stored, work, mine), most_bytes, work.previous_us, index)
    return state


def _index(work: InstanceWork, initial: InitialState) -> InitialIndex:
    """The index of the table of initial state, which this OS process shares."""
    assert work.tables is not None
    build = partial(InitialIndex, initial, work.mapping.buckets)
    return work.tables.held(initial.table, (initial, work.mapping.buckets), build)


def _stored(work: InstanceWork, mine: Sequence[int]) -> StoredState:
    """The stored state of the instance's buckets; segments are mapped, entries are read later."""
    wanted = BucketSet.of(mine)
    layers = [s for s in work.state.get(BUCKETS, ()) if s.buckets & wanted]
    mapped = mapped_segments(work.store, (work.query, work.instance, BUCKETS), layers)
    tables = [mapped[s.name] if mapped else read_segment(work.store, s, wanted) for s in layers]
    return StoredState(tables, mine)


def _written(work: InstanceWork, changes: pa.Table) -> tuple[Segment, ...]:
    if not changes.num_rows:
        return ()
    tag = EntryKeeper().tag_of(changes)
    return (write_segment(work.store, work.name, changes, ENTRY, tag),)


def _rows(port: Port, results: pa.Table) -> pa.Table:
    times = results.column("trigger_ts").cast(TIME)
    results = port.filtered(results.append_column(TS, times))
    return triggered({port.time: results.column(TS)} | port.selected(results), results)
