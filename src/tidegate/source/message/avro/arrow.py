"""Maps Avro types to the types of columns, as Spark does.

A union with null is a nullable column. A union of whole numbers, or of fractions, is the wider of
its types. Any other union is a struct of `member0`, `member1` and so on, one of which is not NULL.
"""

from __future__ import annotations

import pyarrow as pa

from tidegate.schema import TIME
from tidegate.source.message.avro.schema import AvroType

_PLAIN = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}

_LOGICAL = {"date": pa.date32(), "uuid": pa.string()}
_LOGICAL |= dict.fromkeys(("time-millis", "time-micros"), pa.time64("us"))

_WIDER = {frozenset({"int", "long"}): pa.int64(), frozenset({"float", "double"}): pa.float64()}


def arrow_schema(record: AvroType) -> pa.Schema:
    """The columns of a record."""
    return pa.schema([(f.name, arrow_type(f.type)) for f in record.fields])


def arrow_type(type_: AvroType) -> pa.DataType:
    """The normalised type of a column, or of a part of one."""
    if type_.logical is not None:
        return _logical_type(type_)
    if type_.kind == "record":
        return pa.struct([(f.name, arrow_type(f.type)) for f in type_.fields])
    if type_.kind == "array":
        return pa.list_(arrow_type(type_.parts[0]))
    if type_.kind == "map":
        return pa.map_(pa.string(), arrow_type(type_.parts[0]))
    if type_.kind == "union":
        members = members_of(type_)
        if not members:
            return pa.string()
        return single_type(type_) or pa.struct(
            [(f"member{i}", arrow_type(m)) for i, m in enumerate(members)]
        )
    return _PLAIN[type_.kind]


def members_of(union: AvroType) -> list[AvroType]:
    """The branches of a union that are not null."""
    return [part for part in union.parts if part.kind != "null"]


def single_type(union: AvroType) -> pa.DataType | None:
    """The one type of all members of a union; None where they are a struct."""
    members = members_of(union)
    if len(members) == 1:
        return arrow_type(members[0])
    plain = all(m.logical is None for m in members)
    return _WIDER.get(frozenset(m.kind for m in members)) if plain else None


def _logical_type(type_: AvroType) -> pa.DataType:
    if type_.logical == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    return _LOGICAL.get(str(type_.logical), TIME)
