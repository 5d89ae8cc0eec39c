"""Delimited text read by Python's csv module, a row at a time: the twin of declared CSV."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from tests.oracle.text import BAD, declared_value


def delimited_rows(
    text: str,
    schema: pa.Schema,
    *,
    sep: str,
    quote: str,
    header: bool,
    null: str,
    strptime: str | None,
) -> list[dict[str, Any] | str]:
    """One entry per row: the values of the declared columns, or BAD."""
    quoting = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    quotechar = quote or None
    lines = io.StringIO(text, newline="")
    records = [
        r for r in csv.reader(lines, delimiter=sep, quotechar=quotechar, quoting=quoting) if r
    ]
    if header:
        names, *records = records
    else:
        names = [*schema.names, *(f"c{i + 1}" for i in range(len(schema), len(records[0])))]
    rows: list[dict[str, Any] | str] = []
    for record in records:
        try:
            if len(record) != len(names):
                raise ValueError(record)
            cells = dict(zip(names, record, strict=True))
            rows.append({f.name: _value(cells[f.name], f.type, null, strptime) for f in schema})
        except ValueError:
            rows.append(BAD)
    return rows


def _value(cell: str, type_: pa.DataType, null: str, strptime: str | None) -> Any:
    if cell in ("", null):
        return None
    if pa.types.is_timestamp(type_) and strptime is not None:
        if not re.fullmatch(r"\d\d\.\d\d\.\d{4} \d\d:\d\d", cell.strip(" \t")):
            raise ValueError(cell)
        return datetime.strptime(cell.strip(" \t"), strptime).replace(tzinfo=UTC)
    if pa.types.is_decimal(type_):
        return _decimal(cell.strip(" \t"), type_)
    value = declared_value(cell, type_)
    if pa.types.is_integer(type_) and not -(2**31) <= value < 2**31:
        raise ValueError(cell)
    return value


def _decimal(cell: str, type_: pa.DataType) -> Decimal:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", cell):
        raise ValueError(cell)
    try:
        value = Decimal(cell).quantize(Decimal(1).scaleb(-type_.scale))
    except InvalidOperation as error:
        raise ValueError(cell) from error
    if value != Decimal(cell) or abs(value) >= Decimal(10) ** (type_.precision - type_.scale):
        raise ValueError(cell)
    return value
