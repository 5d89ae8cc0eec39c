"""Makes a bounded source of a table in memory: pandas, Arrow or dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike, fspath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import OptionError, SourceError
from tidegate.schema import fit_rows
from tidegate.source.memory import MemorySource
from tidegate.source.registry import open_uri
from tidegate.source.shape import check_distinct
from tidegate.source.subscription import AS_FOUND, Reading

DEFAULT_TIME = "ts"


def is_table(source: object) -> bool:
    """Whether rows are given themselves: an Arrow table, a frame, dictionaries of rows or columns.

    A DataFrame of Spark is none: Spark reads it.
    """
    if isinstance(source, str | PathLike) or hasattr(source, "sparkSession"):
        return False
    if isinstance(source, list) and source:
        return all(isinstance(row, Mapping) for row in source)
    return isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__")


def as_source(source: Any, time: str, where: str, id: str) -> Any:
    """A path as text, a table as a memory source that has ended; what else is given stays.

    The rows of a table come in the order of their times, those of one time as they stand: unlike
    a file it is there as a whole, so nothing in it has to be late.
    """
    if isinstance(source, PathLike):
        return fspath(source)
    if not is_table(source):
        return source
    table = arrow_table(source, time, where)
    given = table.column(time) if time in table.column_names else None
    table = fit_rows(table, None, id, time)
    if given is not None:
        table = _with_times(table, time)
        whole = given if pa.types.is_timestamp(given.type) else table.column(time)
        table = table.take(pc.sort_indices(whole))
    made = MemorySource(table, time=time, id=id)
    made.end()
    return made


def default_time(source: Any, name: str, reading: Reading = AS_FOUND) -> str:
    """The time column of a stream for which none is named: that of a memory source, or `ts`."""
    first = source[0] if isinstance(source, list | tuple) and not is_table(source) else source
    if isinstance(first, MemorySource):
        return first.time
    if isinstance(first, str | PathLike):
        schema = open_uri(fspath(first), name, None, False, reading).schema
        names, times = schema.names, [f.name for f in schema if pa.types.is_timestamp(f.type)]
    elif is_table(first):
        table = arrow_table(first, None, f"stream {name}")
        names = table.column_names
        times = [f.name for f in table.schema if pa.types.is_timestamp(f.type)]
    elif not hasattr(first, "columns"):
        return DEFAULT_TIME  # no source at all, which is told when it is opened
    else:
        names = times = list(first.columns)
    if DEFAULT_TIME in names:
        return DEFAULT_TIME
    listed = ", ".join(times) or f"none; the columns are {', '.join(names)}"
    raise SourceError(
        f"stream {name}",
        "needs a time column",
        "no time= and no column named ts",
        f'Write time="column". Timestamp columns: {listed}.',
    )


def _with_times(table: pa.Table, time: str) -> pa.Table:
    """The table with its time column as times where it is text; times without a zone are UTC."""
    column = table.column(time)
    if not pa.types.is_string(column.type):
        return table
    for type_ in (pa.timestamp("us", tz="UTC"), pa.timestamp("us")):
        with suppress(pa.ArrowInvalid):  # what is no time is told where the types are checked
            times = column.cast(type_)
            return table.set_column(table.column_names.index(time), time, times)
    return table


def arrow_table(source: Any, time: str | None, where: str) -> pa.Table:
    """The rows of what a program gives, in whatever kind of table it has them."""
    table = _rows(source, time, where)
    check_distinct(table.column_names, where)
    return table


def _rows(source: Any, time: str | None, where: str) -> pa.Table:
    try:
        if type(source).__module__.partition(".")[0] == "pandas":
            if source.index.name is not None and source.index.name == time:
                source = source.reset_index()
            return pa.Table.from_pandas(source, preserve_index=False).replace_schema_metadata(None)
        if isinstance(source, Mapping):
            return pa.table(dict(source))
        if isinstance(source, Sequence):
            return pa.Table.from_pylist([dict(row) for row in source])
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(
            where,
            "the rows must make a table",
            str(error),
            "Give an Arrow table, a DataFrame, or a list of dictionaries with the same keys.",
        ) from error
