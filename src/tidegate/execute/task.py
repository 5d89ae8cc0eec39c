"""The work of a map task (read a split and deal its tuples) and of an instance; with no Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import schedule
from tidegate.approx.instant import numbers_in_instants
from tidegate.batch import SEQ, SRC, TS, to_bytes
from tidegate.cancellation import between_pieces
from tidegate.connector import Rows
from tidegate.execute.job import (
    FIGURES,
    LATE,
    REJECTED,
    ROWS,
    SHED,
    SPANS,
    START,
    Job,
    Outcome,
    Parcel,
    Piece,
    Split,
    out_name,
    raw_name,
)
from tidegate.execute.side_output import side_parcels
from tidegate.execute.within_memory import within_memory
from tidegate.expression.tree import Expr
from tidegate.operate.bucket_work import packed
from tidegate.operate.change import MOST_CHANGES
from tidegate.operate.figures import newest_windows
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.operator import Arrival
from tidegate.operate.spill import spilling
from tidegate.operate.table_join.join import PlacedRows, join_tables
from tidegate.operate.table_join.table_versions import HeldTables
from tidegate.plan.physical import Edge, Prefix
from tidegate.schema import event_times, to_us
from tidegate.spans import Spans, added
from tidegate.state.segment.piece import fetching

_MOST_ROWS = 131_072
"""In a job with more rows each split reads for itself: holding rows would cost more memory than the
second read costs time."""


class SharedReads:
    """Reads the rows of a batch once if several splits of one process need them.

    Two inputs of a self-join, for example, read the same positions with other columns. Holds rows
    only until the last split has them, and none of a job with more than `_MOST_ROWS`.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._columns: dict[Hashable, dict[str, None]] = {}
        self._waiting: Counter[Hashable] = Counter()
        self._held: dict[Hashable, Rows] = {}
        if len(job.subquery.prefixes) == 1 or job.rows > _MOST_ROWS:
            return
        for split in job.splits:
            place = self._place(split)
            if place is not None:
                prefix = job.subquery.prefixes[split.input]
                wanted = dict.fromkeys((*prefix.columns, prefix.time))
                self._columns.setdefault(place, {}).update(wanted)
                self._waiting[place] += 1

    def rows(self, split: Split, columns: Sequence[str]) -> Rows:
        """The rows of a split, with at least the columns."""
        place = self._place(split)
        if place not in self._held:
            if self._waiting[place] < 2:
                return split.reader.read(columns)
            self._held[place] = split.reader.read(list(self._columns[place]))
        self._waiting[place] -= 1
        return self._held[place] if self._waiting[place] else self._held.pop(place)

    def _place(self, split: Split) -> Hashable | None:
        """A key that is equal for splits of the same rows; None for rows of another subquery."""
        prefix = self._job.subquery.prefixes[split.input]
        if isinstance(prefix.origin, Edge):
            return None
        return (prefix.origin, split.order, split.source, split.start, split.stop)


_INPUT_SHIFT = 32
_COMPACT_BYTES = 65_536


def start_parcels(job: Job) -> list[Parcel]:
    """An empty parcel for each instance, so that one without tuples runs too."""
    return [Parcel(i, -1, START, b"") for i in range(job.mapping.running)]


def map_here(job: Job, done: Callable[[], None] = lambda: None) -> list[Parcel]:
    """The parcels of all splits, for instances in this process; calls `done` after each split."""
    reads, parcels = SharedReads(job), []
    for split in job.splits:
        parcels += map_split(job, split, reads)
        done()
    return parcels


def map_split(job: Job, split: Split, reads: SharedReads | None = None) -> list[Parcel]:
    """Read a split, evaluate its prefix, and deal the tuples into parcels for the instances.

    Give `reads` if the parcels stay in this process: their rows then stay Arrow tables, and splits
    of the same rows share one read. Otherwise the rows of parcels are bytes.
    """
    with within_memory(f"{job.subquery.name}, reading {split.source}"):
        between_pieces(split.stop - split.start)
        return _mapped(job, split, reads)


def _mapped(job: Job, split: Split, reads: SharedReads | None) -> list[Parcel]:
    clock = schedule.current().clock
    used, spans = clock.cpu(), Spans(clock)
    prefix = job.subquery.prefixes[split.input]
    tuples, side = read_split(job, split, prefix.columns, reads)
    spans.mark("map take" if isinstance(prefix.origin, Edge) else "map read")
    taken = tuples.num_rows
    tuples = at_reading(prefix, tuples)
    shed = taken - tuples.num_rows
    tuples = apply_prefix(prefix, tuples, job.held_tables)
    spans.mark("map evaluate")
    parcels = deal(job, split.index, tuples, spans, stay=reads is not None)
    spans.mark("map route")
    cpu_us = round((clock.cpu() - used) * 1e6)
    counts = {"map_cpu_us": cpu_us, "taken": taken, "shed": shed}
    told = json.dumps({"spans_ms": spans.spans_ms, **counts})
    said = Parcel(0, split.index, SPANS, told.encode())
    return [*parcels, *side, said]


def read_split(
    job: Job, split: Split, columns: Sequence[str], reads: SharedReads | None = None
) -> tuple[pa.Table, list[Parcel]]:
    """Read a split; return the tuples to process, and the parcels of the side outputs.

    The tuples have the int64 columns ts, src and seq (their place in the total order), then the raw
    columns. Late and unreadable tuples are left out; their parcels have all columns of the stream.
    """
    job.memory.take()
    prefix = job.subquery.prefixes[split.input]
    asked = list(columns) + [prefix.time] * (prefix.time not in columns)
    rows = split.reader.read(asked) if reads is None else reads.rows(split, asked)
    if isinstance(prefix.origin, Edge):
        times, _ = to_us(rows.table.column(prefix.time))
        times = times + prefix.offset_us
        if prefix.numbered:
            rows = replace(rows, seq=numbers_in_instants(times))
        return _placed(split, times, rows, columns), []
    times, timed = event_times(rows.table.column(prefix.time))
    late = np.zeros(split.stop - split.start, np.bool_)
    if split.late is not None:
        late = np.unpackbits(np.frombuffer(split.late, np.uint8), count=len(late)).astype(np.bool_)
    is_late = late[rows.seq - split.start]
    ready = timed & ~is_late
    # A split of held tuples also covers positions that an earlier batch processed, and positions
    # that the frontier has not passed. Strictly below it: tuples of one instant stay in one batch.
    if job.held:
        ready &= (times >= job.previous_us) & (times < job.frontier_us)
    side = []
    new = rows.seq >= split.new_from
    if (
        (is_late & new).any()
        or (~timed & new).any()
        or any(r.seq >= split.new_from for r in rows.rejects)
    ):
        side = side_parcels(job, split, is_late)
    table = _placed(split, times, rows, columns)
    return (table if ready.all() else table.filter(pa.array(ready))), side


def _placed(
    split: Split, times: npt.NDArray[np.int64], rows: Rows, columns: Sequence[str]
) -> pa.Table:
    """A table of ts, src, seq and the raw columns; src is the input, then the source's order."""
    source = np.full(len(rows.seq), (split.input << _INPUT_SHIFT) + split.order, np.int64)
    raw = {raw_name(c): rows.table.column(c) for c in columns}
    return pa.table({TS: times, SRC: source, SEQ: rows.seq, **raw})


def apply_prefix(prefix: Prefix, tuples: pa.Table, tables: HeldTables | None = None) -> pa.Table:
    """Filter the tuples and compute the prefix's outputs with Arrow kernels; keeps ts, src, seq."""
    raw = (
        pa.table({c: tuples.column(raw_name(c)) for c in prefix.columns})
        if prefix.columns
        else None
    )
    if raw is None:
        raw = pa.table({TS: tuples.column(TS)})
    return _evaluated(prefix, tuples.select([TS, SRC, SEQ]), raw, tables)


def after_spark(job: Job, prefix: Prefix, tuples: pa.Table) -> pa.Table:
    """Finish a prefix that joins tables, over the columns that Spark SQL has computed."""
    early = pa.table({name: tuples.column(out_name(name)) for name, _ in prefix.early})
    if not prefix.early:
        early = pa.table({TS: tuples.column(TS)})
    return _evaluated(prefix, tuples.select([TS, SRC, SEQ]), early, job.held_tables)


def _evaluated(
    prefix: Prefix, kept: pa.Table, raw: pa.Table, tables: HeldTables | None
) -> pa.Table:
    """Evaluate a prefix: table joins, then WHERE, then shedding, then the outputs.

    `raw` has the columns that were read or that Spark computed; `kept` has ts, src and seq.
    """
    if prefix.lookups:
        assert tables is not None
        kept, raw = join_tables(prefix.lookups, PlacedRows(kept, raw), tables.index)
    for predicate in prefix.where:
        mask = pc.fill_null(evaluate(predicate, raw), False)
        raw, kept = raw.filter(mask), kept.filter(mask)
    outputs = dict(prefix.outputs)
    if prefix.sieve is not None and prefix.sieve.by is not None:
        keys = {name: outputs.pop(name) for name in prefix.sieve.by.keys}
        kept, rows = prefix.sieve.marked(_with(kept, keys, raw))
        raw = raw if rows is None else raw.take(pa.array(rows))
    made = _with(kept, outputs, raw)
    return made if prefix.sieve is None else prefix.sieve.weighed(made)


def _with(tuples: pa.Table, outputs: Mapping[str, Expr], raw: pa.Table) -> pa.Table:
    """The tuples with these outputs of their prefix, evaluated over `raw`."""
    places = {name: tuples.column(name) for name in tuples.column_names}
    return pa.table(places | {out_name(n): evaluate(e, raw) for n, e in outputs.items()})


def at_reading(prefix: Prefix, tuples: pa.Table) -> pa.Table:
    """Shed tuples before any column is evaluated, if the prefix sheds regardless of values."""
    return tuples if prefix.sieve is None else prefix.sieve.at_reading(tuples)


def deal(
    job: Job, split: int, tuples: pa.Table, spans: Spans | None = None, stay: bool = False
) -> list[Parcel]:
    """Let the operator divide a split's tuples among the instances.

    The rows become bytes unless they `stay` in this process.
    """
    if not tuples.num_rows:
        return []
    work = job.map_work(job.splits[split], spans or Spans(schedule.current().clock))
    shares = job.operator.deal(work, tuples)
    pack = _compact if stay else to_bytes
    told = [Parcel(0, split, FIGURES, one.packed()) for one in work.told]
    told += shed_parcels(split, sum(work.shed))
    dealt = (Parcel(s.instance, split, ROWS, pack(s.rows), s.channel) for s in shares)
    return [*dealt, *told]


def shed_parcels(split: int, tuples: int) -> list[Parcel]:
    """A parcel for instance 0 with the number of shed tuples; none if there are none."""
    return [Parcel(0, split, SHED, str(tuples).encode())] if tuples else []


def _compact(rows: pa.Table) -> pa.Table | bytes:
    """The rows as they are, or copied to bytes if they are a small slice of large buffers.

    A slice keeps the whole buffers in memory for as long as it lives.
    """
    whole = rows.get_total_buffer_size()
    return rows if whole <= max(2 * rows.nbytes, _COMPACT_BYTES) else to_bytes(rows)


def run_instance(job: Job, instance: int, parcels: Sequence[Parcel]) -> Outcome:
    """Run one instance: merge its parcels with its state, close windows, write new segments."""
    job.memory.take()
    with within_memory(f"{job.subquery.name} ({job.operator.title()})"):
        between_pieces(job.rows)
        return _operated(job, instance, parcels)


def _operated(job: Job, instance: int, parcels: Sequence[Parcel]) -> Outcome:
    clock = schedule.current().clock
    started, used, spans = clock.now(), clock.cpu(), Spans(clock)
    # Parcels arrive in any order. Sorted, the operator sees the same input in every run.
    ordered = sorted(parcels, key=lambda p: (p.split, p.kind))
    dealt = [p for p in ordered if p.kind == ROWS]
    arrived = [Arrival(job.splits[p.split].input, p.rows(), p.label) for p in dealt]
    with fetching() as fetched, spilling() as spilled:
        result = job.operator.run(job.instance_work(instance, spans), arrived)
    side = tuple(p for p in ordered if p.kind in (LATE, REJECTED))
    told = [(p.instance, json.loads(bytes(p.data))) for p in ordered if p.kind == SPANS]
    pieces = tuple(
        Piece.of(port, rows) for port, rows in zip(job.subquery.ports, result.rows, strict=True)
    )
    own = {
        "outputs": sum(piece.count for piece in pieces),
        "cpu_us": round((clock.cpu() - used) * 1e6),
        "map_cpu_us": sum(t["map_cpu_us"] for _, t in told),
        "taken": sum(t["taken"] for owner, t in told if owner == instance),
        "shed": sum(t["shed"] for owner, t in told if owner == instance)
        + sum(int(bytes(p.data)) for p in ordered if p.kind == SHED)
        + result.counts.get("shed", 0),
        "fetched_bytes": sum(fetched.values()),
    }
    if spilled:
        own |= {"spills": len(spilled), "spilled_bytes": sum(spilled)}
    work = packed(result.bucket_work, job.mapping, instance)
    spans.mark("instance report")
    return Outcome(
        instance=instance,
        pieces=pieces,
        segments=result.segments,
        side=side,
        tuples=result.tuples,
        seconds=clock.now() - started,
        spans_ms=added([*(t["spans_ms"] for _, t in told), spans.spans_ms]),
        counts={**result.counts, **own},
        bucket_work=work,
        windows=newest_windows(result.windows),
        panes=tuple(bytes(p.data) for p in ordered if p.kind == FIGURES),
        changes=result.changes[-MOST_CHANGES:],
        fetched=fetched,
    )
