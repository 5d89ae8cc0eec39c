"""Opens each stream of a script once for its schema, before the script is bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from tidegate.errors import OptionError, SourceError, near
from tidegate.query.node.node import Node, StreamDef
from tidegate.query.output import Output
from tidegate.query.table import TableDef
from tidegate.remote.scheme import refuse_keys, shown
from tidegate.schema import type_name
from tidegate.session.input.tables import table_of_files
from tidegate.source.registry import open_uri
from tidegate.source.subscription import Reading
from tidegate.sql.bind import bind
from tidegate.sql.relation.catalog import Known
from tidegate.sql.script import Create, Script, read_script
from tidegate.sql.syntax import OF_SPARK

DEFAULT_TIME = "ts"


def outputs_of(text: str | Script, given: Mapping[str, Node | TableDef]) -> Sequence[Output]:
    """The outputs of a script, over streams it creates and others that a program gives."""
    script = read_script(text) if isinstance(text, str) else text
    return bind(script, streams_of(script, given))


def streams_of(
    script: Script,
    given: Mapping[str, Node | TableDef] | None = None,
    uris: Mapping[str, Sequence[str]] | None = None,
    times: Mapping[str, str] | None = None,
) -> dict[str, Known]:
    """The catalog for binding: what the script creates, what options name, what a program gives.

    Options replace the script's URIs and time column of the same stream, so that one script can run
    over other data.
    """
    _refuse_keys(script)
    streams: dict[str, Known] = dict(given or {})
    creates = {c.name: c for c in script.creates}
    tables = {t.name: t for t in script.tables}
    asked = {_known(n, tables): tuple(u) for n, u in (uris or {}).items()}
    for name, said in tables.items():
        refuse_catalog(f"CREATE TABLE {name}", asked.get(name, said.uris), name)
        streams[name] = table_of_files(said, asked.get(name))
    uris = {n: u for n, u in asked.items() if n not in tables}
    for name in uris:
        creates.setdefault(_known(name, creates), Create(name, ()))
    for name in times or {}:
        if _known(name, creates) not in creates:
            raise OptionError(
                "--time", "must name a stream of the query", name, near(name, creates)
            )
    located = {_known(n, creates): tuple(u) for n, u in uris.items()}
    timed = {_known(n, creates): t for n, t in (times or {}).items()}
    for name, create in creates.items():
        places = located.get(name, create.uris)
        if not places:
            raise OptionError(
                f"stream {name}", "needs a source", "none", f"Give one with --stream {name}=URI."
            )
        refuse_catalog(f"CREATE STREAM {name}", places, name)
        time = timed.get(name, create.time)
        schema, time, types_from = _opened(name, places, time, create.reading)
        streams[name] = StreamDef(
            name,
            places,
            time,
            create.disorder_us,
            create.idle_us,
            schema,
            create.reading,
            types_from,
        )
    return streams


def _refuse_keys(script: Script) -> None:
    """Also where an option replaces the URI: the text of a script is stored and told."""
    for kind, made in (("stream", script.creates), ("table", script.tables)):
        for said in made:
            for uri in said.uris:
                refuse_keys(uri, f"{kind} {said.name}, {shown(uri)}", SourceError)


def refuse_catalog(where: str, uris: Sequence[str], name: str) -> None:
    """Refuse tables of Spark's catalog, which only a program has."""
    table = next((uri for uri in uris if uri.startswith(OF_SPARK)), None)
    if table is not None:
        raise OptionError(
            where,
            "a table of Spark can be read by a query of a Python program",
            f"TABLE {table.removeprefix(OF_SPARK)}",
            f"Use session.sql(...) there, or give files with --stream {name}=URI.",
        )


def _known(name: str, creates: Iterable[str]) -> str:
    """A stream's name as the script spells it; SQL does not tell cases apart."""
    return next((c for c in creates if c.lower() == name.lower()), name)


def _opened(
    name: str, uris: Sequence[str], time: str | None, reading: Reading
) -> tuple[pa.Schema, str, str]:
    """The one schema of all sources, the time column by its exact name, and whence the types."""
    connectors = [open_uri(uri, name, time, False, reading) for uri in uris]
    schemas = [connector.schema for connector in connectors]
    for uri, schema in zip(uris, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise SourceError(
                f"stream {name}",
                f"all sources must have the schema of {uris[0]}",
                f"another one in {uri}: {_difference(schemas[0], schema)}",
            )
    schema = schemas[0]
    if time is not None:
        exact = [n for n in schema.names if n == time] or [
            n for n in schema.names if n.lower() == time.lower()
        ]
        types_from = connectors[0].types_from
        return schema, exact[0] if exact else time, types_from
    if DEFAULT_TIME in schema.names:
        # Opened again as the time column: text of which most values are times is one then.
        return _opened(name, uris, DEFAULT_TIME, reading)
    candidates = [f.name for f in schema if pa.types.is_timestamp(f.type)]
    data = next((n for n in candidates if n[:1].isdigit()), None)
    if data is not None:
        raise SourceError(
            f"stream {name}, {uris[0]}",
            "the first line must be the header with the columns' names",
            f"{data} as a name",
            "Write the columns' names above the rows, or say OPTIONS (header false).",
        )
    listed = ", ".join(candidates) or "none; the columns are " + ", ".join(schema.names)
    raise SourceError(
        f"stream {name}",
        "needs a time column",
        "no TIME clause and no column named ts",
        f"Write TIME column, or --time {name}=COLUMN. Timestamp columns: {listed}.",
    )


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    for field in one:
        if field.name not in other.names:
            return f"no column {field.name}"
        if other.field(field.name).type != field.type:
            found = type_name(other.field(field.name).type)
            return f"column {field.name} is {found}, not {type_name(field.type)}"
    more = [n for n in other.names if n not in one.names]
    return f"one more column {more[0]}" if more else "columns in another order"
