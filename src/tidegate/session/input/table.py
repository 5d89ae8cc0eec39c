"""Makes a bounded source of a table in memory: pandas, Arrow or dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def as_source(source: Any, time: str, id: str) -> Any:
    """A path as text, a table as a memory source that has ended; what else is given stays.

    The rows of a table come in the order of their times, those of one time as they stand: unlike
    a file it is there as a whole, so nothing in it has to be late.
    """
    if isinstance(source, PathLike):
        return fspath(source)
    if not isinstance(source, pa.Table):
        return source
    given = source.column(time) if time in source.column_names else None
    table = fit_rows(source, None, id, time)
    if given is not None:
        table = _with_times(table, time)
        whole = given if pa.types.is_timestamp(given.type) else table.column(time)
        table = table.take(pc.sort_indices(whole))
    made = MemorySource(table, time=time, id=id)
    made.end()
    return made


def default_time(source: Any, name: str, reading: Reading = AS_FOUND) -> str:
    """The time column of a stream for which none is named: that of a memory source, or `ts`."""
    first = source
    if isinstance(first, MemorySource):
        return first.time
    if isinstance(first, str | PathLike):
        schema = open_uri(fspath(first), name, None, False, reading).schema
        names, times = schema.names, [f.name for f in schema if pa.types.is_timestamp(f.type)]
    elif isinstance(first, pa.Table):
        names = first.column_names
        times = [f.name for f in first.schema if pa.types.is_timestamp(f.type)]
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


def as_table(source: Any, time: str | None, where: str) -> Any:
    """The rows of a frame, of dictionaries or of Arrow data as a table; what is none stays.

    Called once for a source: data that streams in can be read once.
    """
    if not is_table(source):
        return source
    library = type(source).__module__.partition(".")[0]
    try:
        if library in _READ and not hasattr(source, "columns"):
            raise TypeError(f"a {type(source).__name__}, which is one column")
        table = _READ.get(library, _other_rows)(source, time or DEFAULT_TIME, where)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise OptionError(
            where,
            "the rows must make a table",
            "; ".join(str(part).rstrip(".") for part in error.args),
            "Give an Arrow table, a DataFrame, or a list of dictionaries with the same keys, and "
            "one type to each column.",
        ) from error
    check_distinct(table.column_names, where)
    return table


def _other_rows(source: Any, time: str, where: str) -> pa.Table:
    if isinstance(source, Mapping):
        return pa.table(dict(source))
    if isinstance(source, Sequence):
        return pa.Table.from_pylist([dict(row) for row in source])
    return pa.table(source)


def _pandas_rows(source: Any, time: str, where: str) -> pa.Table:
    """The columns of a frame; its index where the time is there."""
    if time in source.index.names and time not in source.columns:
        source = source.reset_index()
    check_distinct([str(name) for name in source.columns], where)
    for name, type_ in source.dtypes.items():
        if str(type_).startswith("period["):
            remedy = f'Write frame["{name}"].dt.to_timestamp(), or .astype("string").'
            raise _foreign(where, name, type_, remedy)
    return pa.Table.from_pandas(source, preserve_index=False).replace_schema_metadata(None)


def _polars_rows(source: Any, time: str, where: str) -> pa.Table:
    """The columns of a frame, none of which has a type that Arrow does not have."""
    for name, type_ in source.schema.items():
        if str(type_) in ("Object", "Int128", "UInt128"):
            raise _foreign(where, name, type_, "Cast it, as to Decimal(38, 0) or String.")
    return pa.table(source)


def _foreign(where: str, name: object, type_: object, remedy: str) -> OptionError:
    requirement = f"column {name} must have a type that Arrow has"
    return OptionError(where, requirement, str(type_), remedy)


_READ: dict[str, Callable[[Any, str, str], pa.Table]] = {
    "pandas": _pandas_rows,
    "polars": _polars_rows,
}
"""What makes a table of the frames of a library."""
