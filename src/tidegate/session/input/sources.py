"""Makes definitions of streams from the sources that a program names."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from tidegate.calendar.duration import duration_us
from tidegate.calendar.microsecond import time_text, time_us
from tidegate.connector import Connector
from tidegate.errors import OptionError
from tidegate.query.definition import StreamDef
from tidegate.session.input.table import as_source, as_table, default_time, is_table
from tidegate.source.backfill.address import backfill_text
from tidegate.source.memory import MemorySource
from tidegate.source.registry import open_uri
from tidegate.source.subscription import Reading
from tidegate.sql.columns import schema_given

_ARGUMENTS = ("time", "name", "disorder", "idle", "schema", "options", "then", "until")


class Sources:
    """The sources that a session has been given; those without a URI are kept here by a name.

    Grows with the streams that a program makes of memory sources and DataFrames.
    """

    def __init__(self) -> None:
        self._connectors: dict[str, Connector] = {}
        self._numbers = itertools.count()

    @property
    def connectors(self) -> Mapping[str, Connector]:
        """The connectors of sources that are not named by a URI, by their names in plans."""
        return self._connectors

    def define(
        self,
        source: Any,
        time: str | None,
        name: str | None,
        disorder: str | timedelta | int,
        idle: str | timedelta | None,
        schema: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> StreamDef:
        """The definition of a stream over one source or a list of several, of one schema."""
        name = name or f"stream{next(self._numbers)}"
        several = isinstance(source, Sequence) and not isinstance(source, str)
        sources = list(source) if several and not is_table(source) else [source]
        if not sources:
            raise OptionError("stream", "needs at least one source", "none")
        where = f"stream {name}"
        declared = None if schema is None else schema_given(schema, f"{where}, schema")
        reading = Reading.of(declared, options or {}, where, also=_ARGUMENTS)
        sources = [as_table(s, time, where) for s in sources]
        time = time or default_time(sources[0], name, reading)
        sources = [as_source(s, time, f"{where}, table {i}") for i, s in enumerate(sources)]
        uris = tuple(self._named(name, i, s, time) for i, s in enumerate(sources))
        idle_us = duration_us(idle) if idle else None
        found, types_from = self._schema(name, uris, time, reading)
        return StreamDef(
            name, uris, time, duration_us(disorder), idle_us, found, reading, types_from
        )

    @staticmethod
    def followed_by(source: Any, then: str | None, until: str | datetime | None) -> Any:
        """A history with the topic that follows it, as one address."""
        if then is None and until is None:
            return source
        if then is None:
            remedy = 'Write then="kafka://host:port/topic".'
            raise OptionError("stream", "until= needs then=", "no topic", remedy)
        if not isinstance(source, str | PathLike):
            raise OptionError(
                "stream",
                "then= needs one history, a path or a URI",
                type(source).__name__,
                'Write session.stream("delta:hist", then="kafka://host:port/topic?from=history").',
            )
        text = time_text(time_us(until)) if isinstance(until, datetime) else until
        return backfill_text(fspath(source), then, text)

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
            "a source must be a path, a URI, a memory source, a DataFrame or a table",
            type(source).__name__,
            "Write frame.collect()."
            if hasattr(source, "collect_schema")
            else 'Write for example session.stream("rides.parquet", time="ts").',
        )

    def _schema(
        self, stream: str, uris: Sequence[str], time: str, reading: Reading
    ) -> tuple[pa.Schema, str]:
        """The one schema of all sources, and where the first of them has it from."""
        schemas, types_from = [], ""
        for uri in uris:
            given = self._connectors.get(uri)
            if given is not None and reading.told:
                raise OptionError(
                    f"stream {stream}",
                    "only files can be read with schema= and options",
                    "rows of this program",
                    "Leave them out: the rows say their columns.",
                )
            connector = given or open_uri(uri, stream, time, False, reading)
            schemas.append(connector.schema)
            types_from = types_from or connector.types_from
        for uri, schema in zip(uris, schemas, strict=True):
            if not schema.equals(schemas[0]):
                raise OptionError(
                    f"stream {stream}",
                    f"all sources must have the schema of {uris[0]}",
                    f"another one in {uri}",
                )
        return schemas[0], types_from
