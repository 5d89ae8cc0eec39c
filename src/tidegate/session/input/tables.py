"""Makes definitions of tables from files, rows of the program and Spark's catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from tidegate.errors import OptionError, SourceError
from tidegate.query.table import TableDef
from tidegate.schema import fit_rows, normal_schema
from tidegate.session.input.table import as_table, is_table
from tidegate.source.table import open_table
from tidegate.sql.script import TableSource


def table_of_files(said: TableSource, uris: Sequence[str] | None = None) -> TableDef:
    """The definition of a table of files, which are opened for their columns."""
    uris = tuple(uris or said.uris)
    opened = [open_table(uri, said.name, said.reading) for uri in uris]
    schema = opened[0].schema
    for uri, table in zip(uris, opened, strict=True):
        if not table.schema.equals(schema):
            raise SourceError(
                f"table {said.name}",
                f"all files must have the columns of {uris[0]}",
                f"others in {uri}",
                "Declare the columns of the table.",
            )
    return TableDef(
        said.name,
        uris,
        schema,
        said.reading,
        said.valid_from,
        said.refresh_us,
        opened[0].types_from,
    )


def table_of(source: Any, said: TableSource) -> TableDef:
    """The definition of a table of files, of rows of the program, or of a DataFrame of Spark."""
    several = isinstance(source, list | tuple) and not is_table(source)
    paths = list(source) if several else [source]
    if paths and all(isinstance(path, str | PathLike) for path in paths):
        return table_of_files(said, [fspath(path) for path in paths])
    where = f"table {said.name}"
    if said.reading.told:
        raise OptionError(
            where,
            "only files can be read with schema= and options",
            "rows of this program",
            "Leave them out: the rows say their columns.",
        )
    if said.refresh_us is not None:
        raise OptionError(
            where, "only files are read again", "rows of this program", "Leave refresh= out."
        )
    if len(paths) == 1 and is_table(source):
        rows = fit_rows(as_table(source, None, where), None, where)
        return _given(said, rows.schema, lambda: rows)
    if hasattr(source, "sparkSession") and hasattr(source, "isStreaming"):
        return _of_frame(said, source, where)
    raise OptionError(
        where,
        "must be made of paths, of rows, or of a DataFrame",
        type(source).__name__,
        'Write for example session.table("zones.parquet").',
    )


def _given(said: TableSource, schema: pa.Schema, rows: Callable[[], pa.Table]) -> TableDef:
    return TableDef(said.name, (), schema, valid_from=said.valid_from, given=rows)


def _of_frame(said: TableSource, frame: Any, where: str) -> TableDef:
    if frame.isStreaming:
        raise OptionError(
            where,
            "must be bounded",
            "a streaming DataFrame",
            'Make a stream of it: session.stream(frame, time="ts").',
        )
    schema = normal_schema(frame.limit(0).toArrow().schema)
    return _given(said, schema, lambda: fit_rows(frame.toArrow(), schema, where))
