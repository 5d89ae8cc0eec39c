"""The door for Python programs: streams from files, DataFrames and memory, in SQL or Python."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from operator import index
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.driver.loop import Observer
from tidegate.driver.options import DEFAULT_BATCH_ROWS, DEFAULT_BUCKETS, RunOptions
from tidegate.errors import OptionError, UnavailableError
from tidegate.plan.explain import explain
from tidegate.plan.method import AUTO, JoinOptions
from tidegate.plan.physical import OPERATOR_SET
from tidegate.query.node import Input, Node, StreamDef
from tidegate.query.output import Output, check_names, single
from tidegate.query.stream import Stream
from tidegate.query.window import duration_us
from tidegate.session.launch import DEFAULT_MASTER, Location, Place, plan_for, prepare
from tidegate.session.query import RunningQuery
from tidegate.session.script import streams_of
from tidegate.sink.protocol import Sink
from tidegate.sink.registry import as_sink
from tidegate.source.memory import MemorySource
from tidegate.source.protocol import Connector
from tidegate.source.uri import open_uri
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Session:
    """Makes streams and starts queries, on a Spark session or without Spark.

    `Session()` starts Spark on this machine when the first query needs it; `Session(spark)` uses a
    session that is there; `Session(master="none")` runs everything in this process.
    """

    def __init__(self, spark: SparkSession | None = None, *, master: str = DEFAULT_MASTER) -> None:
        self._place = Place(master, spark)
        self._connectors: dict[str, Connector] = {}
        self._numbers = itertools.count()

    def stream(
        self,
        source: Any,
        *,
        time: str,
        name: str | None = None,
        disorder: str | timedelta | int = 0,
        idle: str | timedelta | None = None,
    ) -> Stream:
        """A stream over one source or a list of several: paths, URIs, memory sources, DataFrames.

        All sources of a stream have one schema. `time` is the column with the event time.
        """
        sources = (
            list(source)
            if isinstance(source, Sequence) and not isinstance(source, str)
            else [source]
        )
        if not sources:
            raise OptionError("stream", "needs at least one source", "none")
        name = name or f"stream{next(self._numbers)}"
        uris = tuple(self._named(name, i, s, time) for i, s in enumerate(sources))
        schema = self._schema(name, uris, time)
        definition = StreamDef(
            name, uris, time, duration_us(disorder), duration_us(idle) if idle else None, schema
        )
        return Stream(Input(definition), self._launch, self._describe)

    def sql(self, text: str, **streams: Stream) -> Stream:
        """A query in SQL, over streams it creates itself and streams given by name.

        What is given may be a query itself.
        """
        script = read_script(text)
        given = {n: s.node for n, s in streams.items()}
        return Stream(single(bind(script, streams_of(script, given))), self._launch, self._describe)

    def queries(self, text: str, **streams: Stream) -> dict[str, Stream]:
        """The outputs of a script by the names that INSERT INTO gives them; see `start`."""
        script = read_script(text)
        outputs = bind(script, streams_of(script, {n: s.node for n, s in streams.items()}))
        return {o.name or "": Stream(o.node, self._launch, self._describe) for o in outputs}

    def _named(self, stream: str, number: int, source: Any, time: str) -> str:
        """What a source is called in the plan; what has no URI is kept here under that name."""
        if isinstance(source, str):
            return source
        if isinstance(source, MemorySource):
            if source.time != time:
                raise OptionError(
                    f"stream {stream}", f"the memory source has its time in {source.time}", time
                )
            uri = f"memory:{stream}/{len(self._connectors)}"
            self._connectors[uri] = source
            return uri
        if hasattr(source, "sparkSession") and hasattr(source, "isStreaming"):
            from tidegate.execute.spark.frame import FrameConnector

            uri = f"frame:{stream}/{len(self._connectors)}"
            # In checkpoints it goes by its place in the stream, which the next run has too.
            self._connectors[uri] = FrameConnector(source, f"{stream}/{number}", time)
            return uri
        raise OptionError(
            f"stream {stream}",
            "a source must be a path, a URI, a memory source or a DataFrame",
            type(source).__name__,
        )

    def _schema(self, stream: str, uris: Sequence[str], time: str) -> pa.Schema:
        schemas = []
        for uri in uris:
            connector = self._connectors.get(uri) or open_uri(uri, stream, time, False)
            schemas.append(connector.schema)
        for uri, schema in zip(uris, schemas, strict=True):
            if not schema.equals(schemas[0]):
                raise OptionError(
                    f"stream {stream}",
                    f"all sources must have the schema of {uris[0]}",
                    f"another one in {uri}",
                )
        return schemas[0]

    def start(
        self, outputs: Mapping[str, Stream], *, sinks: Mapping[str, Sink | str], **options: Any
    ) -> RunningQuery:
        """Run several outputs as one query: what they share is done once, a batch is one for all.

        Both are by the names of the outputs; a sink may be given as its URI. The options are those
        of `Stream.start`.
        """
        named = tuple(Output(name, stream.node) for name, stream in outputs.items())
        check_names([o.name for o in named])
        if set(outputs) != set(sinks):
            raise OptionError(
                "start",
                "needs a sink for each of its outputs, and no others",
                ", ".join(sinks) or "none",
                f"The outputs are {', '.join(outputs)}.",
            )
        return self._start(named, {name: sinks[name] for name in outputs}, **options)

    def _describe(
        self,
        node: Node,
        *,
        method: str = AUTO,
        routing: str = AUTO,
        buckets: int = DEFAULT_BUCKETS,
        strategy: str = OPERATOR_SET,
    ) -> str:
        join = JoinOptions(method, routing, buckets)
        outputs = (Output(None, node),)
        return explain(outputs, plan_for(outputs, self._place, join, self._connectors, strategy))

    def _launch(self, node: Node, *, sink: Sink | str, **options: Any) -> RunningQuery:
        """Start a query with one output; `Stream.start` comes here."""
        return self._start((Output(None, node),), {None: sink}, **options)

    def _start(
        self,
        outputs: Sequence[Output],
        sinks: Mapping[str | None, Sink | str],
        *,
        checkpoint: Location | None = None,
        instances: int | Mapping[str, int] | None = None,
        buckets: int = DEFAULT_BUCKETS,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        follow: bool = False,
        switches: Mapping[int | str, int | Mapping[int, int]] | None = None,
        policy: Any = None,
        observer: Observer | None = None,
        method: str = AUTO,
        routing: str = AUTO,
        exchange: str | None = None,
        strategy: str = OPERATOR_SET,
    ) -> RunningQuery:
        """Start a query; instances and switches are for all subqueries, or by their names."""
        if policy is not None and policy != "fixed":
            raise UnavailableError(
                "policy",
                "only 'fixed' can be used",
                str(policy),
                "Other policies are not available yet.",
            )
        general, own = _switches(switches or {})
        options = RunOptions(
            instances=None if isinstance(instances, Mapping) else instances,
            buckets=buckets,
            batch_rows=batch_rows,
            follow=follow,
            switches=general,
            subquery_instances=instances if isinstance(instances, Mapping) else {},
            subquery_switches=own,
        )
        place = replace(self._place, exchange=exchange) if exchange else self._place
        join = JoinOptions(method, routing, options.buckets)
        made = {name: as_sink(sink) for name, sink in sinks.items()}
        plan = plan_for(outputs, place, join, self._connectors, strategy)
        loop = prepare(plan, place, made, options, checkpoint, self._connectors, observer=observer)
        return RunningQuery(loop).begin()


def _switches(
    asked: Mapping[int | str, int | Mapping[int, int]],
) -> tuple[dict[int, int], dict[str, Mapping[int, int]]]:
    """What is asked for all subqueries, and for single ones by name."""
    general: dict[int, int] = {}
    own: dict[str, Mapping[int, int]] = {}
    for key, value in asked.items():
        if isinstance(key, str) and isinstance(value, Mapping):
            own[key] = {index(b): index(n) for b, n in value.items()}
        elif isinstance(key, str) or isinstance(value, Mapping):
            raise OptionError(
                "switches",
                "must be {batch: instances}, or {subquery: {batch: instances}}",
                f"{{{key!r}: {value!r}}}",
            )
        else:
            general[index(key)] = index(value)
    return general, own
