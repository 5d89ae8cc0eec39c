"""Columns of what a record has beside its value: key, partition, offset, timestamp, headers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.errors import SourceError, near
from tidegate.schema import TIME, type_name
from tidegate.source.kafka.record import RecordRange, timestamp_column

TIMESTAMP = "_timestamp"
_HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))

RECORD_COLUMNS = {
    "_key": pa.string(),
    "_partition": pa.int64(),
    "_offset": pa.int64(),
    TIMESTAMP: TIME,
    "_headers": _HEADERS,
}
"""Types by name. Keys and values of headers are UTF-8; other bytes become U+FFFD."""


def asked_columns(
    text: str | None, declared: pa.Schema | None, time: str | None, where: str
) -> tuple[str, ...]:
    """The record columns to read: those in `meta=key,offset`, declared ones, the time column."""
    names = [f"_{name.strip()}" for name in text.split(",")] if text else []
    for name in names:
        if name not in RECORD_COLUMNS:
            known = [n[1:] for n in RECORD_COLUMNS]
            must = "meta must name what a record has beside its value"
            raise SourceError(where, must, name[1:] or "''", near(name[1:], known))
    for field in declared if declared is not None else ():
        type_ = RECORD_COLUMNS.get(field.name)
        if type_ is None:
            continue
        if field.type != type_:
            must = f"column {field.name} is of Kafka's records and must be {type_name(type_)}"
            remedy = "Declare it so, or give the column another name."
            raise SourceError(where, must, type_name(field.type), remedy)
        names.append(field.name)
    if time == TIMESTAMP:
        names.append(TIMESTAMP)
    return tuple(n for n in RECORD_COLUMNS if n in names)


def record_column(name: str, records: RecordRange, partition: int) -> pa.Array:
    """One of these columns for all records of a range."""
    if name == "_key":
        return pa.array([_text(key) for key in records.keys], pa.string())
    if name == "_partition":
        return pa.repeat(pa.scalar(partition, pa.int64()), len(records.values))
    if name == "_offset":
        return pa.array(records.offsets)
    if name == TIMESTAMP:
        return timestamp_column(records.timestamps)
    return pa.array([_headers(pairs) for pairs in records.headers], _HEADERS)


def _headers(pairs: Sequence[tuple[str, bytes | None]] | None) -> list[dict[str, str | None]]:
    return [{"name": name, "value": _text(value)} for name, value in pairs or ()]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
