"""Reads ORC files: stripes, whose sizes are in the file's tail.

The least times are not known: stripes have statistics, but Arrow does not give them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import orc

from tidegate.batch import MIN_US
from tidegate.source.columnar import ColumnarFormat, Footer
from tidegate.source.mark import EDGE_BYTES
from tidegate.storage import disk

_FOOTER, _STRIPES, _ROWS = 2, 3, 5
"""Field numbers: of the footer in the tail, of stripes in the footer, of rows in a stripe."""


class OrcFormat(ColumnarFormat):
    """ORC, whose stripes are the groups."""

    name, title = "orc", "ORC"

    def read_footer(self, path: str, size: int, time: str | None) -> Footer:
        end = disk.read(path, max(size - EDGE_BYTES, 0))
        with disk.at(path).open_arrow(path) as raw:
            file = orc.ORCFile(raw)
            rows = list(_stripe_rows(file))
            return Footer(end, file.schema, rows, [MIN_US] * len(rows))

    def read_group(
        self, path: str, number: int, choose: Callable[[Sequence[str]], list[str]]
    ) -> pa.Table:
        with disk.at(path).open_arrow(path) as raw:
            file = orc.ORCFile(raw)
            batch = file.read_stripe(number, columns=choose(file.schema.names))
            return pa.Table.from_batches([batch])


def _stripe_rows(file: orc.ORCFile) -> Iterator[int]:
    """The rows of each stripe, parsed from the file's tail, which Arrow gives as raw bytes."""
    tail = dict(_fields(file.reader.serialized_file_tail()))
    for number, value in _fields(tail[_FOOTER]):
        if number == _STRIPES:
            yield dict(_fields(value)).get(_ROWS, 0)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The varint and bytes fields of a Protobuf message, with their field numbers."""
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
