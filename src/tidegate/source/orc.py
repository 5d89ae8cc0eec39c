"""ORC files, between stripes and the pieces that a columnar source reads; see `parquet`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import orc

from tidegate import disk
from tidegate.batch import MIN_US
from tidegate.schema import cast_table, normal_type
from tidegate.source.declared import spelling
from tidegate.source.mark import EDGE_BYTES, digest
from tidegate.source.parquet import (
    Group,
    ParquetProbe,
    Version,
    check_version,
    failed,
)
from tidegate.source.shape import check_distinct

_FOOTER, _STRIPES, _ROWS = 2, 3, 5
"""Numbers of fields: the footer in a file's tail, stripes in that, rows in a stripe."""


def probe_orc(path: str, where: str, time: str | None) -> ParquetProbe:
    """Read the tail of a file: its columns and the sizes of its stripes.

    What the least times are is not known: stripes have statistics, but Arrow does not give them.
    """
    try:
        status = disk.seen(path)
        end = disk.read(path, max(status.bytes - EDGE_BYTES, 0))
        with disk.at(path).open_arrow(path) as raw:
            file = orc.ORCFile(raw)
            schema, sizes = file.schema, list(_stripe_rows(file))
    except (pa.ArrowException, OSError) as error:
        raise failed(path, where, error, "ORC") from error
    check_distinct(schema.names, where)
    groups, first = [], 0
    for number, rows in enumerate(sizes):
        if rows:
            groups.append(Group(number, first, rows))
        first += rows
    types = [f.type if pa.types.is_null(f.type) else normal_type(f.type) for f in schema]
    return ParquetProbe(
        path,
        (status.bytes, status.modified_ns),
        digest(end),
        tuple(groups),
        (MIN_US,) * len(groups),
        pa.schema(list(zip(schema.names, types, strict=True))),
        "orc",
    )


def decode_stripe(
    path: str, version: Version, number: int, asked: pa.Schema, time: str | None
) -> pa.Table:
    """Columns of one stripe in normalised types; refuses a file that has changed."""
    try:
        with disk.at(path).open_arrow(path) as raw:
            file = orc.ORCFile(raw)
            names = {spelling(n, file.schema.names) or n: n for n in asked.names}
            batch = file.read_stripe(number, columns=list(names))
            table = pa.Table.from_batches([batch])
            table = table.rename_columns([names.get(n, n) for n in table.column_names])
        check_version(path, version)  # what was read is of this version, if the file still is
        return cast_table(table, asked, path, time)
    except (pa.ArrowException, OSError) as error:
        check_version(path, version)
        raise failed(path, path, error, "ORC") from error


def _stripe_rows(file: orc.ORCFile) -> Iterator[int]:
    """How many rows each stripe has, from the file's tail, which Arrow gives as it stands."""
    tail = dict(_fields(file.reader.serialized_file_tail()))
    for number, value in _fields(tail[_FOOTER]):
        if number == _STRIPES:
            yield dict(_fields(value)).get(_ROWS, 0)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and bytes of a message of protocol buffers, by the numbers of their fields."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        elif kind == 2:
            length, at = _varint(message, at)
            yield key >> 3, message[at : at + length]
            at += length
        else:
            at += {1: 8, 5: 4}[kind]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
