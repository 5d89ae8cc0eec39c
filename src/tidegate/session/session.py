"""The entry point for Python programs: makes streams and tables, and starts queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, overload

from tidegate.calendar.duration import duration_us
from tidegate.driver.lineage.options import lineage_options, program_job
from tidegate.driver.options import DEFAULT_BUCKETS
from tidegate.driver.pipeline import StepSeen
from tidegate.elastic.budget.budget import NO_BUDGET, InstanceBudget
from tidegate.errors import OptionError
from tidegate.plan.explain import explain
from tidegate.plan.options import (
    AUTO,
    DEFAULT_STRATEGY,
    MAX_WINDOWS,
    JoinOptions,
    PlanOptions,
)
from tidegate.query.node.node import Input, Node
from tidegate.query.output import Output, check_names, single
from tidegate.query.stream import Stream
from tidegate.query.surface.signature import called_as
from tidegate.query.surface.table import Table
from tidegate.query.table import TableDef
from tidegate.session.dashboard import ServedPage
from tidegate.session.input.sources import Sources
from tidegate.session.input.spark_table import (
    frame_of,
    is_catalog_name,
    one_source,
    read_by_name,
    sources_of,
    tables_of,
    without_tables,
)
from tidegate.session.input.tables import table_of
from tidegate.session.launch import Location, prepare, title_of
from tidegate.session.look import look
from tidegate.session.options import checkpoint_options, memory_of, policy_of, run_options
from tidegate.session.place import Place, texts
from tidegate.session.planning import plan_for
from tidegate.session.program_script import ProgramScripts
from tidegate.session.query import RunningQuery
from tidegate.session.reach import reachable
from tidegate.session.result import whole_result
from tidegate.session.script import outputs_of
from tidegate.session.verification.proof_calls import ProofCalls
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import as_sink
from tidegate.source.subscription import Reading
from tidegate.sql.columns import schema_given
from tidegate.sql.script import TableSource, read_script
from tidegate.sql.syntax import OF_SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SINK = (
    'Write .start(sink="out") for files in a folder out, sink="console:" to print the rows, or '
    "sink=tg.sink.memory() to keep them."
)


class Session(ProofCalls):
    """Makes streams and starts queries, on a Spark session or without Spark.

    `Session()` uses the Spark session of this process or the master of spark-submit; without them
    it starts Spark on this machine when the first query needs it. `Session(spark)` uses an existing
    session. `Session(master="none")` runs everything in this process. `conf` are settings for a
    Spark that is started, as `{"spark.executor.memory": "4g"}`. With `max_instances` all queries of
    this session together have at most so many; they are divided by what the policies ask for.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        max_instances: int | None = None,
    ) -> None:
        if isinstance(spark, str):
            raise OptionError(
                "Session",
                "needs a Spark session, or a master by name",
                repr(spark),
                f"Write Session(master={spark!r}).",
            )
        self._asked = (master, spark, texts(conf or {}))
        self._sources = Sources()
        self._budget = None if max_instances is None else InstanceBudget(max_instances)
        self._tables = 0
        self._scripts = ProgramScripts()
        self._named: dict[str, Node] = {}
        """The streams that scripts have created, by name; the newest counts."""
        _ = self._place  # raises for a mistake in the arguments

    @property
    def _place(self) -> Place:
        """Where queries run now; not cached, since a program may create its Spark session later."""
        master, spark, conf = self._asked
        return Place.at(master, spark, conf=conf)

    @called_as('session.stream("rides.parquet", time="ts")')
    def stream(
        self,
        source: Any,
        *,
        time: str | None = None,
        name: str | None = None,
        disorder: str | timedelta | int = 0,
        idle: str | timedelta | None = None,
        schema: Any = None,
        options: Mapping[str, Any] | None = None,
        then: str | None = None,
        until: str | datetime | None = None,
        **reading: Any,
    ) -> Stream:
        """A stream over one source or a list of several: paths, URIs, memory sources, DataFrames.

        A source may also be a table: of Arrow or pandas, a list of dictionaries, or anything that
        exports Arrow data. A table is bounded, and its rows are read in the order of their times.
        All sources of a stream have one schema. `time` is the column with the event time, by
        default `ts`. `schema` declares the columns of files: a pyarrow schema, types by name, or a
        text as `"zip STRING, amount DECIMAL(10,2)"`. File options, as `sep=";"`, are keywords or
        come in `options`. `then` is a topic that continues a history of files or a table: from
        `"kafka://...?from=history"`, or from the event time `until` on.
        """
        options = {**(options or {}), **reading}
        source = self._sources.followed_by(source, then, until)
        definition = self._sources.define(source, time, name, disorder, idle, schema, options)
        return self._made(Input(definition))

    @overload
    def table(
        self,
        source: str,
        *,
        time: str,
        disorder: str | timedelta | int = 0,
        idle: str | timedelta | None = None,
    ) -> Stream: ...

    @overload
    def table(
        self,
        source: Any,
        *,
        name: str | None = None,
        valid_from: str | None = None,
        refresh: str | timedelta | None = None,
        schema: Any = None,
        options: Mapping[str, Any] | None = None,
        **reading: Any,
    ) -> Table: ...

    @called_as('session.table("zones.parquet")')
    def table(
        self,
        source: Any,
        *,
        time: str | None = None,
        name: str | None = None,
        valid_from: str | None = None,
        refresh: str | timedelta | None = None,
        schema: Any = None,
        options: Mapping[str, Any] | None = None,
        **reading: Any,
    ) -> Table | Stream:
        """A table that streams are joined to: `rides.join(zones, on=left.zone == right.id)`.

        The source is a path or a list of several, rows (of Arrow, pandas or Polars, dictionaries),
        a bounded DataFrame of Spark, or the name of a table in its catalog. It is read when a query
        first starts. With `valid_from`, a column of times, a tuple meets of each key the newest row
        that is not later than itself. With `refresh`, as `"10 minutes"`, files are read again.

        With `time`, the column with the event time, it is a stream over a table or a view of
        Spark's catalog, as `stream(spark.table(name), time=...)` is.
        """
        if time is not None:
            plain = source.replace("`", "").rpartition(".")[2]
            frame = frame_of(self._place, source, "table")
            return self.stream(frame, time=time, name=name or plain, options=options, **reading)
        where = f"table {name or source}" if isinstance(source, str) else f"table {name or ''}"
        declared = None if schema is None else schema_given(schema, f"{where}, schema")
        read = Reading.of(declared, {**(options or {}), **reading}, where, also=("name", "schema"))
        if is_catalog_name(source):
            source = frame_of(self._place, source, "table")
        refresh_us = None if refresh is None else duration_us(refresh)
        said = TableSource(name or self._table_name(source), (), read, valid_from, refresh_us)
        return Table(table_of(source, said))

    @called_as('session.sql("SELECT * FROM rides", rides=stream)')
    def sql(self, text: str, **streams: Stream | Table) -> Stream:
        """A query in SQL, over streams and tables that it creates, and others given by name.

        A stream that is given may be a query itself.
        """
        if text.endswith(".sql") and len(text.split()) == 1:
            raise OptionError(
                "sql",
                "needs the text of a query",
                text,
                f'Write session.sql(open("{text}").read()).',
            )
        return self._made(single(self._outputs(text, streams)))

    @called_as('session.queries("INSERT INTO a SELECT * FROM rides; ...", rides=stream)')
    def queries(self, text: str, **streams: Stream | Table) -> dict[str, Stream]:
        """The outputs of a script by the names that INSERT INTO gives them; see `start`."""
        return {o.name or "": self._made(o.node) for o in self._outputs(text, streams)}

    @called_as('session.start({"totals": stream}, sinks={"totals": "out"})')
    def start(
        self, outputs: Mapping[str, Stream], *, sinks: Mapping[str, Sink | str], **options: Any
    ) -> RunningQuery:
        """Run several outputs as one query: shared work is done once, and each batch is for all.

        Streams and sinks are by the names of the outputs; a sink may be a URI. The options are
        those of `Stream.start`.
        """
        named = tuple(self._output(name, stream.node) for name, stream in outputs.items())
        check_names([o.name for o in named])
        if set(outputs) != set(sinks):
            raise OptionError(
                "start",
                "needs a sink for each of its outputs, and no others",
                ", ".join(sinks) or "none",
                f"The outputs are {', '.join(outputs)}.",
            )
        return self._start(named, {name: sinks[name] for name in outputs}, **options)

    def __repr__(self) -> str:
        if self._place.session is not None:
            return f"Session(on {self._place.location})"
        return f"Session(master={self._place.master!r})"

    def _made(self, node: Node) -> Stream:
        return Stream(node, self._launch, self._describe, self._look, self._gather)

    def _table_name(self, source: Any) -> str:
        """The name of a table without one: that of its file, or a numbered one."""
        first = source[0] if isinstance(source, list) and source else source
        if isinstance(first, str | PathLike):
            return PurePath(fspath(first)).name.partition(".")[0] or "table"
        self._tables += 1
        return f"table{self._tables}"

    def _outputs(self, text: str, streams: Mapping[str, Stream | Table]) -> Sequence[Output]:
        script = read_script(text)
        given = _nodes(streams)
        for table in script.tables:
            if any(uri.startswith(OF_SPARK) for uri in table.uris):
                given[table.name] = table_of(one_source(table, self._place), table)
        for create in tables_of(script):
            sources, idle_us = sources_of(create, self._place), create.idle_us
            definition = self._sources.define(
                sources,
                create.time,
                create.name,
                timedelta(microseconds=create.disorder_us),
                None if idle_us is None else timedelta(microseconds=idle_us),
            )
            given[create.name] = Input(definition)
        for name in read_by_name(script, given, self._place):
            plain = name.replace("`", "").rpartition(".")[2]
            given[name] = self.stream(frame_of(self._place, name, "table"), name=plain).node
        outputs = outputs_of(without_tables(script), given)
        self._scripts.add(text, outputs, given)
        self._named |= dict(outputs[0].streams)
        return outputs

    def _output(self, name: str | None, node: Node) -> Output:
        return Output(name, node, tuple(self._named.items()))

    def _look(self, node: Node, *, rows: int, read: int) -> Any:
        return look(node, self._place, self._sources.connectors, rows=rows, read=read)

    def _gather(self, node: Node, *, memory_limit: str | int | None, where: str) -> Any:
        memory = memory_of(memory_limit)
        return whole_result(node, self._place, self._sources.connectors, memory, where)

    @called_as(".explain(buckets=64)", "explain")
    def _describe(
        self,
        node: Node,
        *,
        method: str = AUTO,
        routing: str = AUTO,
        buckets: int = DEFAULT_BUCKETS,
        strategy: str = DEFAULT_STRATEGY,
        partitioner: str | None = None,
        partial: str = AUTO,
        max_windows_per_tuple: int = MAX_WINDOWS,
    ) -> str:
        options = PlanOptions(
            JoinOptions(method, routing, buckets),
            strategy,
            partitioner,
            max_windows_per_tuple,
            partial,
        )
        outputs = (self._output(None, node),)
        return explain(outputs, plan_for(outputs, self._place, options, self._sources.connectors))

    def _launch(
        self, node: Node, *, sink: Sink | str | None = None, **options: Any
    ) -> RunningQuery:
        """Start a query with one output; `Stream.start` calls it."""
        if sink is None:
            raise OptionError("start", "needs a sink for the results", "none", _SINK)
        return self._start((self._output(None, node),), {None: sink}, **options)

    @called_as('.start(sink="out", checkpoint="ckpt", batch_rows=100_000)', "start")
    def _start(
        self,
        outputs: Sequence[Output],
        sinks: Mapping[str | None, Sink | str],
        *,
        checkpoint: Location | None = None,
        instances: int | Mapping[str, int] | None = None,
        buckets: int = DEFAULT_BUCKETS,
        batch_rows: int | None = None,
        follow: bool = False,
        available_now: bool = False,
        trigger: str | timedelta | float | None = None,
        switches: Mapping[int | str, int | Mapping[int, int]] | None = None,
        policy: Any = None,
        observer: StepSeen | None = None,
        method: str = AUTO,
        routing: str = AUTO,
        exchange: str | None = None,
        execution: str | None = None,
        strategy: str = DEFAULT_STRATEGY,
        partitioner: str | None = None,
        partial: str = AUTO,
        memory_limit: str | int | None = None,
        max_windows_per_tuple: int = MAX_WINDOWS,
        handover: str = AUTO,
        mapping: object = None,
        start_empty: bool = False,
        keep: str | timedelta | float | None = None,
        sign: str | PathLike[str] | None = None,
        lineage: str | PathLike[str] | None = None,
        lineage_every: str | timedelta | float | None = None,
        dashboard: bool | int | str | None = None,
    ) -> RunningQuery:
        """Start a query. The options have the meaning they have in `tidegate run`, except these.

        instances: parallel ones of every subquery, or by its name; default: the cores.
        trigger: least time between the starts of two batches, as "1 second" or in seconds.
        switches: how many instances from a batch on: `{40: 4}`, or `{"callers": {40: 4}}`.
        policy: who decides about instances: the name of a policy, or an object that is one.
        observer: called with the name of each step that a batch reaches, and the batch's number.
        memory_limit: what each process may hold, as "2GB" or in bytes.
        keep: how long states of earlier batches are kept, as "24 hours"; needs a checkpoint.
        sign: a PEM file with the key that signs each batch; needs a checkpoint.
        dashboard: the port of a page that shows the run; True means any free one.
        """
        options = run_options(
            instances,
            switches,
            policy_of(policy, outputs),
            memory_limit,
            trigger,
            mapping,
            buckets=buckets,
            batch_rows=batch_rows,
            follow=follow,
            available_now=available_now,
            handover=handover,
            start_empty=start_empty,
            **checkpoint_options(checkpoint, keep, sign),
            budget=NO_BUDGET if self._budget is None else self._budget.query(),
        )
        place, join = self._place.but(exchange, execution), JoinOptions(method, routing, buckets)
        asked = PlanOptions(join, strategy, partitioner, max_windows_per_tuple, partial)
        plan = plan_for(outputs, place, asked, self._sources.connectors)
        told = lineage_options(lineage, lineage_every, "lineage", program_job(title_of(plan)))
        with ServedPage(dashboard) as page:
            loop = prepare(
                plan,
                place,
                {name: as_sink(sink) for name, sink in sinks.items()},
                options,
                checkpoint=checkpoint,
                connectors=self._sources.connectors,
                observer=observer,
                lineage=told,
                script=self._scripts.of(outputs).planned_with(asked),
            )
            url = page.show(loop, title_of(plan))
        loop = loop if checkpoint is None else reachable(loop)
        return RunningQuery(loop, url, outputs, self._sources.connectors).begin()


def _nodes(streams: Mapping[str, Any]) -> dict[str, Node | TableDef]:
    """The nodes of streams given to SQL by name, and tables as they are."""
    found: dict[str, Node | TableDef] = {}
    for name, stream in streams.items():
        if isinstance(stream, Table):
            found[name] = stream.definition
        elif isinstance(stream, Stream):
            found[name] = stream.node
        else:
            raise OptionError(
                f"sql {name}",
                "must be a stream or a table",
                type(stream).__name__,
                f'Write {name}=session.stream(..., time="ts").',
            )
    return found
