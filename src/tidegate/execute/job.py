"""Describes what one batch asks of its tasks, as plain data that can be pickled."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, from_bytes, to_bytes
from tidegate.connector import Reader
from tidegate.execute.remote_rows import RemoteRows
from tidegate.memory import ANY, Allowance
from tidegate.operate.change import OperatorChange
from tidegate.operate.figures import WindowFigures
from tidegate.operate.instance_cache import Kept
from tidegate.operate.operator import OUT, InstanceWork, MapWork, Operator
from tidegate.operate.port import Port
from tidegate.operate.table_join.table_versions import DealtVersion, HeldTables, TableVersion
from tidegate.plan.physical import Edge, Subquery
from tidegate.route import mapping as route
from tidegate.sink.protocol import PartWriter
from tidegate.sink.receipt import Receipt
from tidegate.spans import Spans
from tidegate.state.handle import StoreHandle
from tidegate.state.name import owned
from tidegate.state.segment.segment import Segment
from tidegate.storage import disk

ROWS = 0
"""A parcel of tuples that the operator dealt to the instance it names."""
LATE = 1
"""A parcel of late tuples, for a side output; any instance passes it on."""
REJECTED = 2
"""A parcel of rejected tuples: no readable time, or unreadable as a whole."""
START = 3
"""An empty parcel, so that an instance without tuples runs too."""
SPANS = 4
"""The times and counts of a map task, as JSON; one instance passes it on."""
ERROR = 5
"""The error of a map task, as JSON, if it cannot answer the driver itself (Spark's shuffle)."""
FIGURES = 6
"""A map task's figures of panes, as `operate.figures` packs them; instance 0 passes it on."""
SHED = 7
"""How many tuples a map task shed, if it cannot say so in its spans."""


@dataclass(frozen=True)
class Split:
    """What one map task reads: a range of positions of a source, or a span of time of an edge.

    `input` is the number of the subquery's input. `late` marks the late tuples of [start, stop) as
    packed bits; None if there are none. Only positions from `new_from` on go to the side outputs:
    earlier ones were reported by the batch that read them first.
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

    - `subquery` has the operator as it is for this batch.
    - `held`: the splits also cover tuples that are not ready, or that an earlier batch processed.
    - `state` are the segments of the operator, by what they hold.
    - `parts`: tasks may write a large output with it.
    - `outputs` are the ports that an output of the query reads.
    - `memory` is what each process that runs tasks of the job may hold.
    - `run` names the run of the query. `before` names the job whose state instances still have in
      memory and go on with; None if they have none, as at a start. After a switch only the
      instances in `same` have it, because they own what they owned; None stands for all.
    - `tables` are, by name, the tables that tuples are joined to or that the operator looks into.

    The files that tasks write begin with `name`. It contains the `owner` of the checkpoint and a
    digest of all that decides their bytes. Tasks of a driver that died or was fenced may write on;
    thanks to the name they never write into the files of the batch that runs again. A second try of
    the same task writes the same bytes to the same name.
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
        """The tables of the job, as this process holds them."""
        return HeldTables(self.tables, self.store)

    @property
    def operator(self) -> Operator:
        return self.subquery.operator

    @property
    def rows(self) -> int:
        """The number of positions that the map tasks read."""
        return sum(s.stop - s.start for s in self.splits)

    def with_operator(self, operator: Operator) -> Job:
        return replace(self, subquery=replace(self.subquery, operator=operator))

    def map_work(self, split: Split, spans: Spans) -> MapWork:
        """What `deal` of the operator may know of a split."""
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
        """The input and source of a split, a name that stays the same in every batch.

        An edge has no source of a fixed name: each batch has another job there.
        """
        edge = isinstance(self.subquery.prefixes[split.input].origin, Edge)
        return f"{split.input}/{'edge' if edge else split.source}"

    def _kept_of(self, split: Split) -> Kept | None:
        """What the map task of a source may keep in memory from batch to batch.

        None if several tasks read the source in this batch: none of them sees all of it.
        """
        upstream = self._upstream(split)
        if sum(self._upstream(s) == upstream for s in self.splits) > 1:
            return None
        return Kept(f"{self.run}/{self.subquery.key}/map/{upstream}", self.before, self.name)

    def instance_work(self, instance: int, spans: Spans) -> InstanceWork:
        """What `run` of the operator may know in this instance."""
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
    """What a map task sends to an instance, with the split that it came from.

    `data` is a table as bytes; a table itself if the instance runs in the same process.
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
    """The rows of one instance for one port, in order, with hidden columns for the merge.

    The rows are in one of four places: a table here, a file of this host (`path`), bytes from
    another process (`data`, passed on unread), or objects of a remote checkpoint. `low_us` and
    `high_us` are their first and last event time.
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
        """The rows; a file is mapped into memory.

        From a remote checkpoint, only chunks that may have times in [low_us, high_us) are read.
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

    - `pieces` are its rows, by port. `side` are parcels for the side outputs, passed through.
    - `segments` are those that it wrote, by what they hold. `counts` are its counters.
    - `receipts`, if not None: tasks have written all rows of the batch to the sink, and these are
      the parts that this outcome stands for. Its piece then has some of the last rows.
    - `due` are files that it wrote on the driver's host and did not sync; the driver syncs them.
    - `spans_ms` is where its time went, and the time of map tasks whose parcels it passed on.
    - `bucket_work` is its work by bucket, as `operate.bucket_work` packs it.
    - `windows` are figures of windows that it closed; `panes` are those of map tasks, passed on.
    - `changes` are changes that the operator made on its own.
    - `fetched` are the bytes read of each segment on a remote store, by its name.
    - `exchange` says how the tuples of a job across hosts travelled; in one outcome of the job.
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
        """The number of rows for all ports."""
        return sum(p.count for p in self.pieces)

    def with_spans(self, spans_ms: dict[str, float]) -> Outcome:
        return replace(self, spans_ms=spans_ms)


def raw_name(name: str) -> str:
    """The name of a raw column, distinct from ts, src and seq."""
    return f"raw_{name}"


def out_name(name: str) -> str:
    """The name of a prefix's output, distinct from ts, src and seq."""
    return f"{OUT}{name}"


def rows_name(job: Job, instance: int, port: int) -> str:
    """The prefix of the names of objects in which an instance leaves its rows for a port."""
    return f"staged/{job.name}-rows-{instance:04d}-{port}"


def side_name(job: Job, split: int) -> str:
    """The object in which a read task leaves side outputs if its rows go through Spark SQL."""
    return f"staged/{job.name}-side-{split:06d}"
