"""Encodes the default of a field, JSON in the schema, as an Avro value of the field's type.

Plain Python, because each default is encoded only once.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from tidegate.source.message.avro.schema import AvroType

_FLOATS = {"float": "<f", "double": "<d"}


def default_bytes(type_: AvroType, default: str) -> bytes:
    """A default in Avro's encoding; ValueError where it is not of the type."""
    try:
        return _encoded(type_, json.loads(default))
    except (TypeError, KeyError, AttributeError, OverflowError, struct.error) as error:
        raise ValueError(f"the default {default} is not of type {type_.title}") from error


def _encoded(type_: AvroType, value: Any) -> bytes:
    kind = type_.kind
    if kind == "null":
        if value is not None:
            raise TypeError("null has no other value")
        return b""
    if kind == "boolean":
        return bytes([{True: 1, False: 0}[value]])
    if kind in ("int", "long"):
        return _varint(value)
    if kind in _FLOATS:
        return struct.pack(_FLOATS[kind], float(value))
    if kind == "string":
        return _sized(value.encode())
    if kind == "bytes":
        return _sized(value.encode("latin-1"))
    if kind == "fixed":
        return bytes(value.encode("latin-1"))
    if kind == "enum":
        return _varint(type_.symbols.index(value))
    if kind == "record":
        return b"".join(
            _encoded(f.type, value[f.name] if f.name in value else json.loads(f.default))
            for f in type_.fields
        )
    if kind == "array":
        return _items([_encoded(type_.parts[0], v) for v in value])
    if kind == "map":
        return _items([_sized(k.encode()) + _encoded(type_.parts[0], v) for k, v in value.items()])
    return _branch(type_, value)


def _branch(union: AvroType, value: Any) -> bytes:
    """The first branch that takes the value; before version 1.12 only the very first one did."""
    for i, part in enumerate(union.parts):
        try:
            return _varint(i) + _encoded(part, value)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, struct.error):
            continue
    raise TypeError("no branch takes it")


def _varint(value: int) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    left, found = (value << 1) ^ (value >> 63), bytearray()
    while left > 127:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])


def _sized(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _items(items: list[bytes]) -> bytes:
    return (_varint(len(items)) + b"".join(items) if items else b"") + b"\0"
