"""TracedQuery a query, or a part of it, in this process and shows its rows as they come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.connector import Connector, Int64s
from tidegate.driver.connection import Connection, connections_of
from tidegate.driver.options import RunOptions
from tidegate.plan.physical import Plan
from tidegate.query.name import EVENT_TIME, NamedExpr, column
from tidegate.query.node.node import Input, Node, Project
from tidegate.query.output import Output
from tidegate.query.trace import WHY, joined, traced
from tidegate.session.launch import prepare
from tidegate.session.place import NO_SPARK, Place
from tidegate.session.planning import plan_for
from tidegate.session.why.origin import Origins, TupleId, made_of
from tidegate.session.why.span import TupleSpan, times_of
from tidegate.session.why.subset_source import ChosenConnector, ChosenTuples
from tidegate.sink.folder.late_tuples import late_positions
from tidegate.sink.null_sink import NothingSink
from tidegate.sink.protocol import Sink

Seen = Callable[[pa.Table], bool]
"""Is shown the rows of a batch, and says whether that is enough."""

_BATCH_ROWS = 50_000
_PLACE = Place(NO_SPARK)


@dataclass(frozen=True)
class StreamTuples:
    """Tuples of one stream with all their columns, in the order of their sources."""

    table: pa.Table
    sources: Int64s
    positions: Int64s
    times: Int64s

    @property
    def ids(self) -> list[TupleId]:
        return list(map(TupleId, self.sources.tolist(), self.positions.tolist()))

    def of(self, source: int, chosen: Collection[TupleId]) -> tuple[Int64s, pa.Table]:
        """The positions and the rows of the chosen tuples of a source."""
        wanted = [i.position for i in chosen if i.source == source]
        mask = (self.sources == source) & np.isin(self.positions, np.array(wanted, np.int64))
        return self.positions[mask], self.table.filter(pa.array(mask))


class TracedQuery:
    """What one output of a query is run with: its plan, its sources, and who its tuples are."""

    def __init__(
        self,
        node: Node,
        connectors: Mapping[str, Connector],
        *,
        available_now: bool,
        late_at: str | None = None,
    ) -> None:
        """With IDLE, `late_at` is the output that has recorded which tuples were too late."""
        self.node = node
        self._given = connectors
        self._plan = self._planned(node)
        late = late_positions(late_at) if late_at is not None and self.reads_idle else {}
        self.origins = Origins(self._plan.streams, late)
        # A silent source holds back rows that went out without it: then the input ends here, which
        # sources of the program may not do yet.
        ends = self.reads_idle and not connectors
        self._options = RunOptions(available_now=available_now and not ends, batch_rows=_BATCH_ROWS)

    @property
    def reads_idle(self) -> bool:
        """Whether a stream has IDLE: a new run waits for tuples that the old one did without."""
        return any(stream.idle_us is not None for stream in self._plan.streams)

    def rows(self, seen: Seen) -> None:
        """The rows of the query."""
        self._run(self._plan, self._connections(self._plan), self._options, seen)

    def traced_rows(self, node: Node, low_us: int, seen: Seen) -> None:
        """The rows of a traced node; tuples before a time have no ids."""
        plan = self._planned(node)
        found = self.origins.traced(self._connections(plan), plan.streams, low_us)
        self._run(plan, found, self._options, seen)

    def again(
        self, node: Node, tuples: Mapping[int, StreamTuples], ids: Collection[TupleId]
    ) -> list[pa.Table]:
        """The rows of a query over these tuples alone; `tuples` are by the number of the stream."""
        plan, made = self._planned(node), []
        for place, stream in enumerate(plan.streams):
            number = self.origins.streams.index(stream)
            for inlet, names in self.origins.listed.items():
                if inlet.stream != number:
                    continue
                sources = [
                    self._chosen(
                        tuples.get(number), self.origins.note(inlet, name), name, stream.schema, ids
                    )
                    for name in names
                ]
                connector = ChosenConnector(stream.schema, stream.time, sources)
                made.append(Connection(place, connector))
        found: list[pa.Table] = []

        def seen(rows: pa.Table) -> bool:
            found.append(rows)
            return False

        self._run(plan, made, RunOptions(), seen)
        return found

    def tuples(
        self, number: int, keep: Callable[[pa.Table], pa.Table], span: TupleSpan
    ) -> StreamTuples:
        """The tuples of a stream in a span that `keep` leaves of its rows with `ts` and ids."""
        source = Input(self.origins.streams[number])
        child, ids = traced(source)[id(source)]
        names = source.stream.schema.names
        own = [(f"c{i}", column(_own_name(source, name))) for i, name in enumerate(names)]
        shown: list[NamedExpr] = [*own, (WHY, joined(ids))]
        parts: list[pa.Table] = []

        def seen(rows: pa.Table) -> bool:
            parts.append(keep(span.of(rows)))
            return span.ends_before(rows)

        self.traced_rows(Project(child, tuple(shown)), span.low_us, seen)
        return _stream_tuples(parts, source.stream.schema)

    def _chosen(
        self,
        tuples: StreamTuples | None,
        number: int,
        name: str,
        schema: pa.Schema,
        ids: Collection[TupleId],
    ) -> ChosenTuples:
        if tuples is None:
            return ChosenTuples(name, np.empty(0, np.int64), schema.empty_table())
        return ChosenTuples(name, *tuples.of(number, ids))

    def _planned(self, node: Node) -> Plan:
        return plan_for((Output(None, node),), _PLACE, connectors=self._given)

    def _connections(self, plan: Plan) -> list[Connection]:
        return connections_of(plan.streams, self._given, self._options)

    def _run(
        self, plan: Plan, connections: Sequence[Connection], options: RunOptions, seen: Seen
    ) -> None:
        def watch(_: str | None, rows: pa.Table) -> None:
            if seen(rows):
                loop.stop()

        sinks: dict[str | None, Sink] = {None: NothingSink()}
        loop = prepare(plan, _PLACE, sinks, options, connections=connections, on_rows=watch)
        loop.run()


def with_ids(ids: Collection[TupleId]) -> Callable[[pa.Table], pa.Table]:
    """What keeps just these tuples."""
    return lambda rows: rows.filter(pa.array(made_of(rows.column(WHY), ids)))


def _own_name(source: Input, name: str) -> str:
    """What a column of a stream is called by those who read it."""
    called = name == source.stream.time and name.lower() == EVENT_TIME
    return EVENT_TIME if called else name


def _stream_tuples(parts: Sequence[pa.Table], schema: pa.Schema) -> StreamTuples:
    """Rows as the stream has them, by source and position."""
    table = pa.concat_tables(parts) if parts else None
    if table is None or not table.num_rows:
        none = np.empty(0, np.int64)
        return StreamTuples(schema.empty_table(), none, none, none)
    pairs = pc.split_pattern(table.column(WHY), ":").combine_chunks().flatten()
    numbers = pairs.cast(pa.int64()).to_numpy().reshape(-1, 2)
    order = np.lexsort((numbers[:, 1], numbers[:, 0]))
    table = table.take(pa.array(order))
    times = times_of(table)
    own = [table.column(f"c{i}") for i in range(len(schema))]
    return StreamTuples(pa.table(own, schema=schema), numbers[order, 0], numbers[order, 1], times)
