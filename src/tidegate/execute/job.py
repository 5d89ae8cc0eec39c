"""Describes what one batch asks of its tasks, as plain data that can be pickled."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tidegate import disk
from tidegate.batch import MAX_US, MIN_US, from_bytes, to_bytes
from tidegate.connector import Reader
from tidegate.execute.remote_rows import RemoteRows
from tidegate.memory import ANY, Allowance
from tidegate.operate.change import OperatorChange
from tidegate.operate.figures import WindowFigures
from tidegate.operate.kept import Kept
from tidegate.operate.operator import OUT, InstanceWork, MapWork, Operator
from tidegate.operate.port import Port
from tidegate.operate.table_join.held import DealtVersion, HeldTables, TableVersion
from tidegate.plan.physical import Edge, Subquery
from tidegate.route import mapping as route
from tidegate.sink.protocol import PartWriter
from tidegate.sink.receipt import Receipt
from tidegate.spans import Spans
from tidegate.state.handle import StoreHandle
from tidegate.state.name import owned
from tidegate.state.segment import Segment

ROWS = 0
"""A parcel of what an operator dealt, for the instance that it names."""
LATE = 1
"""A parcel of late tuples; any instance passes it on."""
REJECTED = 2
"""A parcel of tuples without a readable time, or unreadable as a whole."""
START = 3
"""An empty parcel, so that an instance without tuples runs too."""
SPANS = 4
"""What a map task spent its time on and counted, as JSON; one instance passes it on."""
ERROR = 5
"""Why a map task failed, as JSON, where it cannot answer the driver itself."""
FIGURES = 6
"""What a map task tells of panes, as `operate.figures` packs it; instance 0 passes it on."""
SHED = 7
"""How many tuples a map task has shed, where it cannot tell with its spans."""


@dataclass(frozen=True)
class Split:
    """A run of positions of one source, or a span of time of an edge, read by one map task.

    `input` is the place among the inputs of the subquery. `late` is the gate's verdict over
    [start, stop) as packed bits, None for none. Only positions from `new_from` on go to the side
    outputs: earlier ones were reported when they were read.
    """

    index: int
    input: int
    source: str
    order: int
    start: int
    new_from: int
    stop: int
    late: bytes | None
    reader: Reader


@dataclass(frozen=True)
class Job:
    """One batch of one subquery, for map tasks (one per split) and instances (one task each).

    The operator of `subquery` is as it is for this batch. `held` says that the splits have tuples
    which are not ready, or were before. `state` has the segments of the operator, by what they
    hold. `parts` is what tasks may write the output with themselves where it is large. `outputs`
    are the ports that an output of the query takes. `memory` is what a process that runs its
    tasks may hold. `run` names the run of the query,
    and `before` the job whose state this one goes on with, as its instances have it in memory; None
    where they have not, as at a start. After a switch only the instances `same` have it: those that
    own what they owned; None stands for all. `tables` are by name the tables that tuples are joined
    to, and those that the operator looks into.

    Files that tasks write begin with `name`, which has the `owner` of the checkpoint and stands for
    all that makes their bytes: the tasks of a driver that died, or that another took over from, may
    write on, and then write elsewhere than the replay; a second try of a task writes the same.
    """

    batch: int
    subquery: Subquery
    splits: tuple[Split, ...]
    mapping: route.Mapping
    previous_us: int
    frontier_us: int
    state: Mapping[str, tuple[Segment, ...]]
    store: StoreHandle
    held: bool = True
    parts: PartWriter | None = None
    outputs: tuple[int, ...] = ()
    memory: Allowance = ANY
    owner: int = 0
    run: str = ""
    before: str | None = None
    same: frozenset[int] | None = None
    tables: Mapping[str, TableVersion | DealtVersion] = field(default_factory=dict)
    name: str = field(init=False)

    @property
    def held_tables(self) -> HeldTables:
        """Its tables, as this process has them."""
        return HeldTables(self.tables, self.store)

    @property
    def operator(self) -> Operator:
        return self.subquery.operator

    @property
    def rows(self) -> int:
        """The positions that the map tasks read."""
        return sum(s.stop - s.start for s in self.splits)

    def with_operator(self, operator: Operator) -> Job:
        return replace(self, subquery=replace(self.subquery, operator=operator))

    def map_work(self, split: Split, spans: Spans) -> MapWork:
        """What the map side of the operator knows of a split."""
        prefix = self.subquery.prefixes[split.input]
        return MapWork(
            batch=self.batch,
            input=split.input,
            source=split.source,
            start=split.start,
            filtered=bool(prefix.where or prefix.sql_where or prefix.sieve or prefix.lookups),
            mapping=self.mapping,
            spans=spans,
            previous_us=self.previous_us,
            state=self.state,
            opened=self.store.open,
            upstream=self._upstream(split),
            kept=self._kept_of(split),
        )

    def _upstream(self, split: Split) -> str:
        """What a split is of: a source of an input, or an edge, whose jobs change their names."""
        edge = isinstance(self.subquery.prefixes[split.input].origin, Edge)
        return f"{split.input}/{'edge' if edge else split.source}"

    def _kept_of(self, split: Split) -> Kept | None:
        """What the map task of an upstream keeps, where there is one."""
        upstream = self._upstream(split)
        if sum(self._upstream(s) == upstream for s in self.splits) > 1:
            return None
        return Kept(f"{self.run}/{self.subquery.key}/map/{upstream}", self.before, self.name)

    def instance_work(self, instance: int, spans: Spans) -> InstanceWork:
        """What an instance of the operator knows of the batch."""
        before = self.before if self.same is None or instance in self.same else None
        return InstanceWork(
            instance=instance,
            batch=self.batch,
            name=f"{self.name}-{instance:04d}",
            query=f"{self.subquery.fingerprint}/{self.subquery.key}",
            mapping=self.mapping,
            previous_us=self.previous_us,
            frontier_us=self.frontier_us,
            state=self.state,
            store=self.store.open(),
            ports=self.subquery.ports,
            spans=spans,
            kept=Kept(f"{self.run}/{self.subquery.key}/{instance}", before, self.name, self.before),
            run=self.owner,
            tables=self.held_tables,
        )

    def __post_init__(self) -> None:
        read = [
            (s.source, s.order, s.start, s.new_from, s.stop, zlib.crc32(s.late or b""))
            for s in self.splits
        ]
        bounds = [int(us) for us in (self.previous_us, self.frontier_us)]
        facts: tuple[Any, ...] = (read, self.mapping.owners, bounds)
        if self.mapping.formers:
            facts = (*facts, [former.recorded() for former in self.mapping.formers])
        rates = [p.sieve.rates for p in self.subquery.prefixes if p.sieve and p.sieve.rates]
        if rates:
            facts = (*facts, rates)
        if self.tables:
            facts = (*facts, sorted(self.tables.items()))
        digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:8]
        stem = owned(self.batch, self.owner)
        object.__setattr__(self, "name", f"{stem}-{self.subquery.key}-{digest}")


@dataclass(frozen=True)
class Parcel:
    """What a map task hands to an instance: a table as bytes, and which split it came from.

    The rows of an instance in the same process are a table.
    """

    instance: int
    split: int
    kind: int
    data: bytes | pa.Buffer | pa.Table
    label: str = ""

    def rows(self) -> pa.Table:
        """The table."""
        return self.data if isinstance(self.data, pa.Table) else from_bytes(self.data)


@dataclass(frozen=True)
class Piece:
    """The rows that one instance gives to one port, in order, with hidden columns for the merge.

    They are here, or in a file of this host, or bytes of another process, which are passed on as
    they are, or in objects of a remote checkpoint. `low_us` and `high_us` are the first and the
    last event time.
    """

    count: int
    low_us: int
    high_us: int
    table: pa.Table | None = None
    path: str | None = None
    data: bytes | None = None
    remote: RemoteRows | None = None

    @staticmethod
    def of(port: Port, table: pa.Table) -> Piece:
        ends = [0, 0]
        if table.num_rows:
            times = table.column(port.time)
            ends = [times[i].value + port.offset_us for i in (0, -1)]
        return Piece(table.num_rows, ends[0], ends[1], table)

    def load(self, low_us: int = MIN_US, high_us: int = MAX_US) -> pa.Table:
        """The rows, mapped where they are in a file.

        Of those that are elsewhere only what may have times in its column from `low_us` to before
        `high_us`.
        """
        if self.remote is not None:
            return self.remote.load(low_us, high_us)
        if self.table is not None:
            return self.table
        if self.data is not None:
            return from_bytes(self.data)
        assert self.path is not None
        return from_bytes(disk.current().map(self.path))

    def __reduce__(self) -> tuple[type[Piece], tuple[Any, ...]]:
        data = self.data if self.table is None else to_bytes(self.table)
        place = (None, self.path, data, self.remote)
        return Piece, (self.count, self.low_us, self.high_us, *place)


@dataclass(frozen=True)
class Outcome:
    """What one instance reports to the driver.

    `pieces` are its rows by port; `side` are the parcels of the side outputs passing through.
    `segments` are those it wrote, by what they hold, `counts` is what it counted. `receipts` says
    that tasks have written all rows of the batch to their sink, and which parts this outcome stands
    for, in order; its piece has some of the last rows then. `due` are files that it has written on
    the driver's host and not synced; the driver does it. `spans_ms` is what it spent its time
    on, and what the map tasks did whose parcels said so. `bucket_work` says how its work was
    divided among its buckets, as `operate.bucket_work` packs it. `windows` are figures of windows
    that it has closed, `panes` what map tasks told of theirs, passing through. `changes` are those
    that tasks have made by themselves. `fetched` are the bytes that it has read of segments on a
    remote store, by their names. `exchange` says of a job across hosts how its tuples came from
    task to task, in the outcome of one instance.
    """

    instance: int
    pieces: tuple[Piece, ...]
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    side: tuple[Parcel, ...] = ()
    tuples: int = 0
    seconds: float = 0.0
    spans_ms: dict[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    receipts: tuple[Receipt, ...] | None = None
    due: tuple[str, ...] = ()
    bucket_work: bytes = b""
    windows: tuple[WindowFigures, ...] = ()
    panes: tuple[bytes, ...] = ()
    changes: tuple[OperatorChange, ...] = ()
    fetched: Mapping[str, int] = field(default_factory=dict)
    exchange: str | None = None

    @property
    def rows(self) -> int:
        """How many rows it has for all ports."""
        return sum(p.count for p in self.pieces)

    def with_spans(self, spans_ms: dict[str, float]) -> Outcome:
        return replace(self, spans_ms=spans_ms)


def raw_name(name: str) -> str:
    """A raw column's name beside ts, src and seq."""
    return f"raw_{name}"


def out_name(name: str) -> str:
    """A prefix output's name beside ts, src and seq."""
    return f"{OUT}{name}"


def rows_name(job: Job, instance: int, port: int) -> str:
    """How the names of objects begin that an instance leaves its rows of a port in."""
    return f"staged/{job.name}-rows-{instance:04d}-{port}"


def side_name(job: Job, split: int) -> str:
    """Where a read task leaves side outputs when its rows go on through Spark SQL."""
    return f"staged/{job.name}-side-{split:06d}"
