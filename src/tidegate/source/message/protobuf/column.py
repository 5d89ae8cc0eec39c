"""Turns messages of Protobuf into columns: their types, and their values field by field.

A field that was not set is NULL where Protobuf tracks that, and zero where it does not. Enums are
the names of their values. Timestamps and durations become the engine's own types. Wrappers such as
`DoubleValue` are nullable columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tidegate.schema import TIME

_DURATION = pa.duration("us")
_SINGLE = {
    "CPPTYPE_INT32": pa.int32(),
    "CPPTYPE_INT64": pa.int64(),
    "CPPTYPE_UINT32": pa.int64(),
    "CPPTYPE_UINT64": pa.decimal128(20, 0),
    "CPPTYPE_DOUBLE": pa.float64(),
    "CPPTYPE_FLOAT": pa.float32(),
    "CPPTYPE_BOOL": pa.bool_(),
    "CPPTYPE_ENUM": pa.string(),
}
_INSTANTS = {"google.protobuf.Timestamp": TIME, "google.protobuf.Duration": _DURATION}
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in "Double Float Int64 UInt64 Int32 UInt32 Bool String Bytes".split()
)
DEEPEST = 40


class UnheldError(ValueError):
    """A message that no column can hold: one inside itself, or one without fields."""


def column_types(message: Any, declared: Sequence[str] | None) -> pa.Schema:
    """The columns of a message, or only the declared ones, whatever the case of their letters.

    UnheldError where a column is of a message type that no column can hold.
    """
    wanted = None if declared is None else {name.lower() for name in declared}
    fields = [f for f in message.fields if wanted is None or f.name.lower() in wanted]
    return pa.schema([(f.name, _type(f, (message.full_name,))) for f in fields])


def _type(field: Any, around: tuple[str, ...]) -> pa.DataType:
    entry = _entry(field)
    if entry is not None:
        key, value = entry
        return pa.map_(_single(key, around), _single(value, around))
    single = _single(field, around)
    return pa.list_(single) if _repeated(field) else single


def _single(field: Any, around: tuple[str, ...]) -> pa.DataType:
    message = field.message_type
    if message is None:
        if _cpp(field) == "CPPTYPE_STRING":
            return pa.binary() if field.type == field.TYPE_BYTES else pa.string()
        return _SINGLE[_cpp(field)]
    name = message.full_name
    if name in _INSTANTS:
        return _INSTANTS[name]
    if name in _WRAPPERS:
        return _single(message.fields_by_name["value"], around)
    if name in around or len(around) > DEEPEST:
        raise UnheldError(f"field {field.name} of message {name}, which is inside itself")
    if not message.fields:
        raise UnheldError(f"field {field.name} of message {name}, which has no fields")
    return pa.struct([(f.name, _type(f, (*around, name))) for f in message.fields])


def field_column(messages: Sequence[Any], field: Any, type_: pa.DataType) -> pa.Array:
    """One field of all messages; a message of None gives NULL."""
    name = field.name
    entry = _entry(field)
    if entry is not None:
        return _map_column(messages, field, entry, type_)
    if _repeated(field):
        lists = [() if m is None else getattr(m, name) for m in messages]
        items = _values([v for found in lists for v in found], field, type_.value_type)
        return pa.ListArray.from_arrays(_offsets(map(len, lists)), items, type=type_)
    if field.has_presence:
        found = [getattr(m, name) if m is not None and m.HasField(name) else None for m in messages]
    else:
        found = [None if m is None else getattr(m, name) for m in messages]
    return _values(found, field, type_)


def _map_column(
    messages: Sequence[Any], field: Any, entry: tuple[Any, Any], type_: pa.DataType
) -> pa.Array:
    """Maps, sorted by key, because the library gives them in no fixed order."""
    maps = [{} if m is None else dict(getattr(m, field.name)) for m in messages]
    pairs = [(key, found[key]) for found in maps for key in sorted(found)]
    keys = _values([k for k, _ in pairs], entry[0], type_.key_type)
    items = _values([v for _, v in pairs], entry[1], type_.item_type)
    return pa.MapArray.from_arrays(_offsets(map(len, maps)), keys, items, type=type_)


def _offsets(lengths: Any) -> pa.Array:
    total, found = 0, [0]
    for length in lengths:
        total += length
        found.append(total)
    return pa.array(found, pa.int32())


def _values(values: Sequence[Any], field: Any, type_: pa.DataType) -> pa.Array:
    """Single values of a field in its type; None is NULL."""
    message = field.message_type
    if message is None:
        if field.enum_type is not None:
            names = {v.number: v.name for v in field.enum_type.values}
            values = [None if v is None else names.get(v, str(v)) for v in values]
        return pa.array(values, type_)
    if message.full_name in _INSTANTS:
        micros = [None if v is None else v.seconds * 10**6 + v.nanos // 1000 for v in values]
        return pa.array(micros, pa.int64()).view(type_)
    if message.full_name in _WRAPPERS:
        inner = message.fields_by_name["value"]
        return _values([None if v is None else v.value for v in values], inner, type_)
    inside = {f.name: f for f in message.fields}
    columns = [field_column(values, inside[f.name], f.type) for f in type_]
    mask = pa.array([v is None for v in values], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(type_), mask=mask)


def _entry(field: Any) -> tuple[Any, Any] | None:
    """The key and the value of a map; None for other fields."""
    message = field.message_type
    if message is None or not message.GetOptions().map_entry:
        return None
    return message.fields_by_name["key"], message.fields_by_name["value"]


def _repeated(field: Any) -> bool:
    known = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


def _cpp(field: Any) -> str:
    return _CPP[field.cpp_type]


_CPP = {
    number: f"CPPTYPE_{name}"
    for number, name in enumerate(
        "INT32 INT64 UINT32 UINT64 DOUBLE FLOAT BOOL ENUM STRING MESSAGE".split(), 1
    )
}
