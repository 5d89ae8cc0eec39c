"""Writes rows as Avro records: the schema of their columns, and their values column by column.

Each column is a union with null, and its default is null. So columns may be added or removed, and
readers of either version read both. A named type is named by its path, which stays the same when
other columns are added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.connector import Int64s
from tidegate.errors import OptionError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROOT = "tidegate.Result"
_ABSENT, _THERE, _END = (pa.scalar(byte, pa.binary()) for byte in (b"\x00", b"\x02", b"\x00"))
_NOTHING = pa.scalar(b"", pa.binary())

_PLAIN: dict[pa.DataType, Any] = {
    pa.null(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
}


def avro_schema(schema: pa.Schema, where: str) -> str:
    """The schema of rows as text; refuses a column whose type Avro does not have."""
    return json.dumps(_record(_ROOT, schema, where))


def avro_values(batch: pa.RecordBatch, head: bytes) -> pa.Array:
    """The rows as values, each after the bytes `head`; costs a pass over each column."""
    columns = [_nullable(column) for column in batch.columns]
    return _joined([pa.scalar(head, pa.binary()), *columns], batch.num_rows)


def _record(path: str, fields: Iterable[pa.Field], where: str) -> dict[str, Any]:
    space, _, name = path.rpartition(".")
    listed = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            must = "columns in Avro must have names of letters, digits and _"
            raise OptionError(where, must, repr(field.name), "Give it another name with AS.")
        type_ = _type(field.type, f"{path}.{field.name}", where)
        listed.append({"name": field.name, "type": ["null", type_], "default": None})
    return {"type": "record", "name": name, "namespace": space, "fields": listed}


def _type(type_: pa.DataType, path: str, where: str) -> Any:
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if pa.types.is_decimal128(type_) and type_.scale >= 0:
        of = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "bytes", "logicalType": "decimal", **of}
    if pa.types.is_struct(type_) and type_.num_fields:
        return _record(path, type_, where)
    if pa.types.is_list(type_):
        return {"type": "array", "items": ["null", _type(type_.value_type, f"{path}.item", where)]}
    if pa.types.is_map(type_) and pa.types.is_string(type_.key_type):
        return {"type": "map", "values": ["null", _type(type_.item_type, f"{path}.value", where)]}
    column = path.removeprefix(f"{_ROOT}.").partition(".")[0]
    must = f"column {column} must be of a type that Avro has"
    raise OptionError(where, must, str(type_), "Use CAST in the query, or format=json.")


def _nullable(array: pa.Array) -> pa.Array:
    """Encode values of a union with null: the branch, then the value where there is one."""
    if array.null_count == len(array):
        return pa.repeat(_ABSENT, len(array))
    values = array.drop_null()
    there = _joined([_THERE, _encoded(values)], len(values))
    if not array.null_count:
        return there
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return there.take(pa.array(np.cumsum(valid) - 1, mask=~valid)).fill_null(_ABSENT)


def _encoded(array: pa.Array) -> pa.Array:
    """Encode values, none of which is NULL."""
    for holds, encode in _ENCODERS:
        if holds(array.type):
            return encode(array)
    return _varints(array.cast(pa.int32()).cast(pa.int64()))  # dates


def _booleans(array: pa.Array) -> pa.Array:
    return _fixed(array.cast(pa.uint8()).to_numpy()[:, None])


def _longs(array: pa.Array) -> pa.Array:
    return _varints(array.cast(pa.int64()))


def _fractions(array: pa.Array) -> pa.Array:
    numbers = array.to_numpy()
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    return _fixed(little.view(np.uint8).reshape(len(array), -1))


def _texts(array: pa.Array) -> pa.Array:
    return _sized(array.cast(pa.binary()))


def _decimals(array: pa.Array) -> pa.Array:
    """Big-endian bytes, as many as the precision can need."""
    needed = int(array.type.precision * np.log2(10) + 1) // 8 + 1
    stop = array.offset + len(array)
    whole = np.frombuffer(array.buffers()[1], np.uint8)[: stop * 16].reshape(-1, 16)
    return _sized(_fixed(whole[array.offset :, needed - 1 :: -1]))


def _lists(array: pa.Array) -> pa.Array:
    return _blocks(array, _nullable(array.values.slice(*_span(array))))


def _maps(array: pa.Array) -> pa.Array:
    keys = _texts(array.keys.slice(*_span(array)))
    items = _nullable(array.items.slice(*_span(array)))
    return _blocks(array, _joined([keys, items], len(keys)))


def _span(array: pa.Array) -> tuple[int, int]:
    """The first item of all lists, and the number of items."""
    first, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return first, stop - first


def _structs(array: pa.Array) -> pa.Array:
    return _joined([_nullable(field) for field in array.flatten()], len(array))


def _blocks(array: pa.Array, items: pa.Array) -> pa.Array:
    """Encode each list as one block with all its items, then the empty block that ends it."""
    offsets = array.offsets.to_numpy()
    lengths = pa.array(np.diff(offsets), pa.int64())
    ends = pc.if_else(pc.greater(lengths, 0), _END, _NOTHING)
    offsets = pa.array(offsets - offsets[0], pa.int32())
    whole = pc.binary_join(pa.ListArray.from_arrays(offsets, items), _NOTHING)
    return _joined([_varints(lengths), whole, ends], len(array))


def _sized(values: pa.Array) -> pa.Array:
    """Each value after its length in bytes."""
    return _joined([_varints(pc.binary_length(values).cast(pa.int64())), values], len(values))


def _joined(parts: list[pa.Array | pa.Scalar], rows: int) -> pa.Array:
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.repeat(parts[0], rows)
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _varints(numbers: pa.Array) -> pa.Array:
    """Encode int64 in zigzag, seven bits a byte; costs a pass for each byte of the longest."""
    signed: Int64s = numbers.to_numpy()
    bits = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    widths = np.ones(len(bits), np.int64)
    for place in range(1, 10):
        widths += (bits >> np.uint64(7 * place)) > 0
    offsets = np.concatenate([[0], np.cumsum(widths)])
    out = np.empty(int(offsets[-1]), np.uint8)
    for place in range(int(widths.max(initial=0))):
        rows = np.flatnonzero(widths > place)
        byte = (bits[rows] >> np.uint64(7 * place)) & np.uint64(127)
        more = (widths[rows] > place + 1).astype(np.uint8) << 7
        out[offsets[rows] + place] = byte.astype(np.uint8) | more
    return _binary(offsets, out)


def _fixed(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.Array:
    """A binary array from bytes of shape (rows, width)."""
    count, width = rows.shape
    return _binary(np.arange(count + 1) * width, np.ascontiguousarray(rows).reshape(-1))


def _binary(offsets: Int64s, data: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


_ENCODERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (pa.types.is_boolean, _booleans),
    (pa.types.is_integer, _longs),
    (pa.types.is_floating, _fractions),
    (pa.types.is_timestamp, _longs),
    (pa.types.is_time, _longs),
    (pa.types.is_string, _texts),
    (pa.types.is_binary, _texts),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_list, _lists),
    (pa.types.is_map, _maps),
    (pa.types.is_struct, _structs),
)
"""The encoder of each kind of type; `_encoded` handles dates."""
