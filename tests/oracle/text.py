"""CSV and JSON lines read one character and one row at a time: the twin of source/text."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

BAD = "bad"


def csv_records(data: bytes) -> list[bytes]:
    """The non-empty records, header and all; an unclosed quote ends at its first line end.

    A line feed ends a record, and so does a carriage return: the second of both an empty one.
    """
    records, at = [], 0
    while at < len(data):
        stop = _record_end(data, at)
        if stop is None:
            stop = min((i + 1 for c in b"\r\n" if (i := data.find(c, at)) >= 0), default=len(data))
        record = data[at:stop].rstrip(b"\r\n")
        if record:
            records.append(record)
        at = stop
    return records


def _record_end(data: bytes, at: int) -> int | None:
    field_start, quoted = True, False
    while at < len(data):
        char = data[at : at + 1]
        at += 1
        if quoted:
            if char == b'"':
                if data[at : at + 1] == b'"':
                    at += 1
                else:
                    quoted = False
        elif char == b'"' and field_start:
            quoted, field_start = True, False
        elif char in b"\r\n":
            return at
        else:
            field_start = char == b","
    return None if quoted else at


def csv_fields(record: str) -> list[str] | None:
    """The cells of a record; None where a quote is not closed."""
    fields, cell, field_start, quoted, at = [], "", True, False, 0
    while at < len(record):
        char = record[at]
        at += 1
        if quoted:
            if char == '"' and record[at : at + 1] == '"':
                cell += '"'
                at += 1
            elif char == '"':
                quoted = False
            else:
                cell += char
        elif char == '"' and field_start:
            quoted, field_start = True, False
        elif char == ",":
            fields.append(cell)
            cell, field_start = "", True
        else:
            cell += char
            field_start = False
    return None if quoted else [*fields, cell]


def csv_rows(data: bytes, schema: pa.Schema) -> list[dict[str, Any] | str]:
    """One entry per position: the values of a row, or BAD."""
    header, *records = csv_records(data)
    names = csv_fields(header.decode("utf-8-sig"))
    assert names is not None
    rows: list[dict[str, Any] | str] = []
    for record in records:
        try:
            fields = csv_fields(record.decode())
            if fields is None or len(fields) != len(names):
                raise ValueError(record)
            cells = dict(zip(names, fields, strict=True))
            rows.append({f.name: cell_value(cells[f.name], f.type) for f in schema})
        except ValueError:
            rows.append(BAD)
    return rows


def cell_value(cell: str, type_: pa.DataType) -> Any:
    """A CSV cell as a value of an inferred type; ValueError where it is none."""
    number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if number and re.match(r"[ \t]*(\+|-?0[0-9xX])", cell):
        raise ValueError(cell)
    return declared_value(cell, type_)


def declared_value(cell: str, type_: pa.DataType) -> Any:
    """A CSV cell as a value of a declared type; ValueError where it is none."""
    if cell == "":
        return None
    if pa.types.is_string(type_):
        return cell
    cell = cell.strip(" \t")
    if pa.types.is_timestamp(type_):
        return moment(cell)
    if pa.types.is_date(type_):
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", cell):
            raise ValueError(cell)
        return date.fromisoformat(cell)
    if pa.types.is_boolean(type_):
        if cell not in ("1", "true", "True", "TRUE", "0", "false", "False", "FALSE"):
            raise ValueError(cell)
        return cell in ("1", "true", "True", "TRUE")
    if pa.types.is_integer(type_):
        if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", cell):
            bits = int(cell, 16)
            return bits - 2**64 if bits >= 2**63 else bits
        if not re.fullmatch(r"[+-]?[0-9]+", cell) or not -(2**63) <= int(cell) < 2**63:
            raise ValueError(cell)
        return int(cell)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", cell):
        raise ValueError(cell)
    return float(cell)


def moment(text: str) -> datetime:
    """ISO 8601 with or without a zone, cut to microseconds."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", text)
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def json_rows(data: bytes, schema: pa.Schema) -> list[dict[str, Any] | str]:
    """One entry per line that is not blank: the values of a row, or BAD."""
    rows: list[dict[str, Any] | str] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            found = json.loads(line.decode())
            if not isinstance(found, dict):
                raise ValueError(line)
            rows.append({f.name: _json_value(found.get(f.name), f.type) for f in schema})
        except ValueError:
            rows.append(BAD)
    return rows


def _json_value(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if pa.types.is_boolean(type_) and isinstance(value, bool):
        return value
    if pa.types.is_integer(type_) and number and isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return value
    elif pa.types.is_floating(type_) and number:
        return float(value)
    elif pa.types.is_string(type_) and isinstance(value, str):
        return value
    elif pa.types.is_timestamp(type_) and isinstance(value, str):
        return moment(value.strip(" \t"))
    raise ValueError(value)
