"""Maps SQL types to Arrow types."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError
from tidegate.query.types.coercion import UnknownKernel
from tidegate.schema import TIME

_TYPES = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIME,
    "TIMESTAMPTZ": TIME,
    "TIMESTAMPLTZ": TIME,
    "BINARY": pa.binary(),
}


def sql_type(data_type: exp.DataType, where: str) -> pa.DataType:
    """The engine's type for a type in CAST."""
    name = data_type.this.name if isinstance(data_type.this, exp.DataType.Type) else ""
    if name == "DECIMAL":
        written = [str(p.this.this) for p in data_type.expressions] or ["10", "0"]
        digits = [int(w) if w.isdecimal() and len(w) < 4 else -1 for w in written]
        precision, scale = (*digits, 0)[:2]
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise QueryError(where, "DECIMAL(p, s) must have s <= p <= 38", data_type.sql("spark"))
        return pa.decimal128(precision, scale)
    if name in _TYPES:
        return _TYPES[name]
    raise UnknownKernel(
        where,
        "the type must be one that runs without Spark",
        data_type.sql("spark"),
        "Run with a Spark master, or use " + ", ".join(sorted(_TYPES)).lower() + " or decimal.",
    )
