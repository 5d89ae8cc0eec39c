"""JSON lines, between the bytes of a block and a table: one object per line.

Keys that an object lacks are NULL, keys that the schema lacks are left out. Times are texts in
ISO 8601, in UTC unless they say otherwise; nested values are structs and lists.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from tidegate.errors import SourceError
from tidegate.schema import TIME, type_name
from tidegate.source.block import Records, split_lines
from tidegate.source.event_time import mostly_times, parse_time
from tidegate.source.protocol import Reject
from tidegate.source.text import Head, Parsed, with_times

_BOM = b"\xef\xbb\xbf"
_OPEN, _CLOSE = 123, 125
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class JsonFormat:
    """One JSON object per line, UTF-8."""

    def split(self, data: bytes, final: bool) -> Records:
        return split_lines(data, final)

    def parse(self, data: bytes, rows: int, schema: pa.Schema) -> Parsed:
        records = split_lines(data, True)
        if _regular(data, records):
            try:
                table = _read(data, schema)
            except pa.ArrowInvalid:
                table = None
            if table is not None and table.num_rows == rows:
                timed = with_times(table, schema)
                if timed is not None:
                    return Parsed(timed, None, ())
        return _parse_each([data[a:b] for a, b in zip(records.starts, records.stops)], schema)


def read_head(data: bytes, whole: bool, final: bool, time: str | None, where: str) -> Head | None:
    """What the first bytes of a file say; None where they hold too little to say it."""
    origin = len(_BOM) if data.startswith(_BOM) else 0
    data = data[origin:]
    records = split_lines(data, final)
    if not len(records):
        return None
    lines = [data[a:b] for a, b in zip(records.starts, records.stops)]
    schema = _infer(data[: records.used], records, lines, time)
    if schema is None:
        if not whole:
            return None
        array = lines[0].startswith(b"[")
        raise SourceError(
            where,
            "each line must be one JSON object",
            "a JSON array" if array else repr(lines[0][:80].decode("utf-8", "replace")),
            "Write one object per line, for an array with: jq -c '.[]' FILE.",
        )
    return Head(JsonFormat(), origin, schema)


def _regular(data: bytes, records: Records) -> bool:
    """Whether each line begins and ends like an object and all is UTF-8.

    Then, when Arrow finds as many objects as there are lines, each line is one object: between
    `}` and `{` a line feed can only stand outside of objects.
    """
    text = np.frombuffer(data, np.uint8)
    if not (text[records.starts] == _OPEN).all() or not (text[records.stops - 1] == _CLOSE).all():
        return False
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _read(data: bytes, schema: pa.Schema | None) -> pa.Table:
    explicit = None
    if schema is not None:
        fields = [(f.name, pa.string() if f.type == TIME else f.type) for f in schema]
        explicit = pa.schema(fields)
    return pajson.read_json(
        pa.BufferReader(data),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=explicit,
            unexpected_field_behavior="infer" if explicit is None else "ignore",
        ),
    )


def _parse_each(lines: Sequence[bytes], schema: pa.Schema) -> Parsed:
    """The slow way, for blocks in which something is wrong: line by line."""
    reasons = {place: why for place, line in enumerate(lines) if (why := _fault(line, schema))}
    places = [p for p in range(len(lines)) if p not in reasons]
    tables: list[pa.Table] = []
    for place, part in zip(places, _tables([lines[p] for p in places], schema), strict=False):
        del place
        tables.append(part)
    columns: list[pa.Array] = []
    del tables, columns
    raise NotImplementedError
