"""The door for Python programs: streams from files, DataFrames and memory, in SQL or Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidegate.driver.options import DEFAULT_BUCKETS
from tidegate.driver.pipeline import StepSeen
from tidegate.errors import OptionError
from tidegate.plan.explain import explain
from tidegate.plan.options import (
    AUTO,
    DEFAULT_PARTITIONER,
    DEFAULT_STRATEGY,
    MAX_WINDOWS,
    JoinOptions,
    PlanOptions,
)
from tidegate.query.node import Input, Node
from tidegate.query.output import Output, check_names, single
from tidegate.query.stream import Stream
from tidegate.query.surface.signature import called_as
from tidegate.session.launch import Location, prepare
from tidegate.session.look import look
from tidegate.session.options import memory_of, run_options
from tidegate.session.place import Place, texts
from tidegate.session.planning import plan_for
from tidegate.session.query import RunningQuery
from tidegate.session.reach import reachable
from tidegate.session.result import whole_result
from tidegate.session.script import outputs_of
from tidegate.session.sources import Sources
from tidegate.session.spark_table import (
    frame_of,
    read_by_name,
    sources_of,
    tables_of,
    without_tables,
)
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import as_sink
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SINK = (
    'Write .start(sink="out") for files in a folder out, sink="console:" to print the rows, or '
    "sink=tg.sink.memory() to keep them."
)


class Session:
    """Makes streams and starts queries, on a Spark session or without Spark.

    `Session()` uses the Spark session that the process has, or what spark-submit was told, else it
    starts Spark on this machine when the first query needs it. `Session(spark)` uses a session that
    is there; `Session(master="none")` runs everything in this process. `conf` are settings for a
    Spark that is started, as `{"spark.executor.memory": "4g"}`.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
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
        self._named: dict[str, Node] = {}
        """What scripts call the streams that they make; the newest of a name."""
        _ = self._place  # a mistake in the arguments is told here

    @property
    def _place(self) -> Place:
        """Where queries run, as of now: a program may make its Spark session after this one."""
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
        **reading: Any,
    ) -> Stream:
        """A stream over one source or a list of several: paths, URIs, memory sources, DataFrames.

        Also tables: of Arrow or pandas, a list of dictionaries, whatever gives Arrow data; they
        are bounded, and their rows are taken in the order of their times. All sources of a stream
        have one schema. `time` is the column with the event time, `ts` if it is not said. `schema`
        declares the columns of files: a pyarrow schema, a text as `"zip STRING, amount
        DECIMAL(10,2)"`, or types by name. Options of files, as `header=False` and `sep=";"`, are
        given as keywords or in `options`.
        """
        options = {**(options or {}), **reading}
        definition = self._sources.define(source, time, name, disorder, idle, schema, options)
        return self._made(Input(definition))

    @called_as('session.table("rides", time="ts")')
    def table(
        self,
        name: str,
        *,
        time: str | None = None,
        disorder: str | timedelta | int = 0,
        idle: str | timedelta | None = None,
    ) -> Stream:
        """A stream over a table or a view of Spark's catalog, by its name there.

        A bounded one is read once, when the query first starts, and taken in the order of its
        times; a view of a streaming DataFrame goes on as that does.
        """
        frame = frame_of(self._place, name, "table")
        plain = name.replace("`", "").rpartition(".")[2]
        return self.stream(frame, time=time, name=plain, disorder=disorder, idle=idle)

    @called_as('session.sql("SELECT * FROM rides", rides=stream)')
    def sql(self, text: str, **streams: Stream) -> Stream:
        """A query in SQL, over streams it creates itself and streams given by name.

        What is given may be a query itself.
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
    def queries(self, text: str, **streams: Stream) -> dict[str, Stream]:
        """The outputs of a script by the names that INSERT INTO gives them; see `start`."""
        return {o.name or "": self._made(o.node) for o in self._outputs(text, streams)}

    @called_as('session.start({"totals": stream}, sinks={"totals": "out"})')
    def start(
        self, outputs: Mapping[str, Stream], *, sinks: Mapping[str, Sink | str], **options: Any
    ) -> RunningQuery:
        """Run several outputs as one query: what they share is done once, a batch is one for all.

        Both are by the names of the outputs; a sink may be given as its URI. The options are those
        of `Stream.start`.
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
            return f"Session(on {self._place.session.sparkContext.master})"
        return f"Session(master={self._place.master!r})"

    def _made(self, node: Node) -> Stream:
        return Stream(node, self._launch, self._describe, self._look, self._gather)

    def _outputs(self, text: str, streams: Mapping[str, Stream]) -> Sequence[Output]:
        script = read_script(text)
        given = _nodes(streams)
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
            given[name] = self.table(name).node
        outputs = outputs_of(without_tables(script), given)
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
        partitioner: str = DEFAULT_PARTITIONER,
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
        """Start a query with one output; `Stream.start` comes here."""
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
        partitioner: str = DEFAULT_PARTITIONER,
        partial: str = AUTO,
        memory_limit: str | int | None = None,
        max_windows_per_tuple: int = MAX_WINDOWS,
        handover: str = AUTO,
        start_empty: bool = False,
    ) -> RunningQuery:
        """Start a query; instances and switches are for all subqueries, or by their names.

        Without `follow` and `available_now` it reads to the end of its input and finishes every
        window. With `available_now` it takes what there is and leaves windows open: the next run on
        the checkpoint goes on. `trigger` is the least time between the starts of two batches, as
        `"1 second"`. `memory_limit` is what each process may hold, as `"2GB"` or in
        bytes. `handover` is how buckets come to other instances: "shared", "state" or "window".
        With `start_empty` a changed query may have aggregates and joins of which its checkpoint
        has no state; they begin with the next tuples.
        """
        options = run_options(
            instances,
            switches,
            policy,
            memory_limit,
            trigger,
            buckets=buckets,
            batch_rows=batch_rows,
            follow=follow,
            available_now=available_now,
            handover=handover,
            start_empty=start_empty,
        )
        place = replace(
            self._place,
            exchange=exchange or self._place.exchange,
            execution=execution or self._place.execution,
        )
        join = JoinOptions(method, routing, options.buckets)
        asked = PlanOptions(join, strategy, partitioner, max_windows_per_tuple, partial)
        plan = plan_for(outputs, place, asked, self._sources.connectors)
        loop = prepare(
            plan,
            place,
            {name: as_sink(sink) for name, sink in sinks.items()},
            options,
            checkpoint=checkpoint,
            connectors=self._sources.connectors,
            observer=observer,
        )
        return RunningQuery(loop if checkpoint is None else reachable(loop)).begin()


def _nodes(streams: Mapping[str, Any]) -> dict[str, Node]:
    """The nodes of streams given to SQL by name."""
    for name, stream in streams.items():
        if not isinstance(stream, Stream):
            raise OptionError(
                f"sql {name}",
                "must be a stream",
                type(stream).__name__,
                f'Write {name}=session.stream(..., time="ts").',
            )
    return {name: stream.node for name, stream in streams.items()}
